"""`packetgate policy`: what may run unasked, and what may not at all: the rules, and what was remembered."""

import json
import sys
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.settings import Settings
from packetgate.state.errors import RequestError
from packetgate.state.printing import counted, printable
from packetgate.tools.catalogue.preferences import Policy, load_preferences
from packetgate.tools.execution.grants import Grants, Standing


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
        out.print(_table("rule", [(str(place), rule.line, "") for place, rule in enumerate(policy.rules)]))
    if grants:
        out.print(_table("grant", [(one.grant.grant_id, one.grant.line, _state(one)) for one in grants]))
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


def _table(what: str, rows: Sequence[tuple[str, str, str]]) -> Table:
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
