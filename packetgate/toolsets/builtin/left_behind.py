"""Find files that a confined program leaves and that run later, outside the sandbox: settings, hooks, packages."""

import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from packetgate.tools.text.roles import SECRET_FILES
from packetgate.toolsets.builtin.appeared import SETTINGS_FILES

Identities = Mapping[Path, tuple[int, int] | None]
"""Device and inode of each file or folder."""

ASIDE = ".unconfirmed"
"""Appended to the name of a file that would run by itself."""
ENVIRONMENT_PARTS = "bin lib lib64 libexec include pyvenv.cfg".split()
_NAMES: dict[str, list[str]] = SECRET_FILES["sandbox"]
_MAX_FOLDERS, _MAX_PACKAGE_FILES, _SHOWN = 5_000, 50_000, 5
_CODE = Path(__file__).parents[2]
_FILE_CLOCK = 5  # Linux's CLOCK_REALTIME_COARSE, by which files are dated
_SECTION = re.compile(r'\s*\[([\w.-]+)(?: +"(.*)")?\]\s*')
_SETTING = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?")


def _pattern(names: Iterable[str], separator: str = "/") -> re.Pattern[str]:
    part = f"[^{separator}]*"
    return re.compile("|".join(re.escape(name).replace(r"\*", part) for name in names), re.IGNORECASE)


_READ_ONLY, _PLAIN_SETTINGS = _pattern(_NAMES["read_only"]), _pattern(_NAMES["git_plain"], "\n")


class _Found(NamedTuple):
    """Files below writable folders that decide which programs run later."""

    files: dict[Path, bool]
    """Files and folders that a confined program may not change, and whether the folders above must keep their names."""
    packages: list[Path]
    """Folders with programs that a confined program may change: environments, `node_modules`, a stopped rebase."""
    git_folders: dict[Path, set[str]]
    """Git's own folders, of repositories, submodules and worktrees, and the names in each."""
    modules: list[Path]
    """Modules that Packetgate would import instead of its own."""


