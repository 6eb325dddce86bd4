"""The tools that write text, and move, copy and delete files and folders. A dry run says what would change."""

import os
import stat
from codecs import BOM_UTF8
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from packetgate.state.printing import byte_size, counted, shorten
from packetgate.state.routing import Risk
from packetgate.tools.builtin.changes import Changes, exists_already
from packetgate.tools.builtin.files import (
    MAX_READ_BYTES,
    NotTextError,
    Root,
    ToolFailure,
    decode,
    lines_of,
    read_bytes,
)
from packetgate.tools.builtin.paths import DESTINATION, PathReader, contents_line, existing, missing
from packetgate.tools.builtin.tool import BuiltinTool, DryRun, ExistingFile
from packetgate.tools.text.differences import difference

WriteMode = Literal["create", "overwrite", "append"]

MAX_DIFF_CHARS = 200_000
_WITHHELD = "[no difference shown: this file is shown only if it is read by name]"
_DONE = {"create": "Created", "overwrite": "Overwrote", "append": "Appended"}
_LINE_CHARS = 120
_Source = Annotated[str, Field(description="The file or folder as it is called now, for example drafts/plan.md.")]


def writing_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools that write text below `root`."""
    changes = Changes(root)

    def write(
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
        file = _TextFile(root, root.resolve(path))
        if file.exists and mode == "create":
            raise exists_already(file.name)
        doing = mode if file.exists else "create"
        text = file.text + content if doing == "append" else content
        size = f"{counted(len(lines_of(content)), 'line')}, {counted(len(_encoded(content, file.name)), 'byte')}"
        what = f"{size} to {file.name}" if doing == "append" else f"{file.name}: {size}"
        if dry_run:
            return f"Would {doing} {what}\n{_WITHHELD if file.withheld else file.difference(text)}"
        changes.write(file.real, file.encoded(text), file.data)
        return f"{_DONE[doing]} {what}"

    def append(
        path: ExistingFile,
        text: Annotated[str, Field(min_length=1, description="The line or text to add.")],
        dry_run: DryRun = True,
    ) -> str:
        """Append to a file: add a line or text at its end, such as an item to a list or a note to a log.

        Returns: the difference. The text begins on a line of its own; a file that is not there is created.
        """
        file = _TextFile(root, root.resolve(path))
        if dry_run and file.withheld:
            return f"Would append to {file.name}\n{_WITHHELD}"
        start = file.newline if file.text and not file.text.endswith("\n") else ""
        added = file.with_own_newlines(text if text.endswith("\n") else f"{text}\n")
        whole = file.text + start + added
        if not dry_run:
            changes.write(file.real, file.encoded(whole), file.data)
        size = counted(len(lines_of(added)), "line")
        if file.exists:
            done = f"{'Would append' if dry_run else 'Appended'} {size} to {file.name}"
        else:
            done = f"{'Would create' if dry_run else 'Created'} {file.name} with {size}"
        return f"{done}\n{file.difference(whole)}"

    def edit(
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
        file = _TextFile(root, root.resolve(path))
        if dry_run and file.withheld:
            return f"Would edit {file.name}\n{_WITHHELD}"
        if not file.exists:
            raise missing(root, file.real, "file")
        old, new = file.with_own_newlines(old_text), file.with_own_newlines(new_text)
        if old not in file.text:  # the file mixes line endings
            old, new = old_text, new_text
        places = file.text.count(old)
        if not places:
            raise _not_in_file(file, old_text)
        if places > 1 and not every:
            first = file.text.count("\n", 0, file.text.index(old)) + 1
            raise ToolFailure(
                f"{file.name} has that text {places:,} times, first on line {first}: give more of the text around it, "
                "or set every=true"
            )
        text = file.text.replace(old, new)
        if not dry_run:
            changes.write(file.real, file.encoded(text), file.data)
        doing = "Would change" if dry_run else "Changed"
        return f"{doing} {counted(places, 'place')} in {file.name}\n{file.difference(text)}"

    existing_file = (PathReader(root, kind="file"),)
    replaced = PathReader(root, kind="file", careful=True, unless=("mode", "create"))
    return (
        BuiltinTool(write, Risk.WRITE, paths=(replaced,)),
        BuiltinTool(append, Risk.WRITE, paths=existing_file),
        BuiltinTool(edit, Risk.WRITE, paths=existing_file),
    )


def moving_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools that move, copy and delete files and folders below `root`."""
    changes = Changes(root)

    def move(
        path: _Source,
        destination: Annotated[
            str,
            Field(
                description="The folder to move it to, as archive/, or its new path. A new name alone renames it where "
                "it is."
            ),
        ],
        dry_run: DryRun = True,
    ) -> str:
        """Move or rename a file or folder: put it into another folder, or give it a new name.

        Returns: the new path. Missing folders are created on the way, and nothing that is there is replaced.
        """
        real = _changeable(root, path)
        target = _target(root, real, destination)
        name, new = root.name(real), root.name(target)
        if target.is_relative_to(real):
            raise ToolFailure(f"{name} cannot be moved into itself, to {new}")
        verb = "rename" if real.parent == target.parent else "move"
        if dry_run:
            return f"Would {verb} {name} to {new}"
        changes.move(real, target)
        return f"{verb.capitalize()}d {name} to {new}"

    def copy(
        path: _Source,
        destination: Annotated[str, Field(description="The folder to copy it to, as backup/, or its new path.")],
        dry_run: DryRun = True,
    ) -> str:
        """Copy or duplicate a file, for example as a backup; the original stays.

        Returns: the path of the copy. Missing folders are created on the way, and nothing that is there is replaced.
        """
        real = _changeable(root, path)
        target = _target(root, real, destination, beside=False)
        status = real.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailure(f"{root.name(real)} is not a file: only files are copied, one at a time")
        if not dry_run:
            changes.copy(real, target)
        what = f"{root.name(real)} to {root.name(target)}: {byte_size(status.st_size)}"
        return f"{'Would copy' if dry_run else 'Copied'} {what}"

    def delete(
        path: Annotated[str, Field(description="The file or empty folder to delete, for example old/draft.md.")],
        dry_run: DryRun = True,
    ) -> str:
        """Delete or remove a file or an empty folder for good.

        Returns: what was deleted. A folder that holds something stays, and a link goes without what it leads to.
        """
        real = _changeable(root, path)
        name, status = root.name(real), real.lstat()
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_folder and any(real.iterdir()):
            raise ToolFailure(f"{name} is a folder that is not empty. {contents_line(root, real)}")
        what = f"{name}: {'an empty folder' if is_folder else byte_size(status.st_size)}"
        if dry_run:
            return f"Would delete {what}; this cannot be undone"
        changes.delete(real)
        return f"Deleted {what}"

    def make_folder(
        path: Annotated[str, Field(description="The new folder, for example archive/2026.")],
        dry_run: DryRun = True,
    ) -> str:
        """Make or create a new, empty folder (directory)."""
        real = root.resolve(path)
        name = root.name(real)
        if os.path.lexists(real):
            raise ToolFailure(f"{name} exists already: {'a folder' if real.is_dir() else 'a file'}")
        if not dry_run:
            changes.make_folder(real)
        return f"{'Would make' if dry_run else 'Made'} the folder {name}"

    source = PathReader(root, kind="any", follow=False, careful=True)
    target = PathReader(root, parameter=DESTINATION, follow=False)
    return (
        BuiltinTool(move, Risk.WRITE, paths=(source, target)),
        BuiltinTool(copy, Risk.WRITE, paths=(source, target)),
        BuiltinTool(delete, Risk.WRITE, paths=(source,)),
        BuiltinTool(make_folder, Risk.WRITE, paths=(PathReader(root),)),
    )


