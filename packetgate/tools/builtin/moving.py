"""The `ai.move`, `ai.copy`, `ai.delete` and `ai.make_folder` tools."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Annotated

from pydantic import Field

from packetgate.state.printing import byte_size
from packetgate.state.routing import Risk
from packetgate.tools.builtin.files import Root, ToolFailure, os_failures
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
        real, about = _existing(self._root, path)
        target = _target(self._root, real, destination)
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
            if stat.S_ISDIR(about.st_mode):
                os.rename(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            else:  # unlike a rename, a link never replaces what someone else has just put there
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
        real, about = _existing(self._root, path)
        target = _target(self._root, real, destination, stays=False)
        name, new = self._root.name(real), self._root.name(target)
        if not stat.S_ISREG(about.st_mode):
            raise ToolFailure(f"{name} is not a file: only files are copied, one at a time")
        what = f"{name} to {new}: {byte_size(about.st_size)}"
        if dry_run:
            return f"Would copy {what}"
        with (
            os_failures(f"copy {name} to {new}"),
            self._root.folder(real.parent) as old_folder,
            self._root.folder(target.parent, create=True) as new_folder,
        ):
            _copy(real.name, old_folder, target.name, new_folder)
        return f"Copied {what}"

    def delete(
        self,
        path: Annotated[str, Field(description="The file or empty folder to delete, for example old/draft.md.")],
        dry_run: DryRun = True,
    ) -> str:
        """Delete or remove a file or an empty folder for good.

        Returns: what was deleted. A folder that holds something stays, and a link goes without what it leads to.
        """
        real, about = _existing(self._root, path)
        name, is_folder = self._root.name(real), stat.S_ISDIR(about.st_mode)
        with os_failures(f"delete {name}"):
            if is_folder and any(real.iterdir()):
                raise ToolFailure(
                    f"{name} is a folder that is not empty, so it stays. {contents_line(self._root, real)}"
                )
            what = f"{name}: {'an empty folder' if is_folder else byte_size(about.st_size)}"
            if dry_run:
                return f"Would delete {what}; it cannot be brought back"
            with self._root.folder(real.parent) as folder:
                if is_folder:
                    os.rmdir(real.name, dir_fd=folder)
                else:
                    os.unlink(real.name, dir_fd=folder)
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


def _copy(name: str, folder: int, new_name: str, new_folder: int) -> None:
    temporary = f".{token_hex(8)}.tmp"
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(source, "rb") as old:
        made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=new_folder)
        try:
            with os.fdopen(made, "wb") as new:
                os.fchmod(made, stat.S_IMODE(os.fstat(source).st_mode))
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(made)
            os.link(temporary, new_name, src_dir_fd=new_folder, dst_dir_fd=new_folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=new_folder)


def _existing(root: Root, path: str) -> tuple[Path, os.stat_result]:
    real = root.resolve(path, follow=False)
    if real == root.path:
        raise ToolFailure("the working folder itself stays as it is: name something in it")
    with os_failures(f"look at {root.name(real)}"):
        try:
            return real, real.lstat()
        except FileNotFoundError as error:
            raise missing(root, real, "any") from error


def _target(root: Root, real: Path, destination: str, *, stays: bool = True) -> Path:
    folder = root.resolve(destination)
    is_bare, target = "/" not in destination.strip(), root.resolve(destination, follow=False)
    if folder.is_dir():
        target = folder / real.name
    elif folder.exists():
        pass
    elif destination.rstrip().endswith("/") or (real.suffix and not target.suffix):
        target /= real.name
    elif is_bare and stays and target.name != real.name:
        target = real.parent / target.name
    if os.path.lexists(target):
        raise ToolFailure(f"{root.name(target)} exists already: choose another name, or delete it first")
    return target