class LeftBehind:
    """The files that decide which programs run later, before and after a confined program."""

    def __init__(self, tops: Iterable[Path], settings_files: Iterable[Path] = (), hidden: Iterable[Path] = ()) -> None:
        """Search below the writable folders `tops`; give Git's folders without hooks an empty folder. Blocking.

        Args:
            hidden: folders that the program does not see.
        """
        self._tops, self._hidden = list(dict.fromkeys(tops)), [*hidden]
        self._settings = [*settings_files]
        self._start_ns = time.clock_gettime_ns(_FILE_CLOCK)
        self._before = self._search()
        for folder, present in self._before.git_folders.items():  # a missing folder cannot be mounted read-only
            if ".git" in folder.parts and not {"hooks", "commondir"} & present:
                with suppress(OSError):
                    (folder / "hooks").mkdir()
                    present.add("hooks")
                    self._before.files[folder / "hooks"] = True
        self._report: list[str] | None = None
        self._links = {path: path.readlink() for path in self._before.files if path.is_symlink()}
        names = {path: pinned for path, pinned in self._before.files.items() if path not in self._links}
        for path in self._links:
            with suppress(OSError, RuntimeError):
                names |= dict.fromkeys(self._inside(path.resolve(strict=True)), False)
        self.protected: Identities = {path: identity(path) for path in names}
        """The files and folders that the program may not change."""
        self.pinned = {path for path, is_pinned in names.items() if is_pinned}
        """The protected paths whose folders may not be renamed."""

    @property
    def files(self) -> Iterable[Path]:
        """The files and folders that determine which programs run, links included."""
        return self._before.files.keys()

    def remove_redirections(self) -> None:
        """Remove new files by which a program gives Git another configuration and other hooks. Blocking."""
        for folder, names in self._before.git_folders.items():
            if "commondir" not in names:
                with suppress(OSError):
                    (folder / "commondir").unlink()

    def report(self, folder: Path) -> list[str]:
        """Return lines that name the changed files that run later, relative to a folder. Blocking.

        Move new files aside that would run by themselves, and restore links that were replaced.
        """
        if self._report is None:
            self.remove_redirections()
            self._report = [*self._lines(folder)]
        return self._report

    def _lines(self, folder: Path) -> Iterator[str]:
        def names(paths: Iterable[Path]) -> str:
            return ", ".join(os.path.relpath(path, folder) for path in paths)

        after = self._search()
        moved = [path for path in [*self._replaced_links(), *self._active(after)] if _move_aside(path)]
        for path, target in self._links.items():
            if not os.path.lexists(path):
                with suppress(OSError):
                    path.symlink_to(target)
        new = [path for path in after.files if path not in self._before.files]
        new += [path for path in after.modules if path not in self._before.modules]
        new += [path for path, known in self.protected.items() if identity(path) != known]
        new = [path for path in dict.fromkeys(new) if path not in moved]
        if new:
            yield f"Created files that say what may run; read them before you use them: {names(new)}"
        if moved:
            yield f"Moved aside (to NAME{ASIDE}), because they run by themselves: {names(moved)}"
        changes = [f"{names([top])} ({text})" for top in after.packages if (text := self._changes(top))]
        if changes:
            yield f"Changed what programs outside the sandbox may run: {'; '.join(changes)}"

    def _replaced_links(self) -> Iterator[Path]:
        for path, target in self._links.items():
            if os.path.lexists(path) and not (path.is_symlink() and path.readlink() == target):
                yield path

    def _active(self, after: _Found) -> Iterator[Path]:
        """Yield new files that Git or Python run by themselves."""
        for folder, names in after.git_folders.items():
            known = self._before.git_folders.get(folder, set())
            for name in ("config", "config.worktree"):
                if name in names and name not in known and not _is_plain(folder / name):
                    yield folder / name
            if "hooks" in names and "hooks" not in known and not _has_only_samples(folder / "hooks"):
                yield folder / "hooks"
        for path in [*after.files, *after.modules]:
            is_new = path not in self._before.files and path not in self._before.modules
            if is_new and path.name.partition(".")[0] in {"sitecustomize", "usercustomize"}:
                yield path

    def _changes(self, top: Path) -> str:
        """Return the changed files of a folder with programs; files that run by themselves come first."""
        changed, waiting, seen = list[str](), deque([top]), 0
        while waiting and seen < _MAX_PACKAGE_FILES:
            with suppress(OSError), os.scandir(waiting.popleft()) as entries:
                for entry in entries:
                    seen += 1
                    with suppress(OSError):  # nobody but root can set the time of the change of the inode
                        is_folder = entry.is_dir(follow_symlinks=False)
                        if is_folder:
                            waiting.append(Path(entry.path))
                        if entry.stat(follow_symlinks=False).st_ctime_ns >= self._start_ns and not is_folder:
                            changed.append(os.path.relpath(entry.path, top))
        if not changed:
            with suppress(OSError):
                return "entries were removed" if top.stat().st_ctime_ns >= self._start_ns else ""
        changed.sort(key=lambda name: (not name.endswith(".pth"), name.count("/")))
        more = len(changed) - _SHOWN
        return ", ".join(changed[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")

    def _search(self) -> _Found:
        found = _Found({}, [], {}, [])
        for path in dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), _CODE)):  # Packetgate's own code
            found.files.update((inside, True) for inside in self._inside(path) if os.path.lexists(inside))
        for path in self._settings:
            if path.is_file():
                found.files.update((inside, True) for inside in self._inside(path.resolve()))
        user_home, modules = Path.home(), _importable()
        for top in self._tops:
            if user_home.is_relative_to(top):
                startup = (user_home / name for name in _NAMES["startup"])
                found.files.update((path, False) for path in startup if os.path.lexists(path))
            if top.is_file() and _READ_ONLY.fullmatch(top.name):
                found.files.setdefault(top, False)
        waiting, seen, sources = deque(self._tops), {*self._hidden}, {Path(path).resolve() for path in sys.path}
        while waiting and len(seen) < _MAX_FOLDERS:
            folder = waiting.popleft()
            if folder not in seen and folder not in found.files:
                seen.add(folder)
                with suppress(OSError), os.scandir(folder) as entries:
                    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
                    below = self._sort(folder, names, found)
                    if folder.resolve() in sources:
                        shadows = (folder / name for name in below if name.partition(".")[0] in modules)
                        found.modules.extend(path for path in shadows if path.suffix or (path / "__init__.py").exists())
                    waiting += [folder / name for name in below if names[name]]
        return found

    def _sort(self, folder: Path, names: Mapping[str, bool], found: _Found) -> list[str]:
        """Add a folder's own entries to `found`; return the names that are still to be searched."""
        left, is_top = [*names], folder in self._tops
        if "pyvenv.cfg" in names:
            found.packages.extend(
                [folder / name for name in ENVIRONMENT_PARTS if name in names] if is_top else [folder]
            )
            left = [name for name in names if name not in ENVIRONMENT_PARTS] if is_top else []
        if folder.name == ".git" or {"objects", "refs"} <= names.keys() or {"HEAD", "commondir"} <= names.keys():
            found.git_folders[folder] = {*names}
            said = [folder / name for name in _NAMES["git"] if name in names]
            found.files.update((path, True) for path in [*said, *self._named_by(folder)])
            found.packages.extend(folder / name for name in _NAMES["git_named"] if name in names)
            left = [name for name in left if name in {"modules", "worktrees"} or folder.name != ".git"]
            left = [name for name in left if name not in {"objects", "refs", "logs", *_NAMES["git"]}]
        for name in [*left]:
            if _READ_ONLY.fullmatch(name) or _READ_ONLY.fullmatch(f"{folder.name}/{name}"):
                is_settings = name in SETTINGS_FILES
                found.files.setdefault(folder / name, is_settings)
            elif name == ".git" and not names[name]:  # of a worktree or submodule: names Git's folder
                found.files[folder / name] = True
            elif name == "node_modules" and names[name]:
                found.packages.append(folder / name)
            else:
                continue
            left.remove(name)
        return left

    def _named_by(self, git_folder: Path) -> Iterator[Path]:
        """Yield files and folders of hooks that Git's configuration names: included files, programs."""
        for setting, value in _settings(git_folder / "config"):
            if setting is None or _PLAIN_SETTINGS.fullmatch(setting):
                continue
            for word in (value, *value.split()):
                with suppress(OSError, RuntimeError, ValueError):
                    written = Path(word.strip("\"'!;")).expanduser()
                    for path in ((git_folder / written).resolve(), (git_folder.parent / written).resolve()):
                        if path.is_file() or (path.is_dir() and setting.endswith(".hookspath")):
                            yield from self._inside(path)

    def _inside(self, path: Path) -> Iterator[Path]:
        """Yield a path, below writable folders, as a program in the sandbox names it."""
        for top in self._tops:
            for whole, below in ((top, path), (top.resolve(), path.resolve())):
                if below != whole and below.is_relative_to(whole):
                    yield top / below.relative_to(whole)
                elif below == whole and (below / "pyvenv.cfg").exists():
                    yield from (top / name for name in ENVIRONMENT_PARTS if (top / name).exists())


