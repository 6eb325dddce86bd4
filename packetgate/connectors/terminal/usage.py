"""`packetgate tools --usage`: how the tools have fared, from the record of past turns."""

import json
import sys

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.state.printing import counted, printable
from packetgate.tools.usage.learned_store import forget
from packetgate.tools.usage.record import ToolUsage, by_tool
from packetgate.tools.usage.store import Usage, read_usage

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
        out.print(_table(tools))
    out.print(Text(printable(_counted_from(usage, tools, name, session, settings.usage_days)), style="dim"))
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


def _table(tools: list[ToolUsage]) -> Table:
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
    """Return what the table was counted from, or why there is none."""
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
