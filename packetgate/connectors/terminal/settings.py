"""`packetgate settings`: what holds for a run, and where each value comes from."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.run_settings import RunSettings
from packetgate.models.endpoint import Role
from packetgate.models.options import MODEL
from packetgate.state.context import RoutingContext
from packetgate.state.given import Given
from packetgate.state.printing import printable

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
