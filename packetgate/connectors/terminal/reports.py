"""`packetgate tools`, `policy` and `settings`: print them as tables or JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.rendering import safe_text, say, table, write_json
from packetgate.connectors.run_settings import RunSettings
from packetgate.graph.composition import open_tools
from packetgate.graph.journal.database import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.models.endpoint import Role
from packetgate.models.options import MODEL
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.printing import counted, printable
from packetgate.state.setting_values import SettingValue
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.execution.grants import Grants, GrantStatus
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.usage.record import by_tool, proxy_sessions
from packetgate.tools.usage.store import delete_uses, read_usage

_OUTCOMES = ("executed", "failed", "denied", "skipped", "unknown")
_DEFAULT = "default"


async def list_tools(settings: Settings, name: str | None, *, full: bool, as_json: bool) -> int:
    """Print all tools, or only the tools of a server, category or name. Also print problems of servers and patterns."""
    async with open_tools(settings) as hub:
        catalogue, health = await hub.catalogue(), hub.health()
    tool = None if name is None else catalogue.canonical(name)
    names = [tool] if tool else [*catalogue] if name is None else [*catalogue.group(name)]
    if name is not None and not names:
        nearest = ", ".join(catalogue.nearest(name)) or "none"
        raise RequestError(
            f"there is no tool, server or category {name!r}; nearest: {nearest}. `packetgate tools` lists all"
        )
    specs = [catalogue[key] for key in names]
    if as_json:
        write_json([_as_json(spec) for spec in specs])
        return 0
    out = rendering.console()
    if full or tool:
        for spec in specs:
            out.print(_full_text(spec), end="\n\n")
    else:
        listed = table("tool", "risk", "category: what it does", wrapped=(2,))
        for spec in specs:
            labels = f"{_labels(spec)}: " if _labels(spec) else ""
            about = Text(labels, style="magenta").append(printable(spec.brief), style="default")
            listed.add_row(spec.name, safe_text(spec.risk.value, rendering.RISK_STYLE[spec.risk.value]), about)
        out.print(listed)
    problems = [server.trouble for server in health if server.trouble]
    for problem in [*problems, *(unmatched(catalogue, settings.preferences_path) if name is None else [])]:
        out.print(safe_text(f"! {problem}", "yellow"))
    return 0


def unmatched(catalogue: Catalogue, path: Path | None) -> list[str]:
    """Return a line for each pattern of the preferences that matches no tool, also if the tool's server is down."""
    lines = []
    for setting, pattern in catalogue.preferences.unmatched(catalogue):
        nearest = ", ".join(catalogue.nearest(pattern, limit=3))
        lines.append(f"{path}: {setting}: {pattern!r} matches no tool{f'; nearest: {nearest}' if nearest else ''}")
    return lines


def _as_json(spec: ToolSpec) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(spec).items() if not callable(value)}
    return {**fields, "category": spec.category, "is_external": spec.is_external}


def _labels(spec: ToolSpec) -> str:
    return printable(", ".join(filter(None, [spec.category, "external" if spec.is_external else ""])))


def _full_text(spec: ToolSpec) -> Text:
    text = Text(spec.name, style="bold cyan")
    text.append(f"  {spec.risk.value}", style=rendering.RISK_STYLE[spec.risk.value])
    text.append(f"  {_labels(spec)}\n", style="magenta")
    if spec.risk_why:
        text.append(f"may {spec.risk.value}: {printable('; '.join(spec.risk_why))}\n", style="dim")
    text.append(printable(spec.full) + "\n", style="default")
    return text.append(json.dumps(spec.input_schema, indent=2, ensure_ascii=False), style="dim")


async def show_usage(settings: Settings, name: str | None, session: str | None, *, as_json: bool) -> int:
    """Print how often tools were selected, and the outcomes. No server is started."""
    async with open_store(settings) as store:
        usage = await read_usage(store, session)
    tools = [tool for tool in by_tool(usage.records) if name is None or f"{tool.tool}.".startswith(f"{name}.")]
    if usage.unreadable:
        say(f"! skipped records that cannot be read: {usage.unreadable:,}", "yellow", stderr=True)
    if as_json:
        write_json([tool.model_dump(mode="json") for tool in tools])
        return 0
    shown = table("tool", "calls", "outcomes", "review", "last used", right=(1, 3), wrapped=(2,))
    for tool in tools:
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome in _OUTCOMES if (count := getattr(tool, outcome)))
        review = "" if tool.review_confidence is None else f"{tool.review_confidence:.2f}"
        last = f"{tool.last_used.astimezone():%Y-%m-%d %H:%M}"
        shown.add_row(safe_text(tool.tool), f"{tool.asked:,}", outcomes, review, last)
    rendering.console().print(shown)
    with_context, sessions = proxy_sessions(usage.records)
    if sessions:
        say(f"{with_context:,} of {counted(sessions, 'proxy session')} set a context ({with_context / sessions:.0%})")
    say(f"{counted(len(usage.records), 'recorded turn')}; PACKETGATE_USAGE_DAYS is {settings.usage_days}")
    return 0


