"""The `ai.move`, `ai.copy`, `ai.delete` and `ai.make_folder` tools."""

import os
import shutil
import stat
from pathlib import Path
from typing import Annotated

from pydantic import Field

from packetgate.state.printing import byte_size
from packetgate.state.routing import Risk
from packetgate.tools.builtin.files import Root, ToolFailure, new_file, os_failures
from packetgate.tools.builtin.paths import DESTINATION, PathReader, contents_line, missing
from packetgate.tools.builtin.tool import BuiltinTool, DryRun

_Source = Annotated[str, Field(description="The file or folder as it is called now, for example drafts/plan.md.")]


class _Mover:
    def __init__(self, root: Root) -> None:
        self._root = root

    def move(
        self,
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
        real, status = self._existing(path)
        target = self._target(real, destination)
        name, new = self._root.name(real), self._root.name(target)
        if target.is_relative_to(real):
            raise ToolFailure(f"{name} cannot be moved into itself, to {new}")
        verb = "rename" if real.parent == target.parent else "move"
        if dry_run:
            return f"Would {verb} {name} to {new}"
        with (
            os_failures(f"{verb} {name} to {new}"),
            self._root.folder(real.parent) as old_folder,
            self._root.folder(target.parent, create=True) as new_folder,
        ):
            if stat.S_ISDIR(status.st_mode):
                os.rename(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            else:  # unlike a rename, a link never replaces a file that was created just now
                os.link(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
                os.unlink(real.name, dir_fd=old_folder)
        return f"{verb.capitalize()}d {name} to {new}"

    def copy(
        self,
        path: _Source,
        destination: Annotated[str, Field(description="The folder to copy it to, as backup/, or its new path.")],
        dry_run: DryRun = True,
    ) -> str:
        """Copy or duplicate a file, for example as a backup; the original stays.

        Returns: the path of the copy. Missing folders are created on the way, and nothing that is there is replaced.
        """
        real, status = self._existing(path)
        target = self._target(real, destination, beside=False)
        name, new = self._root.name(real), self._root.name(target)
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailure(f"{name} is not a file: only files are copied, one at a time")
        what = f"{name} to {new}: {byte_size(status.st_size)}"
        if dry_run:
            return f"Would copy {what}"
        with (
            os_failures(f"copy {name} to {new}"),
            self._root.folder(real.parent) as old_folder,
            self._root.folder(target.parent, create=True) as new_folder,
        ):
            source = os.open(real.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=old_folder)
            with (
                os.fdopen(source, "rb") as old,
                new_file(new_folder, target.name, mode=stat.S_IMODE(os.fstat(source).st_mode)) as descriptor,
                os.fdopen(descriptor, "wb", closefd=False) as copy,
            ):
                shutil.copyfileobj(old, copy)
        return f"Copied {what}"

    def delete(
        self,
        path: Annotated[str, Field(description="The file or empty folder to delete, for example old/draft.md.")],
        dry_run: DryRun = True,
    ) -> str:
        """Delete or remove a file or an empty folder for good.

        Returns: what was deleted. A folder that holds something stays, and a link goes without what it leads to.
        """
        real, status = self._existing(path)
        name, is_folder = self._root.name(real), stat.S_ISDIR(status.st_mode)
        with os_failures(f"delete {name}"):
            if is_folder and any(real.iterdir()):
                raise ToolFailure(f"{name} is a folder that is not empty. {contents_line(self._root, real)}")
            what = f"{name}: {'an empty folder' if is_folder else byte_size(status.st_size)}"
            if dry_run:
                return f"Would delete {what}; this cannot be undone"
            with self._root.folder(real.parent) as folder:
                (os.rmdir if is_folder else os.unlink)(real.name, dir_fd=folder)
        return f"Deleted {what}"

    def make_folder(
        self,
        path: Annotated[str, Field(description="The new folder, for example archive/2026.")],
        dry_run: DryRun = True,
    ) -> str:
        """Make or create a new, empty folder (directory)."""
        real = self._root.resolve(path)
        name = self._root.name(real)
        if os.path.lexists(real):
            raise ToolFailure(f"{name} exists already: {'a folder' if real.is_dir() else 'a file'}")
        if dry_run:
            return f"Would make the folder {name}"
        with os_failures(f"make the folder {name}"), self._root.folder(real, create=True):
            return f"Made the folder {name}"

    def _existing(self, path: str) -> tuple[Path, os.stat_result]:
        real = self._root.resolve(path, follow=False)
        if real == self._root.path:
            raise ToolFailure("the working folder itself cannot be changed: name something in it")
        with os_failures(f"look at {self._root.name(real)}"):
            try:
                return real, real.lstat()
            except FileNotFoundError as error:
                raise missing(self._root, real, "any") from error

    def _target(self, real: Path, destination: str, *, beside: bool = True) -> Path:
        """Return the new path; with `beside`, a bare name is a name in the same folder."""
        folder, target = self._root.resolve(destination), self._root.resolve(destination, follow=False)
        if folder.is_dir():
            target = folder / real.name
        elif not folder.exists():
            if destination.rstrip().endswith("/") or (real.suffix and not target.suffix):
                target /= real.name
            elif beside and "/" not in destination.strip() and target.name != real.name:
                target = real.parent / target.name
        if os.path.lexists(target):
            raise ToolFailure(f"{self._root.name(target)} exists already: choose another name, or delete it first")
        return target


def moving_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools that move, copy and delete below `root`; a dry run says what would change."""
    mover = _Mover(root)
    source = PathReader(root, kind="any", follow=False, careful=True)
    target = PathReader(root, parameter=DESTINATION, follow=False)
    return (
        BuiltinTool(mover.move, Risk.WRITE, paths=(source, target)),
        BuiltinTool(mover.copy, Risk.WRITE, paths=(source, target)),
        BuiltinTool(mover.delete, Risk.WRITE, paths=(source,)),
        BuiltinTool(mover.make_folder, Risk.WRITE, paths=(PathReader(root),)),
    )
