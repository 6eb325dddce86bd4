"""What `ai.write` does."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Literal

from packetgate.state.printing import counted
from packetgate.tools.builtin.failures import NotTextError, TooLargeError, ToolFailure, os_failures
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.text import decode, lines_of, read_bytes
from packetgate.tools.text.differences import difference

WriteMode = Literal["create", "overwrite", "append"]

MAX_DIFF_BYTES = 200_000
WITHHELD = "what it holds is shown only to those who ask to read it"
_DONE = {"create": "Created", "overwrite": "Overwrote", "append": "Appended"}


def write_text(root: Root, path: str, content: str, mode: WriteMode, *, dry_run: bool) -> str:
    """Write a file, or tell what writing it would change, and return that in words.

    Raises:
        ToolFailure: it exists and the mode is `create`, it is a folder, not text to append to, or outside the root.
    """
    real = root.resolve(path)
    name = root.name(real)
    data = encode(content, name)
    with os_failures(f"write {name}"):
        if real.is_dir():
            raise ToolFailure(f"{name} is a folder: name a file in it, for example {name}/notes.txt")
        before, no_diff = _present(root, real, mode)
        if root.withholds(name):
            no_diff = WITHHELD
        if before is not None and mode == "create":
            raise _exists(name)
        doing: WriteMode = "create" if before is None else mode
        size = f"{counted(len(lines_of(content)), 'line')}, {counted(len(data), 'byte')}"
        if not dry_run:
            with root.folder(real.parent, create=True) as folder:
                put(folder, real.name, data, doing, may_replace=mode == "overwrite")
            return f"{_DONE[doing]} {f'{size} to {name}' if doing == 'append' else f'{name}: {size}'}"
    told = f"Would {doing} {f'{size} to {name}' if doing == 'append' else f'{name}: {size}'}"
    if no_diff or len(data) > MAX_DIFF_BYTES:
        return f"{told}\n[no difference shown: {no_diff or f'the new text has more than {MAX_DIFF_BYTES:,} bytes'}]"
    old = before or ""
    new = old + content if doing == "append" else content
    return f"{told}\n{difference(old, new, f'{name} now', f'{name} then')}"


def encode(content: str, name: str) -> bytes:
    """Return a text as UTF-8.

    Raises:
        ToolFailure: it holds half a character.
    """
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailure(
            f"the content for {name} is not text: a lone surrogate at character {error.start}; send it without"
        ) from error


def _present(root: Root, real: Path, mode: WriteMode) -> tuple[str | None, str]:
    """Return the present text (None: no file), and why it cannot be compared, if so."""
    try:
        return decode(read_bytes(root, real, MAX_DIFF_BYTES), root.name(real)), ""
    except FileNotFoundError:
        return None, ""
    except TooLargeError as error:
        return "", str(error)
    except NotTextError as error:
        if mode == "append":
            raise
        return "", str(error)


def _exists(name: str) -> ToolFailure:
    return ToolFailure(f"{name} exists already: choose another name, or mode 'overwrite' or 'append'")


def put(folder: int, name: str, data: bytes, doing: WriteMode, *, may_replace: bool = True) -> None:
    """Write a file in an open folder; what is created or overwritten appears whole, in one step.

    Raises:
        ToolFailure: it is there, and may not be replaced.
    """
    if doing == "append":
        descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, dir_fd=folder)
        with os.fdopen(descriptor, "ab") as file:
            file.write(data)
        return
    temporary = f".{token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if doing == "overwrite":
                os.fchmod(descriptor, stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode))
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if may_replace:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:  # unlike a rename, a link never replaces what someone else has just put there
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError as error:
        raise _exists(name) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
