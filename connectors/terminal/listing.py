"""`packetgate tools` and `packetgate trace`."""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from connectors.terminal import rendering
from graph.composition import open_tools
from graph.settings import Settings
from state.errors import PacketError, RequestError
from state.packet import read_packet
from tools.spec import ToolSpec

RISK_STYLE = {"read": "green", "write": "yellow", "execute": "red"}


async def list_tools(settings: Callable[[], Settings], name: str | None, *, full: bool, as_json: bool) -> int:
    """Print the tools that the servers offer now, and which servers are not there."""
    async with open_tools(settings()) as hub:
        catalogue = await hub.catalogue()
        health = hub.health()
    shown = list(catalogue.values())
    if name is not None:
        wanted = catalogue.canonical(name)
        if wanted is None:
            nearest = ", ".join(catalogue.nearest(name)) or "none"
            raise RequestError(f"there is no tool {name!r}; nearest: {nearest}. `packetgate tools` lists all")
        shown, full = [catalogue[wanted]], True
    if as_json:
        sys.stdout.write(json.dumps([asdict(spec) for spec in shown], indent=2, ensure_ascii=False) + "\n")
        return 0
    out = rendering.console()
    if full:
        for spec in shown:
            out.print(_in_full(spec), end="\n\n")
    else:
        out.print(_table(shown))
    for server in health:
        if server.problem or server.state != "ready":
            out.print(
                Text(f"! {server.name}: {rendering.printable(server.problem) or 'still starting'}", style="yellow")
            )
    return 0


async def show_packet(path: Path) -> int:
    """Print a packet's answer and journey."""
    try:
        data = await asyncio.to_thread(sys.stdin.buffer.read if str(path) == "-" else path.read_bytes)
        packet = read_packet(data)
    except OSError as error:
        raise PacketError(f"{path}: cannot be read: {error.strerror}") from error
    out = rendering.console()
    out.print(Text(rendering.printable(packet.content.original_prompt), style="bold"))
    out.print(rendering.answer(packet))
    out.print()
    out.print(rendering.journey(packet))
    return 0


def _table(specs: list[ToolSpec]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("tool", style="cyan", no_wrap=True)
    table.add_column("risk", no_wrap=True)
    table.add_column("what it does", overflow="fold", ratio=1)
    for spec in specs:
        risk = Text(spec.risk.value, style=RISK_STYLE[spec.risk.value])
        table.add_row(spec.name, risk, Text(rendering.printable(spec.brief)))
    return table


def _in_full(spec: ToolSpec) -> Text:
    text = Text(f"{spec.name}", style="bold cyan")
    text.append(f"  {spec.risk.value}\n", style=RISK_STYLE[spec.risk.value])
    text.append(rendering.printable(spec.full) + "\n", style="default")
    text.append(json.dumps(spec.input_schema, indent=2, ensure_ascii=False), style="dim")
    return text
