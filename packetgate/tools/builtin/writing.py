"""The `ai.write`, `ai.append` and `ai.edit` tools."""

import os
import stat
from codecs import BOM_UTF8
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from packetgate.state.printing import counted, shorten
from packetgate.state.routing import Risk
from packetgate.tools.builtin.files import (
    NotTextError,
    Root,
    TooLargeError,
    ToolFailure,
    decode,
    lines_of,
    os_failures,
    read_bytes,
)
from packetgate.tools.builtin.paths import PathReader, missing
from packetgate.tools.builtin.reading import MAX_READ_BYTES
from packetgate.tools.builtin.tool import BuiltinTool, DryRun, ExistingFile
from packetgate.tools.text.differences import difference

WriteMode = Literal["create", "overwrite", "append"]

MAX_DIFF_BYTES = 200_000
_WITHHELD = "what it holds is shown only to those who ask to read it"
_DONE = {"create": "Created", "overwrite": "Overwrote", "append": "Appended"}
_LINES_NAMED = 10
_LINE_CHARS = 120


class _Writer:
    def __init__(self, root: Root) -> None:
        self._root = root

    def write(
        self,
        path: Annotated[str, Field(description="The file, relative to the working folder, for example notes.txt.")],
        content: Annotated[str, Field(description="The text to write, complete, with its newlines.")],
        mode: Annotated[
            WriteMode,
            Field(description="create: only a new file. overwrite: replace the whole file. append: add at its end."),
        ] = "create",
        dry_run: DryRun = True,
    ) -> str:
        """Write text to a file: create or save a new file, or overwrite a whole one.

        Returns: what was created, overwritten or appended to; missing folders are created on the way. A dry run answers
        "Would ..." with the difference to the present text and changes nothing.
        """
        real = self._root.resolve(path)
        name = self._root.name(real)
        data = _encode(content, name)
        with os_failures(f"write {name}"):
            if real.is_dir():
                raise ToolFailure(f"{name} is a folder: name a file in it, for example {name}/notes.txt")
            before, no_diff = _comparable(self._root, real, mode)
            if before is not None and mode == "create":
                raise _exists(name)
            doing: WriteMode = "create" if before is None else mode
            size = f"{counted(len(lines_of(content)), 'line')}, {counted(len(data), 'byte')}"
            what = f"{size} to {name}" if doing == "append" else f"{name}: {size}"
            if not dry_run:
                with self._root.folder(real.parent, create=True) as folder:
                    _put(folder, real.name, data, doing, may_replace=mode == "overwrite")
                return f"{_DONE[doing]} {what}"
        if len(data) > MAX_DIFF_BYTES:
            no_diff = no_diff or f"the new text has more than {MAX_DIFF_BYTES:,} bytes"
        old = before or ""
        new = old + content if doing == "append" else content
        shown = f"[no difference shown: {no_diff}]" if no_diff else difference(old, new, f"{name} now", f"{name} then")
        return f"Would {doing} {what}\n{shown}"

    def append(
        self,
        path: ExistingFile,
        text: Annotated[str, Field(min_length=1, description="The line or text to add.")],
        dry_run: DryRun = True,
    ) -> str:
        """Append to a file: add a line or text at its end, such as an item to a list or a note to a log.

        Returns: the difference. The text begins on a line of its own; a file that is not there is created.
        """
        real = self._root.resolve(path)
        name = self._root.name(real)
        with os_failures(f"append to {name}"):
            if dry_run and self._root.withholds(name):
                return f"Would append to {name}\n[no difference shown: {_WITHHELD}]"
            try:
                now, is_new = _present(self._root, real), False
            except FileNotFoundError:
                now, is_new = _Text(name, "", b"", "\n"), True
            start = now.newline if now.text and not now.text.endswith("\n") else ""
            added = now.with_its_newlines(text if text.endswith("\n") else f"{text}\n")
            whole = now.text + start + added
            if is_new and not dry_run:
                with self._root.folder(real.parent, create=True) as folder:
                    _put(folder, real.name, _encode(added, name), "create", may_replace=False)
            elif not dry_run:
                _replace(self._root, real, now, whole)
        size = counted(len(lines_of(added)), "line")
        if is_new:
            done = f"{'Would create' if dry_run else 'Created'} {name} with {size}"
        else:
            done = f"{'Would append' if dry_run else 'Appended'} {size} to {name}"
        return f"{done}\n{_difference(now, whole)}"

    def edit(
        self,
        path: ExistingFile,
        old_text: Annotated[str, Field(min_length=1, description="The exact text in the file that is to be replaced.")],
        new_text: Annotated[str, Field(description="The text to put in its place; empty to take it out.")],
        every: Annotated[bool, Field(description="Replace it everywhere, not only where it stands once.")] = False,
        dry_run: DryRun = True,
    ) -> str:
        """Edit a file: replace or change a word or passage in it, fix or correct it, or take it out.

        Returns: the difference. The text must stand in the file exactly as given, and once, unless all of them are to
        be replaced. The rest of the file stays as it is.
        """
        real = self._root.resolve(path)
        name = self._root.name(real)
        with os_failures(f"edit {name}"):
            if dry_run and self._root.withholds(name):
                return f"Would edit {name}\n[no difference shown: {_WITHHELD}]"
            try:
                now = _present(self._root, real)
            except FileNotFoundError as error:
                raise missing(self._root, real, "file") from error
            old, new = now.with_its_newlines(old_text), now.with_its_newlines(new_text)
            if old not in now.text:  # its lines end in several ways
                old, new = old_text, new_text
            places = now.text.count(old)
            if not places:
                raise _not_in_file(now, old_text)
            if places > 1 and not every:
                raise ToolFailure(
                    f"{name} says that {places:,} times, on {_lines_with(now, old)}: give more of the text around it, "
                    "or set every=true"
                )
            text = now.text.replace(old, new)
            if not dry_run:
                _replace(self._root, real, now, text)
        doing = "Would change" if dry_run else "Changed"
        return f"{doing} {counted(places, 'place')} in {name}\n{_difference(now, text)}"


