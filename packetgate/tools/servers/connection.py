"""The connection to one MCP server. Its failures do not affect other servers."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
from fastmcp import Client
from fastmcp.client.logging import default_log_handler
from fastmcp.client.progress import ProgressHandler
from fastmcp.client.transports import ClientTransport
from fastmcp.exceptions import ToolError
from fastmcp.telemetry import suppress_fastmcp_telemetry
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    LoggingMessageNotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ServerNotification,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from packetgate.state.base import ms_since
from packetgate.state.errors import (
    ConfigError,
    LostCallError,
    ServerError,
    SessionRefusedError,
    TimedOutCallError,
)
from packetgate.state.printing import printable
from packetgate.state.redaction import redacted
from packetgate.state.routing import ToolResult
from packetgate.tools.servers.content import parse_tool_answer
from packetgate.tools.servers.messages import MAX_ANSWER_PARTS, TransportFailure, failure_of
from packetgate.tools.servers.relaying import PendingCalls, Relay
from packetgate.tools.servers.results import Keep, to_result_async
from packetgate.tools.servers.server import Server
from packetgate.tools.servers.session import BoundedTransport, CallTimeoutError
from packetgate.tools.servers.specs import spec_of
from packetgate.tools.servers.stdio import ServerLog, StrayOutputError
from packetgate.tools.servers.stored_listings import StoredListing, StoredListings
from packetgate.tools.spec.default_arguments import ServerFolder
from packetgate.tools.spec.descriptions import META
from packetgate.tools.spec.tool_spec import ToolSpec

CONNECT_TIMEOUT_S = 120.0
"""Longest start of a server, in seconds: `npx` and `uvx` may have to install it."""
CALL_TIMEOUT_S = 60.0
BACKOFF_S = (0.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before each attempt to reconnect to a failed server; the last value repeats."""
MAX_PROBLEM = 300
"""Longest reason for a failure, in characters."""
MAX_INSTRUCTIONS = 500
"""Longest part of a server's instructions that is used, in characters."""
_PENDING_S = 2.0
"""Longest wait for pending calls before a session is replaced, in seconds."""
_PING_S = 5.0
"""Time-out of a ping, in seconds."""
_RETRY_S = 0.5
"""Shortest wait before a retry, in seconds."""
_REFUSED = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 428, 429, 431, 451})
"""Statuses of requests that were refused before they ran."""
_BUSY = frozenset({429, 502, 503, 504})
"""Statuses after which a read is retried."""
_BROKEN = (
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    httpx2.HTTPError,
    OSError,
    RuntimeError,
)
"""Exceptions of a broken connection, including `TimeoutError`."""

logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # otherwise each stray line causes a traceback


@dataclass(frozen=True)
class ConnectionOptions:
    """Options of a connection, except its transport."""

    trusted: bool = False
    """Whether the annotations of the server's tools may lower the tools' risk."""
    timeout_s: float | None = None
    """Time-out of a call; None: the default."""
    log: ServerLog | None = None
    conceal: Callable[[str], str] = str
    """Removes secrets from messages."""
    digest: Callable[[], str] = str
    """Returns a digest that identifies the server's configuration."""
    ground: Callable[[], ServerFolder | None] = lambda: None
    """Returns the folder that the server works on; None if unknown."""
    offers: Callable[[str], bool] = lambda _tool: True
    """Returns whether the user's configuration offers a tool."""
    keep: Keep | None = None
    """Stores long texts and returns a handle."""
    keep_file: Keep | None = None
    """Stores attachments and returns a handle."""
    listings: StoredListings | None = None
    """Stores the tools for later processes."""


