"""The connection to one MCP server. Its failures do not affect other servers."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.logging import default_log_handler
from fastmcp.client.progress import ProgressHandler
from fastmcp.client.transports import ClientTransport
from fastmcp.exceptions import ToolError
from fastmcp.telemetry import suppress_fastmcp_telemetry
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
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
from packetgate.tools.servers.bounds import BoundedTransport, CallTimeoutError
from packetgate.tools.servers.content import MAX_PARTS, read_answer
from packetgate.tools.servers.http import RemoteTransport
from packetgate.tools.servers.messages import failure_of
from packetgate.tools.servers.refusals import LOST, forgot_session, pinged, unanswered
from packetgate.tools.servers.relaying import Listeners, Relay
from packetgate.tools.servers.results import Keep, to_result, to_result_aside
from packetgate.tools.servers.server import Server
from packetgate.tools.servers.specs import spec_of
from packetgate.tools.servers.stdio import NoMessageError, ServerLog
from packetgate.tools.servers.stored_listings import StoredListing, StoredListings
from packetgate.tools.spec.descriptions import META
from packetgate.tools.spec.standing import Ground
from packetgate.tools.spec.tool_spec import ToolSpec

CONNECT_TIMEOUT_S = 120.0
"""Longest start of a server, in seconds: `npx` and `uvx` may have to install it."""
CALL_TIMEOUT_S = 60.0
BACKOFF_S = (0.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before each attempt to reconnect to a failed server; the last value repeats."""
MAX_PROBLEM = 300
"""Longest reason for a failure, in characters."""
_CLOSED = ("Connection closed", "SSE stream ")
"""Prefixes of the SDK's messages for a broken connection."""
_UNDER_WAY_S = 2.0
"""Longest wait for pending calls before a session is replaced, in seconds."""
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
"""Otherwise each line that a server prints between messages causes a traceback; it goes to the server's log."""


ABOUT_CHARACTERS = 500
"""Kept characters of a server's instructions."""


