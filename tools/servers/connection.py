"""One MCP server: its session, its tools, and how it is doing. What goes wrong here stays here."""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
from fastmcp import Client
from fastmcp.client.logging import default_log_handler
from fastmcp.client.messages import MessageHandler
from fastmcp.client.progress import ProgressHandler
from fastmcp.client.transports import ClientTransport
from fastmcp.exceptions import ToolError
from fastmcp.telemetry import suppress_fastmcp_telemetry
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    LoggingMessageNotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from state.base import ms_since
from state.errors import ConfigError, LostCallError, ServerError, SessionRefusedError
from state.printing import printable
from state.redaction import learn, learn_entry, redacted
from state.routing import Risk, ToolResult
from tools.risk.features import Definition
from tools.risk.tool import judge
from tools.servers.answers import MAX_PARTS
from tools.servers.bounds import BoundedTransport, CallTimeoutError
from tools.servers.config import ServerConfig
from tools.servers.content import read_answer
from tools.servers.freshness import hinted_s
from tools.servers.messages import failure_of
from tools.servers.relaying import Listeners, Relay
from tools.servers.remote import RemoteTransport
from tools.servers.results import Keep, to_result_aside
from tools.servers.server import Server
from tools.servers.server_log import ServerLog
from tools.servers.stdio import LoggedTransport, NoMessageError
from tools.servers.stored_listings import StoredListing, StoredListings
from tools.spec.descriptions import brief_of
from tools.spec.idempotency import META, without_duty
from tools.spec.standing import Ground, ground_of, standing, without_standing
from tools.spec.tool_spec import ToolSpec, digest_of

CONNECT_TIMEOUT_S = 120.0
"""Longest start of a server: `npx` and `uvx` may have to install it first."""
CALL_TIMEOUT_S = 60.0
BACKOFF_S = (0.0, 2.0, 5.0, 15.0, 60.0)
"""Wait before each next attempt to reach a failed server; the last for all that follow."""
MAX_PROBLEM = 300
"""Longest word on why a server failed, in characters: it may be the server's own."""
NETWORK_VARIABLES = (
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY"
    " http_proxy https_proxy no_proxy all_proxy"
).split()
"""Passed on to servers started here, beside MCP's own short list: without them `npx` and `uvx` can not install."""

_CLOSED = ("Connection closed", "SSE stream ")
"""How the SDK begins its words for a connection that broke."""
_REFUSED = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 428, 429, 431, 451})
"""Statuses of a request that was refused before anything was done."""
_AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which a read is sent again."""
_AGAIN_S = 0.5
"""Shortest wait before that."""
_UNDER_WAY_S = 2.0
"""Longest wait for calls that are under way when a session is given up."""
_PING_S = 5.0
"""Longest wait for the answer to a ping."""
_OF_A_CALL = frozenset({INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR})
"""Codes of errors that concern one request, unless they name the session."""

_LOST = (
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    httpx2.HTTPError,
    OSError,
    RuntimeError,
)


logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
"""It would show a traceback for every line that a server prints between its answers; these go to the server's log."""


ABOUT_CHARACTERS = 500
"""Of what a server says of itself, that are kept."""


class _Messages(MessageHandler):
    def __init__(self, mark_stale: Callable[[], None], on_change: Callable[[], None], log: ServerLog | None) -> None:
        self._mark_stale = mark_stale
        self._on_change = on_change
        self._log = log

    async def on_tool_list_changed(self, message: ToolListChangedNotification) -> None:
        self._mark_stale()

    async def on_prompt_list_changed(self, message: PromptListChangedNotification) -> None:
        self._on_change()

    async def on_resource_list_changed(self, message: ResourceListChangedNotification) -> None:
        self._on_change()

    async def on_exception(self, message: Exception) -> None:
        """Put into the log what the server printed that is no message."""
        if self._log is not None and isinstance(message, NoMessageError):
            await asyncio.to_thread(self._log.write, message.printed + b"\n")