class Connection(Server):
    """A server reached by MCP over one persistent session."""

    def __init__(self, name: str, transport: Callable[[], ClientTransport], **options: Any) -> None:
        """Args:
        transport: opens a new transport for each session.
        options: fields of `ConnectionOptions`.
        """
        super().__init__(name)
        self._transport = transport
        self._options = ConnectionOptions(**options)
        self._timeout_s = self._options.timeout_s or CALL_TIMEOUT_S
        self._opening = asyncio.Lock()
        self._client: Client[BoundedTransport] | None = None
        self._calls = PendingCalls()
        self._attempts = 0
        self._failed_at = 0.0
        self._suspected = False
        self._foreign_problem = ""
        """The part of `problem` that is the server's or the SDK's text."""
        self._changes = self._listed = 0
        """Number of tool list changes so far, and as of the last list."""

    @property
    def suspected(self) -> bool:
        """Whether a call timed out, and the server has not been pinged since."""
        return self._suspected and self.state == "ready"

    @property
    def may_retry(self) -> bool:
        """Whether the connection ended, or failed and the back-off is over."""
        session = self._client.transport.session if self._client else None
        if self.state == "ready":
            return session is not None and session.has_ended
        rest = BACKOFF_S[min(self._attempts, len(BACKOFF_S)) - 1] if self._attempts else 0.0
        return self.state == "failed" and time.monotonic() - self._failed_at >= rest

    @property
    def stale(self) -> bool:
        """Whether the tool list is out of date."""
        return self._changes != self._listed

    def client(self) -> Client[Any] | None:
        """Return the open session, for prompts and resources; None if there is none."""
        return self._client if self.state == "ready" else None

    async def connect(self, instead_of: int) -> None:
        """Replace the session with that number, unless another caller did."""
        async with self._opening:
            if self.session == instead_of:
                if self.state == "ready":  # the session is refused, and so are the pending calls
                    await self._calls.wait_until_none(_PENDING_S)
                await self._open()

    async def revive(self) -> None:
        """Open a new session if the server is gone or hangs, or wait for a pending one."""
        async with self._opening:
            if self.suspected:
                self._suspected = False
                if not await self._responds():
                    self.fail(ServerError(f"it hung: no answer within {self._timeout_s:g} s, and none to a ping"))
            if self.may_retry:
                await self._open()

    async def refresh(self) -> None:
        """List the tools again; until then, the last known tools are used."""
        try:
            await self._list()
        except (*_BROKEN, MCPError, ValidationError) as error:
            if isinstance(error, _BROKEN) or (isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED):
                self.fail(error)
            else:
                self.problem = f"its changed tools could not be listed: {self._cause(error)}"

    async def recall(self) -> None:
        """Load the tools that an earlier process stored."""
        with contextlib.suppress(ConfigError):  # starting the server reports what is wrong with its entry
            self.stored = await asyncio.to_thread(self._load_stored)

    async def close(self) -> None:
        """End the session, and a server process that was started for it."""
        client, self._client = self._client, None
        if client is not None:
            # a broken session raises its error again on closing; `problem` has it already
            with contextlib.suppress(*_BROKEN, MCPError, ValueError):
                await client.close()  # type: ignore[no-untyped-call]

    def fail(self, error: BaseException) -> None:
        """Mark the server as failed, with the error as its problem."""
        self.state = "failed"
        self.specs = ()
        self.on_change()
        self._attempts += 1
        self._failed_at = time.monotonic()
        self.problem = self._foreign_problem = self._cause(error)
        if self._options.log is not None:
            self.problem += f"; its output is in {self._options.log.label}"

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's name for it; raises as `Server.call` does."""
        client = self._client
        if client is None or self.state != "ready":
            problem = self.problem or "it is still starting"
            raise ServerError(f"server {self.name!r} is not available: {problem}", self._foreign_problem)
        started, meta = time.perf_counter(), {META: idempotency_key} if idempotency_key else None
        with self._calls.pending() as relay:  # a new session waits for this, so that a ping still uses the old one
            try:
                with suppress_fastmcp_telemetry():  # its spans repeat ours, and contain the texts of failed tools
                    answer = await client.call_tool_mcp(tool, params, self._progress(relay), meta=meta)
            except CallTimeoutError as error:
                self._suspected = True
                raise TimedOutCallError(f"server {self.name!r} gave no answer within {error}") from error
            except MCPError as error:
                await self._raise_if_lost(client, error)
                message = self._options.conceal(error.error.message)
                return await to_result_async(message, None, ms_since(started), is_error=True)
            except ToolError as error:
                return await to_result_async(str(error), None, ms_since(started), is_error=True)
            except _BROKEN as error:
                raise self._went_away(client, error) from error
            except ValidationError as error:
                cause = self._cause(error)
                raise LostCallError(f"server {self.name!r} violated the protocol: {cause}", cause) from error
        took = ms_since(started)
        parsed = await parse_tool_answer(answer.content, answer.structured_content, self._options.keep_file)
        return await to_result_async(
            parsed.text,
            parsed.structured,
            took,
            is_error=bool(answer.is_error),
            cut=len(answer.content) > MAX_ANSWER_PARTS,
            keep=self._options.keep,
            attachments=parsed.attachments,
            parts=parsed.parts,
            meta=answer.meta,
        )

    async def _raise_if_lost(self, client: Client[BoundedTransport], error: MCPError) -> None:
        """Raise the error for a call without an answer; return if the server answered it with an error."""
        cause, server = self._cause(error), f"server {self.name!r}"
        if await self._forgot_session(client, error):
            raise SessionRefusedError(f"{server} no longer knows the session", cause) from error
        failure = failure_of(error)
        match failure:
            case None:
                if _is_closed(error):
                    raise self._went_away(client, error) from error
            case TransportFailure(kind="broken"):
                raise self._went_away(client, error) from error
            case TransportFailure(kind="unsent"):
                self._fail_session(client, error)
                raise ServerError(f"{server} cannot be reached: {cause}", cause, retry_after_s=0) from error
            case TransportFailure(kind="unreadable"):
                raise LostCallError(f"{server} gave no usable answer: {cause}", cause) from error
            case TransportFailure(status=status):
                retry_after_s = max(_RETRY_S, failure.retry_after_s or 0) if status in _BUSY else None
                kind = ServerError if status in _REFUSED else LostCallError
                raise kind(f"{server} answered {cause}", cause, retry_after_s=retry_after_s) from error

    async def _forgot_session(self, client: Client[BoundedTransport], error: MCPError) -> bool:
        """Whether the server refused the session, and so did not run the call: then it refuses a ping as well.

        The ping must get the same error, unless the error names the session or has the status for it.
        """
        failure = failure_of(error)
        refused = failure is None or (
            failure.kind == "http" and 400 <= failure.status < 500 and failure.status not in _BUSY
        )
        if not refused or error.error.code == METHOD_NOT_FOUND or _is_closed(error):
            return False
        if not client.transport.is_remote or client.initialize_result is None:
            return False
        try:
            refusal = await self._ping(client)
        except _BROKEN:
            return False
        gone = failure is not None and failure.status in {404, 410}
        names_session = gone or "session" in error.error.message.lower()
        return refusal is not None and (
            names_session or (refusal.code, refusal.message) == (error.error.code, error.error.message)
        )

    async def _ping(self, client: Client[Any]) -> Any:
        try:
            async with asyncio.timeout(min(self._timeout_s, _PING_S)):
                await client.session.send_ping()
        except MCPError as error:
            return error.error
        return None

    async def _responds(self) -> bool:
        if self._client is None:
            return False
        try:
            await self._ping(self._client)
        except _BROKEN:
            return False
        return True

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        match message:
            case ToolListChangedNotification():
                self._changes += 1
                self.on_change()
            case PromptListChangedNotification() | ResourceListChangedNotification():
                self.other_changes += 1
                self.on_change()
            case StrayOutputError(line=line) if self._options.log is not None:
                await asyncio.to_thread(self._options.log.write, line + b"\n")

    async def _on_log(self, message: LoggingMessageNotificationParams) -> None:
        relay = self._calls.only
        if relay is None:
            await default_log_handler(message)
            return
        text = message.data if isinstance(message.data, str) else json.dumps(message.data, default=str)
        await relay.log(redacted(self._options.conceal(text)), message.level, message.logger)

    def _progress(self, relay: Relay | None) -> ProgressHandler | None:
        if relay is None:
            return None

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await relay.progress(progress, total, redacted(self._options.conceal(message)) if message else None)

        return report

    async def _open(self) -> None:
        self.session += 1
        self.state, self._suspected = "connecting", False
        await self.close()
        try:
            transport = await asyncio.to_thread(self._transport)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._start(transport)
        except asyncio.CancelledError:  # the turn that waited was cancelled; the next turn tries again
            self.state, self.problem = "failed", "it was stopped while starting"
            raise
        except (*_BROKEN, ServerError, MCPError, ValueError) as error:
            self.fail(error)
        else:
            self._attempts = 0

    async def _start(self, transport: ClientTransport) -> None:
        self._client = Client(
            transport if isinstance(transport, BoundedTransport) else BoundedTransport(transport),
            init_timeout=CONNECT_TIMEOUT_S,
            timeout=self._timeout_s,
            message_handler=self._on_message,
            log_handler=self._on_log,
        )
        await self._client.__aenter__()  # type: ignore[no-untyped-call]
        await self._list()

    async def _list(self) -> None:
        if self._client is None:
            raise ServerError(f"server {self.name!r} is not connected")
        client, changes = self._client, self._changes
        tools = await client.list_tools()
        introduction = client.initialize_result or client.session.discover_result
        instructions = (introduction.instructions if introduction else None) or ""
        listing = StoredListing(tools=tools, about=" ".join(instructions.split())[:MAX_INSTRUCTIONS])
        specs = await asyncio.to_thread(self._specs_of, listing)
        if client is not self._client:
            return
        self.specs = specs
        self.state, self._listed = "ready", changes
        session = client.transport.session
        left_out, changed = (session.left_out, session.changed) if session else ([], [])
        switched_off = [
            f"{tool.name!r}: switched off in mcp.json" for tool in tools if not self._options.offers(tool.name)
        ]
        self.notes = (*(f"not offered: {note}" for note in (*left_out, *switched_off)), *changed)
        self.problem = "" if tools else "it offers no tools"
        if left_out:
            more = f", and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
            self.problem = f"not offered: {'; '.join(left_out[:3])}{more}"
        if self._options.listings:
            await asyncio.to_thread(self._options.listings.save, self.name, self._options.digest(), listing)

    def _specs_of(self, listing: StoredListing) -> tuple[ToolSpec, ...]:
        options = self._options
        about: dict[str, Any] = {
            "trusted": options.trusted,
            "about": listing.about,
            "server_digest": options.digest(),
            "ground": options.ground(),
        }
        return tuple(spec_of(self.name, tool, **about) for tool in listing.tools if options.offers(tool.name))

    def _load_stored(self) -> tuple[ToolSpec, ...]:
        listings = self._options.listings
        listing = listings.load(self.name, self._options.digest()) if listings else None
        return self._specs_of(listing) if listing else ()

    def _went_away(self, client: Client[BoundedTransport], error: BaseException) -> LostCallError:
        self._fail_session(client, error)
        cause = self._cause(error)
        problem = self.problem if self.state == "failed" else cause
        return LostCallError(f"server {self.name!r} disconnected during the call: {problem}", cause)

    def _fail_session(self, client: Client[BoundedTransport], error: BaseException) -> None:
        if client is self._client and self.state == "ready":
            self.fail(error)

    def _cause(self, error: BaseException) -> str:
        flaw = self._client.transport.flaw if self._client else ""
        text = flaw or str(error).strip() or type(error).__name__
        line = text.splitlines()[0].removeprefix("Client failed to connect: ")
        return printable(redacted(self._options.conceal(line)))[:MAX_PROBLEM]


def _is_closed(error: MCPError) -> bool:
    """Whether the SDK reports a broken connection; a server may use the same code."""
    closed = error.error.message == "Connection closed" or error.error.message.startswith("SSE stream ")
    return closed and error.error.code == CONNECTION_CLOSED
