"""The connection to one MCP server. Its failures do not affect other servers."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
from fastmcp import Client
from fastmcp.client.transports import ClientTransport
from fastmcp.telemetry import suppress_fastmcp_telemetry
from mcp import MCPError
from mcp.client.extension import advertise
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    LoggingMessageNotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ServerNotification,
    TextContent,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from packetgate.state.base import ms_since, new_id
from packetgate.state.errors import LostCallError, ServerError, SessionRefusedError, TimedOutCallError
from packetgate.state.printing import printable
from packetgate.state.redaction import redacted, redacted_data
from packetgate.state.routing import ToolResult
from packetgate.tools.risk.registry import LaunchedPackage, Registry
from packetgate.tools.spec.default_arguments import server_folder
from packetgate.tools.spec.descriptions import META
from packetgate.tools.spec.tool_spec import TOOL_RESOLUTION, CallHints, ToolSpec, digest_of
from packetgate.toolsets.servers.callers import (
    MAX_TIMEOUTS,
    Caller,
    RunningCall,
    called_by,
    current_caller,
    pass_question,
    running_call,
)
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.definitions import MAX_DESCRIPTION, usable_tools, visible_text
from packetgate.toolsets.servers.http import forwarded_headers
from packetgate.toolsets.servers.messages import TransportFailure, transport_failure
from packetgate.toolsets.servers.oauth import StoredLogin
from packetgate.toolsets.servers.remembered import ListedTools, ListMemory
from packetgate.toolsets.servers.resolution import (
    ResolveToolParams,
    ResolveToolRequest,
    ResolveToolResult,
    is_marked,
)
from packetgate.toolsets.servers.results import StoreContent, result_of_answer, to_result_async
from packetgate.toolsets.servers.server import Server
from packetgate.toolsets.servers.session import BoundedTransport
from packetgate.toolsets.servers.specs import spec_of
from packetgate.toolsets.servers.stdio import LoggedTransport

CONNECT_TIMEOUT_S = 120.0
"""Longest start of a server, in seconds: `npx` and `uvx` may have to install it."""
CALL_TIMEOUT_S = 60.0
_LONGEST_CALL_S = 86_400.0
"""Time-out of the SDK for a call, in seconds, so that only the call's own clock ends it."""
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
_HINTS_TIMEOUT_S = 3.0
"""Longest wait for a server's hints on a call, in seconds."""
_CONNECTION_ERRORS = (
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    httpx2.HTTPError,
    OSError,
    RuntimeError,
)
"""Exceptions of a broken connection, including `TimeoutError`."""

logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # otherwise each stray line causes a traceback


