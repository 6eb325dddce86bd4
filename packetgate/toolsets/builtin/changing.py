"""The tools that write text, move, copy and delete files, and make folders. A dry run describes the change."""

import os
import stat
from codecs import BOM_UTF8
from difflib import get_close_matches, unified_diff
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from packetgate.state.printing import byte_size, counted, shorten
from packetgate.state.routing import Risk
from packetgate.toolsets.builtin.file_operations import FileOperations, already_exists
from packetgate.toolsets.builtin.files import (
    MAX_READ_BYTES,
    NotTextError,
    Root,
    ToolFailure,
    decode,
    lines_of,
    read_bytes,
)
from packetgate.toolsets.builtin.paths import DESTINATION, PathParameter, existing_path, folder_contents, path_not_found
from packetgate.toolsets.builtin.tool import BuiltinTool, DryRun, ExistingFile
from packetgate.toolsets.builtin.undo_store import UndoStore

MAX_DIFF_CHARS = 200_000
WITHHELD = "[no difference shown: the file may hold secrets, or a policy rule asks about reading it or denies it]"
_DONE = {"create": "Created", "overwrite": "Overwrote", "append": "Appended", "change": "Changed"}
_LINE_CHARS = 120
_Source = Annotated[str, Field(description="The file or folder as it is called now, for example drafts/plan.md.")]


def writing_tools(root: Root, store: UndoStore | None) -> tuple[BuiltinTool, ...]:
    """Return the tools that write text below `root`. `store` records the changes, so that they can be undone."""
    operations = FileOperations(root, store)

    def apply(file: CurrentFile, text: str, verb: str, change: str, *, dry_run: bool) -> str:
        """Write the text, unless it is a dry run, and return a description of the change with the difference."""
        file.write(text, operations, dry_run=dry_run)
        return f"{f'Would {verb}' if dry_run else _DONE[verb]} {change}\n{file.diff_to(text)}"

    def write(
        path: Annotated[str, Field(description="The file, relative to the working folder, for example notes.txt.")],
        content: Annotated[str, Field(description="The text to write, complete, with its newlines.")],
        mode: Annotated[
            Literal["create", "overwrite"],
            Field(description="create: only a new file. overwrite: replace the whole file."),
        ] = "create",
        dry_run: DryRun = True,
    ) -> str:
        """Write text to a file: create or save a new file, or overwrite a whole one.

        Returns: what was created or overwritten; missing folders are created on the way. A dry run answers "Would ..."
        with the difference to the present text and changes nothing.
        """
        file = CurrentFile(root, root.resolve(path))
        if file.exists and mode == "create":
            raise already_exists(file.name, "set mode=overwrite, or add to it with ai.append")
        size = f"{counted(len(lines_of(content)), 'line')}, {counted(len(file.encoded(content)), 'byte')}"
        verb = "overwrite" if file.exists else "create"
        answer = apply(file, content, verb, f"{file.name}: {size}", dry_run=dry_run)
        return answer if dry_run else answer.partition("\n")[0]

    def append(
        path: ExistingFile,
        text: Annotated[str, Field(min_length=1, description="The line or text to add.")],
        dry_run: DryRun = True,
    ) -> str:
        """Append to a file: add a line or text at its end, such as an item to a list or a note to a log.

        Returns: the difference. The text begins on a line of its own; a file that is not there is created.
        """
        file = CurrentFile(root, root.resolve(path))
        start = file.newline if file.text and not file.text.endswith("\n") else ""
        added = file.with_file_newlines(text if text.endswith("\n") else f"{text}\n")
        size = counted(len(lines_of(added)), "line")
        verb, change = ("append", f"{size} to {file.name}") if file.exists else ("create", f"{file.name} with {size}")
        return apply(file, file.text + start + added, verb, change, dry_run=dry_run)

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
        file = CurrentFile(root, root.resolve(path))
        if dry_run and file.is_withheld:
            return f"Would edit {file.name}\n{WITHHELD}"
        if not file.exists:
            raise path_not_found(root, file.real_path, "file")
        old, new = file.with_file_newlines(old_text), file.with_file_newlines(new_text)
        if old not in file.text:  # the file mixes line endings
            old, new = old_text, new_text
        places = file.text.count(old)
        if not places:
            raise _passage_not_found(file, old_text)
        if places > 1 and not every:
            first = file.text.count("\n", 0, file.text.index(old)) + 1
            raise ToolFailure(
                f"{file.name} contains this text {places:,} times, first on line {first}: include more of the text "
                "around it, or set every=true"
            )
        change = f"{counted(places, 'place')} in {file.name}"
        return apply(file, file.text.replace(old, new), "change", change, dry_run=dry_run)

    existing_file = (PathParameter(root, kind="file"),)
    replaced_file = PathParameter(root, kind="file", strict=True, may_be_new_if=("mode", "create"))
    return (
        BuiltinTool(write, Risk.WRITE, paths=(replaced_file,)),
        BuiltinTool(append, Risk.WRITE, paths=existing_file),
        BuiltinTool(edit, Risk.WRITE, paths=existing_file),
    )


