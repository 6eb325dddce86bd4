"""Reading lines: with editing and history at a terminal, plainly from a pipe."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

Reader = Callable[[str], Awaitable[str]]


class InterruptedReadError(Exception):
    """Ctrl-C was pressed while a line was read."""


def at_a_terminal() -> bool:
    """Whether somebody sits there to be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def reader(history: Path | None = None) -> Reader:
    """Return what reads one line after a prompt; it raises EOFError at the end, InterruptedReadError on Ctrl-C."""
    if not at_a_terminal():
        return _read_pipe
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if history is not None:
        history.parent.mkdir(parents=True, exist_ok=True)
    session: PromptSession[str] = PromptSession(history=FileHistory(str(history)) if history else InMemoryHistory())

    async def read(prompt: str) -> str:
        try:
            line: str = await session.prompt_async(prompt)
        except KeyboardInterrupt as error:
            raise InterruptedReadError from error
        return line

    return read


async def _read_pipe(_prompt: str) -> str:
    line: str = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise EOFError
    return line.rstrip("\n")
