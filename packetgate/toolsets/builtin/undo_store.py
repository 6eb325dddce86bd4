"""Records of file changes, with the data to undo them, in a SQLite file that only its owner can read.

A record is on the disk before its change runs. A lock file lets one process change files at a time, so an unfinished
record under the lock belongs to a process that was killed.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from packetgate.state.database_errors import UNDO_CONTENT, database_problem
from packetgate.state.errors import first_problem
from packetgate.tools.text.result_store import running_call_id, running_session
from packetgate.toolsets.builtin.files import ToolFailure

MAX_UNDO_BYTES = 10_000_000
"""Size of the largest file whose content is stored."""
MAX_TOTAL_BYTES = 200_000_000
"""Largest size of all stored contents together; the oldest are dropped."""
SHORT_ID = 8
"""Characters of a call's id that messages show."""
_LEAST_ID = 4
_LOCK_PATIENCE_S = 30.0
_RETRY_S = 0.02
_SQLITE_TIMEOUT_S = 30.0

Kind = Literal["absent", "file", "link", "folder"]
Status = Literal["started", "done", "unknown"]
Execute = Callable[..., sqlite3.Cursor]

_TABLE = """
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, status TEXT NOT NULL, change TEXT NOT NULL,
    content BLOB
);
"""


@dataclass(frozen=True)
class EntryState:
    """State of the entry at a path."""

    kind: Kind = "absent"
    digest: str = ""
    """SHA-256 of a file's content; size and time of a file that is too large to store; the target of a link."""
    size: int = 0
    mode: int = 0
    changed_ns: int = 0

    def is_like(self, other: "EntryState") -> bool:
        """Whether kind and content are the same. Folders are equal, even if their content differs."""
        return (self.kind, self.digest) == (other.kind, other.digest)

    @property
    def is_storable(self) -> bool:
        """Whether the state can be restored later."""
        return self.kind != "file" or self.size <= MAX_UNDO_BYTES


ABSENT = EntryState()


@dataclass(frozen=True)
class Change:
    """A change of one path, or a move to another path."""

    root: str
    path: str
    before: EntryState
    after: EntryState = ABSENT
    """The state of `path` afterwards; not used by a move."""
    destination: str = ""
    """The new path of a move; otherwise empty."""
    folders: tuple[str, ...] = ()
    """Folders that the change creates (or removes, if it undoes another change), outermost first."""
    undoes: int | None = None
    """Number of the change that this change undoes."""
    session: str = ""
    call_id: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int = 0
    status: Status = "started"

    @property
    def label(self) -> str:
        """The change's name in messages."""
        if self.destination:
            what = f"move of {self.path} to {self.destination}"
        elif self.before.kind == "absent":
            what = f"creation of {self.path}"
        else:
            what = f"{'deletion' if self.after.kind == 'absent' else 'change'} of {self.path}"
        return f"{what} at {self.at:%Y-%m-%d %H:%M:%S} UTC ({self.call_id[:SHORT_ID]})"

    @property
    def paths(self) -> tuple[str, ...]:
        """The changed paths."""
        return (self.path, self.destination) if self.destination else (self.path,)


_CHANGE = TypeAdapter(Change)


class History:
    """The recorded changes, oldest first, as one caller sees them."""

    def __init__(self, changes: Iterable[Change], session: str | None, root: str) -> None:
        """Args:
        session: the session whose changes may be undone; None for all sessions.
        """
        self.changes = [change for change in changes if change.root == root]
        """The changes of all sessions below the root."""
        self._scope = None if session is None else _scope(session)
        self._own = [change for change in self.changes if self._scope in (None, _scope(change.session))]

    @cached_property
    def _undone(self) -> frozenset[int]:
        undone = set[int]()
        for change in reversed(self.changes):
            if change.undoes is not None and change.number not in undone:
                undone.add(change.undoes)
        return frozenset(undone)

    def is_undone(self, change: Change) -> bool:
        """Whether a later change undid this change."""
        return change.number in self._undone

    @property
    def undoable(self) -> list[Change]:
        """The session's changes that are in effect and undo no other change, newest first."""
        return [change for change in reversed(self._own) if change.undoes is None and not self.is_undone(change)]

    def find(self, call_id: str, path: str = "") -> Change:
        """Return the session's change with this id, or prefix of an id; without one, the last change (of `path`).

        Raises:
            ToolFailure: there is no such change, or the prefix names several.
        """
        if not call_id:
            last = next((change for change in self.undoable if path in ("", *change.paths)), None)
            if last is None:
                of_path = f" of {path}" if path else ""
                raise ToolFailure(f"this session has no change{of_path} that can be undone")
            return last
        prefix = call_id.casefold()
        found = {change.call_id: change for change in self._own if change.call_id.startswith(prefix)}
        if len(prefix) < _LEAST_ID or len(found) > 1:
            raise ToolFailure(f"{call_id!r} may mean several changes: give more characters of the id")
        if not found:
            raise ToolFailure(
                f"this session has no recorded change {call_id!r}: `packetgate undo --list` lists the changes"
            )
        return next(iter(found.values()))


