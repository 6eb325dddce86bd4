"""`packetgate tools`."""

import json
import sys
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.graph.composition import open_tools
from packetgate.graph.settings import Settings
from packetgate.state.errors import RequestError
from packetgate.state.printing import printable
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.idle_rules import idle
from packetgate.tools.spec.tool_spec import ToolSpec

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
    """Return what a tool is about, and whether it reaches out of the user's own servers."""
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