async def forget_learned(settings: Settings, name: str | None, session: str | None) -> int:
    """Delete what the ranking learned from confirmed calls of a tool or server, in one session or in all sessions."""
    async with open_store(settings) as store:
        count = await delete_uses(store, name, session)
    say(f"forgotten: {counted(count, 'confirmed call')}; the record of turns is kept", "")
    return 0


async def show_policy(settings: Settings, *, every: bool, as_json: bool) -> int:
    """Print the rules of `packetgate.toml` and the valid grants; with `every`, also expired and revoked grants."""
    policy = load_preferences(settings.preferences_path).policy
    grants = [grant for grant in await Grants(open_journal(settings)).all() if every or grant.is_valid]
    if as_json:
        rules = [{**rule.model_dump(mode="json", exclude_defaults=True), "line": rule.line} for rule in policy.rules]
        write_json({"remember": policy.remember, "rules": rules, "grants": [_grant_as_json(grant) for grant in grants]})
        return 0
    shown = table("rule or grant", "what it says", "", wrapped=(1,))
    for number, rule in enumerate(policy.rules):
        shown.add_row(f"rule {number}", safe_text(rule.line), "")
    for grant in grants:
        shown.add_row(safe_text(grant.grant.grant_id), safe_text(grant.grant.line), _grant_state(grant))
    if shown.row_count:
        rendering.console().print(shown)
    where = settings.preferences_path or "no packetgate.toml"
    totals = f"{counted(len(policy.rules), 'rule')}, {counted(len(grants), 'grant')}"
    say(f"{totals}; remember = {policy.remember} ({where})")
    return 0


async def revoke(settings: Settings, grant_id: str) -> int:
    """Revoke a grant. Raise RequestError if no valid grant has this id."""
    if not await Grants(open_journal(settings)).revoke(grant_id):
        raise RequestError(f"no valid grant has the id {grant_id!r}: `packetgate policy` lists them")
    say(f"grant {grant_id} is revoked", "")
    return 0


def _grant_state(grant: GrantStatus) -> str:
    if grant.revoked:
        return "revoked"
    used = [f"used {grant.used} times"] if grant.grant.effect == "allow" else []
    return ", ".join([*used, *([] if grant.is_valid else ["expired"])])


def _grant_as_json(grant: GrantStatus) -> dict[str, object]:
    state = {"used": grant.used, "revoked": grant.revoked, "holds": grant.is_valid, "line": grant.grant.line}
    return {**grant.grant.model_dump(mode="json"), **state}


def show_settings(
    run_settings: RunSettings,
    names: Mapping[str, SettingValue],
    options: Mapping[Role, Mapping[str, SettingValue]],
    *,
    as_json: bool,
) -> int:
    """Print all settings and the given model names and options, with their sources."""
    settings = [
        (name, value, run_settings.sources.get(name, _DEFAULT))
        for name, value in run_settings.context.model_dump(mode="json").items()
    ]
    models = [(f"models.{role}.{MODEL}", name.value, name.where) for role, name in names.items()]
    for role, role_options in options.items():
        for name, option in role_options.items():  # header values may be keys, so only their names are printed
            models.append(
                (f"models.{role}.{name}", [*option.value] if name == "headers" else option.value, option.where)
            )
    if as_json:
        rows = [
            [{"name": name, "value": value, "from": where} for name, value, where in part]
            for part in (settings, models)
        ]
        write_json({"settings": rows[0], "models": rows[1], "set_aside_for_others": list(run_settings.set_aside)})
        return 0
    shown = table("setting", "value", "from", "description", wrapped=(1, 2, 3))
    for name, value, where in [*settings, *models]:
        field = RoutingContext.model_fields.get(name)
        text = ", ".join(value) if isinstance(value, list) else json.dumps(value, ensure_ascii=False).strip('"')
        style = "dim" if where == _DEFAULT else ""
        shown.add_row(
            name,
            safe_text(text, style),
            safe_text(where, style),
            safe_text(field.description or "" if field else "", "dim"),
        )
    rendering.console().print(shown)
    for where in run_settings.set_aside:
        say(f"{where}: on Discord and for the proxy only its restrictions apply")
    return 0