def is_replaced(protected: Identities) -> bool:
    """Return whether a protected file was replaced: the mount of the old file does not protect the new one."""
    return any(identity(path) != known for path, known in protected.items())


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file or folder, or None if there is none."""
    with suppress(OSError):
        status = path.lstat()
        return status.st_dev, status.st_ino
    return None


def _importable() -> set[str]:
    """Return the names of modules that a file in a folder of `sys.path` can replace when Packetgate starts again."""
    prefixes = (sys.prefix, sys.base_prefix)
    loaded = {
        name for name, module in [*sys.modules.items()] if str(getattr(module, "__file__", None)).startswith(prefixes)
    }
    return {"packetgate", "sitecustomize", "usercustomize", *sys.stdlib_module_names, *loaded}


def _settings(config: Path) -> Iterator[tuple[str | None, str]]:
    """Yield the lower-case names and the values of a Git configuration file; None for lines that cannot be parsed."""
    section = ""
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = ["unreadable ="]
    for line in lines:
        if found := _SECTION.fullmatch(line):
            section = ".".join(part for part in found.groups() if part)
        elif line.strip() and line.strip()[0] not in "#;":
            setting = None if line.endswith("\\") else _SETTING.fullmatch(line)
            yield (f"{section}.{setting[1]}".lower(), setting[2] or "") if setting else (None, "")


def _is_plain(config: Path) -> bool:
    """Return whether a file of Git only has settings that run no program and include no file."""
    settings = (setting for setting, _ in _settings(config))
    return not config.is_symlink() and all(name is not None and _PLAIN_SETTINGS.fullmatch(name) for name in settings)


def _has_only_samples(hooks: Path) -> bool:
    with suppress(OSError):
        return not hooks.is_symlink() and all(hook.suffix == ".sample" for hook in hooks.iterdir())
    return False


def _move_aside(path: Path) -> bool:
    with suppress(OSError):
        path.rename(path.with_name(path.name + ASIDE))
        return True
    return False
