"""Read user input: at a terminal with editing and history, from a pipe, from files and from options."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packetgate.connectors.running import InterruptedReadError
from packetgate.graph.private_files import private_file
from packetgate.state.errors import ConfigError, RequestError
from packetgate.tools.attached.media import MAX_PICTURE_BYTES
from packetgate.tools.attached.parts import Part, message_part

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

LineReader = Callable[[str], Awaitable[str]]


def is_at_terminal() -> bool:
    """Whether both input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def reader(history: Path | None = None, completions: Mapping[str, str] | None = None) -> LineReader:
    """Return a function that reads a message: Enter sends; Alt+Enter or a trailing backslash begins a new line.

    It raises EOFError at the end. Ctrl-C clears the input; if the input is empty, it raises InterruptedReadError.
    `completions` maps each completion to its description.
    """
    if not is_at_terminal():
        return read_pipe
    if find_spec("prompt_toolkit") is None:
        raise ConfigError("prompt_toolkit is not installed: pip install 'packetgate[terminal]'")
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.styles import Style

    session: PromptSession[str] = PromptSession(
        style=Style.from_dict({"prompt": "bold ansicyan"}),
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation="...  ",
        history=_history(history) if history else None,
        completer=WordCompleter([*completions], meta_dict=completions, sentence=True) if completions else None,
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


async def read_pipe(_prompt: str) -> str:
    """Return the next line of standard input. Raise EOFError if no line is left."""
    line: str = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _keys() -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\") and not buffer.document.current_line_after_cursor:
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _new_line(event: "KeyPressEvent") -> None:
        event.current_buffer.newline()

    @keys.add("c-c")
    def _clear(event: "KeyPressEvent") -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


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
        RequestError: the file cannot be read, is neither text nor a picture, or is too large.
    """
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path} cannot be attached: {error.strerror or error}") from error
    return message_part(path.name, data)


def read_edit(text: str, source: str) -> list[dict[str, Any] | str]:
    """Return the parts of an edit: a JSON object of arguments, or for several calls a list of objects or words.

    `source` is the option or the prompt, for errors.

    Raises:
        RequestError: the text has another form.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(f"{source}: not JSON: {error.msg} at column {error.colno}") from error
    parts = value if isinstance(value, list) else [value]
    kinds = (dict, str) if isinstance(value, list) else dict
    if not parts or not all(isinstance(part, kinds) for part in parts):
        raise RequestError(
            f'{source}: expected a JSON object of arguments, or a list of such objects or words such as "yes", not '
            f"{text[:60]}"
        )
    return parts


def decisions_of(edit: Sequence[dict[str, Any] | str], question: dict[str, Any]) -> dict[str, Any]:
    """Return the decisions of an edit; each call keeps the arguments that the edit does not name."""
    current = [request["args"] for request in question.get("action_requests") or ()]
    decisions: list[Any] = [*edit]
    for number, part in enumerate(edit):
        if isinstance(part, dict):
            before = current[number] if number < len(current) else {}
            decisions[number] = {"type": "edit", "args": {"args": {**before, **part}}}
    return {"decisions": decisions}
