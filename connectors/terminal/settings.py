"""`packetgate settings`: what holds for a run, and where each value comes from."""

import json
import sys

from rich.table import Table
from rich.text import Text

from connectors import rendering
from connectors.run_settings import RunSettings
from state.context import RoutingContext
from state.printing import printable

DEFAULT = "default"


def show_settings(found: RunSettings, *, as_json: bool) -> int:
    """Print every setting; those that somebody gave stand out."""
    values = found.context.model_dump(mode="json")
    if as_json:
        rows = [
            {"name": name, "value": value, "from": found.sources.get(name, DEFAULT)} for name, value in values.items()
        ]
        aside = list(found.set_aside)
        sys.stdout.write(json.dumps({"settings": rows, "set_aside_for_others": aside}, indent=2) + "\n")
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
    out = rendering.console()
    out.print(table)
    for where in found.set_aside:
        told = f"{where} counts on Discord and for the proxy only as far as it allows less"
        out.print(Text(printable(told), style="dim"), soft_wrap=True)
    return 0
