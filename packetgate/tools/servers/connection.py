"""The connection to one MCP server. Its failures do not affect other servers."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import httpx2
from fastmcp import Client
from fastmcp.client.transports import ClientTransport
from fastmcp.telemetry import suppress_fastmcp_telemetry
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    CallToolResult,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ServerNotification,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from packetgate.state.base import ms_since
from packetgate.state.errors import LostCallError, ServerError, SessionRefusedError, TimedOutCallError
from packetgate.state.printing import printable
from packetgate.state.redaction import redacted
from packetgate.state.routing import ToolResult
from packetgate.tools.risk.registry import Registry, launched_package
from packetgate.tools.servers.config import ServerConfig
from packetgate.tools.servers.confined import SANDBOX_ERRORS
from packetgate.tools.servers.content import result_of_answer
from packetgate.tools.servers.messages import transport_failure
from packetgate.tools.servers.results import to_result_async
from packetgate.tools.servers.server import Server, StoreContent
from packetgate.tools.servers.session import BoundedTransport
from packetgate.tools.servers.specs import spec_of
from packetgate.tools.servers.stdio import ServerLog, StrayOutputError
from packetgate.tools.spec.default_arguments import server_folder
from packetgate.tools.spec.descriptions import META
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of

CONNECT_TIMEOUT_S = 120.0
"""Longest start of a server, in seconds: `npx` and `uvx` may have to install it."""
CALL_TIMEOUT_S = 60.0
MAX_TIMEOUTS = 10
"""Longest total wait for a call whose server reports progress, as a multiple of the time-out."""
BACKOFF_S = (0.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before each attempt to reconnect to a failed server; the last value repeats."""
MAX_PROBLEM = 300
"""Longest text of a server's problem, in characters."""
MAX_INSTRUCTIONS = 500
"""Longest part of a server's instructions that is used, in characters."""
_PENDING_CALLS_S = 2.0
"""Longest wait for pending calls before a refused session is replaced, in seconds."""
_PING_TIMEOUT_S = 5.0
"""Time-out of a ping, in seconds."""
_MIN_RETRY_S = 0.5
"""Shortest wait before a retry, in seconds."""
_REFUSED_STATUSES = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 428, 429, 431, 451}
)
"""Statuses of requests that were refused before they ran."""
_BUSY_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses after which a read is retried."""
_CONNECTION_ERRORS = (
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    httpx2.HTTPError,
    OSError,
    RuntimeError,
)
"""Exceptions of a broken connection, including `TimeoutError`."""

ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Callback with the progress, the total and the message; the message has no secrets."""
_report: ContextVar[ReportProgress | None] = ContextVar("report", default=None)

logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # otherwise each stray line causes a traceback


