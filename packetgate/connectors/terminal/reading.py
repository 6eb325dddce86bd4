"""Read user input: at a terminal with editing and history, from a pipe, from files and from options."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from packetgate.connectors.running import InterruptedReadError
from packetgate.graph.private_files import private_file
from packetgate.state.errors import ConfigError, RequestError
from packetgate.tools.attached.media import MAX_PICTURE_BYTES
from packetgate.tools.attached.parts import Part, message_part

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent, Completer
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History

LineReader = Callable[[str], Awaitable[str]]
Completions = Callable[[str], Iterable[tuple[str, str, str]]]
"""Returns the completions of a line: each with the end of the line that it replaces, and its description."""


def is_at_terminal() -> bool:
    """Whether both input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def reader(history: Path | None = None, completions: Completions | None = None) -> LineReader:
    """Return a function that reads a line, at a terminal with editing, history and completions.

    It raises EOFError at the end, and InterruptedReadError on Ctrl-C.
    """
    if not is_at_terminal():
        return read_pipe
    if find_spec("prompt_toolkit") is None:
        raise ConfigError("prompt_toolkit is not installed: in a clone of Packetgate, pip install '.[terminal]'")
    from prompt_toolkit import PromptSession
    from prompt_toolkit.styles import Style

    session: PromptSession[str] = PromptSession(
        style=Style.from_dict({"prompt": "bold ansicyan"}),
        history=_history(history) if history else None,
        completer=_completer(completions) if completions else None,
        complete_in_thread=True,  # a folder may be slow
        reserve_space_for_menu=6,
    )

    async def read(prompt: str) -> str:
        try:
            # Ctrl-C is a key at a prompt. The library's own signal handling would remove the turn's handler.
            line: str = await session.prompt_async(prompt, handle_sigint=False)
        except KeyboardInterrupt as error:
            raise InterruptedReadError from error
        return line

    return read


def _completer(completions: Completions) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion

    class _LineCompleter(Completer):
        def get_completions(self, document: "Document", complete_event: "CompleteEvent") -> Iterable[Completion]:
            for new, old, about in completions(document.text_before_cursor):
                yield Completion(new, start_position=-len(old), display_meta=about)

    return _LineCompleter()


async def read_pipe(_prompt: str) -> str:
    """Return the next line of standard input. Raise EOFError if no line is left."""
    line: str = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _history(path: Path) -> "History":
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        private_file(path)
        with path.open("ab"):
            return FileHistory(str(path))
    except OSError:
        return InMemoryHistory()


def file_part(path: Path) -> Part:
    """Return a file as a part of a message. Blocking.

    Raises:
        RequestError: the file cannot be read, is neither text nor an image, or is too large.
    """
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path} cannot be attached: {error.strerror or error}") from error
    return message_part(path.name, data)
