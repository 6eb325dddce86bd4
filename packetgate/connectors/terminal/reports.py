"""`packetgate tools`, `policy` and `settings`: tables of what there is."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.run_settings import RunSettings
from packetgate.graph.composition import open_tools
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.models.endpoint import Role
from packetgate.models.options import MODEL
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.given import Given
from packetgate.state.printing import counted, printable
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.idle_rules import idle
from packetgate.tools.catalogue.preferences import Policy, load_preferences
from packetgate.tools.execution.grants import Grants, Standing
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.usage.record import ToolUsage, by_tool, with_context
from packetgate.tools.usage.store import Usage, forget, read_usage

LISTS_ALL = "`packetgate tools` lists all"


async def list_tools(settings: Settings, name: str | None, *, full: bool, as_json: bool) -> int:
    """Print the tools that the servers offer now, or those that `name` stands for, and what is amiss with them."""
    async with open_tools(settings) as hub:
        catalogue = await hub.catalogue()
        health = hub.health()
    one = None if name is None else catalogue.canonical(name)
    specs = [catalogue[one]] if one else _listed(catalogue, name)
    if as_json:
        sys.stdout.write(json.dumps([_for_scripts(spec) for spec in specs], indent=2, ensure_ascii=False) + "\n")
        return 0
    out = rendering.console()
    if full or one:
        for spec in specs:
            out.print(_in_full(spec), end="\n\n")
    else:
        out.print(_table(specs))
    amiss = [one.trouble for one in health if one.trouble]
    for problem in [*amiss, *(unfitting(catalogue, settings.preferences_path) if name is None else [])]:
        out.print(Text(f"! {printable(problem)}", style="yellow"))
    return 0


def unfitting(catalogue: Catalogue, path: Path | None) -> list[str]:
    """Return a line for each of the user's patterns that fits no tool, and for each rule that holds for no call.

    They are no errors: a tool's server may be down.
    """
    preferences = catalogue.preferences
    return [
        *(
            f"{path}: {where}: {pattern!r} fits no tool{_nearest(catalogue, pattern)}"
            for where, pattern in preferences.without_a_tool(catalogue)
        ),
        *(
            f"{path}: policy.rules.{number}: it can never hold: {why}"
            for number, why in idle(preferences.policy.rules, catalogue.values())
        ),
    ]


def _nearest(catalogue: Catalogue, pattern: str) -> str:
    nearest = catalogue.nearest(pattern, limit=3)
    return f"; nearest: {', '.join(nearest)}" if nearest else ""


def _listed(catalogue: Catalogue, group: str | None) -> list[ToolSpec]:
    names = tuple(catalogue) if group is None else catalogue.group(group)
    if group is not None and not names:
        near = get_close_matches(group.casefold(), catalogue.groups, n=2)
        nearest = ", ".join([*near, *catalogue.nearest(group)][:5]) or "none"
        raise RequestError(f"there is no tool, server or category {group!r}; nearest: {nearest}. {LISTS_ALL}")
    return [catalogue[name] for name in names]


def _for_scripts(spec: ToolSpec) -> dict[str, Any]:
    told = {name: value for name, value in asdict(spec).items() if not callable(value)}
    return {**told, "category": spec.category, "is_external": spec.is_external}


def _table(specs: list[ToolSpec]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("tool", style="cyan", no_wrap=True)
    table.add_column("risk", no_wrap=True)
    table.add_column("category: what it does", overflow="fold", ratio=1)
    for spec in specs:
        risk = Text(spec.risk.value, style=rendering.RISK_STYLE[spec.risk.value])
        about = _about(spec)
        does = Text(f"{about}: " if about else "", style="magenta")
        table.add_row(spec.name, risk, does.append(printable(spec.brief), style="default"))
    return table


def _about(spec: ToolSpec) -> str:
    return printable(", ".join([spec.category] * bool(spec.category) + ["external"] * spec.is_external))


def _in_full(spec: ToolSpec) -> Text:
    text = Text(f"{spec.name}", style="bold cyan")
    text.append(f"  {spec.risk.value}", style=rendering.RISK_STYLE[spec.risk.value])
    text.append(f"  {_about(spec)}\n", style="magenta")
    if spec.risk_why:
        text.append(f"may {spec.risk.value}: {printable('; '.join(spec.risk_why))}\n", style="dim")
    text.append(printable(spec.full) + "\n", style="default")
    text.append(json.dumps(spec.input_schema, indent=2, ensure_ascii=False), style="dim")
    return text


ENDS = ("executed", "cached", "failed", "denied", "skipped", "unknown")


async def show_usage(settings: Settings, name: str | None, session: str | None, *, as_json: bool) -> int:
    """Print how often each tool was chosen and what came of it, in all sessions or in one. No server is opened.

    `name` is a tool's or a server's.
    """
    async with open_store(settings) as store:
        usage = await read_usage(store, session)
    tools = [one for one in by_tool(usage.records) if name is None or f"{one.tool}.".startswith(f"{name}.")]
    for problem in _passed_over(usage):
        rendering.console(stderr=True).print(Text(f"! {problem}", style="yellow"))
    if as_json:
        sys.stdout.write(json.dumps([tool.model_dump(mode="json") for tool in tools], indent=2) + "\n")
        return 0
    out = rendering.console()
    if tools:
        out.print(_usage_table(tools))
    out.print(Text(printable(_counted_from(usage, tools, name, session, settings.usage_days)), style="dim"))
    told, sessions = with_context(usage.records)
    if sessions:
        share = f"{told:,} of {counted(sessions, 'proxy session')} set a context ({told / sessions:.0%})"
        out.print(Text(share, style="dim"))
    return 0


async def forget_learned(settings: Settings, name: str | None, session: str | None) -> int:
    """Forget what confirmed calls have taught of a tool or a server, in a session, or at all."""
    async with open_store(settings) as store:
        count = await forget(store, name, session)
    told = (
        f"forgotten: {counted(count, 'confirmed call')}; the record of turns is kept"
        if count
        else "nothing was learned"
    )
    rendering.console().print(Text(told))
    return 0


def _usage_table(tools: list[ToolUsage]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("tool", style="cyan", no_wrap=True)
    table.add_column("asked", justify="right", no_wrap=True)
    table.add_column("came to", overflow="fold", ratio=1)
    table.add_column("review", justify="right", no_wrap=True)
    table.add_column("last used", no_wrap=True)
    for tool in tools:
        ends = ", ".join(f"{count:,} {end}" for end in ENDS if (count := getattr(tool, end)))
        review = "" if tool.review_confidence is None else f"{tool.review_confidence:.2f}"
        used = f"{tool.last_used.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(printable(tool.tool), f"{tool.asked:,}", ends, review, used)
    return table


def _counted_from(usage: Usage, tools: list[ToolUsage], name: str | None, session: str | None, days: int) -> str:
    where = "" if session is None else f" of session {session!r}"
    if not usage.records:
        off = "" if days else ": PACKETGATE_USAGE_DAYS is 0"
        return f"nothing has been recorded{where} yet{off}"
    count = len(usage.records)
    turns = f"{counted(count, 'turn')}{where} since {usage.records[0].at.astimezone():%Y-%m-%d}"
    return turns if tools else f"{turns}, none of which chose {'a tool' if name is None else repr(name)}"


def _passed_over(usage: Usage) -> list[str]:
    newer = f"records passed over that only a newer Packetgate can read: {usage.newer:,}"
    broken = f"records passed over that cannot be read: {usage.unreadable:,}"
    return [newer] * bool(usage.newer) + [broken] * bool(usage.unreadable)


async def show_policy(settings: Settings, *, every: bool, as_json: bool) -> int:
    """Print the rules of `packetgate.toml` and the grants that hold; with `every`, those too that hold no longer."""
    policy = load_preferences(settings.preferences_path).policy
    grants = [one for one in await Grants(journal_in(settings)).all() if every or one.holds]
    if as_json:
        told = {"remember": policy.remember, "rules": [_rule(policy, place) for place in range(len(policy.rules))]}
        sys.stdout.write(json.dumps({**told, "grants": [_grant(one) for one in grants]}, indent=2) + "\n")
        return 0
    out = rendering.console()
    if policy.rules:
        out.print(_policy_table("rule", [(str(place), rule.line, "") for place, rule in enumerate(policy.rules)]))
    if grants:
        out.print(_policy_table("grant", [(one.grant.grant_id, one.grant.line, _state(one)) for one in grants]))
    where = settings.preferences_path or "no packetgate.toml"
    may = "nothing may be remembered" if policy.remember == "never" else f"remember = {policy.remember}"
    told_of = f"{counted(len(policy.rules), 'rule')}, {counted(len(grants), 'grant')}; {may} ({where})"
    out.print(Text(printable(told_of), style="dim"), soft_wrap=True)
    return 0


async def revoke(settings: Settings, grant_id: str) -> int:
    """Take a grant back.

    Raises:
        RequestError: there is none of this id that still holds.
    """
    if not await Grants(journal_in(settings)).revoke(grant_id):
        raise RequestError(f"no grant {grant_id!r} holds: `packetgate policy` lists those that do")
    rendering.console().print(f"grant {grant_id} is taken back")
    return 0


def _policy_table(what: str, rows: Sequence[tuple[str, str, str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(what, style="cyan", no_wrap=True)
    table.add_column("what it says", overflow="fold")
    table.add_column("", no_wrap=True)
    for name, line, state in rows:
        table.add_row(Text(printable(name)), Text(printable(line)), state)
    return table


def _state(one: Standing) -> str:
    if one.revoked:
        return "taken back"
    used = f"used {one.used} times" if one.grant.effect == "allow" else ""
    return used if one.holds else f"{used}, over".lstrip(", ")


def _rule(policy: Policy, place: int) -> dict[str, object]:
    rule = policy.rules[place]
    return {**rule.model_dump(mode="json", exclude_defaults=True), "line": rule.line}


def _grant(one: Standing) -> dict[str, object]:
    state = {"used": one.used, "revoked": one.revoked, "holds": one.holds, "line": one.grant.line}
    return {**one.grant.model_dump(mode="json"), **state}


DEFAULT = "default"


def _options(models: Mapping[Role, Mapping[str, Given]]) -> Iterator[tuple[str, Any, str]]:
    """Yield the options as name, value and place; of headers only the names, as values may be keys."""
    for role, given in models.items():
        for name, one in given.items():
            yield f"models.{role}.{name}", [*one.value] if name == "headers" else one.value, one.where


def show_settings(
    found: RunSettings, names: Mapping[str, Given], models: Mapping[Role, Mapping[str, Given]], *, as_json: bool
) -> int:
    """Print every setting, of which those that somebody gave stand out, and the options given for models."""
    values = found.context.model_dump(mode="json")
    named = [(f"models.{role}.{MODEL}", one.value, one.where) for role, one in names.items()]
    if as_json:
        rows = [
            {"name": name, "value": value, "from": found.sources.get(name, DEFAULT)} for name, value in values.items()
        ]
        options = [{"name": name, "value": value, "from": where} for name, value, where in [*named, *_options(models)]]
        whole = {"settings": rows, "models": options, "set_aside_for_others": list(found.set_aside)}
        sys.stdout.write(json.dumps(whole, indent=2) + "\n")
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting", style="cyan", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    table.add_column("what it says", style="dim", overflow="fold", ratio=1)
    for name, value in values.items():
        where, about = found.sources.get(name, DEFAULT), RoutingContext.model_fields[name].description or ""
        shown = ", ".join(value) if isinstance(value, list) else json.dumps(value).strip('"')
        style = "dim" if where == DEFAULT else ""
        table.add_row(name, Text(printable(shown), style), Text(printable(where), style), about)
    for name, value, place in named:
        table.add_row(name, Text(printable(value)), Text(printable(place)), "This role's model; one alone plays both.")
    for name, value, place in _options(models):
        said = json.dumps(value, ensure_ascii=False).strip('"')
        table.add_row(name, Text(printable(said)), Text(printable(place)), "Option of this role's model.")
    out = rendering.console()
    out.print(table)
    for where in found.set_aside:
        told = f"{where} counts on Discord and for the proxy only as far as it allows less"
        out.print(Text(printable(told), style="dim"), soft_wrap=True)
    return 0
