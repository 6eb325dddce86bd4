"""What a program in bubblewrap sees: system files, named folders, and a home folder that is not the user's."""

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from packetgate.tools.provenance.roles import SECRET_FILES

_NAMES: dict[str, list[str]] = SECRET_FILES["sandbox"]
_SYSTEM = [*map(Path, "/usr /bin /sbin /lib /lib32 /lib64 /etc /opt /nix /snap /sys".split())]
_NEXT_TO_BIN = "lib lib64 libexec include pyvenv.cfg".split()
_CONFIGURATION = (".gitconfig", ".config/git", ".local/share/uv/python", ".local/share/uv/tools")
"""Git's configuration and uv's interpreters, relative to the home folder; their programs fail without these."""
_MAX_DEPTH, _MAX_FOLDERS = 4, 5_000
"""Bounds of the search for protected files below a folder."""
_SKIPPED = frozenset({"node_modules", ".venv", "venv", "site-packages", "__pycache__", "objects"})
RESERVED = ("packetgate.toml", "mcp.json")
"""Files of the working folder that Packetgate reads. A confined program cannot create them either."""

_ISOLATION = "--die-with-parent --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL"


@dataclass(frozen=True)
class Confinement:
    """The folders and files that a confined program may use, and whether it has a network."""

    folder: Path
    """Where the program starts. If this is not visible, the program starts in the home folder."""
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    network: bool = False
    home: Path | None = None
    """Folder that the program sees in place of the user's home folder; None: it sees an empty one."""
    data: Path | None = None
    """Packetgate's data folder, which is always hidden."""

    @contextmanager
    def wrapper(self, program: str, environment: Mapping[str, str]) -> Iterator[list[str]]:
        """Yield the command line to prepend to a program's. Blocking."""
        with ExitStack() as stack:
            for folder in self.writes:
                stack.enter_context(_reserved(folder))
            stack.callback(self.remove_redirections)
            yield self._command(program, environment)

    def remove_redirections(self) -> None:
        """Remove files by which a program could give Git another configuration and other hooks. Blocking."""
        for folder in self.writes:
            with suppress(OSError):
                (folder / ".git" / "commondir").unlink()

    def protected(self) -> dict[Path, tuple[int, int]]:
        """Return the protected files and folders that exist, with device and inode. Blocking."""
        found = {}
        for path in _protected(self.writes):
            with suppress(OSError):
                status = path.lstat()
                found[path] = (status.st_dev, status.st_ino)
        return found

    def _command(self, program: str, environment: Mapping[str, str]) -> list[str]:
        user_home = Path(environment.get("HOME") or Path.home())
        mounts: dict[Path, tuple[str, ...]] = {path: ("--ro-bind-try", str(path)) for path in _SYSTEM}
        mounts[Path("/tmp")] = ("--tmpfs",)  # noqa: S108 - a folder of the sandbox
        mounts |= {Path("/proc"): ("--proc",), Path("/dev"): ("--dev",)}
        mounts[user_home] = ("--bind", str(self.home)) if self.home else ("--tmpfs",)
        resolver = Path(os.path.realpath("/etc/resolv.conf"))
        visible = [*_SYSTEM, *self.writes]
        for path in [resolver, *_needed_by_programs(program, environment), *self.reads]:
            if not any(path.is_relative_to(folder) for folder in visible):
                mounts[path] = ("--ro-bind-try", str(path))
        mounts |= {path: ("--bind-try", str(path)) for path in self.writes}
        seen = [path for path, (kind, *_) in mounts.items() if kind.startswith(("--bind", "--ro-bind"))]
        is_visible: Callable[[Path], bool] = lambda path: any(path.is_relative_to(folder) for folder in seen)  # noqa: E731
        for path in _protected(self.writes):
            if path.parent.name == ".git":  # as a mount point, it cannot be renamed
                mounts.setdefault(path.parent, ("--bind", str(path.parent)))
            mounts[path] = ("--ro-bind", str(path))
        shown_home = self.home if mounts[user_home][1:] == (str(self.home),) else user_home
        hidden = [Path("/etc", name) for name in _NAMES["hidden_etc"]]
        if shown_home is user_home:
            hidden += [user_home / name for name in _NAMES["hidden"]]
        for path in [*hidden, *([self.data] if self.data else ())]:
            if is_visible(path) and path.exists() and not path.is_symlink():
                mounts[path] = ("--tmpfs",) if path.is_dir() else ("--ro-bind", os.devnull)
        start = self.folder if is_visible(self.folder) else user_home
        by_depth = sorted(mounts.items(), key=lambda mount: len(mount[0].parts))
        return [
            shutil.which("bwrap") or "bwrap",
            *_ISOLATION.split(),
            *(() if self.network else ("--unshare-net",)),
            *(part for path, mount in by_depth for part in (*mount, str(path))),
            *("--chdir", str(start), "--"),
        ]


