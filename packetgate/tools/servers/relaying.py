"""Relay progress and log messages of a server to the caller."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Relay:
    """Receives progress and log messages, without secrets."""

    progress: Callable[[float, float | None, str | None], Awaitable[None]]
    log: Callable[[str, str, str | None], Awaitable[None]]
    """Arguments: message, level, logger."""


_relay: ContextVar[Relay | None] = ContextVar("relay", default=None)


@contextmanager
def relayed_to(relay: Relay) -> Iterator[None]:
    """Relay what belongs to the calls in this context."""
    token = _relay.set(relay)
    try:
        yield
    finally:
        _relay.reset(token)


@dataclass
class Listeners:
    """The pending calls of one server.

    A log message does not name its call, so it is dropped while several calls are pending.
    """

    waiting: list[Relay | None] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def listening(self) -> Iterator[Relay | None]:
        """Register the call in this context; yield its relay."""
        relay = _relay.get()
        self.waiting.append(relay)
        try:
            yield relay
        finally:
            self.waiting.remove(relay)
            self._changed.set()

    async def gone(self, within_s: float) -> None:
        """Wait until no call is pending, at most `within_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.waiting:
                    self._changed.clear()
                    await self._changed.wait()

    @property
    def only(self) -> Relay | None:
        """The relay of the only pending call; None if there is none, or several."""
        return self.waiting[0] if len(self.waiting) == 1 else None
