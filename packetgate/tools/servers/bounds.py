"""Limit what a server sends, before the SDK parses it on the event loop."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolResult
from mcp_types.methods import validate_server_result

from packetgate.tools.checks.dialects import normalised
from packetgate.tools.checks.validation import schema_flaw
from packetgate.tools.servers.content import readable_answer, without_nulls

MAX_MESSAGE_BYTES = 32_000_000
"""Longest message of a server. A longer one ends the session or, over HTTP, the request."""
MOST_WAITS = 10
"""Total wait for a call whose server reports progress, in time-outs."""
MAX_TOOLS = 5_000
MAX_DESCRIPTION = 20_000
"""Longest description, in characters; the rest is cut."""
MAX_DEFINITION = 100_000
"""Largest definition of a tool without its description, in characters of JSON."""

_NAME = re.compile(r"[\w./: -]{1,128}")
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
"""Letters that are displayed as blanks."""
_PROSE = frozenset({"description", "title", "$comment"})

_Tool = dict[str, Any]


class CallTimeoutError(Exception):
    """A call was not answered in time; the message is the waiting time."""


class BoundedSession(ClientSession):
    """A client session that sees only usable tools and results."""

    def __init__(self, read_stream: Any, write_stream: Any, **options: Any) -> None:
        """Accept the arguments of `ClientSession`."""
        super().__init__(dispatcher=_BoundedDispatcher(read_stream, write_stream, session=self), **options)
        self.left_out: list[str] = []
        """One phrase for each tool of the last list that is not offered."""
        self.changed: list[str] = []
        """One phrase for each tool of the last list of whose schema something was left out."""
        self.has_ended = False
        """Whether the connection has ended; later calls are not sent."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Accept a result that does not fit its output schema; clients that rely on the schema check it."""


class _BoundedDispatcher(JSONRPCDispatcher[TransportContext]):
    def __init__(self, read_stream: Any, write_stream: Any, session: BoundedSession) -> None:
        super().__init__(read_stream, write_stream)
        self._session = session
        self._taken: set[str] = set()
        """Names of the tools on the pages so far."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **inner: Any
    ) -> dict[str, Any]:
        if method == "tools/call":
            answer = await self._call(method, params, opts or {}, **inner)
            return readable_answer(answer, partial(self._validate, method))
        answer = without_nulls(await super().send_raw_request(method, params, opts, **inner))
        if method == "tools/list" and isinstance(answer.get("tools"), list):
            if not (params or {}).get("cursor"):
                self._taken, self._session.left_out, self._session.changed = set(), [], []
            check = partial(self._check, answer)
            tools, left_out, changed = await asyncio.to_thread(_usable, answer["tools"], self._taken, check)
            self._session.left_out += left_out
            self._session.changed += changed
            return {**answer, "tools": tools}
        return answer

    async def _call(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions, **inner: Any
    ) -> dict[str, Any]:
        wait_s, report = opts.get("timeout"), opts.get("on_progress")
        if wait_s is None:
            return await super().send_raw_request(method, params, opts, **inner)
        loop = asyncio.get_running_loop()
        last = loop.time() + MOST_WAITS * wait_s
        clock = asyncio.timeout(wait_s)

        async def extended(progress: float, total: float | None, message: str | None) -> None:
            with suppress(RuntimeError):  # the call has ended
                clock.reschedule(min(loop.time() + wait_s, last))
            if report is not None:
                await report(progress, total, message)

        waiting: CallOptions = {**opts, "on_progress": extended}
        del waiting["timeout"]
        try:
            async with clock:
                return await super().send_raw_request(method, params, waiting, **inner)
        except TimeoutError:
            if not clock.expired():
                raise
            most = loop.time() >= last
            waited = f"{MOST_WAITS * wait_s:g} s, though it reported progress" if most else f"{wait_s:g} s"
            raise CallTimeoutError(waited) from None

    async def run(self, *handlers: Any, **options: Any) -> None:
        try:
            await super().run(*handlers, **options)
        finally:
            self._session.has_ended = True

    def _check(self, page: dict[str, Any], tool: _Tool) -> None:
        self._validate("tools/list", {**page, "tools": [tool]})

    def _validate(self, method: str, result: dict[str, Any]) -> None:
        version = self._session.protocol_version
        if version is not None:
            validate_server_result(method, version, result)


class BoundedTransport(ClientTransport):
    """A transport that opens bounded sessions."""

    def __init__(self, inner: ClientTransport) -> None:
        self._inner = inner
        self.legacy_only = inner.legacy_only
        self.session: BoundedSession | None = None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Open a bounded session over the inner transport."""
        options = TransportOptions(session_class=BoundedSession)
        async with self._inner.connect_session(transport_options=options, **session) as opened:
            self.session = opened if isinstance(opened, BoundedSession) else None
            yield opened

    def get_session_id(self) -> str | None:
        """Return the session id of an HTTP server."""
        return self._inner.get_session_id()

    @property
    def flaw(self) -> str:
        """Why the server was stopped; empty if it was not."""
        flaw: str = getattr(self._inner, "flaw", "")
        return flaw

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()  # type: ignore[no-untyped-call]


