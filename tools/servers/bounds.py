"""Bounds on what a server answers, drawn before it is parsed: the parsing is on the event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.methods import validate_server_result

from tools.servers.content import MAX_PARTS
from tools.servers.listing import RawTool, usable


class BoundedSession(ClientSession):
    """A session that sees no more of an answer than can be used."""

    def __init__(self, read_stream: Any, write_stream: Any, **options: Any) -> None:
        """Take what `ClientSession` takes."""
        super().__init__(dispatcher=_BoundedDispatcher(read_stream, write_stream, session=self), **options)
        self.left_out: list[str] = []
        """Why tools of the last list are not there, a phrase each."""
        self.has_ended = False
        """Whether the server is gone: what is called then is not sent."""


class _BoundedDispatcher(JSONRPCDispatcher[TransportContext]):
    def __init__(self, read_stream: Any, write_stream: Any, session: BoundedSession) -> None:
        super().__init__(read_stream, write_stream)
        self._session = session
        self._taken: set[str] = set()
        """Names of the tools on the pages of the list so far."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **inner: Any
    ) -> dict[str, Any]:
        answer = await super().send_raw_request(method, params, opts, **inner)
        if method == "tools/call" and isinstance(answer.get("content"), list):
            return {**answer, "content": _first_of(answer["content"])}
        if method == "tools/list" and isinstance(answer.get("tools"), list):
            if not (params or {}).get("cursor"):
                self._taken, self._session.left_out = set(), []
            check = partial(self._check, answer)
            tools, left_out = await asyncio.to_thread(usable, answer["tools"], self._taken, check)
            self._session.left_out += left_out
            return {**answer, "tools": tools}
        return answer

    async def run(self, *handlers: Any, **options: Any) -> None:
        try:
            await super().run(*handlers, **options)
        finally:
            self._session.has_ended = True

    def _check(self, page: dict[str, Any], tool: RawTool) -> None:
        version = self._session.protocol_version
        if version is not None:
            validate_server_result("tools/list", version, {**page, "tools": [tool]})


def _first_of(parts: list[Any]) -> list[Any]:
    more = len(parts) - MAX_PARTS
    if more <= 0:
        return parts
    return [*parts[:MAX_PARTS], {"type": "text", "text": f"[cut here: {more:,} more parts]"}]


class BoundedTransport(ClientTransport):
    """A transport whose sessions are bounded."""

    def __init__(self, inner: ClientTransport) -> None:
        self._inner = inner
        self.legacy_only = inner.legacy_only
        self.session: BoundedSession | None = None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Open a session as the inner transport does."""
        options = TransportOptions(session_class=BoundedSession)
        async with self._inner.connect_session(transport_options=options, **session) as opened:
            self.session = opened if isinstance(opened, BoundedSession) else None
            yield opened

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()  # type: ignore[no-untyped-call]
