"""Find the session of a conversation: clients send the whole conversation with every request, and no id.

A conversation is identified by its whole text, the client's token and the client's name for it. Every answer records
that text. A question also records its own message, which contains a random id, because clients drop the oldest messages
of a long conversation. If two sessions have the same text, the text identifies neither session.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from urllib.parse import quote

from langgraph.store.base import BaseStore

from packetgate.connectors.serve.protocol import HistoryMessage
from packetgate.graph.records import CONVERSATIONS

MAX_LOOKUPS = 200
MAX_BEGUN_SESSIONS = 10

History = Sequence[HistoryMessage]


@dataclass(frozen=True)
class ConversationOwner:
    """The owner of a conversation: the client, the user, and the client's own name for the conversation."""

    client: str
    conversation: str = ""
    user: str = ""
    """The user, as stated by the client. Several users may share the client's token."""

    @property
    def person(self) -> str:
        """An unambiguous name for the client and its user."""
        return "/".join(quote(name, safe=" @+:") for name in (self.client, self.user) if name)


@dataclass(frozen=True)
class ThreadPoint:
    """The session and the packet that produced a conversation's last answer."""

    session: str
    packet_id: str
    question_id: str = ""
    """The question in the answer, if any."""
    reply: str | None = None
    """The reply to that question."""
    messages: tuple[str, ...] = ()
    """Digests of the messages of the conversation that was asked the question."""

    def was_asked_in(self, history: History) -> bool:
        """Whether a history is the end of the conversation that was asked, with at least the request and the question.

        A copy of the question in another conversation does not count.
        """
        messages = [_message_digest(message) for message in history]
        return len(messages) > 1 and messages == [*self.messages][-len(messages) :]


class Threads:
    """Finds and stores the `ThreadPoint` of each conversation, in the sessions' store."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    async def find(self, owner: ConversationOwner, history: History) -> ThreadPoint | None:
        """Return the `ThreadPoint` of a history; None if no session matches, or if two sessions match.

        Messages after the last answer are ignored: clients add some, such as the date.
        """
        history = until_last_answer(history)
        for messages in filter(None, (history, history[-1:])):
            items = await self._store.asearch((*CONVERSATIONS, _digests(owner, messages)[-1]), limit=2)
            if items:
                point = ThreadPoint(**items[0].value)
                is_own = not point.question_id or point.was_asked_in(history)
                return point if len(items) == 1 and is_own else None
        return None

    async def own_message_indexes(self, owner: ConversationOwner, history: History) -> frozenset[int]:
        """Return indexes of user messages that we received as the newest message of a request.

        Only the newest `MAX_LOOKUPS` are checked. Other messages may be written by another person.
        """
        answered = [at for at, message in enumerate(history[1:]) if message.role == "assistant"]
        indexes = [at for at in answered if history[at].role == "user"][-MAX_LOOKUPS:]
        digests = _digests(owner, history)
        searches = (self._store.asearch((*CONVERSATIONS, digests[at + 1]), limit=1) for at in indexes)
        items = await asyncio.gather(*searches)
        return frozenset(at for at, points in zip(indexes, items, strict=True) if points)

    async def record(self, owner: ConversationOwner, history: History, point: ThreadPoint) -> None:
        """Record the `ThreadPoint` of a history that ends with an answer."""
        if point.question_id:
            point = replace(point, messages=point.messages or tuple(map(_message_digest, history)))
        await self._put(owner, history, point)
        if point.question_id:
            await self._put(owner, history[-1:], point)

    async def record_reply(
        self, owner: ConversationOwner, history: History, point: ThreadPoint, words: str, *, accepted: bool = False
    ) -> None:
        """Record the first reply to a question before the reply's turn runs; with `accepted`, the accepted reply."""
        known = None if accepted else await self.find(owner, history)
        if known is None or known.reply is None:
            await self.record(owner, history, replace(point, reply=words))

    async def begun_sessions(self, owner: ConversationOwner, history: History) -> list[str]:
        """Return the sessions that were opened for a history that ends with the user's message."""
        items = await self._store.asearch((*CONVERSATIONS, _digests(owner, history)[-1]), limit=MAX_BEGUN_SESSIONS)
        return [str(item.value["session"]) for item in items]

    async def record_begun_session(self, owner: ConversationOwner, history: History, session: str) -> None:
        """Record a session before its first turn: a client may retry an interrupted request."""
        await self._put(owner, history, ThreadPoint(session, ""))

    async def _put(self, owner: ConversationOwner, history: History, point: ThreadPoint) -> None:
        namespace = (*CONVERSATIONS, _digests(owner, history)[-1])
        await self._store.aput(namespace, point.session, asdict(point), index=False)


def until_last_answer(history: History) -> History:
    """Return a history up to and including its last answer."""
    answers = [at for at, message in enumerate(history) if message.role == "assistant"]
    return history[: answers[-1] + 1] if answers else ()


def _digests(owner: ConversationOwner, history: History) -> list[str]:
    """Return the digest of a history up to each message, ignoring white space, which clients may change."""
    running, digests = sha256(json.dumps(asdict(owner)).encode()), []
    for message in history:
        running.update(_normalized(message))
        digests.append(running.hexdigest())
    return digests


def _message_digest(message: HistoryMessage) -> str:
    return sha256(_normalized(message)).hexdigest()[:16]


def _normalized(message: HistoryMessage) -> bytes:
    return json.dumps([message.role, " ".join(message.text.split())]).encode()
