"""`packetgate tools`, `policy` and `settings`: print them as tables or JSON."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.options import (
    AsJson,
    Commands,
    Lite,
    McpConfigPath,
    Prime,
    Set,
    Writes,
    check_settings_files,
    context_for_others,
    run_settings_from,
    settings_from,
)
from packetgate.connectors.rendering import print_rows, safe_text, say
from packetgate.gate.client_labels import ClientLabels
from packetgate.gate.grants import Grants
from packetgate.graph.composition import model_names, model_pool
from packetgate.graph.journal import open_journal
from packetgate.graph.servers import open_tools
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.models.options import MODEL
from packetgate.ranking.store import delete_uses
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.printing import counted, printable
from packetgate.state.routing import Risk
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.builtin.appeared import confirm as confirm_file


async def tools(
    name: Annotated[
        str | None, typer.Argument(help="Show only this tool, in full, or those of this server or category.")
    ] = None,
    mcp_config: McpConfigPath = None,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the uses that the ranking learned.")] = False,
    as_json: AsJson = False,
) -> int:
    """List the tools with risk, category and description."""
    settings = settings_from(mcp_config=mcp_config)
    if forget:
        async with open_store(settings) as store:
            count = await delete_uses(store, name)
        say(f"forgotten: {counted(count, 'confirmed call')}; the journal is kept", "")
        return 0
    check_settings_files(settings)
    async with open_tools(settings) as hub:
        catalogue, health = await hub.catalogue(wait_for_all=True), hub.health()
    tool = None if name is None else catalogue.canonical(name)
    names = [tool] if tool else [*catalogue] if name is None else [*catalogue.group(name)]
    if name is not None and not names:
        nearest = ", ".join(catalogue.similar_names(name)) or "none"
        raise RequestError(
            f"there is no tool, server or category {name!r}; nearest: {nearest}. `packetgate tools` lists all"
        )
    specs = await with_answers([catalogue[key] for key in names], settings)
    out = rendering.console(quiet=as_json)
    if tool and not as_json:
        out.print(_full_text(specs[0]), end="\n\n")
    else:
        columns: rendering.Columns = {
            "tool": "name",
            "risk": "risk",
            "who says so": "risk_source",
            "category: what it does": lambda row: ": ".join(filter(None, [_labels(row), row["brief"]])),
        }
        print_rows([_row(spec) for spec in specs], columns, as_json=as_json)
    problems = [server.problem_line for server in health if server.problem_line]
    for problem in [*problems, *(unmatched_patterns(catalogue, settings.preferences_path) if name is None else [])]:
        out.print(safe_text(f"! {problem}", "yellow"))
    return 0


def unmatched_patterns(catalogue: Catalogue, path: Path | None) -> Iterator[str]:
    """Yield a line for each pattern of the preferences that matches no tool, even if the tool's server is down."""
    for setting, pattern in catalogue.preferences.unmatched_patterns(catalogue):
        nearest = ", ".join(catalogue.similar_names(pattern, limit=3))
        yield f"{path}: {setting}: {pattern!r} matches no tool{f'; nearest: {nearest}' if nearest else ''}"


async def with_answers(specs: Sequence[ToolSpec], settings: Settings) -> list[ToolSpec]:
    """Return the tools; those that the user's remembered answers trust are reads.

    Raises:
        ConfigError: the database cannot be read.
    """
    trusted = await Grants(open_journal(settings)).trusted_tools() if settings.has_database else {}
    return [
        replace(spec, risk=Risk.READ, risk_source=f"your answer of {trusted[spec.digest].given_at:%Y-%m-%d}")
        if spec.digest in trusted and spec.is_unconfirmed_read
        else spec
        for spec in specs
    ]


def _row(spec: ToolSpec) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(spec).items() if name != "neighbours" and not callable(value)}
    return {**fields, "category": spec.category, "is_external": spec.is_external}


def _labels(row: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, [row["category"], "external" if row["is_external"] else ""]))


def _full_text(spec: ToolSpec) -> Text:
    risk = spec.risk.value
    text = Text(spec.name, style="bold cyan").append(f"  {risk}", style=rendering.CELL_STYLES[risk])
    text.append(printable(f"  {_labels(_row(spec))}\n"), style="magenta")
    if spec.risk_reasons:
        reasons = f"may {risk}: {'; '.join(spec.risk_reasons)} (said by: {spec.risk_source})\n"
        text.append(printable(reasons), style="dim")
    if spec.undo:
        text.append(f"to undo a call: {printable(spec.undo)}\n", style="dim")
    text.append(printable(spec.full) + "\n", style="default")
    return text.append(json.dumps(spec.input_schema, indent=2, ensure_ascii=False), style="dim")


