"""The database of a session stored with packet version 16, the first version that stays readable."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

SESSION, READ, WAITING = "old", "f951b07630154e07bf59560e9cbce733", "016604a36bd444b5b5de05a431e56aa3"
"""The session, and the packets of its two turns: a file read, and a write that waits for approval."""
JOURNAL_ROWS = 11
_DUMP = Path(__file__).parent.parent / "graph" / "session_16.sql.gz"


def restore_old_session(home: Path) -> Path:
    """Write the database below `home`, and return its path."""
    home.mkdir(exist_ok=True)
    path = home / "packetgate.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(gzip.decompress(_DUMP.read_bytes()).decode())
    return path
