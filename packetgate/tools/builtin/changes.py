"""The tools of the `ai` server that change files."""

import asyncio
from typing import Annotated

from pydantic import Field

from packetgate.state.routing import Risk
from packetgate.tools.builtin.editing import append_text, edit_text
from packetgate.tools.builtin.moving import copy as copy_file
from packetgate.tools.builtin.moving import delete as delete_it
from packetgate.tools.builtin.moving import make_folder as make_it
from packetgate.tools.builtin.moving import move as move_it
from packetgate.tools.builtin.parameters import DryRun, ExistingFile, FilePath, Source
from packetgate.tools.builtin.paths import DESTINATION, PathReader
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.tool import Answer, BuiltinTool
from packetgate.tools.builtin.writing import WriteMode, write_text


def changing_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools, confined to `root`. Each tells in a dry run what it would change."""
    return (*_writing_tools(root), *_moving_tools(root))


def _writing_tools(root: Root) -> tuple[BuiltinTool, ...]:
    async def write(
        path: FilePath,
        content: Annotated[str, Field(description="The text to write, complete, with its newlines.")],
        mode: Annotated[
            WriteMode,
            Field(description="create: only a new file. overwrite: replace the whole file. append: add at its end."),
        ] = "create",
        dry_run: DryRun = True,
    ) -> Answer:
        """Write text to a file: create or save a new file, or overwrite a whole one.

        Returns: what was created, overwritten or appended to; missing folders are created on the way. A dry run answers
        "Would ..." with the difference to the present text and changes nothing.
        """
        return Answer(await asyncio.to_thread(write_text, root, path, content, mode, dry_run=dry_run))

    async def append(
        path: ExistingFile,
        text: Annotated[str, Field(min_length=1, description="The line or text to add.")],
        dry_run: DryRun = True,
    ) -> Answer:
        """Append to a file: add a line or text at its end, such as an item to a list or a note to a log.

        Returns: the difference. The text begins on a line of its own; a file that is not there is created.
        """
        return Answer(await asyncio.to_thread(append_text, root, path, text, dry_run=dry_run))

    async def edit(
        path: ExistingFile,
        old_text: Annotated[str, Field(min_length=1, description="The exact text in the file that is to be replaced.")],
        new_text: Annotated[str, Field(description="The text to put in its place; empty to take it out.")],
        every: Annotated[bool, Field(description="Replace it everywhere, not only where it stands once.")] = False,
        dry_run: DryRun = True,
    ) -> Answer:
        """Edit a file: replace or change a word or passage in it, fix or correct it, or take it out.

        Returns: the difference. The text must stand in the file exactly as given, and once, unless all of them are to
        be replaced. The rest of the file stays as it is.
        """
        return Answer(await asyncio.to_thread(edit_text, root, path, old_text, new_text, every=every, dry_run=dry_run))

    existing = (PathReader(root, kind="file"),)
    replaced = PathReader(root, kind="file", careful=True, unless=("mode", "create"))
    return (
        BuiltinTool(write, Risk.WRITE, preview="ai.read", paths=(replaced,)),
        BuiltinTool(append, Risk.WRITE, preview="ai.append", paths=existing),
        BuiltinTool(edit, Risk.WRITE, preview="ai.edit", paths=existing),
    )


def _moving_tools(root: Root) -> tuple[BuiltinTool, ...]:
    async def move(
        path: Source,
        destination: Annotated[
            str,
            Field(
                description="The folder to move it to, as archive/, or its new path. A new name alone renames it where "
                "it is."
            ),
        ],
        dry_run: DryRun = True,
    ) -> Answer:
        """Move or rename a file or folder: put it into another folder, or give it a new name.

        Returns: the new path. Missing folders are created on the way, and nothing that is there is replaced.
        """
        return Answer(await asyncio.to_thread(move_it, root, path, destination, dry_run=dry_run))

    async def copy(
        path: Source,
        destination: Annotated[str, Field(description="The folder to copy it to, as backup/, or its new path.")],
        dry_run: DryRun = True,
    ) -> Answer:
        """Copy or duplicate a file, for example as a backup; the original stays.

        Returns: the path of the copy. Missing folders are created on the way, and nothing that is there is replaced.
        """
        return Answer(await asyncio.to_thread(copy_file, root, path, destination, dry_run=dry_run))

    async def delete(
        path: Annotated[str, Field(description="The file or empty folder to delete, for example old/draft.md.")],
        dry_run: DryRun = True,
    ) -> Answer:
        """Delete or remove a file or an empty folder for good.

        Returns: what was deleted. A folder that holds something stays, and a link goes without what it leads to.
        """
        return Answer(await asyncio.to_thread(delete_it, root, path, dry_run=dry_run))

    async def make_folder(
        path: Annotated[str, Field(description="The new folder, for example archive/2026.")], dry_run: DryRun = True
    ) -> Answer:
        """Make or create a new, empty folder (directory)."""
        return Answer(await asyncio.to_thread(make_it, root, path, dry_run=dry_run))

    source = PathReader(root, kind="any", follow=False, careful=True)
    target = PathReader(root, parameter=DESTINATION, follow=False)
    return (
        BuiltinTool(move, Risk.WRITE, preview="ai.move", paths=(source, target)),
        BuiltinTool(copy, Risk.WRITE, preview="ai.copy", paths=(source, target)),
        BuiltinTool(delete, Risk.WRITE, preview="ai.delete", paths=(source,)),
        BuiltinTool(make_folder, Risk.WRITE, preview="ai.make_folder", paths=(PathReader(root),)),
    )
