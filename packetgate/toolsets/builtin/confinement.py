"""Confine a program with bubblewrap: it sees system files, named folders, and its own home folder."""

import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio

from packetgate.tools.text.roles import SECRET_FILES
from packetgate.toolsets.builtin.appeared import SETTINGS_FILES, note_writable
from packetgate.toolsets.builtin.left_behind import ENVIRONMENT_PARTS, LeftBehind

_T = TypeVar("_T")
_NAMES: dict[str, list[str]] = SECRET_FILES["sandbox"]
_SYSTEM = [*map(Path, "/usr /bin /sbin /lib /lib32 /lib64 /etc /opt /nix /snap /sys".split())]
_KERNEL = [*map(Path, "/proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/fs".split())]
"""Files of the kernel that root could change, even in the sandbox."""
_CONFIGURATION = (".gitconfig", ".config/git", ".local/share/uv/python/*")
"""Git's configuration and uv's interpreters, relative to the home folder; their programs fail without these."""
_ISOLATION = "--die-with-parent --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL"


@dataclass(frozen=True)
class Confinement:
    """The folders and files that a confined program may use, and whether it has a network."""

    folder: Path
    """The program's start folder. If it is not visible, the program starts in the home folder."""
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    network: bool = False
    hosts: tuple[str, ...] = ()
    """Patterns of the hosts that the program reaches through a proxy, without a network."""
    home: Path | None = None
    """Folder that the program sees in place of the user's home folder; None: it sees an empty one."""
    data: Path | None = None
    """Packetgate's data folder, which is always hidden."""
    settings_files: tuple[Path, ...] = ()
    """The settings files in use, which may have any name; always read-only."""
    temporary: Path | None = None
    """A writable folder that is removed afterwards."""

    def __post_init__(self) -> None:
        """Resolve `..` and links, through which a hidden folder could be reached. Blocking."""
        real = [path.resolve() for path in (*self.reads, *self.writes)]
        for name in ("reads", "writes"):
            paths: tuple[Path, ...] = getattr(self, name)
            # the sandbox follows a link if its folder is there; otherwise the path leads to the same place as outside
            links = [path for path in paths if ".." not in path.parts and not _is_within(path, real)]
            object.__setattr__(self, name, tuple(dict.fromkeys([*(path.resolve() for path in paths), *links])))
        if ".." in self.folder.parts:
            object.__setattr__(self, "folder", self.folder.resolve())

    @contextmanager
    def wrapper(self, program: str, environment: Mapping[str, str]) -> "Iterator[Wrapper]":
        """Yield the wrapper that confines a program. Blocking."""
        kept = [folder for folder in self.writes if folder != self.temporary]
        left = LeftBehind(kept, self.settings_files, [self.data] if self.data else ())
        for folder in kept:
            if self.data is not None and folder.is_dir():
                note_writable(folder, self.data, (path for path in left.files if path.name in SETTINGS_FILES))
        try:
            yield Wrapper(self._command(program, environment, left), left)
        finally:
            left.report(self.folder)

    def _command(self, program: str, environment: Mapping[str, str], left: LeftBehind) -> list[str]:
        user_home = Path(environment.get("HOME") or Path.home())
        mounts: dict[Path, tuple[str, ...]] = {path: ("--ro-bind-try", str(path)) for path in _SYSTEM}
        mounts[Path("/tmp")] = ("--tmpfs",)  # noqa: S108 - a folder of the sandbox
        mounts |= {Path("/proc"): ("--proc",), Path("/dev"): ("--dev",)}
        mounts |= {path: ("--ro-bind-try", str(path)) for path in _KERNEL}
        has_own_home = not _is_within(user_home.resolve(), (*self.reads, *self.writes))
        if has_own_home:
            mounts[user_home] = ("--bind", str(self.home)) if self.home else ("--tmpfs",)
        resolver = Path(os.path.realpath("/etc/resolv.conf"))
        reads = {resolver, *_needed_by_programs(program, environment), *self.reads}
        visible = [*_SYSTEM, *self.writes, *reads]
        outside = [path for path in reads if not any(path.is_relative_to(one) for one in visible if one != path)]
        mounts |= {path: ("--ro-bind-try", str(path)) for path in outside if path not in self.writes}
        mounts |= {path: ("--bind-try", str(path)) for path in self.writes}
        bound = [path for path, (_, *source) in mounts.items() if source and not (has_own_home and path == user_home)]
        real = {path: path.resolve() for path in bound}
        for path in left.protected:
            for folder in path.parents if path in left.pinned else ():  # as mount points, they cannot be renamed
                if any(folder != top and folder.is_relative_to(top) for top in self.writes):
                    mounts.setdefault(folder, ("--bind", str(folder)))
            mounts[path] = ("--ro-bind", str(path))
        hidden = [Path("/etc", name) for name in _NAMES["hidden_etc"]]
        hidden += [user_home / name for name in (() if has_own_home else _NAMES["hidden"])]
        for path in [*hidden, *([self.data] if self.data else ())]:
            for top, source in real.items() if path.exists() else ():
                if (hidden_path := path.resolve()).is_relative_to(source):
                    shown = top / hidden_path.relative_to(source)
                    mounts[shown] = ("--tmpfs",) if path.is_dir() else ("--ro-bind", os.devnull)
        start = self.folder if _is_within(self.folder, bound) else user_home
        by_depth = sorted(
            (mount for mount in mounts.items() if not _is_already_writable(mount[0], mounts)),
            key=lambda mount: len(mount[0].parts),
        )
        return [
            shutil.which("bwrap") or "bwrap",
            *_ISOLATION.split(),
            *(() if self.network else ("--unshare-net",)),
            *(part for path, mount in by_depth for part in (*mount, str(path))),
            *("--remount-ro", "/"),  # otherwise a program could write files there that nobody sees
            *("--chdir", str(start), "--"),
        ]