def moving_tools(root: Root, store: UndoStore | None) -> tuple[BuiltinTool, ...]:
    """Return the tools that move, copy and delete files and folders below `root`. For `store` see `writing_tools`."""
    operations = FileOperations(root, store)

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
        real_path = _source_path(root, path)
        target = _target_path(root, real_path, destination)
        name, new = root.name(real_path), root.name(target)
        if target.is_relative_to(real_path):
            raise ToolFailure(f"{name} cannot be moved into itself: {new} is inside it; choose another destination")
        verb = "rename" if real_path.parent == target.parent else "move"
        if dry_run:
            return f"Would {verb} {name} to {new}"
        operations.move(real_path, target)
        return f"{verb.capitalize()}d {name} to {new}"

    def copy(
        path: _Source,
        destination: Annotated[str, Field(description="The folder to copy it to, as backup/, or its new path.")],
        dry_run: DryRun = True,
    ) -> str:
        """Copy or duplicate a file, for example as a backup; the original stays.

        Returns: the path of the copy. Missing folders are created on the way, and nothing that is there is replaced.
        """
        real_path = _source_path(root, path)
        target = _target_path(root, real_path, destination, bare_name_renames=False)
        status = real_path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailure(f"{root.name(real_path)} is not a file: only files can be copied, one in each call")
        if not dry_run:
            operations.copy(real_path, target)
        files = f"{root.name(real_path)} to {root.name(target)}: {byte_size(status.st_size)}"
        return f"{'Would copy' if dry_run else 'Copied'} {files}"

    def delete(
        path: Annotated[str, Field(description="The file or empty folder to delete, for example old/draft.md.")],
        dry_run: DryRun = True,
    ) -> str:
        """Delete or remove a file or an empty folder for good.

        Returns: what was deleted. A folder that holds something stays, and a link goes without what it leads to.
        """
        real_path = _source_path(root, path)
        name, status = root.name(real_path), real_path.lstat()
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_folder and any(real_path.iterdir()):
            raise ToolFailure(
                f"{name} is a folder that is not empty: first move or delete its content. "
                f"{folder_contents(root, real_path)}"
            )
        entry = f"{name}: {'an empty folder' if is_folder else byte_size(status.st_size)}"
        if dry_run:
            return "; ".join(filter(None, [f"Would delete {entry}", operations.why_not_undoable(real_path)]))
        operations.delete(real_path)
        return f"Deleted {entry}"

    def make_folder(
        path: Annotated[str, Field(description="The new folder, for example archive/2026.")],
        dry_run: DryRun = True,
    ) -> str:
        """Make or create a new, empty folder (directory)."""
        real_path = root.resolve(path)
        name = root.name(real_path)
        if os.path.lexists(real_path):
            kind = "a folder" if real_path.is_dir() else "a file"
            raise ToolFailure(f"{name} already exists, as {kind}: choose another name")
        if not dry_run:
            operations.make_folder(real_path)
        return f"{'Would make' if dry_run else 'Made'} the folder {name}"

    source = PathParameter(root, kind="any", follow=False, strict=True)
    target = PathParameter(root, parameter=DESTINATION, follow=False)
    return (
        BuiltinTool(move, Risk.WRITE, paths=(source, target)),
        BuiltinTool(copy, Risk.WRITE, paths=(source, target)),
        BuiltinTool(delete, Risk.WRITE, paths=(source,)),
        BuiltinTool(make_folder, Risk.WRITE, paths=(PathParameter(root),)),
    )


