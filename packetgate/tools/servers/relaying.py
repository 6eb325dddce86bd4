"""What a server tells in the middle of a call, handed on to whoever made the call."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Relay:
    """Where it goes. Texts are without secrets."""

    progress: Callable[[float, float | None, str | None], Awaitable[None]]
    log: Callable[[str, str, str | None], Awaitable[None]]
    """Takes the message, its level and its logger."""


_relay: ContextVar[Relay | None] = ContextVar("relay", default=None)


@contextmanager
def relayed_to(relay: Relay) -> Iterator[None]:
    """Say where what is told goes that belongs to the calls made within."""
    token = _relay.set(relay)
    try:
        yield
    finally:
        _relay.reset(token)


@dataclass
class Listeners:
    """Who waits for an answer of one server.

    A log message does not say which call it belongs to: where several wait, it goes to none of them.
    """

    waiting: list[Relay | None] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def listening(self) -> Iterator[Relay | None]:
        """Have the call that is made within hear what its server tells."""
        relay = _relay.get()
        self.waiting.append(relay)
        try:
            yield relay
        finally:
            self.waiting.remove(relay)
            self._changed.set()

    async def gone(self, within_s: float) -> None:
        """Wait until nobody waits any more, but no longer than so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.waiting:
                    self._changed.clear()
                    await self._changed.wait()

    @property
    def only(self) -> Relay | None:
        """The one that a message can only be for; None where there is none, or where there are several."""
        return self.waiting[0] if len(self.waiting) == 1 else None
