"""Client sessions that accept only valid tools and results, and limit the size of a message."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY, INVALID_REQUEST, CallToolResult, InputRequest
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from packetgate.state.redaction import redacted, redacted_data
from packetgate.toolsets.servers.callers import Answer, current_caller
from packetgate.toolsets.servers.definitions import usable_tools
from packetgate.toolsets.servers.messages import readable_answer, without_nulls

PassQuestion = Callable[[InputRequest], Awaitable[Answer]]
"""Callback that returns the client's answer to a server's question."""
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
        self.pass_question: PassQuestion

    async def dispatch_input_request(self, ctx: ClientRequestContext, request: InputRequest) -> Answer:
        """Return the client's answer to a question of the server, in each protocol."""
        return await self.pass_question(request)

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
        params = self._with_capabilities(method, params)
        try:
            answer: dict[str, Any] = await super().send_raw_request(method, params, opts, **inner)
        except MCPError as error:  # some servers refuse an unknown version, and name theirs in the error
            named = {*_VERSION.findall(f"{error.error.message} {error.error.data}")} & {*HANDSHAKE_PROTOCOL_VERSIONS}
            others = named - {(params or {}).get("protocolVersion")}
            if method != "initialize" or not others:
                raise MCPError(error.code, redacted(error.message), redacted_data(error.data)) from None
            params = {**(params or {}), "protocolVersion": max(others)}
            answer = await super().send_raw_request(method, params, opts, **inner)
        check = partial(validate_server_result, method, self._session.protocol_version or "")
        if method == "tools/call":
            return readable_answer(answer, check)
        answer = without_nulls(answer)
        if "inputRequests" in answer:
            raise MCPError(INVALID_REQUEST, f"the server asks a question in {method}: only calls support questions")
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

    def _with_capabilities(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return parameters with the capabilities of the client of the handshake or call."""
        meta, passed, key = (
            (params or {}).get("_meta") or {},
            current_caller().capabilities,
            CLIENT_CAPABILITIES_META_KEY,
        )
        if method == "initialize" and params:
            return {**params, "capabilities": {**params["capabilities"], **passed}}
        if method == "tools/call" and params and key in meta:
            return {**params, "_meta": {**meta, key: {**meta[key], **passed}}}
        return params

    async def run(self, *handlers: Any, **options: Any) -> None:
        try:
            await super().run(*handlers, **options)
        finally:
            self._session.has_ended = True


class BoundedTransport(ClientTransport):
    """A transport that opens bounded sessions."""

    def __init__(self, inner: ClientTransport, pass_question: PassQuestion) -> None:
        self.inner = inner
        self._pass_question = pass_question
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
            if self.session is not None:
                self.session.pass_question = self._pass_question
            yield opened

    async def close(self) -> None:
        """Close the inner transport."""
        await self.inner.close()  # type: ignore[no-untyped-call]
