"""Provide the world of the requests: a folder under git, a database, a memory, and a small site on loopback."""

import filecmp
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packetgate.state.errors import InputError

FOLDER = Path(__file__).parent / "world"
SQL, MEMORY, SITE, COMMITS = APART = ("shop.sql", "memory.jsonl", "site", "commits.json")
"""Entries of the folder that are not part of the user's files."""
FIRST_COMMIT = "First files"
"""The message of the first commit, which adds all files."""
GIT = ".git/"
NOT_FILES = frozenset({".git", "__pycache__"})
"""Folders that are not part of the user's files: git itself reports its state, and Python writes its cache folder."""


@dataclass(frozen=True)
class State:
    """Everything that a request can change."""

    files: dict[str, bytes]
    """Content by path; a folder's path ends in a slash."""
    tables: str
    memory: str
    commits: str
    """Branches with their commits, the checked-out branch, and the staged files."""

    def changed_files(self, since: "State") -> set[str]:
        """Return the paths that were created, changed or removed, without folders that were created for a file."""
        paths = {
            path for path in self.files.keys() | since.files.keys() if self.files.get(path) != since.files.get(path)
        }
        return {
            path for path in paths if not (path.endswith("/") and any(one.startswith(path) for one in paths - {path}))
        }


class World:
    """A folder on disk that can be reset to its initial state."""

    def __init__(self, place: Path, site: str) -> None:
        """`place`: an empty folder; `site`: the address of the served pages."""
        place = place.resolve()
        self.site = site
        self.root = place / "files"
        self.database = place / "shop.db"
        self.memory = place / "memory" / "memory.jsonl"
        self._initial = place / "initial"
        for folder in (self.root, self.memory.parent, self._initial):
            folder.mkdir()
        for one in sorted(FOLDER.iterdir()):
            if one.name in APART:
                continue
            (shutil.copytree if one.is_dir() else shutil.copy2)(one, self.root / one.name)
        self._commit_all()
        with closing(sqlite3.connect(self._initial / self.database.name)) as database:
            database.executescript((FOLDER / SQL).read_text(encoding="utf-8"))
        shutil.copy2(FOLDER / MEMORY, self._initial / self.memory.name)
        shutil.copytree(self.root, self._initial / "files", symlinks=True)
        self.reset()
        self.before = self.state()

    def reset(self) -> None:
        """Restore the initial state, but leave unchanged files in place: servers have the folder open, and their
        sandbox refuses calls once git's settings have been replaced."""
        initial = self._initial / "files"
        for one in sorted(self.root.rglob("*"), reverse=True):
            if not _is_same(one, initial / one.relative_to(self.root)):
                shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()
        shutil.copytree(initial, self.root, symlinks=True, dirs_exist_ok=True, copy_function=_copy_missing)
        for path in (self.database, self.memory):
            shutil.copy2(self._initial / path.name, path)

    def state(self) -> State:
        """Return the current state."""
        found = sorted(path for path in self.root.rglob("*") if not NOT_FILES & {*path.relative_to(self.root).parts})
        files = {
            path.relative_to(self.root).as_posix() + ("/" if path.is_dir() else ""): b""
            if path.is_dir()
            else path.read_bytes()
            for path in found
        }
        with closing(sqlite3.connect(self.database)) as database:
            tables = "\n".join(database.iterdump())
        memory = _both_spellings(self.memory.read_text(encoding="utf-8")) if self.memory.exists() else ""
        commits = [self.git("for-each-ref"), self.git("symbolic-ref HEAD"), self.git("ls-files --stage")]
        return State(files, tables, memory, "\n".join(commits))

    def inside_git(self, path: str) -> bytes | None:
        """Return the content of a file in `.git`; None if there is no such file."""
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def rows(self, query: str) -> list[list[Any]]:
        """Return the rows of a database query.

        Raises:
            sqlite3.Error: the query fails.
        """
        with closing(sqlite3.connect(self.database)) as database:
            return [[*row] for row in database.execute(query)]

    def git(self, command: str, **variables: str) -> str:
        """Return git's output with its errors. The settings of the machine and of the user do not apply."""
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **variables}
        words = ["git", *shlex.split(command)]
        ran = subprocess.run(words, cwd=self.root, env=env, capture_output=True, text=True, check=False)
        return ran.stdout + ran.stderr

    def _commit_all(self) -> None:
        self.git("init --quiet --initial-branch main --template=")
        (self.root / GIT / "hooks").mkdir()
        self.git("config user.name packetgate")
        self.git("config user.email packetgate@example.com")
        self._commit(FIRST_COMMIT, 1)
        for day, commit in enumerate(json.loads((FOLDER / COMMITS).read_text(encoding="utf-8")), 2):
            for name, content in commit["files"].items():
                path = self.root / name
                if content is None:
                    path.unlink()
                else:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(content, encoding="utf-8")
            self._commit(commit["message"], day)
        self.git("gc --quiet")

    def _commit(self, message: str, day: int) -> None:
        self.git("add --all")
        at = f"2026-11-{day:02}T09:00:00Z"
        problem = self.git(
            f"commit --quiet --message {shlex.quote(message)}", GIT_AUTHOR_DATE=at, GIT_COMMITTER_DATE=at
        )
        if problem:
            raise InputError(f"the world's commit {message!r} cannot be made: {problem.strip()}")


def _is_same(path: Path, initial: Path) -> bool:
    """Return whether two paths are both folders, or files with the same content and mode."""
    if path.is_symlink() or not initial.exists() or path.stat().st_mode != initial.stat().st_mode:
        return False
    return path.is_dir() or filecmp.cmp(path, initial, shallow=False)


def _copy_missing(source: str, target: str) -> None:
    if not Path(target).exists():
        shutil.copy2(source, target)


def _both_spellings(lines: str) -> str:
    """Return lines of JSON, formatted alternately as in JavaScript and as in Python."""
    values = [json.loads(line) for line in lines.splitlines() if line.strip()]
    spellings: tuple[tuple[str, str], ...] = ((",", ":"), (", ", ": "))
    return "\n".join(json.dumps(one, ensure_ascii=False, separators=signs) for signs in spellings for one in values)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Drop the log message."""


@contextmanager
def served_site(port: int) -> Iterator[str]:
    """Serve the world's pages on loopback, and yield their address; port 0 means any free port.

    Raises:
        InputError: the port is in use.
    """
    handler = partial(_Quiet, directory=str(FOLDER / SITE))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise InputError(f"port {port} is in use: choose another one with --port") from error
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