class Connection(Server):
    """A server reached by MCP, over one persistent session."""

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
        """`concealed` takes secrets out of what is told of the server's failures, `digest` says which server it is,
        `ground` on which folder it works, `offers` whether the user has a tool of it offered.

        `keep` takes long texts, to be read on in, and `keep_file` what is no text. `listings` stores the tools.
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
        self._said = ""
        """What of the problem is not in our own words."""
        self._changes = self._listed = 0
        """How often the server said that its tools changed, and how often it had when they were last listed."""

    @property
    def suspected(self) -> bool:
        """Whether a call ran out of time, and nobody has asked since whether the server still answers."""
        return self._suspected and self.state == "ready"

    @property
    def may_retry(self) -> bool:
        """Whether the server is gone, or failed and has rested long enough for another attempt."""
        session = self._client.transport.session if self._client else None
        if self.state == "ready":
            return session is not None and session.has_ended
        rest = BACKOFF_S[min(self._attempts, len(BACKOFF_S)) - 1] if self._attempts else 0.0
        return self.state == "failed" and time.monotonic() - self._failed_at >= rest

    async def connect(self, instead_of: int) -> None:
        """Open a session in place of the one with that number, unless another caller did already."""
        async with self._opening:
            if self.session == instead_of:
                if self.state == "ready":  # the session is refused, and so are the calls that are under way
                    await self._listeners.gone(_UNDER_WAY_S)
                await self._open()

    async def revive(self) -> None:
        """Open a new session where the server is gone or hangs, or wait for the one that another caller opens."""
        async with self._opening:
            if self.suspected:
                self._suspected = False
                if not await self._still_responds():
                    self.fail(ServerError(f"it hung: no answer within {self._timeout_s:g} s, and none to a ping"))
            if self.may_retry:
                await self._open()

    async def refresh(self) -> None:
        """List the tools again after the server said that they changed; until then, the last known ones stand."""
        try:
            await self._list()
        except (*_LOST, MCPError, ValidationError) as error:
            if isinstance(error, _LOST) or (isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED):
                self.fail(error)
            else:
                self.problem = f"its tools changed and could not be listed anew: {self._cause(error)}"

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's own name for it.

        Raises:
            ServerError: the server is not there; nothing was sent.
            SessionRefusedError: the server forgot the session; the call did not run.
            LostCallError: the call was sent, and the connection broke or the time ran out.
        """
        client = self._client
        if client is None or self.state != "ready":
            problem = self.problem or "it is still starting"
            raise ServerError(f"server {self.name!r} is not there: {problem}", self._said)
        started, meta = time.perf_counter(), {META: idempotency_key} if idempotency_key else None
        try:
            # FastMCP's spans say what ours say, and a failed tool's words besides
            with suppress_fastmcp_telemetry(), self._listeners.listening() as relay:
                answer = await client.call_tool_mcp(tool, params, self._progress(relay), meta=meta)
        except CallTimeoutError as error:
            self._suspected = True
            raise LostCallError(f"server {self.name!r} gave no answer within {error}") from error
        except MCPError as error:
            if await self._has_lost_session(client, error):
                raise SessionRefusedError(
                    f"server {self.name!r} does not know its session any more", self._cause(error)
                ) from error
            if lost := self._loss(client, error):
                raise lost from error
            said = self._concealed(error.error.message)
            return await to_result_aside(said, None, ms_since(started), is_error=True)
        except ToolError as error:
            return ToolResult(success=False, error=redacted(str(error)), execution_time_ms=ms_since(started))
        except _LOST as error:
            raise self._went_away(client, error) from error
        except ValidationError as error:
            said = self._cause(error)
            raise LostCallError(f"server {self.name!r} answered against the protocol: {said}", said) from error
        took, cut, failed = ms_since(started), len(answer.content) > MAX_PARTS, bool(answer.is_error)
        read = await read_answer(answer.content, answer.structured_content, self._keep_file)
        how = {"is_error": failed, "cut": cut, "keep": self._keep, "attachments": read.attachments, "parts": read.parts}
        return await to_result_aside(
            read.text, read.structured, took, **how, meta=answer.meta, lasts_s=hinted_s(answer.meta)
        )

    async def close(self) -> None:
        """End the session; a server that was started here ends with it."""
        client, self._client = self._client, None
        if client is not None:
            # A session that broke raises its error once more on closing; `problem` has told it already.
            with contextlib.suppress(*_LOST, MCPError, ValueError, TimeoutError):
                await client.close()  # type: ignore[no-untyped-call]

    @property
    def stale(self) -> bool:
        """Whether the server said that its tools changed, and they have not been listed since."""
        return self._changes != self._listed

    def _mark_stale(self) -> None:
        self._changes += 1
        self.listing.holds = False
        self.on_change()

    def _count_other(self) -> None:
        self.other_changes += 1
        self.on_change()

    async def _open(self) -> None:
        """Start or reach the server and list its tools; sets `state`, and `problem` when that fails."""
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
        except (*_LOST, ServerError, MCPError, ValueError, TimeoutError) as error:
            self.fail(error)
        else:
            self._attempts = 0

    async def _start(self, transport: ClientTransport) -> None:
        """Open a session and list the tools; a server that refuses streamable HTTP is reached by SSE."""
        self._client = Client(
            BoundedTransport(transport),
            init_timeout=CONNECT_TIMEOUT_S,
            timeout=self._timeout_s,
            message_handler=_Messages(self._mark_stale, self._count_other, self._log),
            log_handler=self._told,
        )
        try:
            await self._client.__aenter__()  # type: ignore[no-untyped-call]
            await self._list()
        except (*_LOST, MCPError) as error:
            other = transport.other_way() if isinstance(transport, RemoteTransport) else None
            if other is None:
                raise
            await self.close()
            try:
                await self._start(other)
            except (*_LOST, MCPError):
                raise error from None  # what the server says to the way that the file names

    async def _list(self) -> None:
        if self._client is None:
            raise ServerError(f"server {self.name!r} is not connected")
        client, changes = self._client, self._changes
        tools = await client.list_tools()
        introduced = client.initialize_result or client.session.discover_result
        said = introduced.instructions if introduced else None
        listing = StoredListing(tools, " ".join((said or "").split())[:ABOUT_CHARACTERS])
        specs = await asyncio.to_thread(self._specs_of, listing)
        if client is not self._client:
            return
        self.listed(specs, holds=changes == self._changes)
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
        """Read what an earlier process stored of the tools."""
        with contextlib.suppress(ConfigError):  # starting the server says what is wrong with its entry
            self.stored = await asyncio.to_thread(self._recalled)

    def _recalled(self) -> tuple[ToolSpec, ...]:
        listing = self._listings.load(self.name, self._digest()) if self._listings else None
        return self._specs_of(listing) if listing else ()

    def client(self) -> Client[Any] | None:
        """Return the open session, for what is no tool; None where there is none."""
        return self._client if self.state == "ready" else None

    async def _told(self, message: LoggingMessageNotificationParams) -> None:
        """Hand on what the server logs in the middle of a call."""
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
        """Return the error for a call without an answer; None where the server answered with an error of its own."""
        failure, said = failure_of(error), self._cause(error)
        if failure is None:  # the SDK's own
            closed = error.error.code == CONNECTION_CLOSED and error.error.message.startswith(_CLOSED)
            return self._went_away(client, error) if closed else None
        match failure.kind:
            case "answer":
                return None
            case "unsent":
                self._count_failed(client, error)
                return ServerError(f"server {self.name!r} cannot be reached: {said}", said, again_in_s=0)
            case "broken":
                return self._went_away(client, error)
            case "unreadable":
                return LostCallError(f"server {self.name!r} gave no usable answer: {said}", said)
        again_in_s = max(_AGAIN_S, failure.retry_after_s or 0) if failure.status in _AGAIN else None
        kind = ServerError if failure.status in _REFUSED else LostCallError
        return kind(f"server {self.name!r} answered {said}", said, again_in_s=again_in_s)

    async def _has_lost_session(self, client: Client[BoundedTransport], error: MCPError) -> bool:
        """Whether the server refused the session, and so never ran the call.

        A status of 404 or 410 says so by the protocol, and an error that does not name the request may say so in words.
        Any other error is about the session if the server answers a ping with the very same one.
        """
        failure, transport = failure_of(error), client.transport
        if failure is None or client.initialize_result is None:
            return False
        if failure.kind not in {"answer", "http"} or failure.status not in {200, 400, 404, 410}:
            return False
        of_the_call = failure.kind == "answer" and failure.addressed
        names_it = "session" in error.error.message.lower()
        if of_the_call and error.error.code in _OF_A_CALL and not names_it:
            return False
        if not of_the_call and (names_it or (failure.status in {404, 410} and _has_session(transport))):
            return True
        return await self._pinged(client) == _told_by(error)

    async def _pinged(self, client: Client[BoundedTransport]) -> tuple[int, int, str] | None:
        """Return the error that a server answers a ping with; None where it answers as it should.

        Raises:
            TimeoutError: it does not answer.
        """
        try:
            async with asyncio.timeout(min(self._timeout_s, _PING_S)):
                await client.session.send_ping()
        except MCPError as error:
            return _told_by(error)
        return None

    async def _still_responds(self) -> bool:
        """Whether a server that let a call wait too long answers anything."""
        if self._client is None:
            return False
        try:
            await self._pinged(self._client)
        except (*_LOST, TimeoutError):
            return False
        return True

    def _went_away(self, client: Client[BoundedTransport], error: BaseException) -> LostCallError:
        """Return the error for a call whose session ended; a newer session is left alone."""
        self._count_failed(client, error)
        said = self._cause(error)
        problem = self.problem if self.state == "failed" else said
        return LostCallError(f"server {self.name!r} went away during the call: {problem}", said)

    def _count_failed(self, client: Client[BoundedTransport], error: BaseException) -> None:
        if client is self._client and self.state == "ready":
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Count the server as failed, with what went wrong as its problem."""
        self.state = "failed"
        self.specs = ()
        self.on_change()
        self._attempts += 1
        self._failed_at = time.monotonic()
        self.problem = self._said = self._cause(error)
        if self._log is not None:
            self.problem += f"; what it printed is in {self._log.called}"

    def _cause(self, error: BaseException) -> str:
        flaw = self._client.transport.flaw if self._client else ""
        text = flaw or str(error).strip() or type(error).__name__
        line = text.splitlines()[0].removeprefix("Client failed to connect: ")
        return printable(redacted(self._concealed(line)))[:MAX_PROBLEM]


def _has_session(transport: BoundedTransport) -> bool:
    return transport.legacy_only or transport.get_session_id() is not None


def _told_by(error: MCPError) -> tuple[int, int, str]:
    """Return what tells one error from another: its status, code and message."""
    failure = failure_of(error)
    return failure.status if failure else 0, error.error.code, error.error.message


def configured(
    config: ServerConfig,
    log_dir: Path,
    keep: Keep | None = None,
    keep_file: Keep | None = None,
    listings: StoredListings | None = None,
) -> Connection:
    """Return the connection to a server of `mcp.json`; what it prints goes to a file in `log_dir`."""
    log = ServerLog(log_dir / f"{config.name}.log") if "command" in config.entry else None

    def transport() -> ClientTransport:
        entry = config.filled()
        learn_entry(config.name, entry)
        for name, value in config.variables().items():
            learn(name, value)
        if log is None:
            return RemoteTransport(entry)
        log.start()
        inherited = {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}
        command = [entry["command"], *entry.get("args", ())]
        return LoggedTransport(command, entry.get("cwd"), {**inherited, **entry.get("env", {})}, log)

    return Connection(
        config.name,
        transport,
        trusted=config.trusted,
        timeout_s=config.timeout_s,
        log=log,
        concealed=config.concealed,
        digest=lambda: digest_of(config.filled()),
        ground=lambda: ground_of(config.filled()),
        offers=config.offers,
        keep=keep,
        keep_file=keep_file,
        listings=listings,
    )


def spec_of(
    server: str, tool: Tool, *, trusted: bool, about: str = "", server_digest: str = "", ground: Ground | None = None
) -> ToolSpec:
    """Return what Packetgate needs to know of a tool that `server` lists, which says `about` itself."""
    dry_run = _without_dry_run(tool.input_schema) if trusted else None
    schema = tool.input_schema if dry_run is None else dry_run
    full = (tool.description or tool.title or tool.name).strip()
    judged = judge(Definition(tool.name, full, tool.input_schema), tool.annotations, trusted=trusted)
    given = standing(tool.name, schema, ground, reads=judged.unvouched or judged.risk is Risk.READ)
    return ToolSpec(
        name=f"{server}.{tool.name}",
        server=server,
        upstream_name=tool.name,
        full=full,
        brief=brief_of(full),
        input_schema=without_duty(without_standing(schema, given, ground)),
        risk=judged.risk,
        risk_why=judged.why,
        least_risk=judged.least,
        unvouched=judged.unvouched,
        reaches_outside=judged.open_world,
        has_dry_run=dry_run is not None,
        tags=_tags(tool.meta),
        hinted_s=hinted_s(tool.meta),
        preview=_preview(server, tool.meta) if trusted else "",
        open_world=tool.annotations.open_world_hint if tool.annotations else None,
        server_about=about,
        server_digest=server_digest,
        standing=given,
        title=tool.title or (tool.annotations.title if tool.annotations else None) or "",
        output_schema=tool.output_schema,
        idempotent=tool.annotations.idempotent_hint if tool.annotations else None,
        meta=tool.meta,
    )


def _tags(meta: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the labels in a tool's metadata: under `tags`, or where FastMCP puts them."""
    places = [meta, *((meta or {}).get(key) for key in ("fastmcp", "_fastmcp"))]
    found = [place["tags"] for place in places if isinstance(place, dict) and isinstance(place.get("tags"), list)]
    return tuple(sorted({tag for tags in found for tag in tags if isinstance(tag, str)}))


def _preview(server: str, meta: dict[str, Any] | None) -> str:
    """Return the tool that reads what this one would replace, by its server's own name under `preview`."""
    name = (meta or {}).get("preview")
    return f"{server}.{name}" if isinstance(name, str) else ""


def _without_dry_run(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema without its boolean `dry_run`; None when it has none. Servers may publish any nonsense."""
    match schema:
        case {"properties": {"dry_run": {"type": "boolean"}, **others}}:
            required = schema.get("required")
            others_required = [name for name in required if name != "dry_run"] if isinstance(required, list) else []
            return {**schema, "properties": others, "required": others_required}
    return None


def _not_offered(left_out: list[str]) -> str:
    others = f", and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
    return f"not offered: {'; '.join(left_out[:3])}{others}"
