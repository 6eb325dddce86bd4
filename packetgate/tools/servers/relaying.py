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
    """Within the block, send the progress and log messages of its calls to `relay`."""
    token = _relay.set(relay)
    try:
        yield
    finally:
        _relay.reset(token)


@dataclass
class PendingCalls:
    """The pending calls of one server.

    A log message does not name its call, so it is dropped while several calls are pending.
    """

    _relays: list[Relay | None] = field(default_factory=list)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def pending(self) -> Iterator[Relay | None]:
        """Register the call in this context; yield its relay."""
        relay = _relay.get()
        self._relays.append(relay)
        try:
            yield relay
        finally:
            self._relays.remove(relay)
            self._ended.set()

    async def wait_until_none(self, timeout_s: float) -> None:
        """Wait until no call is pending, at most `timeout_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._relays:
                    self._ended.clear()
                    await self._ended.wait()

    @property
    def only(self) -> Relay | None:
        """The relay of the only pending call; None if there is none, or several."""
        return self._relays[0] if len(self._relays) == 1 else None