@contextmanager
def report_progress_to(report: ReportProgress) -> Iterator[None]:
    """Pass the progress of calls within the block to `report`."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


class Connection(Server):
    """A server that is reached over MCP, in one persistent session."""

    def __init__(
        self,
        config: ServerConfig,
        transport: Callable[[], ClientTransport],
        *,
        log: ServerLog | None = None,
        store_text: StoreContent | None = None,
        store_file: StoreContent | None = None,
        registry: Registry | None = None,
    ) -> None:
        """Args:
        transport: opens a new transport for each session.
        store_text: stores long texts.
        store_file: stores attachments.
        registry: the known servers; None for a server in this process.
        """
        super().__init__(config.name)
        self._config = config
        self._transport = transport
        self._log = log
        self._store_text = store_text
        self._store_file = store_file
        self._registry = registry
        self._timeout_s = config.timeout_s or CALL_TIMEOUT_S
        self._open_lock = asyncio.Lock()
        self._client: Client[BoundedTransport] | None = None
        self._pending = 0
        """Number of pending calls."""
        self._call_ended = asyncio.Event()
        self._attempts = 0
        self._failed_at = 0.0
        self._may_hang = False
        """Whether a call timed out, and the server has not been pinged since."""
        self._foreign_problem = ""
        """The part of `problem` that is the server's or the SDK's text."""
        self._list_changes = 0
        """Number of changed tool lists that the server has announced."""

    @property
    def can_reconnect(self) -> bool:
        """Whether the connection ended, or failed and the back-off is over."""
        session = self._client.transport.session if self._client else None
        if self.state == "ready":
            return session is not None and session.has_ended
        rest = BACKOFF_S[min(self._attempts, len(BACKOFF_S)) - 1] if self._attempts else 0.0
        return self.state == "failed" and time.monotonic() - self._failed_at >= rest

    def client(self) -> Client[Any] | None:
        """Return the open MCP session, for prompts and resources; None if there is none."""
        return self._client if self.state == "ready" else None

    def maintenance(self, *, retry: bool) -> Coroutine[Any, Any, None] | None:
        """Return the work that the server needs now, or None."""
        if self.session == 0 or (self.can_reconnect and (retry or self.state == "ready")):
            return self.connect(self.session)
        if self.state == "ready" and self._may_hang:
            return self.reconnect_if_needed()
        return self._refresh() if self.state == "ready" and self.stale else None

    async def connect(self, old_session: int) -> None:
        """Replace the session with that number, unless another caller did."""
        async with self._open_lock:
            if self.session == old_session:
                if self.state == "ready":  # the server refuses the session, so its pending calls end soon
                    await self._wait_for_pending_calls()
                await self._open()

    async def reconnect_if_needed(self) -> None:
        """Open a new session if the server disconnected or hangs; wait if a session is being opened."""
        async with self._open_lock:
            if self._may_hang and self.state == "ready" and self._client is not None:
                self._may_hang = False
                try:
                    await self._ping(self._client)
                except _CONNECTION_ERRORS:
                    self.fail(
                        ServerError(
                            f"the server hung: it answered neither a call within {self._timeout_s:g} s nor a ping"
                        )
                    )
            if self.can_reconnect:
                await self._open()

    async def close(self) -> None:
        """End the session, and a server process that was started for it."""
        client, self._client = self._client, None
        if client is not None:
            # closing a broken session raises its error again, which `problem` already contains
            with suppress(*_CONNECTION_ERRORS, MCPError, ValueError):
                await client.close()  # type: ignore[no-untyped-call]

    def fail(self, error: BaseException) -> None:
        """Mark the server as failed, with the error as its problem."""
        self.specs = ()
        self._attempts += 1
        self._failed_at = time.monotonic()
        self._foreign_problem = self._cause(error)
        log = f"; its output is in {self._log.label}" if self._log else ""
        hint = ""
        if self.state == "connecting" and self._client is not None and (hint := self._client.transport.sandbox_hint):
            hint = f"; {hint}"
            if refused := self._client.transport.refused_hosts:
                self._foreign_problem = f"{self._foreign_problem}; no connection to {refused}"
        super().fail(ServerError(f"{self._foreign_problem}{log}{hint}"))

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's name for it; raises as `Server.call` does."""
        client, server = self._client, f"server {self.name!r}"
        if client is None or self.state != "ready":
            problem = self.problem or "the server is still starting"
            raise ServerError(f"{server} is not available: {problem}", self._foreign_problem)
        started, meta = time.perf_counter(), {META: idempotency_key} if idempotency_key else None
        self._pending += 1  # `connect` waits for this call, so that its ping still uses the old session
        try:
            answer = await self._receive_answer(client, tool, params, meta)
        except MCPError as error:
            await self._raise_if_unanswered(client, error)
            message = self._config.conceal(error.error.message)
            result = await to_result_async(message, None, ms_since(started), is_error=True)
            return _with_sandbox_hint(result, client)
        except _CONNECTION_ERRORS as error:
            raise self._disconnected_error(client, error) from error
        except ValidationError as error:
            cause = self._cause(error)
            raise LostCallError(f"{server} violated the protocol: {cause}", cause) from error
        finally:
            self._pending -= 1
            self._call_ended.set()
        result = await result_of_answer(answer, ms_since(started), self._store_text, self._store_file)
        return _with_sandbox_hint(result, client)

    async def _receive_answer(
        self, client: Client[Any], tool: str, params: dict[str, Any], meta: dict[str, Any] | None
    ) -> CallToolResult:
        """Return the server's answer. Each progress report extends the time-out."""
        report, now, timeout_s = _report.get(), asyncio.get_running_loop().time, self._timeout_s
        latest = now() + MAX_TIMEOUTS * timeout_s
        clock = asyncio.timeout(timeout_s)

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            with suppress(RuntimeError):  # the call has ended
                clock.reschedule(min(now() + timeout_s, latest))
            if report is not None:
                await report(progress, total, redacted(self._config.conceal(message)) if message else None)

        longest = (MAX_TIMEOUTS + 1) * timeout_s
        try:
            async with clock:
                with suppress_fastmcp_telemetry():  # FastMCP's spans contain texts of failed tools
                    return await client.call_tool_mcp(tool, params, on_progress, timeout=longest, meta=meta)
        except TimeoutError as error:
            if not clock.expired():
                raise
            self._may_hang = True
            waited_s = MAX_TIMEOUTS * timeout_s if now() >= latest else timeout_s
            raise TimedOutCallError(f"server {self.name!r} gave no answer within {waited_s:g} s") from error

    async def _raise_if_unanswered(self, client: Client[BoundedTransport], error: MCPError) -> None:
        """Raise if the call got no answer; return if the server answered it with an error."""
        cause, server = self._cause(error), f"server {self.name!r}"
        if await self._is_session_refused(client, error):
            raise SessionRefusedError(f"{server} no longer knows the session", cause) from error
        failure = transport_failure(error)
        if failure is None and not _is_connection_closed(error):
            return
        if failure is None or failure.kind == "broken":
            raise self._disconnected_error(client, error) from error
        if failure.kind == "unsent":
            self._fail_session(client, error)
            raise ServerError(f"{server} cannot be reached: {cause}", cause, retry_after_s=0) from error
        if failure.kind == "unreadable":
            raise LostCallError(f"{server} gave no usable answer: {cause}", cause) from error
        retry_after_s = max(_MIN_RETRY_S, failure.retry_after_s or 0) if failure.status in _BUSY_STATUSES else None
        kind = ServerError if failure.status in _REFUSED_STATUSES else LostCallError
        raise kind(f"{server} answered {cause}", cause, retry_after_s=retry_after_s) from error

    async def _is_session_refused(self, client: Client[BoundedTransport], error: MCPError) -> bool:
        """Whether the server refused the session, so that the call did not run: it refuses a ping in the same way."""
        failure = transport_failure(error)
        if failure is None:
            is_refusal = error.error.code != METHOD_NOT_FOUND and not _is_connection_closed(error)
        else:
            is_refusal = failure.kind == "http" and 400 <= failure.status < 500 and failure.status not in _BUSY_STATUSES
        if not is_refusal or not client.transport.is_remote or client.initialize_result is None:
            return False
        try:
            refusal = await self._ping(client)
        except _CONNECTION_ERRORS:
            return False
        if refusal is None or failure is not None:
            return refusal is not None and transport_failure(refusal) == failure
        return (refusal.error.code, refusal.error.message) == (error.error.code, error.error.message)

    async def _ping(self, client: Client[Any]) -> MCPError | None:
        """Return the error with which the server answers a ping, or None."""
        try:
            async with asyncio.timeout(min(self._timeout_s, _PING_TIMEOUT_S)):
                await client.session.send_ping()
        except MCPError as error:
            return error
        return None

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        match message:
            case ToolListChangedNotification():
                self._list_changes += 1
                self.stale = True
                self.on_change()
            case PromptListChangedNotification() | ResourceListChangedNotification():
                self.prompt_and_resource_changes += 1
                self.on_change()
            case StrayOutputError(line=line) if self._log is not None:
                await asyncio.to_thread(self._log.write, line + b"\n")

    async def _wait_for_pending_calls(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PENDING_CALLS_S):
                while self._pending:
                    self._call_ended.clear()
                    await self._call_ended.wait()

    async def _open(self) -> None:
        self.session += 1
        self.state, self._may_hang = "connecting", False
        await self.close()
        try:
            transport = await asyncio.to_thread(self._transport)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self._client = Client(
                    transport if isinstance(transport, BoundedTransport) else BoundedTransport(transport),
                    init_timeout=CONNECT_TIMEOUT_S,
                    timeout=self._timeout_s,
                    message_handler=self._on_message,
                )
                await self._client.__aenter__()  # type: ignore[no-untyped-call]
                await self._list_tools(self._client)
        except asyncio.CancelledError:  # the turn that waited was cancelled; the next turn tries again
            self.state, self.problem = "failed", "the start was cancelled"
            raise
        except (*_CONNECTION_ERRORS, ServerError, MCPError, ValueError) as error:
            self.fail(error)
        else:
            self._attempts = 0

    async def _refresh(self) -> None:
        """List the tools again; until then, the last known tools are used."""
        try:
            if self._client is not None:
                await self._list_tools(self._client)
        except _CONNECTION_ERRORS as error:
            self.fail(error)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED:
                self.fail(error)
            else:
                self.problem = f"the changed tools could not be listed: {self._cause(error)}"

    async def _list_tools(self, client: Client[BoundedTransport]) -> None:
        changes = self._list_changes
        tools = await client.list_tools()
        introduction = client.initialize_result or client.session.discover_result
        instructions = (introduction and introduction.instructions) or ""
        version = client.server_info.version if client.server_info else ""
        specs = await asyncio.to_thread(self._specs_of, tools, instructions, version)
        if client is not self._client:
            return
        self.specs = specs
        self.state, self.stale = "ready", changes != self._list_changes
        session = client.transport.session
        left_out, changed = (session.left_out, session.changed) if session else ([], [])
        switched_off = [
            f"{tool.name!r}: switched off in mcp.json" for tool in tools if not self._config.offers(tool.name)
        ]
        self.tool_notes = (*(f"not offered: {note}" for note in (*left_out, *switched_off)), *changed)
        self.problem = "" if tools else "the server offers no tools"
        if left_out:
            more = f", and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
            self.problem = f"not offered: {'; '.join(left_out[:3])}{more}"

    def _specs_of(self, tools: list[Tool], instructions: str, version: str) -> tuple[ToolSpec, ...]:
        entry = self._config.resolved_entry()
        registry = self._registry or Registry()
        folder = Path(str(entry.get("cwd") or "."))
        launched = launched_package(entry, folder)
        depends = launched is None and _depends_on_folder(entry, folder)
        identity = [entry, str(folder.absolute())] if depends else entry
        options: dict[str, Any] = {
            "trusted": self._config.trusted,
            "about": " ".join(instructions.split())[:MAX_INSTRUCTIONS],
            "server_digest": digest_of(identity),
            "ground": server_folder(entry),
            "hosts": self._config.hosts,
        }
        return tuple(
            spec_of(
                self.name,
                tool,
                **options,
                confirmation=registry.confirmation(launched, version, tool.name, tool.input_schema),
            )
            for tool in tools
            if self._config.offers(tool.name)
        )

    def _disconnected_error(self, client: Client[BoundedTransport], error: BaseException) -> LostCallError:
        self._fail_session(client, error)
        cause = self._cause(error)
        problem = self.problem if self.state == "failed" else cause
        return LostCallError(f"server {self.name!r} disconnected during the call: {problem}", cause)

    def _fail_session(self, client: Client[BoundedTransport], error: BaseException) -> None:
        if client is self._client and self.state == "ready":
            self.fail(error)

    def _cause(self, error: BaseException) -> str:
        stop_reason = self._client.transport.stop_reason if self._client else ""
        text = stop_reason or str(error).strip() or type(error).__name__
        line = text.splitlines()[0].removeprefix("Client failed to connect: ")
        return printable(redacted(self._config.conceal(line)))[:MAX_PROBLEM]


