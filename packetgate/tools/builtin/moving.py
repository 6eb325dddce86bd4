"""What `ai.move`, `ai.copy`, `ai.delete` and `ai.make_folder` do."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from packetgate.state.printing import byte_size
from packetgate.tools.builtin.failures import ToolFailure, os_failures
from packetgate.tools.builtin.paths import entries_line, missing
from packetgate.tools.builtin.root import Root


def move(root: Root, path: str, destination: str, *, dry_run: bool) -> str:
    """Move or rename a file or a folder, or tell what that would do, and return it in words.

    Raises:
        ToolFailure: it is not there, the destination is, or one of them is outside the root.
    """
    real, about = _there(root, path)
    target = _target(root, real, destination)
    name, new = root.name(real), root.name(target)
    if target.is_relative_to(real):
        raise ToolFailure(f"{name} cannot be moved into itself, to {new}")
    verb = "rename" if real.parent == target.parent else "move"
    if dry_run:
        return f"Would {verb} {name} to {new}"
    with (
        os_failures(f"{verb} {name} to {new}"),
        root.folder(real.parent) as old_folder,
        root.folder(target.parent, create=True) as new_folder,
    ):
        if stat.S_ISDIR(about.st_mode):
            os.rename(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        else:  # unlike a rename, a link never replaces what someone else has just put there
            os.link(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
            os.unlink(real.name, dir_fd=old_folder)
    return f"{verb.capitalize()}d {name} to {new}"


def copy(root: Root, path: str, destination: str, *, dry_run: bool) -> str:
    """Copy a file, or tell what that would do, and return it in words.

    Raises:
        ToolFailure: it is not there or no file, the destination is there, or one of them is outside the root.
    """
    real, about = _there(root, path)
    target = _target(root, real, destination, stays=False)
    name, new = root.name(real), root.name(target)
    if not stat.S_ISREG(about.st_mode):
        raise ToolFailure(f"{name} is not a file: only files are copied, one at a time")
    told = f"{name} to {new}: {byte_size(about.st_size)}"
    if dry_run:
        return f"Would copy {told}"
    with (
        os_failures(f"copy {name} to {new}"),
        root.folder(real.parent) as old_folder,
        root.folder(target.parent, create=True) as new_folder,
    ):
        _copy(real.name, old_folder, target.name, new_folder)
    return f"Copied {told}"


def _copy(name: str, folder: int, new_name: str, new_folder: int) -> None:
    """Copy so that the new file appears whole, and in nobody's place."""
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


def delete(root: Root, path: str, *, dry_run: bool) -> str:
    """Delete a file, a link or an empty folder, or tell what that would do, and return it in words.

    Raises:
        ToolFailure: it is not there, holds something, or is outside the root.
    """
    real, about = _there(root, path)
    name, is_folder = root.name(real), stat.S_ISDIR(about.st_mode)
    with os_failures(f"delete {name}"):
        if is_folder and any(real.iterdir()):
            raise ToolFailure(f"{name} is a folder that is not empty, so it stays. {entries_line(root, real)}")
        told = f"{name}: {'an empty folder' if is_folder else byte_size(about.st_size)}"
        if dry_run:
            return f"Would delete {told}; it cannot be brought back"
        with root.folder(real.parent) as folder:
            if is_folder:
                os.rmdir(real.name, dir_fd=folder)
            else:
                os.unlink(real.name, dir_fd=folder)
    return f"Deleted {told}"


def make_folder(root: Root, path: str, *, dry_run: bool) -> str:
    """Make a folder with those that lead to it, or tell what that would do, and return it in words.

    Raises:
        ToolFailure: something is there already, or it is outside the root.
    """
    real = root.resolve(path)
    name = root.name(real)
    if os.path.lexists(real):
        raise ToolFailure(f"{name} exists already: {'a folder' if real.is_dir() else 'a file'}")
    if dry_run:
        return f"Would make the folder {name}"
    with os_failures(f"make the folder {name}"), root.folder(real, create=True):
        return f"Made the folder {name}"


def _there(root: Root, path: str) -> tuple[Path, os.stat_result]:
    """Return what a path names itself, be it a link."""
    real = root.resolve(path, follow=False)
    if real == root.path:
        raise ToolFailure("the working folder itself stays as it is: name something in it")
    with os_failures(f"look at {root.name(real)}"):
        try:
            return real, real.lstat()
        except FileNotFoundError as error:
            raise missing(root, real, "any") from error


def _target(root: Root, real: Path, destination: str, *, stays: bool = True) -> Path:
    """Return where something goes: into a folder under its own name, or under the new name that is given.

    Args:
        stays: whether a bare name is a new name in the folder where it lies.
    """
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
