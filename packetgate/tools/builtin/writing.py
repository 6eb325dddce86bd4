"""The `ai.write`, `ai.append` and `ai.edit` tools."""

import os
import stat
from codecs import BOM_UTF8
from difflib import get_close_matches
from pathlib import Path
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
    new_file,
    os_failures,
    read_bytes,
)
from packetgate.tools.builtin.paths import PathReader, missing
from packetgate.tools.builtin.reading import MAX_READ_BYTES
from packetgate.tools.builtin.tool import BuiltinTool, DryRun, ExistingFile
from packetgate.tools.text.differences import difference

WriteMode = Literal["create", "overwrite", "append"]

MAX_DIFF_BYTES = 200_000
_WITHHELD = "[no difference shown: this file is shown only if it is read by name]"
_DONE = {"create": "Created", "overwrite": "Overwrote", "append": "Appended"}
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
            before, no_diff = self._text_before(real, mode)
            if before is not None and mode == "create":
                raise _exists(name)
            doing: WriteMode = "create" if before is None else mode
            size = f"{counted(len(lines_of(content)), 'line')}, {counted(len(data), 'byte')}"
            what = f"{size} to {name}" if doing == "append" else f"{name}: {size}"
            if not dry_run:
                self._put(real, data, doing, may_replace=mode == "overwrite")
                return f"{_DONE[doing]} {what}"
        if not no_diff and len(data) > MAX_DIFF_BYTES:
            no_diff = f"[no difference shown: the new text has more than {MAX_DIFF_BYTES:,} bytes]"
        old = before or ""
        new = old + content if doing == "append" else content
        return f"Would {doing} {what}\n{no_diff or difference(old, new, f'{name} now', f'{name} then')}"

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
                return f"Would append to {name}\n{_WITHHELD}"
            try:
                file, is_new = self._read(real), False
            except FileNotFoundError:
                file, is_new = _Text(name, "", b"", "\n"), True
            start = file.newline if file.text and not file.text.endswith("\n") else ""
            added = file.with_own_newlines(text if text.endswith("\n") else f"{text}\n")
            whole = file.text + start + added
            if not dry_run:
                if is_new:
                    self._put(real, _encode(added, name), "create")
                else:
                    self._replace(real, file, whole)
        size = counted(len(lines_of(added)), "line")
        if is_new:
            done = f"{'Would create' if dry_run else 'Created'} {name} with {size}"
        else:
            done = f"{'Would append' if dry_run else 'Appended'} {size} to {name}"
        return f"{done}\n{_difference(file, whole)}"

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
                return f"Would edit {name}\n{_WITHHELD}"
            try:
                file = self._read(real)
            except FileNotFoundError as error:
                raise missing(self._root, real, "file") from error
            old, new = file.with_own_newlines(old_text), file.with_own_newlines(new_text)
            if old not in file.text:  # the file mixes line endings
                old, new = old_text, new_text
            places = file.text.count(old)
            if not places:
                raise _not_in_file(file, old_text)
            if places > 1 and not every:
                first = file.text.count("\n", 0, file.text.index(old)) + 1
                raise ToolFailure(
                    f"{name} has that text {places:,} times, first on line {first}: give more of the text around it, "
                    "or set every=true"
                )
            text = file.text.replace(old, new)
            if not dry_run:
                self._replace(real, file, text)
        doing = "Would change" if dry_run else "Changed"
        return f"{doing} {counted(places, 'place')} in {name}\n{_difference(file, text)}"

    def _text_before(self, real: Path, mode: WriteMode) -> tuple[str | None, str]:
        """Return the current text (None for a new file), and a line that says why no difference can be shown."""
        name = self._root.name(real)
        no_diff = _WITHHELD if self._root.withholds(name) else ""
        try:
            return decode(read_bytes(self._root, real, MAX_DIFF_BYTES), name), no_diff
        except FileNotFoundError:
            return None, no_diff
        except (TooLargeError, NotTextError) as error:
            if mode == "append" and isinstance(error, NotTextError):
                raise
            return "", no_diff or f"[no difference shown: {error}]"

    def _read(self, real: Path) -> "_Text":
        name = self._root.name(real)
        if real.is_dir():
            raise ToolFailure(f"{name} is a folder: name a file in it")
        data = read_bytes(self._root, real, MAX_READ_BYTES)
        text, mark = decode(data, name), BOM_UTF8 if data.startswith(BOM_UTF8) else b""
        windows = text.count("\r\n")
        return _Text(name, text, mark, "\r\n" if windows > text.count("\n") - windows else "\n")

    def _replace(self, real: Path, file: "_Text", text: str) -> None:
        data = file.mark + _encode(text, file.name)
        if len(data) > MAX_READ_BYTES:
            raise ToolFailure(f"{file.name} would be too large: {len(data):,} bytes, the limit is {MAX_READ_BYTES:,}")
        if self._read(real).text != file.text:
            raise ToolFailure(f"{file.name} was changed by another program just now: read it again")
        self._put(real, data, "overwrite", may_replace=True)

    def _put(self, real: Path, data: bytes, doing: WriteMode, *, may_replace: bool = False) -> None:
        with self._root.folder(real.parent, create=True) as folder:
            if doing == "append":
                descriptor = os.open(real.name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, dir_fd=folder)
                with os.fdopen(descriptor, "ab") as file:
                    file.write(data)
                return
            status = os.stat(real.name, dir_fd=folder, follow_symlinks=False) if doing == "overwrite" else None
            mode = stat.S_IMODE(status.st_mode) if status else None
            try:
                with (
                    new_file(folder, real.name, mode=mode, may_replace=may_replace) as descriptor,
                    os.fdopen(descriptor, "wb", closefd=False) as file,
                ):
                    file.write(data)
            except FileExistsError as error:
                raise _exists(self._root.name(real)) from error


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


class _Text(NamedTuple):
    name: str
    text: str
    """The text as stored, without the byte order mark."""
    mark: bytes
    """The byte order mark, if any."""
    newline: str
    """The most frequent line ending."""

    def with_own_newlines(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", self.newline)


def _encode(content: str, name: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailure(f"the content for {name} is not text: a lone surrogate at character {error.start}") from error


def _exists(name: str) -> ToolFailure:
    return ToolFailure(f"{name} exists already: choose another name, or mode 'overwrite' or 'append'")


def _difference(file: _Text, text: str) -> str:
    if max(len(file.text), len(text)) > MAX_DIFF_BYTES:
        return f"[no difference shown: {file.name} has more than {MAX_DIFF_BYTES:,} characters]"
    return difference(file.text, text, f"{file.name} before" if file.text else "/dev/null", f"{file.name} after")


def _not_in_file(file: _Text, old_text: str) -> ToolFailure:
    failure = f"{file.name} does not have {shorten(old_text, _LINE_CHARS)!r}"
    lines = {line.strip().casefold(): number for number, line in reversed([*enumerate(lines_of(file.text)[:5_000])])}
    nearest = get_close_matches(old_text.strip().partition("\n")[0].casefold(), lines, n=1)
    if not nearest:
        return ToolFailure(f"{failure}: read it first, and give the passage exactly as it is")
    number = lines[nearest[0]]
    return ToolFailure(
        f"{failure}; nearest is line {number + 1}: {shorten(lines_of(file.text)[number], _LINE_CHARS)!r}"
    )
