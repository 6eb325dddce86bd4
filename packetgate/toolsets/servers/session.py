"""Client sessions that accept only valid tools and results, and limit the size of a message."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession, MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolResult
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from packetgate.toolsets.servers.definitions import usable_tools
from packetgate.toolsets.servers.messages import readable_answer, without_nulls

_VERSION = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


class BoundedSession(ClientSession):
    """A client session that returns only usable tools and results."""

    def __init__(self, read_stream: Any, write_stream: Any, **options: Any) -> None:
        """Accept the arguments of `ClientSession`."""
        super().__init__(dispatcher=_BoundedDispatcher(read_stream, write_stream, session=self), **options)
        self.definitions: dict[str, dict[str, Any]] = {}
        """The usable tools of the last list by name, as the server defines them."""
        self.left_out: list[str] = []
        """One phrase for each unusable tool of the last list."""
        self.changed: list[str] = []
        """One phrase for each tool of the last list whose schema was shortened."""
        self.has_ended = False
        """Whether the connection has ended, so that no call can be sent."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Accept every result; clients that rely on an output schema check the result themselves."""


class _BoundedDispatcher(JSONRPCDispatcher[TransportContext]):
    def __init__(self, read_stream: Any, write_stream: Any, session: BoundedSession) -> None:
        super().__init__(read_stream, write_stream)
        self._session = session
        self._names: set[str] = set()
        """Names of the tools on those pages of the list that were already read."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **inner: Any
    ) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await super().send_raw_request(method, params, opts, **inner)
        except MCPError as error:  # some servers refuse an unknown version, and name theirs in the error
            named = {*_VERSION.findall(f"{error.error.message} {error.error.data}")} & {*HANDSHAKE_PROTOCOL_VERSIONS}
            others = named - {(params or {}).get("protocolVersion")}
            if method != "initialize" or not others:
                raise
            params = {**(params or {}), "protocolVersion": max(others)}
            answer = await super().send_raw_request(method, params, opts, **inner)
        check = partial(validate_server_result, method, self._session.protocol_version or "")
        if method == "tools/call":
            return readable_answer(answer, check)
        answer = without_nulls(answer)
        if method != "tools/list" or not isinstance(answer.get("tools"), list):
            return answer
        if not (params or {}).get("cursor"):
            self._names, self._session.left_out, self._session.changed = set(), [], []
            self._session.definitions = {}
        tools, definitions, left_out, changed = await asyncio.to_thread(
            usable_tools, answer["tools"], self._names, lambda tool: check({**answer, "tools": [tool]})
        )
        self._session.definitions |= {definition["name"]: definition for definition in definitions}
        self._session.left_out += left_out
        self._session.changed += changed
        return {**answer, "tools": tools}

    async def run(self, *handlers: Any, **options: Any) -> None:
        try:
            await super().run(*handlers, **options)
        finally:
            self._session.has_ended = True


class BoundedTransport(ClientTransport):
    """A transport that opens bounded sessions."""

    def __init__(self, inner: ClientTransport) -> None:
        self.inner = inner
        self.legacy_only = inner.legacy_only
        self.session: BoundedSession | None = None
        """The session, once it is open."""

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Open a bounded session over the inner transport."""
        options = TransportOptions(session_class=BoundedSession)
        async with self.inner.connect_session(transport_options=options, **session) as opened:
            self.session = opened if isinstance(opened, BoundedSession) else None
            yield opened

    async def close(self) -> None:
        """Close the inner transport."""
        await self.inner.close()  # type: ignore[no-untyped-call]
