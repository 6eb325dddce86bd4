"""A row of the journal, and the chain that the rows make.

Each row's hash covers all of it and the hash of the row before. Of the detail it covers the digest: the detail itself
can be erased when a session is forgotten, and the chain still holds. Forgetting is a row of its own, after the erased
ones: a detail that is missing without such a row was removed by somebody else.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from packetgate.state.base import now
from packetgate.tools.execution.journal import Entry, Recorded
from packetgate.tools.spec.tool_spec import digest_of

_SALT = "salt"
"""In every detail: a short one could otherwise be guessed from its digest after it is erased."""


FORGOTTEN = "session_forgotten"
"""The event of the row that accounts for the erased details before it, of the same session."""


class Row(NamedTuple):
    """A row, in the order of the table's columns."""

    seq: int
    at: str
    session_id: str
    packet_id: str
    call_id: str
    event: str
    key: str | None
    digest: str
    """Of the detail."""
    previous: str
    """The hash of the row before, of the first row empty."""
    hash: str
    detail: str | None
    """JSON; None where it was erased."""

    @property
    def recorded(self) -> Recorded:
        """What it says."""
        detail = json.loads(self.detail or "{}")
        detail.pop(_SALT, None)
        entry = Entry(self.event, self.session_id, self.packet_id, self.call_id, detail, self.key)
        return Recorded(self.seq, datetime.fromisoformat(self.at), entry)


class Head(NamedTuple):
    """The newest row's number and hash; of an empty journal zero and nothing."""

    seq: int = 0
    hash: str = ""


def chained(entries: Iterable[Entry], head: Head) -> list[Row]:
    """Return entries as the rows that follow `head`."""
    rows: list[Row] = []
    for entry in entries:
        detail = json.dumps({**entry.detail, _SALT: secrets.token_hex(8)}, separators=(",", ":"))
        digest = hashlib.sha256(detail.encode()).hexdigest()
        names = (entry.session_id, entry.packet_id, entry.call_id, entry.event, entry.key)
        row = Row(head.seq + 1, now().isoformat(), *names, digest, head.hash, "", detail)
        rows.append(row._replace(hash=_hash(row)))
        head = Head(row.seq, rows[-1].hash)
    return rows


class Chain:
    """Walks the rows from the first, and says where they are not as they were written."""

    def __init__(self) -> None:
        self.head = Head()
        self.erased = 0
        """Rows without their details."""
        self._unexplained: dict[str, int] = {}
        """The first row without its detail, by session, where no later row says that the session was forgotten."""

    def breach(self, row: Row) -> str | None:
        """Return what is wrong with the next row, None where nothing is."""
        if row.seq != self.head.seq + 1:
            return f"row {self.head.seq + 1} is missing: row {row.seq} follows"
        if row.previous != self.head.hash:
            return f"row {row.seq} does not follow from row {self.head.seq}"
        if row.hash != _hash(row):
            return f"row {row.seq} is not as it was written"
        if row.detail is None:
            self.erased += 1
            self._unexplained.setdefault(row.session_id, row.seq)
        elif hashlib.sha256(row.detail.encode()).hexdigest() != row.digest:
            return f"the detail of row {row.seq} is not as it was written"
        elif row.event == FORGOTTEN:
            self._unexplained.pop(row.session_id, None)
        self.head = Head(row.seq, row.hash)
        return None

    def end(self, head: Head) -> str | None:
        """Return what is wrong with where the rows end, as the head that is kept beside them says."""
        if head != self.head:
            return f"the journal ended with row {head.seq} ({head.hash[:12]}), and now with row {self.head.seq}"
        if self._unexplained:
            first = min(self._unexplained.values())
            return f"the detail of row {first} was removed, and no later row says that its session was forgotten"
        return None


def _hash(row: Row) -> str:
    return digest_of([*row[: Row._fields.index("hash")]])
