"""Find the turn and session of a Discord message, so that a reply to the message continues from this turn."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Any
from weakref import WeakValueDictionary

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from packetgate.connectors.discord.config import channel_ids_of
from packetgate.graph.records import CONVERSATIONS

_POINTS = (*CONVERSATIONS, "discord")
_ALL = 1_000_000


@dataclass(frozen=True)
class Point:
    """A turn of a session."""

    session: str
    packet_id: str
    channel: str
    person: str
    """The user whose session it is."""


class Points:
    """Finds and stores the turns of messages, in the sessions' store; without one, in memory."""

    def __init__(self, store: BaseStore | None) -> None:
        self._store = store or InMemoryStore()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def sending(self, channel: Any) -> asyncio.Lock:
        """Return the lock to hold while a message is sent and recorded, so that a reply to it finds its turn."""
        return self._locks.setdefault(channel.id, asyncio.Lock())

    async def find(self, key: object, channel: Any) -> Point | None:
        """Return the turn of a message's id, or of `last ID` or `question ID`: a channel's last turn or question."""
        async with self.sending(channel):
            item = await self._store.aget(_POINTS, str(key))
        point = Point(**item.value) if item else None
        return point if point and int(point.channel) in channel_ids_of(channel) else None

    async def record(self, point: Point, *keys: object) -> None:
        """Record a turn under keys, as `find` takes them."""
        for key in keys:
            await self._store.aput(_POINTS, str(key), asdict(point), index=False)

    async def sessions_of(self, person: int, channel: Any) -> set[str]:
        """Return a user's sessions in a channel."""
        wanted = {"channel": str(channel.id), "person": str(person)}
        return {str(one.value["session"]) for one in await self._store.asearch(_POINTS, filter=wanted, limit=_ALL)}