def _protected(writes: Iterable[Path]) -> list[Path]:
    """Return the existing files and folders that a program may read, but not change, below writable folders."""
    found, visited, user_home = [], 0, Path.home()
    for top in writes:
        if user_home.is_relative_to(top):
            found += [user_home / name for name in _NAMES["startup"] if (user_home / name).exists()]
        if _is_protected(top.name) and top.is_file():
            found.append(top)
        for folder, folders, files in os.walk(top):
            depth = len(Path(folder).relative_to(top).parts)
            visited += 1
            for name in [*folders, *files]:
                path = Path(folder, name)
                if not path.is_symlink() and (_is_protected(name) or _is_protected(f"{Path(folder).name}/{name}")):
                    found.append(path)
            folders[:] = [] if depth >= _MAX_DEPTH or visited > _MAX_FOLDERS else sorted({*folders} - _SKIPPED)
    return list(dict.fromkeys(found))


def _is_protected(name: str) -> bool:
    """Whether a confined program may not change a file or folder of this name, or of this name in its folder."""
    return any(fnmatch(name, pattern) for pattern in _NAMES["read_only"])


@contextmanager
def _reserved(folder: Path) -> Iterator[None]:
    """Create empty files in place of missing files that Packetgate reads, so that they can be mounted read-only.

    A file is removed when no process uses it any more. An empty file counts as missing.
    """
    if (folder / ".git").is_dir():
        with suppress(OSError):
            (folder / ".git" / "hooks").mkdir(exist_ok=True)
    with ExitStack() as stack:
        for name in RESERVED if folder.is_dir() else ():
            with suppress(OSError):
                stack.enter_context(_reserved_file(folder / name))
        yield


@contextmanager
def _reserved_file(path: Path) -> Iterator[None]:
    while True:
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(file), path.lstat()):
                break
        except FileNotFoundError:  # another process removed it before the lock
            pass
        os.close(file)
    try:
        yield
    finally:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(file)
            if status.st_size == 0 and os.path.samestat(status, path.lstat()):
                path.unlink()
        except OSError:  # another sandbox uses it, or the user removed it
            pass
        finally:
            os.close(file)


def _needed_by_programs(program: str, environment: Mapping[str, str]) -> list[Path]:
    path = environment.get("PATH", os.defpath)
    folders = [Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"), *map(Path, path.split(os.pathsep))]
    if program_path := shutil.which(program, path=path):
        folders += [Path(program_path).parent, Path(program_path).resolve().parent]
    home = Path(environment.get("HOME") or Path.home())
    needed = [home / name for name in _CONFIGURATION]
    for folder in dict.fromkeys(real for one in folders if one.is_absolute() for real in (one, one.resolve())):
        if folder.name == "shims":  # of pyenv, asdf and mise
            needed.append(folder.parent)
        elif not home.is_relative_to(folder):
            siblings = _NEXT_TO_BIN if folder.name in {"bin", "sbin"} else []
            needed += [folder, *(folder.parent / name for name in siblings)]
    return [path for path in dict.fromkeys(needed) if path.exists()]
