"""`packetgate tools`, `policy` and `settings`: print them as tables."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.rendering import plain, say, table, write_json
from packetgate.connectors.run_settings import RunSettings
from packetgate.graph.composition import open_tools
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.models.endpoint import Role
from packetgate.models.options import MODEL
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.printing import counted, printable
from packetgate.state.setting_values import SettingValue
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.idle_rules import idle
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.execution.grants import Grants, Standing
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.usage.record import ToolUsage, by_tool, with_context
from packetgate.tools.usage.store import Usage, forget, read_usage

ENDS = ("executed", "failed", "denied", "skipped", "unknown")
DEFAULT = "default"


async def list_tools(settings: Settings, name: str | None, *, full: bool, as_json: bool) -> int:
    """Print the servers' tools, or those that `name` selects, and problems."""
    async with open_tools(settings) as hub:
        catalogue, health = await hub.catalogue(), hub.health()
    tool = None if name is None else catalogue.canonical(name)
    specs = [catalogue[tool]] if tool else _named(catalogue, name)
    out = rendering.console()
    if as_json:
        write_json([_for_scripts(spec) for spec in specs])
        return 0
    if full or tool:
        for spec in specs:
            out.print(_in_full(spec), end="\n\n")
    else:
        listed = table("tool", "risk", "category: what it does", wrapped=(2,))
        for spec in specs:
            about = f"{_about(spec)}: " if _about(spec) else ""
            does = Text(about, style="magenta").append(printable(spec.brief), style="default")
            listed.add_row(spec.name, Text(spec.risk.value, style=rendering.RISK_STYLE[spec.risk.value]), does)
        out.print(listed)
    problems = [one.trouble for one in health if one.trouble]
    for problem in [*problems, *(unfitting(catalogue, settings.preferences_path) if name is None else [])]:
        out.print(plain(f"! {problem}", "yellow"))
    return 0


def unfitting(catalogue: Catalogue, path: Path | None) -> list[str]:
    """Return a line for each pattern that matches no tool, and for each rule that can never apply.

    They are not errors: a tool's server may be down.
    """
    preferences, lines = catalogue.preferences, []
    for where, pattern in preferences.without_a_tool(catalogue):
        nearest = ", ".join(catalogue.nearest(pattern, limit=3))
        lines.append(f"{path}: {where}: {pattern!r} fits no tool{f'; nearest: {nearest}' if nearest else ''}")
    rules = idle(preferences.policy.rules, catalogue.values())
    return [*lines, *(f"{path}: policy.rules.{number}: it can never hold: {why}" for number, why in rules)]


def _named(catalogue: Catalogue, group: str | None) -> list[ToolSpec]:
    names = tuple(catalogue) if group is None else catalogue.group(group)
    if group is not None and not names:
        near = get_close_matches(group.casefold(), catalogue.groups, n=2)
        nearest = ", ".join([*near, *catalogue.nearest(group)][:5]) or "none"
        raise RequestError(
            f"there is no tool, server or category {group!r}; nearest: {nearest}. `packetgate tools` lists all"
        )
    return [catalogue[name] for name in names]


def _for_scripts(spec: ToolSpec) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(spec).items() if not callable(value)}
    return {**fields, "category": spec.category, "is_external": spec.is_external}


def _about(spec: ToolSpec) -> str:
    return printable(", ".join([spec.category] * bool(spec.category) + ["external"] * spec.is_external))


def _in_full(spec: ToolSpec) -> Text:
    text = Text(f"{spec.name}", style="bold cyan")
    text.append(f"  {spec.risk.value}", style=rendering.RISK_STYLE[spec.risk.value])
    text.append(f"  {_about(spec)}\n", style="magenta")
    if spec.risk_why:
        text.append(f"may {spec.risk.value}: {printable('; '.join(spec.risk_why))}\n", style="dim")
    text.append(printable(spec.full) + "\n", style="default")
    return text.append(json.dumps(spec.input_schema, indent=2, ensure_ascii=False), style="dim")


async def show_usage(settings: Settings, name: str | None, session: str | None, *, as_json: bool) -> int:
    """Print how often tools were chosen and their outcomes. No server is started."""
    async with open_store(settings) as store:
        usage = await read_usage(store, session)
    tools = [one for one in by_tool(usage.records) if name is None or f"{one.tool}.".startswith(f"{name}.")]
    if usage.newer:
        say(f"! records passed over that only a newer Packetgate can read: {usage.newer:,}", "yellow", stderr=True)
    if usage.unreadable:
        say(f"! records passed over that cannot be read: {usage.unreadable:,}", "yellow", stderr=True)
    if as_json:
        write_json([tool.model_dump(mode="json") for tool in tools])
        return 0
    shown = table("tool", "asked", "came to", "review", "last used", right=(1, 3), wrapped=(2,))
    for tool in tools:
        shown.add_row(*_usage_row(tool))
    if tools:
        rendering.console().print(shown)
    say(_counted_from(usage, tools, name, session, settings.usage_days))
    with_one, sessions = with_context(usage.records)
    if sessions:
        say(f"{with_one:,} of {counted(sessions, 'proxy session')} set a context ({with_one / sessions:.0%})")
    return 0


