"""Find the session of a conversation: clients send the whole conversation with every request, and no id.

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
    """The owner of a conversation."""

    client: str
    conversation: str = ""
    """The client's own name for it."""
    user: str = ""
    """The user among those who share the client's token, as stated by the client."""

    @property
    def person(self) -> str:
        """An unambiguous name for the client and its user."""
        return "/".join(quote(name, safe=" @+:") for name in (self.client, self.user) if name)


@dataclass(frozen=True)
class Point:
    """The session and packet that a conversation's last answer came from."""

    session: str
    packet_id: str
    question_id: str = ""
    """The question in the answer, if any."""
    reply: str | None = None
    """The reply to it."""


class Threads:
    """The points of conversations, kept in the sessions' database."""

    def __init__(self, sessions: Sessions) -> None:
        store = sessions.store
        if store is None:
            raise ConfigError("the sessions have no store to keep conversations in")
        self._store: BaseStore = store

    async def find(self, scope: Scope, history: Sequence[HistoryMessage]) -> Point | None:
        """Return the point of a history; None if there is none, or if two sessions match.

        Messages that a client adds after the last answer, such as the date, are ignored.
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
        """Return indexes of user messages that we received as the newest message of a request.

        Only the newest `MOST_LOOKED_UP` are checked. Other messages may be written by somebody else.
        """
        answered = [at for at, one in enumerate(history[1:]) if one.role == "assistant"]
        places = [at for at in answered if history[at].role == "user"][-MOST_LOOKED_UP:]
        digests = _digests(scope, history)
        searches = (self._store.asearch((*CONVERSATIONS, digests[at + 1]), limit=1) for at in places)
        found = await asyncio.gather(*searches)
        return frozenset(at for at, points in zip(places, found, strict=True) if points)

    async def keep(self, scope: Scope, history: Sequence[HistoryMessage], point: Point) -> None:
        """Record the point of a history that ends with an answer."""
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
        """Record a session before its first turn, since clients retry by themselves."""
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
    """Return the digest of a history up to each of its messages, ignoring white space, which clients may change."""
    running, digests = sha256(f"[{json.dumps(asdict(scope))}, [".encode()), []
    for at, one in enumerate(history):
        running.update((", " * (at > 0) + json.dumps([one.role, " ".join(one.text.split())])).encode())
        ended = running.copy()
        ended.update(b"]]")
        digests.append(ended.hexdigest())
    return digests
