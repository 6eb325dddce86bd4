"""`packetgate tools`, `policy` and `settings`: print them as tables or JSON."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
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
    run_settings_from,
    settings_from,
)
from packetgate.connectors.rendering import safe_text, say, table, write_json
from packetgate.gate.client_labels import ClientLabels
from packetgate.gate.grants import Grant, Grants, GrantStatus
from packetgate.graph.composition import model_names, model_pool, open_tools
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.graph.usage import count_proxy_sessions, read_turns, usage_by_tool
from packetgate.models.options import MODEL
from packetgate.ranking.store import delete_uses
from packetgate.state.base import now
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, RequestError
from packetgate.state.printing import counted, printable, shorten
from packetgate.state.routing import Risk
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.policy.trial import ProposedCall, try_rules
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.builtin.appeared import confirm as confirm_file

_OUTCOMES = ("executed", "failed", "denied", "skipped", "unknown")
_DEFAULT = "default"
_TRIAL_DAYS = 30
_MAX_SHOWN_CALLS = 5


async def tools(
    name: Annotated[
        str | None, typer.Argument(help="Show only this tool, in full, or those of this server or category.")
    ] = None,
    mcp_config: McpConfigPath = None,
    full: Annotated[bool, typer.Option("--full", help="Full descriptions and schemas.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Count past calls and their outcomes.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete what was learned from confirmed calls.")] = False,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="With --usage or --forget: only turns of this session.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the tools with risk, category and description, or their past use."""
    settings = settings_from(mcp_config=mcp_config, local=True)
    if forget:
        async with open_store(settings) as store:
            count = await delete_uses(store, name, session)
        say(f"forgotten: {counted(count, 'confirmed call')}; the journal is kept", "")
    elif usage:
        await _show_usage(settings, name, session, as_json=as_json)
    else:
        await _list_tools(check_settings_files(settings), name, full=full, as_json=as_json)
    return 0


async def _list_tools(settings: Settings, name: str | None, *, full: bool, as_json: bool) -> None:
    async with open_tools(settings) as hub:
        catalogue, health = await hub.catalogue(), hub.health()
    tool = None if name is None else catalogue.canonical(name)
    names = [tool] if tool else [*catalogue] if name is None else [*catalogue.group(name)]
    if name is not None and not names:
        nearest = ", ".join(catalogue.similar_names(name)) or "none"
        raise RequestError(
            f"there is no tool, server or category {name!r}; nearest: {nearest}. `packetgate tools` lists all"
        )
    specs, problems = [catalogue[key] for key in names], [one.problem_line for one in health if one.problem_line]
    try:
        specs = await with_answers(specs, settings)
    except ConfigError as error:
        if as_json:
            raise
        problems.append(f"without your answers, because they cannot be read: {error}")
    if as_json:
        write_json([_as_json(spec) for spec in specs])
        return
    out = rendering.console()
    if full or tool:
        for spec in specs:
            out.print(_full_text(spec), end="\n\n")
    else:
        listed = table("tool", "risk", "who says so", "category: what it does", wrapped=(3,))
        for spec in specs:
            labels = f"{_labels(spec)}: " if _labels(spec) else ""
            about = Text(labels, style="magenta").append(printable(spec.brief), style="default")
            risk = safe_text(spec.risk.value, rendering.RISK_STYLE[spec.risk.value])
            listed.add_row(spec.name, risk, spec.risk_source, about)
        out.print(listed)
    for problem in [*problems, *(unmatched_patterns(catalogue, settings.preferences_path) if name is None else [])]:
        out.print(safe_text(f"! {problem}", "yellow"))


def unmatched_patterns(catalogue: Catalogue, path: Path | None) -> list[str]:
    """Return a line for each pattern of the preferences that matches no tool, also if the tool's server is down."""
    lines = []
    for setting, pattern in catalogue.preferences.unmatched_patterns(catalogue):
        nearest = ", ".join(catalogue.similar_names(pattern, limit=3))
        lines.append(f"{path}: {setting}: {pattern!r} matches no tool{f'; nearest: {nearest}' if nearest else ''}")
    return lines


async def with_answers(specs: Sequence[ToolSpec], settings: Settings) -> list[ToolSpec]:
    """Return the tools, those that the user's remembered answers trust as reads.

    Raises:
        ConfigError: the database cannot be read.
    """
    trusted = await Grants(open_journal(settings)).trusted_tools() if settings.has_database else {}
    return [_with_answer(spec, trusted) for spec in specs]


def _with_answer(spec: ToolSpec, trusted: Mapping[str, Grant]) -> ToolSpec:
    grant = trusted.get(spec.digest)
    if grant is None or not spec.is_unconfirmed_read:
        return spec
    return replace(spec, risk=Risk.READ, risk_source=f"your answer of {grant.given_at:%Y-%m-%d}")


def _as_json(spec: ToolSpec) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(spec).items() if name != "neighbours" and not callable(value)}
    return {**fields, "category": spec.category, "is_external": spec.is_external}


def _labels(spec: ToolSpec) -> str:
    return printable(", ".join(filter(None, [spec.category, "external" if spec.is_external else ""])))


