"""A question at a terminal: whole on the screen, or, where it is longer, in the reader's pager first."""

import asyncio
import pydoc
from typing import Any

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.interrupts import on_ctrl_c
from packetgate.connectors.terminal.reading import at_a_terminal

KEPT_FREE = 8
"""Rows of the screen that a question leaves to what else stands there."""


async def show_whole(question: dict[str, Any]) -> bool:
    """Show all of a question, and return whether the pager was needed: then only its beginning is left to be seen."""
    out = rendering.console()
    shown = rendering.question(question, out.width if at_a_terminal() else rendering.PLAIN_WIDTH)
    rows = shown.split("\n")
    room = max(out.height - KEPT_FREE, 1)
    if not at_a_terminal() or len(rows) <= room:
        out.print(shown, end="", soft_wrap=True)
        return False
    with on_ctrl_c(lambda: None):  # there it is the pager's
        await asyncio.to_thread(pydoc.pager, shown.plain)
    out.print(Text("\n").join(rows[:room]), soft_wrap=True)
    out.print(f"… {len(rows) - room:,} more rows: v shows them again", style="yellow")
    return True


async def show_text(text: str) -> None:
    """Show a text, in the reader's pager where it is longer than the screen."""
    out = rendering.console()
    if not at_a_terminal() or (text.count("\n") < out.height - KEPT_FREE and len(text) < out.width * out.height // 2):
        out.print(Text(text))
        return
    with on_ctrl_c(lambda: None):
        await asyncio.to_thread(pydoc.pager, text)