def writing_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools that write text below `root`; a dry run says what would change."""
    writer = _Writer(root)
    existing = (PathReader(root, kind="file"),)
    replaced = PathReader(root, kind="file", careful=True, unless=("mode", "create"))
    return (
        BuiltinTool(writer.write, Risk.WRITE, paths=(replaced,)),
        BuiltinTool(writer.append, Risk.WRITE, paths=existing),
        BuiltinTool(writer.edit, Risk.WRITE, paths=existing),
    )


def _encode(content: str, name: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailure(
            f"the content for {name} is not text: a lone surrogate at character {error.start}; send it without"
        ) from error


def _comparable(root: Root, real: Path, mode: WriteMode) -> tuple[str | None, str]:
    withheld = _WITHHELD if root.withholds(root.name(real)) else ""
    try:
        return decode(read_bytes(root, real, MAX_DIFF_BYTES), root.name(real)), withheld
    except FileNotFoundError:
        return None, withheld
    except (TooLargeError, NotTextError) as error:
        if mode == "append" and isinstance(error, NotTextError):
            raise
        return "", withheld or str(error)


def _exists(name: str) -> ToolFailure:
    return ToolFailure(f"{name} exists already: choose another name, or mode 'overwrite' or 'append'")


def _put(folder: int, name: str, data: bytes, doing: WriteMode, *, may_replace: bool = True) -> None:
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


class _Text(NamedTuple):
    name: str
    text: str
    """As stored, without the byte order mark."""
    mark: bytes
    """The byte order mark, if any."""
    newline: str
    """The most frequent line ending."""

    def with_its_newlines(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", self.newline)


def _present(root: Root, real: Path) -> _Text:
    name = root.name(real)
    if real.is_dir():
        raise ToolFailure(f"{name} is a folder: name a file in it")
    data = read_bytes(root, real, MAX_READ_BYTES)
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    text = decode(data, name)
    windows = text.count("\r\n")
    return _Text(name, text, mark, "\r\n" if windows > text.count("\n") - windows else "\n")


def _replace(root: Root, real: Path, now: _Text, text: str) -> None:
    data = now.mark + _encode(text, now.name)
    if len(data) > MAX_READ_BYTES:
        raise ToolFailure(f"{now.name} would be too large: {len(data):,} bytes, the limit is {MAX_READ_BYTES:,}")
    if decode(read_bytes(root, real, MAX_READ_BYTES), now.name) != now.text:
        raise ToolFailure(f"{now.name} was changed by somebody else just now: read it again")
    with root.folder(real.parent) as folder:
        _put(folder, real.name, data, "overwrite")


def _difference(now: _Text, text: str) -> str:
    if max(len(now.text), len(text)) > MAX_DIFF_BYTES:
        return f"[no difference shown: {now.name} has more than {MAX_DIFF_BYTES:,} characters]"
    return difference(now.text, text, f"{now.name} before" if now.text else "/dev/null", f"{now.name} after")


def _lines_with(now: _Text, old: str) -> str:
    numbers, at = list[int](), now.text.find(old)
    while at >= 0 and len(numbers) <= _LINES_NAMED:
        numbers.append(now.text.count("\n", 0, at) + 1)
        at = now.text.find(old, at + len(old))
    more = " and more" if len(numbers) > _LINES_NAMED else ""
    return f"lines {', '.join(map(str, dict.fromkeys(numbers[:_LINES_NAMED])))}{more}"


def _not_in_file(now: _Text, old_text: str) -> ToolFailure:
    lines = lines_of(now.text)
    wanted = old_text.strip().partition("\n")[0]
    folded = wanted.casefold()
    same = [number for number, line in enumerate(lines, 1) if folded and folded in line.casefold()]
    close = same or [lines.index(line) + 1 for line in get_close_matches(wanted, lines[:5_000], n=1)]
    failure = f"{now.name} does not say {shorten(old_text, _LINE_CHARS)!r} exactly so"
    if not close:
        return ToolFailure(f"{failure}: read it first, and give the passage as it stands there")
    return ToolFailure(f"{failure}; nearest is line {close[0]}: {shorten(lines[close[0] - 1], _LINE_CHARS)!r}")