class CurrentFile:
    """A file before the change; its text is empty if the file does not exist."""

    def __init__(self, root: Root, real_path: Path) -> None:
        self.real_path, self.name = real_path, root.name(real_path)
        self.is_withheld = root.withholds(self.name)
        if real_path.is_dir():
            raise ToolFailure(f"{self.name} is a folder: name a file in it, for example {self.name}/notes.txt")
        try:
            self.data: bytes | None = read_bytes(root, real_path)
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

    def with_file_newlines(self, text: str) -> str:
        """Return the text with the file's line endings."""
        return text.replace("\r\n", "\n").replace("\n", self.newline)

    def encoded(self, text: str) -> bytes:
        """Return a text as UTF-8. Raise `ToolFailure` if it is not valid Unicode."""
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolFailure(
                f"the content for {self.name} is not valid Unicode text: character {error.start} is a lone surrogate"
            ) from error

    def write(self, text: str, operations: FileOperations, *, dry_run: bool) -> None:
        """Replace the file's text, with its byte order mark if it has one; a dry run only checks the text."""
        mark = BOM_UTF8 if self.data and self.data.startswith(BOM_UTF8) else b""
        data = mark + self.encoded(text)
        if len(data) > MAX_READ_BYTES:
            raise ToolFailure(f"{self.name} would have {len(data):,} bytes: the limit is {MAX_READ_BYTES:,}")
        if not dry_run:
            operations.write(self.real_path, data, self.data)

    def diff_to(self, text: str) -> str:
        """Return the difference of the file to a new text, or why it is not shown."""
        if self.is_withheld:
            return WITHHELD
        try:
            old = self.text
        except NotTextError as error:
            return f"[no difference shown: {error}]"
        if max(len(old), len(text)) > MAX_DIFF_CHARS:
            return f"[no difference shown: {self.name} has more than {MAX_DIFF_CHARS:,} characters]"
        if old == text:
            return "[the text stays the same]"
        names = f"{self.name} (before)" if self.exists else "/dev/null", f"{self.name} (after)"
        lines = unified_diff([*StringIO(old)], [*StringIO(text)], *names)  # only a newline ends a line
        ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
        return "".join(ended).rstrip("\n")


def _passage_not_found(file: CurrentFile, old_text: str) -> ToolFailure:
    lines = lines_of(file.text)[:5_000]
    nearest = get_close_matches(old_text.strip().partition("\n")[0], lines, n=1)
    hint = ": read the file first, and give the passage exactly as it is there"
    if nearest:
        hint = f"; the most similar line is line {lines.index(nearest[0]) + 1}: {shorten(nearest[0], _LINE_CHARS)!r}"
    return ToolFailure(f"{file.name} does not contain {shorten(old_text, _LINE_CHARS)!r}{hint}")


def _source_path(root: Root, path: str) -> Path:
    """Return the path to move, copy or delete. Raise `ToolFailure` if it is the working folder, or does not exist."""
    real_path = existing_path(root, path, follow=False)
    if real_path == root.path:
        raise ToolFailure("the working folder itself cannot be moved, copied or deleted: name a file or folder in it")
    return real_path


def _target_path(root: Root, source: Path, destination: str, *, bare_name_renames: bool = True) -> Path:
    """Return the new path of `source`. With `bare_name_renames`, a bare name stays in the folder of `source`.

    Raise `ToolFailure` if the new path exists.
    """
    folder, target = root.resolve(destination), root.resolve(destination, follow=False)
    if folder.is_dir():
        target = folder / source.name
    elif not folder.exists():
        if destination.rstrip().endswith("/") or (source.suffix and not target.suffix):
            target /= source.name
        elif bare_name_renames and "/" not in destination.strip() and target.name != source.name:
            target = source.parent / target.name
    if os.path.lexists(target):
        raise already_exists(root.name(target))
    return target
