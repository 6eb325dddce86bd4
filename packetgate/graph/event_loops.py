"""An event loop for synchronous callers, and tools for graphs that run on any event loop."""

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, TypeVar

from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.toolsets.servers.hub import McpHub

_T = TypeVar("_T")


class LoopThread:
    """An event loop in its own thread, started on first use: synchronous code runs coroutines on it.

    The thread ends with `close`, or when the object is garbage.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._starting = threading.Lock()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine with the caller's context variables, and return its result."""
        with self._starting:
            if self._loop is None or self._process != os.getpid():  # a fork does not copy threads
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=_run_until_stopped, args=[self._loop], name="packetgate", daemon=True).start()
                weakref.finalize(self, _stop, self._loop, self._process).atexit = False
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
        return running.result()

    def close(self, cleanup: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `cleanup` on the thread, if it was started, and end it."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None and self._process == os.getpid():
            asyncio.run_coroutine_threadsafe(cleanup(), loop).result()
            _stop(loop, self._process)


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, process: int) -> None:
    if process == os.getpid() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)


class LoopTools:
    """A toolbox that opens a hub on first use for each event loop: MCP sessions belong to their loop."""

    def __init__(self, make: Callable[[], Awaitable[McpHub]]) -> None:
        """`make` returns a hub that is not yet entered."""
        self._make = make
        self._hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[McpHub]] = (
            weakref.WeakKeyDictionary()
        )

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        """Return the available tools."""
        return await (await self._hub()).catalogue(wait_for_all=wait_for_all, called=called)

    @property
    def last_catalogue(self) -> Catalogue:
        """The last known tools."""
        hub = self._ready_hub()
        return hub.last_catalogue if hub else Catalogue()

    def health(self) -> tuple[ServerHealth, ...]:
        """Return the state of every server."""
        hub = self._ready_hub()
        return hub.health() if hub else ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name."""
        return await (await self._hub()).call(tool_name, params, idempotency_key)

    async def aclose(self) -> None:
        """Close the running loop's hub."""
        hub, opening = self._ready_hub(), self._hubs.pop(asyncio.get_running_loop(), None)
        if hub:
            await hub.__aexit__(None, None, None)
        elif opening:
            opening.cancel()

    async def _hub(self) -> McpHub:
        loop = asyncio.get_running_loop()
        opening = self._hubs.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):

            async def enter() -> McpHub:
                return await (await self._make()).__aenter__()

            opening = self._hubs[loop] = loop.create_task(enter())
        return await asyncio.shield(opening)

    def _ready_hub(self) -> McpHub | None:
        task = self._hubs.get(asyncio.get_running_loop())
        return task.result() if task and task.done() and not task.cancelled() and task.exception() is None else None