class Connection(Server):
    """A server that is reached over MCP, in one persistent session."""

    def __init__(
        self,
        config: ServerConfig,
        transport: Callable[[], ClientTransport],
        *,
        keep: StoreContent | None = None,
        store_texts: bool = True,
        registry: Registry | None = None,
        memory: ListMemory | None = None,
    ) -> None:
        """Args:
        transport: opens a new transport for each session.
        keep: stores attachments and, with `store_texts`, long texts.
        registry: the known servers; None for a server in this process.
        memory: stores the server's lists; None stores nothing.
        """
        super().__init__(config.name)
        self._config = config
        self._transport = transport
        self._keep = keep
        self._store_texts = store_texts
        self._registry = registry or Registry()
        self._memory = memory
        self._timeout_s = config.entry["timeout"] / 1000 if config.entry.get("timeout") else CALL_TIMEOUT_S
        self._open_lock = asyncio.Lock()
        self._client: Client[BoundedTransport] | None = None
        self._calls: dict[RunningCall, None] = {}
        """The pending calls, oldest first."""
        self._callers: dict[int, Caller] = {}
        """The latest calls of this session's clients, at most two, by the identity of `Caller.client`."""
        self._refuses_handshake = False
        self._attempts = 0
        self._retry_at = 0.0
        """Time of `time.monotonic` from which the next attempt to reconnect may start."""
        self._foreign_problem = ""
        """The part of `problem` that is the server's or the SDK's text."""
        self._list_changes = 0
        """Number of changed tool lists that the server has announced."""
        self._offered_names: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By kind: a session, and the names of the prompts or resources that the server listed in it."""
        self._process: LoggedTransport | None = None
        self._login: StoredLogin | None = None
        self._package: LaunchedPackage | None = None
        """The package of the registry that was proved to start, for the whole session."""
        self._spec_options: dict[str, Any] = {}
        """The entry's options, from before the server started."""

    @property
    def can_reconnect(self) -> bool:
        """Whether the connection ended, or failed and the back-off is over."""
        session = self._client.transport.session if self._client else None
        if self.state == "ready":
            return session is not None and session.has_ended
        return self.state == "failed" and time.monotonic() >= self._retry_at

    def client(self) -> Client[Any] | None:
        """Return the open MCP session, for prompts and resources; None if there is none."""
        return self._client if self.state == "ready" else None

    async def offered_names(self, kind: Literal["prompts", "resources"]) -> tuple[str, ...]:
        """Return the names of the server's prompts, or the addresses of its resources; cached until they change."""
        client = self.client()
        if client is None or getattr(client.session.server_capabilities, kind, None) is None:
            return ()
        session, names = self._offered_names.get(kind, (0, ()))
        if session != self.session:
            session = self.session
            try:
                async with asyncio.timeout(_PING_TIMEOUT_S):
                    if kind == "prompts":
                        names = tuple(prompt.name for prompt in await client.list_prompts())
                    else:
                        templates = [one.uri_template for one in await client.list_resource_templates()]
                        names = (*(str(one.uri) for one in await client.list_resources()), *templates)
            except (*_CONNECTION_ERRORS, MCPError, ValidationError):
                names = ("unknown",)
            self._offered_names[kind] = session, names
        return names

    def maintenance(self, *, retry: bool) -> Coroutine[Any, Any, None] | None:
        """Return the work that the server needs now, or None."""
        is_ready = self.state == "ready"
        if self.session == 0 or (self.can_reconnect and (retry or is_ready)):
            return self.connect()
        return self._refresh() if is_ready and self.stale else None

    async def connect(self, old_session: int = -1) -> None:
        """Open a session if there is none, if the server disconnected, or to replace `old_session`.

        Wait if another caller opens a session.
        """
        async with self._open_lock:
            replaces = self.session == old_session
            if replaces and self.state == "ready" and self._calls:  # the server refuses the session: the calls end soon
                await asyncio.wait([call.ended for call in self._calls], timeout=_PENDING_CALLS_S)
            if replaces or self.session == 0 or self.can_reconnect:
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
        self.specs = self.remembered_specs = ()
        self._retry_at = time.monotonic() + BACKOFF_S[min(self._attempts, len(BACKOFF_S) - 1)]
        if not (self._login and self._login.problem):  # the user may log in at any time
            self._attempts += 1
        self._foreign_problem = self._cause(error)
        process = self._process if self._process and not self._process.is_missing else None
        log = f"its output is in {process.log.label}" if process else ""
        hint = process.hint() if process and self.state == "connecting" else ""
        super().fail(ServerError("; ".join(filter(None, [self._foreign_problem, log, hint]))))

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's name for it; raises as `Server.call` does."""
        client, server = self._client, f"server {self.name!r}"
        if client is None or self.state != "ready":
            problem = self.problem or "the server is still starting"
            raise ServerError(f"{server} is not available: {problem}", self._foreign_problem)
        key = idempotency_key or (new_id() if self._forwarded_headers() else "")
        started, meta = time.perf_counter(), {META: key} if key else None
        caller = current_caller()
        self._calls[running := RunningCall(caller, self._timeout_s)] = None
        token = running_call.set(running)
        if len(self._callers) < 2 or id(caller.client) in self._callers:
            self._callers[id(caller.client)] = caller
        # `connect` waits for this call, so that its ping still uses the old session
        try:
            answer = await self._receive_answer(client, tool, params, meta, running)
        except MCPError as error:
            await self._raise_if_unanswered(client, error)
            text = "\n".join([error.error.message, *running.notes])
            result = await to_result_async(text, None, ms_since(started), is_error=True)
        except _CONNECTION_ERRORS as error:
            raise self._disconnected_error(client, error) from error
        except ValidationError as error:
            cause = self._cause(error)
            raise LostCallError(f"{server} violated the protocol: {cause}", cause) from error
        else:
            answer.content += [TextContent(text=note) for note in running.notes]
            result = await result_of_answer(answer, ms_since(started), self._keep, store_texts=self._store_texts)
        finally:
            running_call.reset(token)
            self._calls.pop(running, None)
            running.ended.set_result(None)
        if not (result.error and self._process and (hint := self._process.hint(result.error))):
            return result
        error_text = f"{result.error}\n[if that is the reason: {hint}]"
        return result.model_copy(update={"error": error_text, "server_part": result.server_text})

    async def _receive_answer(
        self,
        client: Client[Any],
        tool: str,
        params: dict[str, Any],
        meta: dict[str, Any] | None,
        running: RunningCall,
    ) -> CallToolResult:
        """Return the server's answer. Each progress report extends the time-out."""
        forwarded, report = self._forwarded_headers(), running.caller.report_progress

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            running.extend()
            if report is not None:
                await report(progress, total, redacted(message) if message else None)

        try:
            async with running.clock:
                running.extend(anew=True)
                # FastMCP's spans contain texts of failed tools
                with suppress_fastmcp_telemetry(), forwarded_headers(meta[META] if meta else "", forwarded):
                    return await client.call_tool_mcp(tool, params, on_progress, timeout=_LONGEST_CALL_S, meta=meta)
        except TimeoutError as error:
            if not running.clock.expired():
                raise
            is_latest = asyncio.get_running_loop().time() >= running.latest
            waited_s = self._timeout_s * (MAX_TIMEOUTS if is_latest else 1)
            try:
                await self._ping(client)
            except _CONNECTION_ERRORS:
                hung = f"the server hung: it answered neither a call within {waited_s:g} s nor a ping"
                self._fail_session(client, ServerError(hung))
            raise TimedOutCallError(f"server {self.name!r} gave no answer within {waited_s:g} s") from error

    def _forwarded_headers(self) -> dict[str, str]:
        """Return the headers of the client's request that the entry names, and no others."""
        names = {name.lower() for name in self._config.entry.get("forward_headers", ())}
        headers = current_caller().headers
        return {name: value for name, value in headers.items() if name.lower() in names}

    async def _raise_if_unanswered(self, client: Client[BoundedTransport], error: MCPError) -> None:
        """Raise if the call got no answer; return if the server answered it with an error."""
        cause, server, failure = self._cause(error), f"server {self.name!r}", transport_failure(error)
        if await self._is_session_refused(client, error):
            raise SessionRefusedError(f"{server} no longer knows the session", cause) from error
        if failure is None:
            return
        if failure.kind == "broken":
            raise self._disconnected_error(client, error) from error
        text = f"{server} gave no usable answer: {cause}"
        if failure.kind == "lost":
            raise LostCallError(text, cause) from error
        if failure.kind == "unsent":
            self._fail_session(client, error)
        raise ServerError(text, cause, is_disconnected=failure.kind == "unsent") from error

    async def _is_session_refused(self, client: Client[Any], error: MCPError) -> bool:
        """Whether the server refuses a ping like a call. If so, it refuses the session: the call did not run."""
        failure = transport_failure(error)
        is_own_error = failure is None and error.error.code != METHOD_NOT_FOUND
        is_refusal = failure is not None and failure.kind == "refused" and failure.status != 429  # too many requests
        if not (is_own_error or is_refusal) or "url" not in self._config.entry or client.initialize_result is None:
            return False
        with suppress(*_CONNECTION_ERRORS):
            refusal = await self._ping(client)
            return refusal is not None and _identity(refusal) == _identity(error)
        return False

    async def _ping(self, client: Client[Any]) -> MCPError | None:
        """Return the error with which the server answers a ping, or None."""
        try:
            async with asyncio.timeout(min(self._timeout_s, _PING_TIMEOUT_S)):
                await client.session.send_ping()
        except MCPError as error:
            return error
        return None

    async def _on_log(self, message: LoggingMessageNotificationParams) -> None:
        """Pass a log message on to the client that calls the server, or to the only client that has called it.

        A message may contain data of a call. It does not name the call, so with calls of several clients no client
        receives it.
        """
        callers = {id(call.caller.client): call.caller for call in self._calls} or self._callers
        pass_log = next(iter(callers.values())).pass_log if len(callers) == 1 else None
        if pass_log is not None:
            await pass_log(message.model_copy(update={"data": redacted_data(message.data)}))

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        match message:
            case ToolListChangedNotification():
                self._list_changes += 1
                self.stale = True
                self.on_change()
            case PromptListChangedNotification() | ResourceListChangedNotification():
                self._offered_names.clear()
                self.on_change()

    async def _open(self) -> None:
        self.session += 1
        self._callers.clear()
        self.state = "connecting"
        await self.close()
        clients = self.client_abilities
        by_handshake = bool(clients.passed and clients.use_handshake and not self._refuses_handshake)
        try:
            transport = await asyncio.to_thread(self._transport)
            self._process = transport if isinstance(transport, LoggedTransport) else None
            auth = getattr(transport, "auth", None)
            self._login = auth if isinstance(auth, StoredLogin) else None
            self._package = self._process.start.package if self._process else None
            self.rights = self._process.start.rights if self._process else "a remote server"
            self._spec_options = await asyncio.to_thread(self._read_entry)
            if not self.is_recalled.is_set():
                await asyncio.to_thread(self._recall)
                self.is_recalled.set()
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self._client = Client(
                    BoundedTransport(transport, partial(pass_question, server=self.name, running=self._calls)),
                    mode="legacy" if by_handshake else "auto",
                    input_required_max_rounds=sys.maxsize,  # the call's clock, and the number of questions, end a call
                    init_timeout=CONNECT_TIMEOUT_S,
                    timeout=self._timeout_s,
                    message_handler=self._on_message,
                    extensions=[advertise(TOOL_RESOLUTION)],
                    log_handler=self._on_log,
                )
                with called_by(Caller(capabilities=clients.passed)):
                    await self._client.__aenter__()  # type: ignore[no-untyped-call]
                await self._list_tools(self._client)
        except asyncio.CancelledError:  # the turn that waited was cancelled; the next turn tries again
            self.state, self.problem = "failed", "the start was cancelled"
            self.is_recalled.set()
            raise
        except (*_CONNECTION_ERRORS, ServerError, MCPError, ValueError) as error:
            if by_handshake and isinstance(error, MCPError) and transport_failure(error) is None:
                self._refuses_handshake = True
                await self._open()
            else:
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
            if isinstance(error, MCPError) and transport_failure(error) == TransportFailure("broken"):
                self.fail(error)
            else:
                self.problem = f"the changed tools could not be listed: {self._cause(error)}"

    async def _list_tools(self, client: Client[BoundedTransport]) -> None:
        changes = self._list_changes
        tools = await client.list_tools()
        session = client.transport.session
        definitions = session.definitions if session else {}
        listed = ListedTools(
            [definitions.get(tool.name) or tool.model_dump(by_alias=True, exclude_none=True) for tool in tools],
            client.instructions or "",
            client.server_info.version if client.server_info else "",
        )
        specs = await asyncio.to_thread(self._specs_of, tools, listed, client)
        if client is not self._client:
            return
        self.specs, self.remembered_specs = specs, ()
        self.instructions = _usable_instructions(listed.instructions)
        self.state, self.stale = "ready", changes != self._list_changes
        left_out, changed = (session.left_out, session.changed) if session else ([], [])
        switched_off = [
            f"{tool.name!r}: switched off in mcp.json" for tool in tools if not self._config.offers(tool.name)
        ]
        self.tool_notes = (*(f"not offered: {note}" for note in (*left_out, *switched_off)), *changed)
        self.problem = "" if tools else "the server offers no tools"
        if left_out:
            more = f", and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
            self.problem = f"not offered: {'; '.join(left_out[:3])}{more}"
        if self._memory:
            await asyncio.to_thread(self._memory.save, self.name, self._config.resolved_entry(), listed)

    def _recall(self) -> None:
        """Set `remembered_specs` to the tools that the server listed at its last start. Blocking."""
        with suppress(ServerError, ValueError):
            listed = self._memory.load(self.name, self._config.resolved_entry()) if self._memory else ListedTools()
            tools, *_ = usable_tools(listed.tools, set(), lambda _: None)
            self.remembered_specs = self._specs_of([Tool.model_validate(tool, by_name=False) for tool in tools], listed)
            self.instructions = _usable_instructions(listed.instructions)

    def _specs_of(
        self, tools: list[Tool], listed: ListedTools, client: Client[Any] | None = None
    ) -> tuple[ToolSpec, ...]:
        about = " ".join(listed.instructions.split())[:MAX_INSTRUCTIONS]
        offered = [tool for tool in tools if self._config.offers(tool.name)]
        labels = [
            self._registry.confirmation(self._package, listed.version, tool.name, tool.input_schema) for tool in offered
        ]
        definitions = {definition["name"]: definition for definition in listed.tools}
        options = self._spec_options
        specs = [
            spec_of(self.name, tool, definitions[tool.name], about=about, confirmation=label, **options)
            for tool, label in zip(offered, labels, strict=True)
        ]
        capabilities = client.session.server_capabilities if client else None
        if client is None or capabilities is None or (capabilities.extensions or {}).get(TOOL_RESOLUTION) != {}:
            return tuple(specs)
        if not options["trusted"]:  # it would receive arguments before the gate decides about them
            return tuple(specs)
        marked = {tool.name for tool in offered if is_marked(tool)}
        return tuple(
            replace(spec, ask_hints=partial(self._hints, client, spec.upstream_name))
            if spec.upstream_name in marked
            else spec
            for spec in specs
        )

    def _read_entry(self) -> dict[str, Any]:
        entry = self._config.resolved_entry()
        folder = Path(str(entry.get("cwd") or "."))
        depends = self._package is None and _depends_on_folder(entry, folder)
        hosts = entry.get("hosts")
        return {
            "trusted": entry.get("trusted") is True,
            "server_digest": digest_of([entry, str(folder.absolute())] if depends else entry),
            "ground": server_folder(entry),
            "hosts": None if hosts is None else tuple(hosts),
        }

    async def _hints(self, client: Client[Any], tool: str, params: dict[str, Any]) -> CallHints | None:
        """Return the server's hints on a call before it runs; None without a usable answer in time."""
        request = ResolveToolRequest(params=ResolveToolParams(name=tool, arguments=params))
        trusted = self._config.entry.get("trusted") is True
        try:
            async with asyncio.timeout(_HINTS_TIMEOUT_S):
                answer = await client.session.send_request(request, ResolveToolResult)
        except MCPError as error:
            is_refusal = error.error.code == INVALID_PARAMS and transport_failure(error) is None
            return CallHints(are_trusted=trusted, refusal=self._cause(error)) if is_refusal else None
        except (*_CONNECTION_ERRORS, ValueError):  # also arguments that cannot be sent
            return None
        hints = answer.annotations
        return CallHints(hints.read_only_hint, hints.open_world_hint, trusted) if answer.name == tool else None

    def _disconnected_error(self, client: Client[BoundedTransport], error: BaseException) -> LostCallError:
        self._fail_session(client, error)
        cause = self._cause(error)
        problem = self.problem if self.state == "failed" else cause
        text = f"server {self.name!r} disconnected during the call: {problem}"
        return LostCallError(text, cause, is_disconnected=True)

    def _fail_session(self, client: Client[BoundedTransport], error: BaseException) -> None:
        if client is self._client and self.state == "ready":
            self.fail(error)

    def _cause(self, error: BaseException) -> str:
        stop_reason = self._process.stop_reason if self._process else self._login.problem if self._login else ""
        text = stop_reason or str(error).strip() or type(error).__name__
        line = text.splitlines()[0].removeprefix("Client failed to connect: ")
        return printable(redacted(line))[:MAX_PROBLEM]


def _usable_instructions(text: str) -> str:
    return redacted(visible_text(text)[:MAX_DESCRIPTION])


def _identity(error: MCPError) -> object:
    return transport_failure(error) or (error.error.code, error.error.message)


def _depends_on_folder(entry: Mapping[str, Any], folder: Path) -> bool:
    """Return whether the same command may start another program in another folder."""
    words = [str(word) for word in (entry.get("command") or "", *(entry.get("args") or ()))]
    relative = [word for word in words if word and not Path(word).is_absolute()]
    return "-m" in words or any(os.path.lexists(folder / word) for word in relative)
