"""Messages about SQLite files that cannot be used."""

import errno
import sqlite3
from pathlib import Path

_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_NO_ACCESS = {sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

SESSION_CONTENT = "the sessions, the journal and the remembered answers"
"""What is lost without `packetgate.db`."""
UNDO_CONTENT = "the record of earlier changes, which then cannot be undone"
"""What is lost without `undo.db`."""


def database_problem(path: Path, error: Exception, content: str) -> str:
    """Return one line with the problem of a SQLite file and its fix; `content` names the data in the file."""
    while isinstance(error.__context__, sqlite3.Error):  # a failed rollback hides the cause
        error = error.__context__
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without the extension of the code
    if code in _IN_USE:
        return f"{path}: in use by another process: {error}; try again"
    if code in _NO_SPACE or getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return f"{path}: cannot be written: {error}; free space on the disk, check it, or set PACKETGATE_HOME"
    if code in _NO_ACCESS or isinstance(error, OSError):
        return (
            f"{path}: cannot be opened: {error}; give yourself access to the file and its folder, or set "
            "PACKETGATE_HOME to a folder of yours"
        )
    return (
        f"{path}: damaged, or not a file of Packetgate: {error}; restore a backup, or move {path.name}* away: a new "
        f"file is then created, without {content}"
    )


def check_sqlite(path: Path) -> None:
    """Check the structure of a SQLite file.

    Raises:
        sqlite3.Error: the file is damaged or cannot be read.
    """
    connection = sqlite3.connect(path)
    try:
        for (finding,) in connection.execute("PRAGMA quick_check(1)"):
            if finding != "ok":
                raise sqlite3.DatabaseError(" ".join(finding.replace("***", "").split()))
    finally:
        connection.close()
