"""Keeping records in LangGraph's store, whichever that is: SQLite, PostgreSQL, in memory, a server's own."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from urllib.parse import quote
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore, Item
from pydantic import ValidationError

from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header
from packetgate.tools.usage.learning import ConfirmedUse, Learned, confirmed_uses
from packetgate.tools.usage.record import USAGE_VERSION, UsageRecord

USAGE = ("packetgate", "usage")
KEPT_RECORDS = 10_000
_ALL = 1_000_000
_AT_ONCE = 1_000


@dataclass(frozen=True)
class Usage:
    """What a store holds."""

    records: tuple[UsageRecord, ...] = ()
    """Oldest first."""
    newer: int = 0
    """How many more there are that only a newer Packetgate can read."""
    unreadable: int = 0
    """How many more there are that are no such records."""


async def keep(store: BaseStore, record: UsageRecord) -> None:
    """Store a record; one of the same packet is replaced. A store that embeds what it keeps leaves it out."""
    value = {**record.model_dump(mode="json"), "day": day_of(record.at)}
    await store.aput(namespace(USAGE, record.session_id), record.packet_id, value, index=False)


async def read_usage(store: BaseStore, session: str | None = None) -> Usage:
    """Return the records of all sessions, or of one."""
    values = [
        item.value for item in await store.asearch(USAGE if session is None else namespace(USAGE, session), limit=_ALL)
    ]
    known = [value for value in values if not _is_newer(value)]
    records = [record for record in map(_read, known) if record is not None]
    return Usage(
        records=tuple(sorted(records, key=lambda record: (record.at, record.packet_id))),
        newer=len(values) - len(known),
        unreadable=len(known) - len(records),
    )


async def prune(store: BaseStore, days: int, most: int = KEPT_RECORDS, root: tuple[str, ...] = USAGE) -> None:
    """Delete what is older than `days`, and, where more than `most` records are left, all but the newest 90 % of those.

    They are what is kept below `root`, with the `day` it is of and when that began, `at`.
    Not more than necessary is read: to find the oldest takes reading all, so it is done once for many records.
    """
    too_old = day_of(now() - timedelta(days=days))
    await delete(store, await store.asearch(root, filter={"day": {"$lt": too_old}}, limit=_ALL))
    if await store.asearch(root, limit=1, offset=most):
        items = sorted(await store.asearch(root, limit=_ALL), key=lambda item: str(item.value.get("at", "")))
        await delete(store, items[: len(items) - (most - most // 10)])


async def delete(store: BaseStore, items: Sequence[Item]) -> None:
    """Delete items, some at once: a store runs what comes together as one transaction, of a bounded size."""
    for start in range(0, len(items), _AT_ONCE):
        await asyncio.gather(*(store.adelete(item.namespace, item.key) for item in items[start : start + _AT_ONCE]))


def day_of(at: datetime) -> int:
    """Return the day's number. The stores compare numbers differently, PostgreSQL's as text, but these all alike."""
    return int(at.timestamp()) // 86_400


def namespace(root: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """Return a place below `root`. A store takes no empty label, and none with a period."""
    return (*root, *(quote(name, safe="").replace(".", "%2E") or "%" for name in names))


def _is_newer(value: dict[str, object]) -> bool:
    version = value.get("version")
    return isinstance(version, int) and version > USAGE_VERSION


def _read(value: dict[str, object]) -> UsageRecord | None:
    try:
        return UsageRecord.model_validate(value)
    except ValidationError:
        return None


LEARNED = ("packetgate", "learned")
MOST_USES = 1_000
"""Uses of a user that are read, the newest."""
FRESH_S = 60.0
"""How long what was read counts: another process may have learned more."""

_READ: WeakKeyDictionary[BaseStore, dict[str, tuple[float, Learned]]] = WeakKeyDictionary()
"""By user, what was read of a store, and when."""


def learner(header: Header) -> str:
    """Return whose calls teach whom: the person's who asked, by their channel, or where none is named the session's."""
    return f"{header.origin}:{header.person}" if header.person else f"session:{header.session_id}"


async def learn(store: BaseStore, packet: CognitionPacket) -> None:
    """Keep what a turn teaches, once."""
    for number, use in enumerate(confirmed_uses(packet)):
        await keep_use(store, packet.header, f"{packet.header.packet_id}-{number}", use)


async def keep_use(store: BaseStore, header: Header, key: str, use: ConfirmedUse) -> None:
    """Keep one use; one of the same key is replaced."""
    who = learner(header)
    value = {**use.model_dump(mode="json"), "day": day_of(use.at)}
    await store.aput(namespace(LEARNED, who), key, value, index=False)
    _READ.get(store, {}).pop(who, None)


async def read_learned(store: BaseStore, header: Header) -> Learned:
    """Return what is known of the user whose turn it is."""
    who, read = learner(header), _READ.setdefault(store, {})
    at, learned = read.get(who, (-FRESH_S, Learned(())))
    if monotonic() - at >= FRESH_S:
        items = await store.asearch(namespace(LEARNED, who), limit=_ALL)
        uses = [use for use in (_use(item.value) for item in items) if use is not None]
        learned = Learned(sorted(uses, key=lambda use: use.at)[-MOST_USES:])
        for old in [one for one, (then, _) in read.items() if monotonic() - then >= FRESH_S]:
            del read[old]
        read[who] = (monotonic(), learned)
    return learned


async def forget(store: BaseStore, name: str | None = None, session: str | None = None) -> int:
    """Delete what was learned of a tool or a server, in a session, or all of it; return how many uses that were."""
    items = [
        item
        for item in await store.asearch(LEARNED, limit=_ALL)
        if (name is None or f"{item.value.get('tool')}.".startswith(f"{name}."))
        and (session is None or item.value.get("session_id") == session)
    ]
    await delete(store, items)
    _READ.pop(store, None)
    return len(items)


def _use(value: dict[str, object]) -> ConfirmedUse | None:
    try:
        return ConfirmedUse.model_validate({name: value[name] for name in ConfirmedUse.model_fields if name in value})
    except ValidationError:
        return None