class Connection(Server):
    """A server reached by MCP over one persistent session."""

    def __init__(
        self,
        name: str,
        transport: Callable[[], ClientTransport],
        *,
        trusted: bool,
        timeout_s: float | None = None,
        log: ServerLog | None = None,
        concealed: Callable[[str], str] = str,
        digest: Callable[[], str] = str,
        ground: Callable[[], Ground | None] = lambda: None,
        offers: Callable[[str], bool] = lambda _tool: True,
        keep: Keep | None = None,
        keep_file: Keep | None = None,
        listings: StoredListings | None = None,
    ) -> None:
        """Args:
        transport: opens a new transport for each session.
        trusted: whether the annotations of its tools are believed.
        concealed: removes secrets from messages.
        digest: identifies the server.
        ground: the folder that the server works on.
        offers: whether the user has a tool offered.
        keep: stores long texts and returns a handle.
        keep_file: stores attachments and returns a handle.
        listings: stores the tools for later processes.
        """
        super().__init__(name)
        self._listings = listings
        self._opening = asyncio.Lock()
        self._transport = transport
        self._trusted = trusted
        self._timeout_s = timeout_s or CALL_TIMEOUT_S
        self._log = log
        self._concealed = concealed
        self._digest = digest
        self._ground = ground
        self._offers = offers
        self._keep = keep
        self._keep_file = keep_file
        self._client: Client[BoundedTransport] | None = None
        self._listeners = Listeners()
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

    async def connect(self, instead_of: int) -> None:
        """Replace the session with that number, unless another caller did."""
        async with self._opening:
            if self.session == instead_of:
                if self.state == "ready":  # the session is refused, and so are the calls that are under way
                    await self._listeners.gone(_UNDER_WAY_S)
                await self._open()

    async def revive(self) -> None:
        """Open a new session if the server is gone or hangs, or wait for a pending one."""
        async with self._opening:
            if self.suspected:
                self._suspected = False
                if not await self._still_responds():
                    self.fail(ServerError(f"it hung: no answer within {self._timeout_s:g} s, and none to a ping"))
            if self.may_retry:
                await self._open()

    async def refresh(self) -> None:
        """List the tools again; until then, the last known ones hold."""
        try:
            await self._list()
        except (*LOST, MCPError, ValidationError) as error:
            if isinstance(error, LOST) or (isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED):
                self.fail(error)
            else:
                self.problem = f"its tools changed and could not be listed anew: {self._cause(error)}"

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's name for it; raises as `Server.call` does."""
        client = self._client
        if client is None or self.state != "ready":
            problem = self.problem or "it is still starting"
            raise ServerError(f"server {self.name!r} is not there: {problem}", self._foreign_problem)
        started, meta = time.perf_counter(), {META: idempotency_key} if idempotency_key else None
        try:
            # FastMCP's spans repeat ours, and contain the texts of failed tools
            with suppress_fastmcp_telemetry(), self._listeners.listening() as relay:
                answer = await client.call_tool_mcp(tool, params, self._progress(relay), meta=meta)
        except CallTimeoutError as error:
            self._suspected = True
            raise TimedOutCallError(f"server {self.name!r} gave no answer within {error}") from error
        except MCPError as error:
            if await forgot_session(client, error, self._timeout_s):
                raise SessionRefusedError(
                    f"server {self.name!r} does not know its session any more", self._cause(error)
                ) from error
            if lost := self._loss(client, error):
                raise lost from error
            message = self._concealed(error.error.message)
            return await to_result_aside(message, None, ms_since(started), is_error=True)
        except ToolError as error:
            cause, took = redacted(str(error)), ms_since(started)
            return to_result(cause, None, took, is_error=True)
        except LOST as error:
            raise self._went_away(client, error) from error
        except ValidationError as error:
            cause = self._cause(error)
            raise LostCallError(f"server {self.name!r} answered against the protocol: {cause}", cause) from error
        took, cut, failed = ms_since(started), len(answer.content) > MAX_PARTS, bool(answer.is_error)
        read = await read_answer(answer.content, answer.structured_content, self._keep_file)
        how = {"is_error": failed, "cut": cut, "keep": self._keep, "attachments": read.attachments, "parts": read.parts}
        return await to_result_aside(read.text, read.structured, took, **how, meta=answer.meta)

    async def close(self) -> None:
        """End the session, and a server process that was started for it."""
        client, self._client = self._client, None
        if client is not None:
            # a broken session raises its error again on closing; `problem` has it already
            with contextlib.suppress(*LOST, MCPError, ValueError):
                await client.close()  # type: ignore[no-untyped-call]

    @property
    def stale(self) -> bool:
        """Whether the tools changed since they were last listed."""
        return self._changes != self._listed

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        match message:
            case ToolListChangedNotification():
                self._changes += 1
                self.on_change()
            case PromptListChangedNotification() | ResourceListChangedNotification():
                self.other_changes += 1
                self.on_change()
            case NoMessageError(printed=printed) if self._log is not None:
                await asyncio.to_thread(self._log.write, printed + b"\n")

    async def _open(self) -> None:
        self.session += 1
        self.state, self._suspected = "connecting", False
        await self.close()
        try:
            transport = await asyncio.to_thread(self._transport)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._start(transport)
        except asyncio.CancelledError:  # with the turn that waited for it; the next one tries again
            self.state, self.problem = "failed", "it was stopped while starting"
            raise
        except (*LOST, ServerError, MCPError, ValueError) as error:
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
        try:
            await self._client.__aenter__()  # type: ignore[no-untyped-call]
            await self._list()
        except (*LOST, MCPError) as error:
            other = transport.other_way() if isinstance(transport, RemoteTransport) else None
            if other is None:
                raise
            await self.close()
            try:
                await self._start(other)
            except (*LOST, MCPError):
                raise error from None  # what the server says to the way that the file names

    async def _list(self) -> None:
        if self._client is None:
            raise ServerError(f"server {self.name!r} is not connected")
        client, changes = self._client, self._changes
        tools = await client.list_tools()
        introduced = client.initialize_result or client.session.discover_result
        instructions = (introduced.instructions if introduced else None) or ""
        listing = StoredListing(tools, " ".join(instructions.split())[:ABOUT_CHARACTERS])
        specs = await asyncio.to_thread(self._specs_of, listing)
        if client is not self._client:
            return
        self.specs = tuple(specs)
        self.state, self._listed = "ready", changes
        session = client.transport.session
        left_out, changed = (session.left_out, session.changed) if session else ([], [])
        switched_off = (f"{tool.name!r}: switched off in mcp.json" for tool in tools if not self._offers(tool.name))
        self.notes = (*(f"not offered: {one}" for one in (*left_out, *switched_off)), *changed)
        self.problem = _not_offered(left_out) if left_out else "" if tools else "it offers no tools"

        if self._listings:
            await asyncio.to_thread(self._listings.save, self.name, self._digest(), listing)

    def _specs_of(self, listing: StoredListing) -> tuple[ToolSpec, ...]:
        about: dict[str, Any] = {
            "about": listing.about,
            "server_digest": self._digest(),
            "ground": self._ground(),
        }
        offered = [tool for tool in listing.tools if self._offers(tool.name)]
        return tuple(spec_of(self.name, tool, trusted=self._trusted, **about) for tool in offered)

    async def recall(self) -> None:
        """Load the tools that an earlier process stored."""
        with contextlib.suppress(ConfigError):  # starting the server says what is wrong with its entry
            self.stored = await asyncio.to_thread(self._recalled)

    def _recalled(self) -> tuple[ToolSpec, ...]:
        listing = self._listings.load(self.name, self._digest()) if self._listings else None
        return self._specs_of(listing) if listing else ()

    def client(self) -> Client[Any] | None:
        """Return the open session, for prompts and resources; None if there is none."""
        return self._client if self.state == "ready" else None

    async def _on_log(self, message: LoggingMessageNotificationParams) -> None:
        relay = self._listeners.only
        if relay is None:
            await default_log_handler(message)
            return
        text = message.data if isinstance(message.data, str) else json.dumps(message.data, default=str)
        await relay.log(redacted(self._concealed(text)), message.level, message.logger)

    def _progress(self, relay: Relay | None) -> ProgressHandler | None:
        if relay is None:
            return None

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            await relay.progress(progress, total, redacted(self._concealed(message)) if message else None)

        return tell

    def _loss(self, client: Client[BoundedTransport], error: MCPError) -> ServerError | None:
        failure, cause = failure_of(error), self._cause(error)
        if failure is None:  # the SDK's own
            closed = error.error.code == CONNECTION_CLOSED and error.error.message.startswith(_CLOSED)
            return self._went_away(client, error) if closed else None
        if failure.kind == "unsent":
            self._count_failed(client, error)
        return self._went_away(client, error) if failure.kind == "broken" else unanswered(self.name, failure, cause)

    async def _still_responds(self) -> bool:
        if self._client is None:
            return False
        try:
            await pinged(self._client, self._timeout_s)
        except LOST:
            return False
        return True

    def _went_away(self, client: Client[BoundedTransport], error: BaseException) -> LostCallError:
        self._count_failed(client, error)
        cause = self._cause(error)
        problem = self.problem if self.state == "failed" else cause
        return LostCallError(f"server {self.name!r} went away during the call: {problem}", cause)

    def _count_failed(self, client: Client[BoundedTransport], error: BaseException) -> None:
        if client is self._client and self.state == "ready":
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Mark the server as failed, with the error as its problem."""
        self.state = "failed"
        self.specs = ()
        self.on_change()
        self._attempts += 1
        self._failed_at = time.monotonic()
        self.problem = self._foreign_problem = self._cause(error)
        if self._log is not None:
            self.problem += f"; what it printed is in {self._log.called}"

    def _cause(self, error: BaseException) -> str:
        flaw = self._client.transport.flaw if self._client else ""
        text = flaw or str(error).strip() or type(error).__name__
        line = text.splitlines()[0].removeprefix("Client failed to connect: ")
        return printable(redacted(self._concealed(line)))[:MAX_PROBLEM]


def _not_offered(left_out: list[str]) -> str:
    others = f", and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
    return f"not offered: {'; '.join(left_out[:3])}{others}"
