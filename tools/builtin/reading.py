"""What `ai.read` does."""

import os
from difflib import get_close_matches
from pathlib import Path

from state.printing import counted
from tools.builtin.failures import NotTextError, TooLargeError, ToolFailure, os_failures
from tools.builtin.root import Root
from tools.builtin.text import decode, lines_of, read_bytes
from tools.text.kept import SHOWN_CHARS, KeptResults

MAX_READ_BYTES = 5_000_000
ROOM_CHARS = 200
"""For the last line, which tells how to read on."""
_NAMES_SHOWN = 20


def read_text(root: Root, path: str, first_line: int, max_lines: int) -> str:
    """Return lines of a file; when it is not the whole file, a last line in brackets says what is missing.

    Raises:
        ToolFailure: it is missing, a folder, not text, too large, outside the root, or ends before `first_line`.
    """
    real = root.resolve(path)
    name = root.name(real)
    with os_failures(f"read {name}"):
        if real.is_dir():
            raise ToolFailure(f"{name} is a folder, not a file. {_entries(root, real)}")
        try:
            text = decode(read_bytes(root, real, MAX_READ_BYTES), name)
        except FileNotFoundError as error:
            raise ToolFailure(_missing(root, real)) from error
        except TooLargeError as error:
            raise TooLargeError(
                f"{error}: look for what you need in it with a search, or read a part with a command"
            ) from error
    return _lines(text, name, first_line, max_lines)


def read_kept(kept: KeptResults, handle: str, first_line: int, max_lines: int) -> str:
    """Return lines of a result that was too long to show, as many as are shown at once.

    Raises:
        ToolFailure: this session keeps no such result, or it is no text, or it ends before `first_line`.
    """
    try:
        text = kept.read(handle)
    except UnicodeDecodeError as error:
        raise NotTextError(f"{handle} is not text: it is kept for the user, as it came") from error
    if text is None:
        raise ToolFailure(f"{handle} is not kept, or no more, in this session: call the tool that it came from again")
    most, total = 0, 0
    for line in lines_of(text)[first_line - 1 : first_line - 1 + max_lines]:
        total += len(line) + 1
        if total > SHOWN_CHARS - ROOM_CHARS:
            break
        most += 1
    return _lines(text, handle, first_line, max(1, most))


def _lines(text: str, name: str, first_line: int, max_lines: int) -> str:
    lines = lines_of(text)
    if not lines:
        return f"[{name} is empty]"
    if first_line > len(lines):
        raise ToolFailure(f"{name} has {counted(len(lines), 'line')}: first_line={first_line} is beyond its end")
    last = min(first_line + max_lines - 1, len(lines))
    if first_line == 1 and last == len(lines):
        return text
    rest = f"; read on with first_line={last + 1}" if last < len(lines) else ""
    shown = "\n".join(lines[first_line - 1 : last])
    return f"{shown}\n[lines {first_line} to {last} of {counted(len(lines), 'line')} in {name}{rest}]"


def _names(root: Root, real: Path) -> list[str]:
    with root.folder(real) as folder:
        return sorted(os.listdir(folder))  # noqa: PTH208 - a descriptor, not a path


def _entries(root: Root, real: Path) -> str:
    names = _names(root, real)
    if not names:
        return "It is empty."
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"It holds: {', '.join(names[:_NAMES_SHOWN])}{more}"


def _missing(root: Root, real: Path) -> str:
    while not real.parent.is_dir():
        real = real.parent
    where = "the working folder" if real.parent == root.path else root.name(real.parent)
    by_folded = {name.casefold(): name for name in _names(root, real.parent)}
    near = [by_folded[match] for match in get_close_matches(real.name.casefold(), by_folded)]
    hint = f"Near to it: {', '.join(near)}" if near else _entries(root, real.parent)
    return f"{root.name(real)} does not exist in {where}. {hint}"