def _with_sandbox_hint(result: ToolResult, client: Client[BoundedTransport]) -> ToolResult:
    """Add a hint to an error that the sandbox of a server may cause."""
    hint, refused = client.transport.sandbox_hint, client.transport.refused_hosts
    if result.error is None or not hint or not (refused or SANDBOX_ERRORS.search(result.error)):
        return result
    hint = f"no connection to {refused}; {hint}" if refused else hint
    changes = {
        "error": f"{result.error}\n[if that is the reason: {hint}]",
        "server_part": f"{result.server_text}\n{refused}" if refused else result.server_text,
    }
    return result.model_copy(update=changes)


def _is_connection_closed(error: MCPError) -> bool:
    """Whether the SDK reports a broken connection; the message decides, because servers may use the same code."""
    closed = error.error.message == "Connection closed" or error.error.message.startswith("SSE stream ")
    return closed and error.error.code == CONNECTION_CLOSED


def _depends_on_folder(entry: Mapping[str, Any], folder: Path) -> bool:
    """Return whether the same command may start another program in another folder."""
    words = [str(word) for word in (entry.get("command") or "", *(entry.get("args") or ()))]
    relative = [word for word in words if word and not Path(word).is_absolute()]
    return "-m" in words or any(os.path.lexists(folder / word) for word in relative)