async def forget_learned(settings: Settings, name: str | None, session: str | None) -> int:
    """Delete what was learned from confirmed calls of a tool or server, in one session or all."""
    async with open_store(settings) as store:
        count = await forget(store, name, session)
    kept = f"forgotten: {counted(count, 'confirmed call')}; the record of turns is kept"
    say(kept if count else "nothing was learned", "")
    return 0


def _usage_row(tool: ToolUsage) -> tuple[str, ...]:
    ends = ", ".join(f"{count:,} {end}" for end in ENDS if (count := getattr(tool, end)))
    review = "" if tool.review_confidence is None else f"{tool.review_confidence:.2f}"
    return printable(tool.tool), f"{tool.asked:,}", ends, review, f"{tool.last_used.astimezone():%Y-%m-%d %H:%M}"


def _counted_from(usage: Usage, tools: list[ToolUsage], name: str | None, session: str | None, days: int) -> str:
    where = "" if session is None else f" of session {session!r}"
    if not usage.records:
        return f"nothing has been recorded{where} yet{'' if days else ': PACKETGATE_USAGE_DAYS is 0'}"
    turns = f"{counted(len(usage.records), 'turn')}{where} since {usage.records[0].at.astimezone():%Y-%m-%d}"
    return turns if tools else f"{turns}, none of which chose {'a tool' if name is None else repr(name)}"


async def show_policy(settings: Settings, *, every: bool, as_json: bool) -> int:
    """Print the rules of `packetgate.toml` and the valid grants; with `every`, also expired and revoked ones."""
    policy = load_preferences(settings.preferences_path).policy
    grants = [one for one in await Grants(journal_in(settings)).all() if every or one.holds]
    if as_json:
        rules = [{**one.model_dump(mode="json", exclude_defaults=True), "line": one.line} for one in policy.rules]
        write_json({"remember": policy.remember, "rules": rules, "grants": [_grant(one) for one in grants]})
        return 0
    rule_rows = [(str(place), rule.line, "") for place, rule in enumerate(policy.rules)]
    grant_rows = [(one.grant.grant_id, one.grant.line, _state(one)) for one in grants]
    for what, rows in (("rule", rule_rows), ("grant", grant_rows)):
        shown = table(what, "what it says", "", wrapped=(1,))
        for name, line, state in rows:
            shown.add_row(plain(name), plain(line), state)
        if rows:
            rendering.console().print(shown)
    where = settings.preferences_path or "no packetgate.toml"
    may = "nothing may be remembered" if policy.remember == "never" else f"remember = {policy.remember}"
    say(f"{counted(len(policy.rules), 'rule')}, {counted(len(grants), 'grant')}; {may} ({where})")
    return 0


async def revoke(settings: Settings, grant_id: str) -> int:
    """Revoke a grant. Raise RequestError if no valid grant has this id."""
    if not await Grants(journal_in(settings)).revoke(grant_id):
        raise RequestError(f"no grant {grant_id!r} holds: `packetgate policy` lists those that do")
    say(f"grant {grant_id} is taken back", "")
    return 0


def _state(one: Standing) -> str:
    if one.revoked:
        return "taken back"
    used = f"used {one.used} times" if one.grant.effect == "allow" else ""
    return used if one.holds else f"{used}, over".lstrip(", ")


def _grant(one: Standing) -> dict[str, object]:
    state = {"used": one.used, "revoked": one.revoked, "holds": one.holds, "line": one.grant.line}
    return {**one.grant.model_dump(mode="json"), **state}


def show_settings(
    found: RunSettings,
    names: Mapping[str, SettingValue],
    models: Mapping[Role, Mapping[str, SettingValue]],
    *,
    as_json: bool,
) -> int:
    """Print all settings and the given model options, with their sources."""
    values = found.context.model_dump(mode="json")
    named = [(f"models.{role}.{MODEL}", one.value, one.where) for role, one in names.items()]
    options = [*_options(models)]
    if as_json:
        settings = [(name, value, found.sources.get(name, DEFAULT)) for name, value in values.items()]
        listed = [
            [{"name": name, "value": value, "from": where} for name, value, where in rows]
            for rows in (settings, [*named, *options])
        ]
        write_json({"settings": listed[0], "models": listed[1], "set_aside_for_others": list(found.set_aside)})
        return 0
    shown = table("setting", "value", "from", "what it says", wrapped=(1, 2, 3))
    for name, value in values.items():
        where, about = found.sources.get(name, DEFAULT), RoutingContext.model_fields[name].description or ""
        text = ", ".join(value) if isinstance(value, list) else json.dumps(value).strip('"')
        style = "dim" if where == DEFAULT else ""
        shown.add_row(name, plain(text, style), plain(where, style), plain(about, "dim"))
    for rows, about in ((named, "This role's model; one alone plays both."), (options, "Option of this role's model.")):
        for name, value, where in rows:
            text = json.dumps(value, ensure_ascii=False).strip('"')
            shown.add_row(name, plain(text), plain(where), plain(about, "dim"))
    rendering.console().print(shown)
    for where in found.set_aside:
        say(f"{where} counts on Discord and for the proxy only as far as it allows less")
    return 0


def _options(models: Mapping[Role, Mapping[str, SettingValue]]) -> Iterator[tuple[str, Any, str]]:
    for role, given in models.items():
        for name, one in given.items():  # of headers only the names, as values may be keys
            yield f"models.{role}.{name}", [*one.value] if name == "headers" else one.value, one.where