def _full_text(spec: ToolSpec) -> Text:
    text = Text(spec.name, style="bold cyan")
    text.append(f"  {spec.risk.value}", style=rendering.RISK_STYLE[spec.risk.value])
    text.append(f"  {_labels(spec)}\n", style="magenta")
    if spec.risk_reasons:
        reasons = printable("; ".join(spec.risk_reasons))
        text.append(f"may {spec.risk.value}: {reasons} (said by: {spec.risk_source})\n", style="dim")
    if spec.undo:
        text.append(f"to undo a call: {printable(spec.undo)}\n", style="dim")
    text.append(printable(spec.full) + "\n", style="default")
    return text.append(json.dumps(spec.input_schema, indent=2, ensure_ascii=False), style="dim")


async def _show_usage(settings: Settings, name: str | None, session: str | None, *, as_json: bool) -> None:
    turns = await read_turns(open_journal(settings), settings.usage_days) if settings.has_database else []
    turns = [turn for turn in turns if session in (None, turn.session_id)]
    tools = [tool for tool in usage_by_tool(turns) if name is None or f"{tool.tool}.".startswith(f"{name}.")]
    if as_json:
        write_json([{**asdict(tool), "last_used": tool.last_used.isoformat()} for tool in tools])
        return
    shown = table("tool", "calls", "outcomes", "review", "last used", right=(1, 3), wrapped=(2,))
    for tool in tools:
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome in _OUTCOMES if (count := getattr(tool, outcome)))
        review = "" if tool.review_confidence is None else f"{tool.review_confidence:.2f}"
        last = f"{tool.last_used.astimezone():%Y-%m-%d %H:%M}"
        shown.add_row(safe_text(tool.tool), f"{tool.asked:,}", outcomes, review, last)
    rendering.console().print(shown)
    with_context, sessions = count_proxy_sessions(turns)
    if sessions:
        say(f"{with_context:,} of {counted(sessions, 'proxy session')} set a context ({with_context / sessions:.0%})")
    say(f"{counted(len(turns), 'turn')} in the last {settings.usage_days} days (PACKETGATE_USAGE_DAYS)")