def _scope(session: str) -> str:
    """Return the session whose changes belong together: a parked call of the proxy has a session of its own."""
    return session.rpartition("-")[0] if session.startswith("proxy-") and session.count("-") > 1 else session


class UndoStore:
    """Stores changes and the contents that they replace. Blocking.

    Every method raises `ToolFailure` if the file cannot be used. A change that cannot be recorded does not run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = threading.local()

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Hold the lock of all changes, and yield whether this thread did not hold it before.

        A killed process loses the lock.
        """
        if getattr(self._held, "here", False):
            yield False
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._failure(error) from error
        until = time.monotonic() + _LOCK_PATIENCE_S
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._held.here = True
                    break
                if time.monotonic() > until:
                    raise ToolFailure("another process of Packetgate is changing files: nothing was changed, try again")
                time.sleep(_RETRY_S)
            yield True
        finally:
            self._held.here = False
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked process may hold the descriptor too
            os.close(file)

    def begin(self, change: Change, content: bytes | None) -> Change:
        """Record a change of the running call that is about to run, with the content that it replaces."""
        change = replace(change, session=running_session(), call_id=running_call_id())
        row = (change.session, change.status, _CHANGE.dump_json(change).decode(), content)
        with self._transaction() as execute:
            number = execute(
                "INSERT INTO records (session, status, change, content) VALUES (?, ?, ?, ?)", row
            ).lastrowid
            total = 0
            sizes = execute("SELECT number, length(content) FROM records WHERE content NOTNULL ORDER BY number DESC")
            for old, size in sizes.fetchall():
                total += size
                if total > MAX_TOTAL_BYTES:
                    execute("UPDATE records SET content = NULL WHERE number = ?", (old,))
        return replace(change, number=int(number or 0))

    def finish(self, change: Change, status: Status = "done") -> None:
        """Record the outcome of a change."""
        with self._transaction() as execute:
            execute("UPDATE records SET status = ? WHERE number = ?", (status, change.number))

    def drop(self, change: Change) -> None:
        """Delete the record of a change that did not happen."""
        with self._transaction() as execute:
            execute("DELETE FROM records WHERE number = ?", (change.number,))

    def changes(self, status: Status | None = None) -> list[Change]:
        """Return the recorded changes, or those of one status, oldest first."""
        if not self._path.exists():
            return []
        with self._transaction() as execute:
            query = "SELECT number, status, change FROM records WHERE status = coalesce(?, status) ORDER BY number"
            rows = execute(query, (status,)).fetchall()
        try:
            return [replace(_CHANGE.validate_json(text), number=number, status=status) for number, status, text in rows]
        except ValidationError as error:
            raise self._failure(ValueError(first_problem(error))) from error

    def content(self, change: Change) -> bytes | None:
        """Return the content that a change replaced; None if it is no longer stored."""
        with self._transaction() as execute:
            row = execute("SELECT content FROM records WHERE number = ?", (change.number,)).fetchone()
        return bytes(row[0]) if row and row[0] is not None else None

    def forget(self, session: str) -> None:
        """Erase the changes of a session and of its parked calls, with the stored contents."""
        if not self._path.exists():
            return
        condition = "session = ? OR (? LIKE 'proxy-%' AND substr(session, 1, length(?) + 1) = ? || '-')"
        with self._transaction() as execute:
            execute(f"DELETE FROM records WHERE {condition}", (session,) * 4)  # noqa: S608

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        try:
            if not self._path.exists():
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = sqlite3.connect(self._path, timeout=_SQLITE_TIMEOUT_S, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._failure(error) from error
        try:
            if connection.execute("PRAGMA auto_vacuum").fetchone() == (0,):  # setting it again is a write each time
                connection.execute("PRAGMA auto_vacuum = FULL")
            connection.executescript(_TABLE)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            yield connection.execute
            connection.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise self._failure(error) from error
        finally:
            connection.close()

    def _failure(self, error: Exception) -> ToolFailure:
        problem = database_problem(self._path, error, UNDO_CONTENT)
        return ToolFailure(f"changes cannot be recorded or undone, so nothing was changed: {problem}")