class _UnfitError(ValueError):
    pass


def _usable(
    tools: list[Any], taken: set[str], check: Callable[[_Tool], None]
) -> tuple[list[_Tool], list[str], list[str]]:
    kept: list[_Tool] = []
    left_out: list[str] = []
    changed: list[str] = []
    for place, raw in enumerate(tools[:MAX_TOOLS], 1):
        name = raw.get("name") if isinstance(raw, dict) else None
        called = ascii(name[:60]) if isinstance(name, str) else f"number {place}"
        try:
            tool, changes = _cleaned(raw)
            if tool["name"] in taken:
                raise _UnfitError("another tool has that name")
            check(tool)
        except ValueError as error:
            left_out.append(f"{called}: {str(error).splitlines()[0]}")
        else:
            taken.add(tool["name"])
            kept.append(tool)
            changed += [f"{called}: {'; '.join(changes)}"] if changes else []
    if len(tools) > MAX_TOOLS:
        left_out.append(f"{len(tools) - MAX_TOOLS:,} tools: it lists more than {MAX_TOOLS:,}")
    return kept, left_out, changed


def _cleaned(raw: Any) -> tuple[_Tool, list[str]]:
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise _UnfitError("it has no name")
    name = raw["name"]
    if not _NAME.fullmatch(name) or not name.strip() or any(letter in name for letter in _BLANK_LETTERS):
        raise _UnfitError("a tool's name may have up to 128 letters, digits, spaces and _ - . / :")
    prose = {key: raw[key][:MAX_DESCRIPTION] for key in ("title", "description") if isinstance(raw.get(key), str)}
    rest = {key: raw[key] for key in ("inputSchema", "annotations", "_meta") if raw.get(key) is not None}
    if len(json.dumps(rest)) > MAX_DEFINITION:
        raise _UnfitError(f"its definition is larger than {MAX_DEFINITION:,} characters")
    schema, changes = normalised(_without_hidden(rest.pop("inputSchema", None), of_schema=True))
    if not isinstance(schema, dict):
        raise _UnfitError("nothing fits its schema: it is false")
    if flaw := schema_flaw(schema):
        raise _UnfitError(f"its schema is broken: {flaw}")
    if schema.get("type") != "object":
        raise _UnfitError("nothing fits its schema: arguments are an object")
    return {"name": name, "inputSchema": schema, **_without_hidden({**prose, **rest}), **_output_schema(raw)}, changes


def _output_schema(raw: _Tool) -> _Tool:
    schema = raw.get("outputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema_flaw(schema):
        return {}
    try:
        small = len(json.dumps(schema)) <= MAX_DEFINITION
        return {"outputSchema": _without_hidden(schema, of_schema=True)} if small else {}
    except _UnfitError:
        return {}


def _without_hidden(value: Any, *, of_schema: bool = False) -> Any:
    match value:
        case str():
            seen = "".join(char for char in value if char in "\n\t" or _is_seen(char))
            if of_schema and seen != value:
                raise _UnfitError(f"its schema has characters that cannot be seen: {ascii(value)[:60]}")
            return seen
        case list():
            return [_without_hidden(inner, of_schema=of_schema) for inner in value]
        case dict():
            if of_schema and not all(_is_seen(char) for key in value for char in key):
                raise _UnfitError(f"its schema has a name that cannot be seen: {ascii([*value])[:60]}")
            prose = {key for key, inner in value.items() if key in _PROSE and isinstance(inner, str)}
            return {
                _without_hidden(key): _without_hidden(inner, of_schema=of_schema and key not in prose)
                for key, inner in value.items()
            }
    return value


def _is_seen(char: str) -> bool:
    return char.isprintable() and char not in _BLANK_LETTERS