async def policy(
    every: Annotated[bool, typer.Option("--all", help="Also expired and revoked answers.")] = False,
    revoke: Annotated[str | None, typer.Option("--revoke", help="Revoke a remembered answer by its id.")] = None,
    clear_labels: Annotated[
        str | None,
        typer.Option("--clear-labels", help="The conversation of this proxy client begins anew: forget what it read."),
    ] = None,
    test: Annotated[
        bool, typer.Option("--test", help="Show which calls of the last 30 days each rule matches. Changes nothing.")
    ] = False,
    confirm: Annotated[
        Path | None, typer.Option("--confirm", help="Use a settings file that confined programs may have written.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the policy rules, remembered answers, and labels of the proxy's clients.

    --test reads the file as it is now, so that you can try a rule before a running Packetgate reads it.
    """
    settings = settings_from(local=True)
    if test:
        await _test_rules(settings, as_json=as_json)
        return 0
    journal = open_journal(settings)
    remembered, client_labels = Grants(journal), ClientLabels(journal)
    if clear_labels is not None:
        if not await client_labels.clear(clear_labels):
            raise RequestError(f"the proxy's client {clear_labels!r} has no label: `packetgate policy` lists them")
        say(f"client {clear_labels} has no labels", "")
        return 0
    if confirm is not None:
        if not confirm.is_file():
            raise RequestError(f"{confirm} is not a file: name the settings file that Packetgate does not use")
        await asyncio.to_thread(confirm_file, confirm, settings.home)
        say(f"{confirm} is used from now on", "")
        return 0
    if revoke is not None:
        if not await remembered.revoke(revoke):
            raise RequestError(f"no valid grant has the id {revoke!r}: `packetgate policy` lists them")
        say(f"grant {revoke} is revoked", "")
        return 0
    configured = load_preferences(settings.preferences_path).policy
    grants = [grant for grant in await remembered.all() if every or grant.is_valid]
    if as_json:
        rules = [
            {**rule.model_dump(mode="json", exclude_defaults=True), "line": rule.line} for rule in configured.rules
        ]
        write_json(
            {
                "remember": configured.remember,
                "rules": rules,
                "grants": [_grant_as_json(grant) for grant in grants],
                "client_labels": {
                    client: [label.model_dump(mode="json") for label in labels]
                    for client, labels in (await client_labels.all()).items()
                },
            }
        )
        return 0
    shown = table("rule or grant", "what it says", "", wrapped=(1,))
    for number, rule in enumerate(configured.rules):
        shown.add_row(f"rule {number}", safe_text(rule.line), "")
    for grant in grants:
        shown.add_row(safe_text(grant.grant.grant_id), safe_text(grant.grant.line), _grant_state(grant))
    for client, labels in (await client_labels.all()).items():
        held = "; ".join(f"{label.meaning} from {label.source}, {label.at:%Y-%m-%d %H:%M} UTC" for label in labels)
        shown.add_row(safe_text(f"client {client}"), safe_text(held), "labelled")
    if shown.row_count:
        rendering.console().print(shown)
    where = settings.preferences_path or "no packetgate.toml"
    totals = f"{counted(len(configured.rules), 'rule')}, {counted(len(grants), 'grant')}"
    say(f"{totals}; remember = {configured.remember} ({where})")
    return 0


async def _test_rules(settings: Settings, *, as_json: bool) -> None:
    rules = load_preferences(settings.preferences_path).policy.rules
    calls = await _proposed_calls(settings)
    trials = [*try_rules(rules, calls)]
    if as_json:
        write_json(
            [
                {
                    "rule": trial.rule.line,
                    "matches": [_call_as_json(call) for call in trial.matches],
                    "near_misses": [{**_call_as_json(call), "differs": name} for call, name in trial.near_misses],
                }
                for trial in trials
            ]
        )
        return
    for number, trial in enumerate(trials):
        matches, near_misses = len(trial.matches), len(trial.near_misses)
        say(f"rule {number}: {trial.rule.line}", "bold")
        say(f"  matches: {matches}, near misses: {near_misses}", "")
        for call in trial.matches[:_MAX_SHOWN_CALLS]:
            say(f"  {trial.rule.effect.value:5}  {_call_line(call)}", "")
        for call, name in trial.near_misses[:_MAX_SHOWN_CALLS]:
            say(f"  not, because of {name}:  {_call_line(call)}")
    say(f"{counted(len(rules), 'rule')}, {counted(len(calls), 'call')} in the last {_TRIAL_DAYS} days")


async def _proposed_calls(settings: Settings) -> list[ProposedCall]:
    """Return the calls of the journal that were proposed in the last `_TRIAL_DAYS` days."""
    since = now() - timedelta(days=_TRIAL_DAYS)
    rows = await open_journal(settings).event_entries("turn_opened", "call_proposed", since=since)
    channels = {row.entry.packet_id: str(row.entry.detail["channel"]) for row in rows if "channel" in row.entry.detail}
    return [
        ProposedCall(row.at, str(row.entry.detail["tool_name"]), params, channels.get(row.entry.packet_id, "unknown"))
        for row in rows
        if row.entry.event == "call_proposed"
        if isinstance(params := row.entry.detail.get("params"), dict)
    ]


def _call_line(call: ProposedCall) -> str:
    arguments = json.dumps(call.params, ensure_ascii=False)
    return printable(shorten(f"{call.at.astimezone():%Y-%m-%d %H:%M}  {call.channel}  {call.tool} {arguments}"))


def _call_as_json(call: ProposedCall) -> dict[str, object]:
    return {**asdict(call), "at": call.at.isoformat()}


def _grant_state(grant: GrantStatus) -> str:
    if grant.is_revoked:
        return "revoked"
    used = [f"used {grant.use_count} times"] if grant.grant.effect == "allow" else []
    return ", ".join([*used, *([] if grant.is_valid else ["expired"])])


def _grant_as_json(grant: GrantStatus) -> dict[str, object]:
    state = {"used": grant.use_count, "revoked": grant.is_revoked, "holds": grant.is_valid, "line": grant.grant.line}
    return {**grant.grant.model_dump(mode="json"), **state}


async def settings(
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
) -> int:
    """Show the settings of a run and the options of models, with their sources.

    A source is an option, a variable or a file. With the options of another command, it shows what would apply there.
    """
    process_settings = settings_from(lite=lite, prime=prime, local=True)
    run_settings = run_settings_from(process_settings, overrides, allow_writes, allow_commands)
    rows = [
        (name, value, run_settings.sources.get(name, _DEFAULT))
        for name, value in run_settings.context.model_dump(mode="json").items()
    ]
    models = [
        (f"models.{role}.{MODEL}", name.value, name.where) for role, name in model_names(process_settings).items()
    ]
    for role, role_options in model_pool(process_settings).given.items():
        for name, option in role_options.items():  # header values may be keys, so only their names are printed
            value = [*option.value] if name == "headers" else option.value
            models.append((f"models.{role}.{name}", value, option.where))
    if as_json:
        parts = {"settings": rows, "models": models}
        shown = {key: [dict(zip(("name", "value", "from"), row, strict=True)) for row in parts[key]] for key in parts}
        write_json({**shown, "set_aside_for_others": list(run_settings.ignored_sources)})
        return 0
    listed = table("setting", "value", "from", "description", wrapped=(1, 2, 3))
    for name, value, where in [*rows, *models]:
        field = RoutingContext.model_fields.get(name)
        about = field.description or "" if field else ""
        text = ", ".join(value) if isinstance(value, list) else json.dumps(value, ensure_ascii=False).strip('"')
        style = "dim" if where == _DEFAULT else ""
        listed.add_row(name, safe_text(text, style), safe_text(where, style), safe_text(about, "dim"))
    rendering.console().print(listed)
    for where in run_settings.ignored_sources:
        say(f"{where}: on Discord and for the proxy only its restrictions apply")
    return 0