async def policy(
    revoke: Annotated[str | None, typer.Option("--revoke", help="Revoke a remembered answer by its id.")] = None,
    clear_labels: Annotated[
        str | None,
        typer.Option("--clear-labels", help="Delete the labels of a proxy client that began a new conversation."),
    ] = None,
    confirm: Annotated[
        Path | None, typer.Option("--confirm", help="Use a settings file that confined programs may have written.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the policy rules, remembered answers, and labels of the proxy's clients."""
    settings = settings_from()
    journal = open_journal(settings)
    if clear_labels is not None:
        if not await ClientLabels(journal).clear(clear_labels):
            raise RequestError(f"the proxy's client {clear_labels!r} has no label: `packetgate policy` lists them")
        say(f"client {clear_labels} has no labels", "")
    elif confirm is not None:
        if not confirm.is_file():
            raise RequestError(f"{confirm} is not a file: name the settings file that Packetgate does not use")
        await asyncio.to_thread(confirm_file, confirm, settings.home)
        say(f"{confirm} is used from now on", "")
    elif revoke is not None:
        if not await Grants(journal).revoke(revoke):
            raise RequestError(f"no valid grant has the id {revoke!r}: `packetgate policy` lists them")
        say(f"grant {revoke} is revoked", "")
    else:
        await _list_policy(settings, as_json=as_json)
    return 0


async def _list_policy(settings: Settings, *, as_json: bool) -> None:
    journal, configured = open_journal(settings), load_preferences(settings.preferences_path).policy
    grants = [grant for grant in await Grants(journal).all() if grant.is_valid]
    rows: list[dict[str, Any]] = [
        {"id": f"rule {number}", "says": rule.line, "state": "", **rule.model_dump(mode="json", exclude_defaults=True)}
        for number, rule in enumerate(configured.rules)
    ]
    for grant in grants:
        used = f"used {grant.use_count} times" if grant.grant.effect == "allow" else ""
        row = {"id": grant.grant.grant_id, "says": grant.grant.line, "state": used, "used": grant.use_count}
        rows.append({**row, **dict(grant.grant)})
    for client, labels in (await ClientLabels(journal).all()).items():
        held = "; ".join(f"{one.label.meaning} from {one.source}, {one.at:%Y-%m-%d %H:%M} UTC" for one in labels)
        rows.append({"id": f"client {client}", "says": held, "state": "labelled", "labels": labels})
    if rows or as_json:
        print_rows(rows, {"rule or grant": "id", "what it says": "says", "": "state"}, as_json=as_json)
    if not as_json:
        where = settings.preferences_path or "no packetgate.toml"
        totals = f"{counted(len(configured.rules), 'rule')}, {counted(len(grants), 'grant')}"
        say(f"{totals}; remember = {configured.remember} ({where})")


async def settings(
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
) -> int:
    """Show the settings of a run and the options of models, with their sources.

    A source is an option, a variable or a file. With another command's options, it shows the settings of that command.
    """
    process_settings = settings_from(lite=lite, prime=prime)
    run_settings = run_settings_from(process_settings, overrides, allow_writes, allow_commands)
    values: list[tuple[str, Any, str]] = [
        (name, value, run_settings.sources.get(name, "default"))
        for name, value in run_settings.context.model_dump(mode="json").items()
    ]
    for role, model in model_names(process_settings).items():
        values.append((f"models.{role}.{MODEL}", model.value, model.where))
    for role, role_options in model_pool(process_settings).given.items():
        values += [(f"models.{role}.{option}", given.value, given.where) for option, given in role_options.items()]
    rows = []
    for name, value, where in values:
        field = RoutingContext.model_fields.get(name)
        rows.append({"name": name, "value": value, "from": where, "description": field.description if field else ""})
    columns: rendering.Columns = {
        "setting": "name",
        "value": lambda row: safe_text(_value_text(row["value"]), "dim" if row["from"] == "default" else ""),
        "from": "from",
        "description": lambda row: safe_text(row["description"] or "", "dim"),
    }
    print_rows(rows, columns, as_json=as_json)
    context_for_others(run_settings)
    return 0


def _value_text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else json.dumps(value, ensure_ascii=False).strip('"')