class Wrapper(NamedTuple):
    """The command and the file check of a confinement."""

    command: list[str]
    """The command line to prepend to the program's."""
    left: LeftBehind
    """The files that the program cannot change, and those that it leaves behind."""


@asynccontextmanager
async def in_thread(blocking: AbstractContextManager[_T]) -> AsyncIterator[_T]:
    """Enter and leave a blocking context in threads; a cancellation waits for them."""
    with anyio.CancelScope(shield=True):
        value = await anyio.to_thread.run_sync(blocking.__enter__)
    try:
        yield value
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(blocking.__exit__, None, None, None)


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _is_already_writable(path: Path, mounts: Mapping[Path, tuple[str, ...]]) -> bool:
    """Return whether a writable path is in a writable folder: as a mount point of its own it cannot be replaced."""
    around = next((folder for folder in path.parents if folder in mounts), None)
    return around is not None and mounts[path][0] == mounts[around][0] == "--bind-try"


def _needed_by_programs(program: str, environment: Mapping[str, str]) -> list[Path]:
    path = environment.get("PATH", os.defpath)
    folders = [Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), *map(Path, path.split(os.pathsep))]
    if program_path := shutil.which(program, path=path):
        folders += [Path(program_path).parent, Path(program_path).resolve().parent]
    home = Path(environment.get("HOME") or Path.home())
    needed = [path for pattern in _CONFIGURATION for path in home.glob(pattern)]
    for folder in dict.fromkeys(real for one in folders if one.is_absolute() for real in (one, one.resolve())):
        if folder.name == "shims":  # of pyenv, asdf and mise
            needed.append(folder.parent)
        elif not home.is_relative_to(folder):
            siblings = ENVIRONMENT_PARTS[1:] if folder.name in {"bin", "sbin"} else []
            needed += [folder, *(folder.parent / name for name in siblings)]
    return [path for path in dict.fromkeys(needed) if path.exists()]
