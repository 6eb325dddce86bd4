"""Store confirmed uses in LangGraph's store (memory, SQLite, PostgreSQL or a server's own)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from packetgate.ranking.learning import ConfirmedUse, LearnedUses, confirmed_uses
from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, Item

USES_NAMESPACE = ("packetgate", "learned")
MAX_STORED = 10_000
MAX_USES = 1_000
"""Number of a user's newest uses that are read."""
USES_CACHE_S = 60.0
"""Seconds for which a user's uses are cached: another process may have stored more."""
_NO_LIMIT = 1_000_000
_BATCH_SIZE = 1_000

_CACHE: "WeakKeyDictionary[BaseStore, dict[str, tuple[float, LearnedUses]]]" = WeakKeyDictionary()


async def delete_old_uses(store: "BaseStore", days: int, most: int = MAX_STORED) -> None:
    """Delete uses that are older than `days`; if more than `most` are left, keep the newest 90 % of `most`."""
    too_old = day_number(now() - timedelta(days=days))
    await delete_items(store, await store.asearch(USES_NAMESPACE, filter={"day": {"$lt": too_old}}, limit=_NO_LIMIT))
    if await store.asearch(USES_NAMESPACE, limit=1, offset=most):  # all are read only if there are too many
        items = sorted(await store.asearch(USES_NAMESPACE, limit=_NO_LIMIT), key=lambda item: str(item.value.get("at")))
        await delete_items(store, items[: len(items) - (most - most // 10)])


async def delete_items(store: "BaseStore", items: "Sequence[Item]") -> None:
    """Delete items, in transactions of a bounded size."""
    for start in range(0, len(items), _BATCH_SIZE):
        await asyncio.gather(*(store.adelete(item.namespace, item.key) for item in items[start : start + _BATCH_SIZE]))


def day_number(at: datetime) -> int:
    """Return the day as an integer, which all stores compare in the same way: PostgreSQL's compares dates as text."""
    return int(at.timestamp()) // 86_400


def _namespace(user: str) -> tuple[str, ...]:
    """Return the namespace of a user's uses. Periods are escaped, because stores refuse them."""
    return (*USES_NAMESPACE, quote(user, safe="").replace(".", "%2E"))


async def store_uses(store: "BaseStore", packet: CognitionPacket) -> None:
    """Store the confirmed uses of an ended turn."""
    for number, use in enumerate(confirmed_uses(packet)):
        await store_use(store, packet.header, f"{packet.header.packet_id}-{number}", use)


async def store_use(store: "BaseStore", header: Header, key: str, use: ConfirmedUse) -> None:
    """Store a use. It replaces an earlier use with the same key."""
    user = _user_key(header)
    value = {**use.model_dump(mode="json"), "day": day_number(use.at)}
    await store.aput(_namespace(user), key, value, index=False)
    _CACHE.get(store, {}).pop(user, None)


async def read_learned(store: "BaseStore", header: Header) -> LearnedUses:
    """Return the confirmed uses of the turn's user."""
    user, cache = _user_key(header), _CACHE.setdefault(store, {})
    for other in [other for other, (read_at, _) in cache.items() if monotonic() - read_at >= USES_CACHE_S]:
        del cache[other]
    if user not in cache:
        uses = []
        for item in await store.asearch(_namespace(user), limit=_NO_LIMIT):
            with suppress(ValidationError):  # written by another version
                fields = {key: item.value[key] for key in ConfirmedUse.model_fields if key in item.value}
                uses.append(ConfirmedUse.model_validate(fields))
        cache[user] = monotonic(), LearnedUses(sorted(uses, key=lambda use: use.at)[-MAX_USES:])
    return cache[user][1]


async def delete_uses(store: "BaseStore", name: str | None = None, session: str | None = None) -> int:
    """Delete the uses of a tool or server, of a session, or all; return their number."""
    items = [
        item
        for item in await store.asearch(USES_NAMESPACE, limit=_NO_LIMIT)
        if (name is None or f"{item.value.get('tool')}.".startswith(f"{name}."))
        and (session is None or item.value.get("session_id") == session)
    ]
    await delete_items(store, items)
    _CACHE.pop(store, None)
    return len(items)


def _user_key(header: Header) -> str:
    """Return the key under which a turn stores uses: the person on the connector, or the session."""
    return f"{header.origin}:{header.person}" if header.person else f"session:{header.session_id}"
