"""Rows of the journal and their hash chain.

A row's hash covers the hash of the previous row and the digest of its own detail, but not the detail itself. So a
detail can be erased when its session is forgotten, and the chain stays valid. Forgetting a session appends a row, which
explains the erased details before it.
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

FORGOTTEN = "session_forgotten"
_SALT = "salt"
"""Key of a random value in every detail, so that nobody can guess an erased detail from its digest."""


class JournalRow(NamedTuple):
    """A row, in the order of the table's columns."""

    seq: int
    at: str
    session_id: str
    packet_id: str
    call_id: str
    event: str
    key: str | None
    digest: str
    """Digest of the detail."""
    previous: str
    """Hash of the previous row; empty in the first."""
    hash: str
    detail: str | None
    """JSON; None if erased."""

    @property
    def recorded(self) -> Recorded:
        """The entry with its number and time."""
        detail = json.loads(self.detail or "{}")
        detail.pop(_SALT, None)
        entry = Entry(self.event, self.session_id, self.packet_id, self.call_id, detail, self.key)
        return Recorded(self.seq, datetime.fromisoformat(self.at), entry)


class ChainHead(NamedTuple):
    """Number and hash of the newest row."""

    seq: int = 0
    hash: str = ""


def chained(entries: Iterable[Entry], head: ChainHead) -> list[JournalRow]:
    """Return entries as rows that follow `head`."""
    rows: list[JournalRow] = []
    for entry in entries:
        detail = json.dumps({**entry.detail, _SALT: secrets.token_hex(8)}, separators=(",", ":"))
        digest = hashlib.sha256(detail.encode()).hexdigest()
        names = (entry.session_id, entry.packet_id, entry.call_id, entry.event, entry.key)
        row = JournalRow(head.seq + 1, now().isoformat(), *names, digest, head.hash, "", detail)
        rows.append(row._replace(hash=_hash(row)))
        head = ChainHead(row.seq, rows[-1].hash)
    return rows


class JournalChain:
    """Verifies rows from the first to the last."""

    def __init__(self) -> None:
        self.head = ChainHead()
        self.erased = 0
        """Number of erased details."""
        self._unexplained: dict[str, int] = {}
        """First erased row by session, for sessions without a later `FORGOTTEN`."""

    def breach(self, row: JournalRow) -> str | None:
        """Return the problem with the next row, or None."""
        if row.seq != self.head.seq + 1:
            return f"row {self.head.seq + 1} is missing: row {row.seq} follows"
        if row.previous != self.head.hash:
            return f"row {row.seq} does not follow from row {self.head.seq}"
        if row.hash != _hash(row):
            return f"row {row.seq} has been changed"
        if row.detail is None:
            self.erased += 1
            self._unexplained.setdefault(row.session_id, row.seq)
        elif hashlib.sha256(row.detail.encode()).hexdigest() != row.digest:
            return f"the detail of row {row.seq} has been changed"
        elif row.event == FORGOTTEN:
            self._unexplained.pop(row.session_id, None)
        self.head = ChainHead(row.seq, row.hash)
        return None

    def end(self, head: ChainHead) -> str | None:
        """Return the problem with the end of the rows, given the stored head, or None."""
        if head != self.head:
            return f"the journal ended with row {head.seq} ({head.hash[:12]}), and now with row {self.head.seq}"
        if self._unexplained:
            first = min(self._unexplained.values())
            return f"the detail of row {first} was removed, and no later row says that its session was forgotten"
        return None


def _hash(row: JournalRow) -> str:
    return digest_of([*row[: JournalRow._fields.index("hash")]])
