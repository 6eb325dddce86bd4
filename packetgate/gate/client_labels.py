"""The labels of a proxy's clients, kept in the journal across sessions, contexts and processes."""

import time
from collections.abc import Iterable
from datetime import timedelta

from packetgate.gate.journal import Entry, Journal, RecordedEntry
from packetgate.state.base import now
from packetgate.state.origins import FlowLabel, SessionLabel

CLIENT_LABELLED, CLIENT_CLEARED = "client_labelled", "client_labels_cleared"
LABEL_DAYS = 30
"""Days from the last labelled result until a client counts as a new conversation."""
_REFRESH_DAYS = 1
"""Days after which a label is recorded again, so that `LABEL_DAYS` count from the last result."""
_CACHE_S = 60.0
"""Seconds for which the labels of a client that has both are cached."""


class ClientLabels:
    """Reads, records and clears the labels of clients by their names."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, tuple[float, dict[FlowLabel, SessionLabel]]] = {}
        """For each client, when its rows were read, and its newest labels."""
        self._unrecorded: dict[str, dict[FlowLabel, SessionLabel]] = {}
        """For each client, the labels that are not in the journal yet."""

    async def of(self, client: str) -> tuple[SessionLabel, ...]:
        """Return the client's labels.

        Raises:
            ConfigError: the database cannot be read.
        """
        read_at, labels = self._known.get(client, (-_CACHE_S, {}))
        if len(labels) < len(FlowLabel) or time.monotonic() - read_at > _CACHE_S:
            recorded = _labels_in(await self._journal.call_entries("", _key(client)))
            labels = {**recorded, **self._unrecorded.get(client, {})}
            self._known[client] = time.monotonic(), labels
        return tuple(labels.values())

    async def add(self, client: str, labels: Iterable[SessionLabel]) -> None:
        """Record labels that are new or older than a day.

        Raises:
            ConfigError: the database cannot be written. The labels still apply in this process.
        """
        read_at, known = self._known.get(client, (-_CACHE_S, {}))
        oldest = now() - timedelta(days=_REFRESH_DAYS)
        new = {label.label: label for label in labels if label.label not in known or known[label.label].at < oldest}
        unrecorded = {**self._unrecorded.get(client, {}), **new}
        self._unrecorded[client] = dict(unrecorded)
        self._known[client] = read_at, {**known, **unrecorded}
        entries = [
            Entry(CLIENT_LABELLED, call_id=_key(client), detail={"client": client, **label.model_dump(mode="json")})
            for label in unrecorded.values()
        ]
        await self._journal.record(*entries)
        for label in unrecorded:
            self._unrecorded.get(client, {}).pop(label, None)

    async def clear(self, client: str) -> bool:
        """Remove all labels of a client, and return whether it had one."""
        had_labels = bool(_labels_in(await self._journal.call_entries("", _key(client))))
        if had_labels:
            await self._journal.record(Entry(CLIENT_CLEARED, call_id=_key(client), detail={"client": client}))
        self._known.pop(client, None)
        self._unrecorded.pop(client, None)
        return had_labels

    async def all(self) -> dict[str, tuple[SessionLabel, ...]]:
        """Return the labels of every client that has one."""
        rows = await self._journal.event_entries(CLIENT_LABELLED, CLIENT_CLEARED)
        clients = dict.fromkeys(str(row.entry.detail.get("client", "")) for row in rows)
        labels = {
            client: tuple(_labels_in([row for row in rows if row.entry.call_id == _key(client)]).values())
            for client in clients
        }
        return {client: held for client, held in labels.items() if held}


def _key(client: str) -> str:
    return f"labels:{client}"


def _labels_in(rows: Iterable[RecordedEntry]) -> dict[FlowLabel, SessionLabel]:
    labels: dict[FlowLabel, SessionLabel] = {}
    for row in rows:
        if row.entry.event == CLIENT_CLEARED:
            labels = {}
        elif row.at > now() - timedelta(days=LABEL_DAYS):
            label, source = FlowLabel(str(row.entry.detail["label"])), str(row.entry.detail["source"])
            labels[label] = SessionLabel(label=label, source=source, at=row.at)
    return labels