class _TextFile:
    """A text file as it is now; empty if it does not exist or is binary."""

    def __init__(self, root: Root, real: Path) -> None:
        self.real, self.name = real, root.name(real)
        self.withheld = root.withholds(self.name)
        if real.is_dir():
            raise ToolFailure(f"{self.name} is a folder: name a file in it, for example {self.name}/notes.txt")
        try:
            self.data: bytes | None = read_bytes(root, real, MAX_READ_BYTES)
        except FileNotFoundError:
            self.data = None
        self.exists = self.data is not None

    @cached_property
    def text(self) -> str:
        """The text without the byte order mark. Raise `NotTextError` for a binary file."""
        return decode(self.data or b"", self.name)

    @property
    def newline(self) -> str:
        """The most frequent line ending."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows > self.text.count("\n") - windows else "\n"

    def with_own_newlines(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", self.newline)

    def encoded(self, text: str) -> bytes:
        """Return a new text as bytes, with the byte order mark of the file."""
        mark = BOM_UTF8 if self.data and self.data.startswith(BOM_UTF8) else b""
        data = mark + _encoded(text, self.name)
        if len(data) > MAX_READ_BYTES:
            raise ToolFailure(f"{self.name} would be too large: {len(data):,} bytes, the limit is {MAX_READ_BYTES:,}")
        return data

    def difference(self, text: str) -> str:
        try:
            old = self.text
        except NotTextError as error:
            return f"[no difference shown: {error}]"
        if max(len(old), len(text)) > MAX_DIFF_CHARS:
            return f"[no difference shown: {self.name} has more than {MAX_DIFF_CHARS:,} characters]"
        return difference(old, text, f"{self.name} now" if self.exists else "/dev/null", f"{self.name} then")


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailure(f"the content for {name} is not text: a lone surrogate at character {error.start}") from error


def _not_in_file(file: _TextFile, old_text: str) -> ToolFailure:
    failure = f"{file.name} does not have {shorten(old_text, _LINE_CHARS)!r}"
    lines = {line.strip().casefold(): number for number, line in reversed([*enumerate(lines_of(file.text)[:5_000])])}
    nearest = get_close_matches(old_text.strip().partition("\n")[0].casefold(), lines, n=1)
    if not nearest:
        return ToolFailure(f"{failure}: read it first, and give the passage exactly as it is")
    number = lines[nearest[0]]
    return ToolFailure(
        f"{failure}; nearest is line {number + 1}: {shorten(lines_of(file.text)[number], _LINE_CHARS)!r}"
    )


def _changeable(root: Root, path: str) -> Path:
    real = existing(root, path, follow=False)
    if real == root.path:
        raise ToolFailure("the working folder itself cannot be changed: name something in it")
    return real


def _target(root: Root, real: Path, destination: str, *, beside: bool = True) -> Path:
    """Return the new path; with `beside`, a bare name is a name in the same folder."""
    folder, target = root.resolve(destination), root.resolve(destination, follow=False)
    if folder.is_dir():
        target = folder / real.name
    elif not folder.exists():
        if destination.rstrip().endswith("/") or (real.suffix and not target.suffix):
            target /= real.name
        elif beside and "/" not in destination.strip() and target.name != real.name:
            target = real.parent / target.name
    if os.path.lexists(target):
        raise exists_already(root.name(target))
    return target
