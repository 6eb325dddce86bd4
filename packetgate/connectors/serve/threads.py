"""Which session a conversation is: the client sends all of it with every request, and no name.

A conversation is known by its whole text, under the client's token and whatever name the client gives it. With every
answer that text is recorded, and with a question its message alone as well: it holds the question's id, which nobody
guesses. A text that two sessions have come to is nobody's: whoever continues it gets a session of their own.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from urllib.parse import quote

from langgraph.store.base import BaseStore

from packetgate.connectors.serve.protocol import HistoryMessage
from packetgate.connectors.sessions import Sessions
from packetgate.graph.records.recording import CONVERSATIONS
from packetgate.state.errors import ConfigError

MOST_LOOKED_UP = 200
MOST_BEGUN = 10


@dataclass(frozen=True)
class Scope:
    """Whose conversation it is, beyond its text."""

    client: str
    conversation: str = ""
    """The client's own name for it."""
    user: str = ""
    """Who of those that share the client's token, as the client says."""

    @property
    def person(self) -> str:
        """Who asks: no user of one client is another client, or a user of it, however they are named."""
        return "/".join(quote(name, safe=" @+:") for name in (self.client, self.user) if name)


@dataclass(frozen=True)
class Point:
    """Where a conversation stood when its last message was answered."""

    session: str
    packet_id: str
    question_id: str = ""
    """What the answer asked; empty where it asked nothing."""
    reply: str | None = None
    """What was replied."""


class Threads:
    """The points that conversations have come to, kept in the database of the sessions."""

    def __init__(self, sessions: Sessions) -> None:
        store = sessions.store
        if store is None:
            raise ConfigError("the sessions have no store to keep conversations in")
        self._store: BaseStore = store

    async def find(self, scope: Scope, history: Sequence[HistoryMessage]) -> Point | None:
        """Return the point that a history has come to; None where there is none, or more than one session has.

        What a client adds of its own after the last answer, such as the date, changes nothing of that.
        """
        history = settled(history)
        if not history:
            return None
        for said in (history, history[-1:]):
            found = await self._store.asearch((*CONVERSATIONS, _digest(scope, said)), limit=2)
            if found:
                return Point(**found[0].value) if len(found) == 1 else None
        return None

    async def own_messages(self, scope: Scope, history: Sequence[HistoryMessage]) -> frozenset[int]:
        """Return the places in a history of the user's messages that were the newest of a request when they came.

        Of the newest `MOST_LOOKED_UP` alone: whatever else a client puts there somebody else may have written.
        """
        answered = [at for at, one in enumerate(history[1:]) if one.role == "assistant"]
        places = [at for at in answered if history[at].role == "user"][-MOST_LOOKED_UP:]
        digests = _digests(scope, history)
        searches = (self._store.asearch((*CONVERSATIONS, digests[at + 1]), limit=1) for at in places)
        found = await asyncio.gather(*searches)
        return frozenset(at for at, points in zip(places, found, strict=True) if points)

    async def keep(self, scope: Scope, history: Sequence[HistoryMessage], point: Point) -> None:
        """Record what a history that ends with an answer has come to."""
        await self._put(_digest(scope, history), point)
        if point.question_id:
            await self._put(_digest(scope, history[-1:]), point)

    async def replied(
        self, scope: Scope, history: Sequence[HistoryMessage], point: Point, words: str, *, counted: bool = False
    ) -> None:
        """Record what is replied to a question: the first before it counts, since its turn may be stopped, and then
        the one that `counted`.
        """
        known = None if counted else await self.find(scope, history)
        if known is None or known.reply is None:
            await self.keep(scope, history, replace(point, reply=words))

    async def begun(self, scope: Scope, history: Sequence[HistoryMessage]) -> list[str]:
        """Return the sessions that were opened for a history that ends with the user's message."""
        found = await self._store.asearch((*CONVERSATIONS, _digest(scope, history)), limit=MOST_BEGUN)
        return [str(one.value["session"]) for one in found]

    async def begin(self, scope: Scope, history: Sequence[HistoryMessage], session: str) -> None:
        """Record a session before its first turn: its client may send the message again by itself."""
        await self._put(_digest(scope, history), Point(session, ""))

    async def _put(self, digest: str, point: Point) -> None:
        await self._store.aput((*CONVERSATIONS, digest), point.session, asdict(point), index=False)


def settled(history: Sequence[HistoryMessage]) -> Sequence[HistoryMessage]:
    """Return a history up to its last answer."""
    answered = [at for at, one in enumerate(history) if one.role == "assistant"]
    return history[: answered[-1] + 1] if answered else ()


def _digest(scope: Scope, history: Sequence[HistoryMessage]) -> str:
    return _digests(scope, history)[-1]


def _digests(scope: Scope, history: Sequence[HistoryMessage]) -> list[str]:
    """Return the name of a history up to each of its messages. Clients may change white space on the way."""
    running, digests = sha256(f"[{json.dumps(asdict(scope))}, [".encode()), []
    for at, one in enumerate(history):
        running.update((", " * (at > 0) + json.dumps([one.role, " ".join(one.text.split())])).encode())
        ended = running.copy()
        ended.update(b"]]")
        digests.append(ended.hexdigest())
    return digests
