"""HTTP to MCP servers: the size of answers is limited, and an unreadable answer becomes a JSON-RPC error."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

import httpx2
from fastmcp.client.transports import ClientTransport, SSETransport, StreamableHttpTransport
from fastmcp.mcp_config import infer_transport_type_from_url
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, RequestId

from packetgate.state.printing import printable
from packetgate.toolsets.servers.messages import (
    MAX_MESSAGE_BYTES,
    TransportFailure,
    failure_message,
    message_to_json,
    read_jsonrpc,
)

_MAX_SEARCHED_BYTES = 100_000
"""Bytes of an error's body that are searched for its first line."""
_MAX_LINE_CHARS = 200
_EVENT_STREAM = "text/event-stream"
_TAG = re.compile(r"<[^>]*>")
_BODY_HEADERS = {"content-type", "content-length", "content-encoding", "transfer-encoding"}
_REFUSED_STATUSES = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 428, 429, 431, 451}
)
"""Statuses of requests that were refused before they ran."""
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""Exceptions of a request that did not reach the server."""


def uses_sse(entry: Mapping[str, Any]) -> bool:
    """Whether a server that has a URL is reached over SSE instead of streamable HTTP."""
    return (entry.get("transport") or infer_transport_type_from_url(entry["url"])) == "sse"


def remote_transport(entry: Mapping[str, Any], auth: httpx2.Auth | str | None) -> ClientTransport:
    """Return the transport to a server that has a URL. `entry` is the server's resolved entry of `mcp.json`."""
    url = entry["url"]
    options: dict[str, Any] = {"headers": entry.get("headers"), "auth": auth}
    if uses_sse(entry):
        return SSETransport(url, **options)
    options |= {"httpx_client_factory": BoundedHttp, "max_sse_event_size": MAX_MESSAGE_BYTES}
    return StreamableHttpTransport(url, **options)


_headers_by_key: dict[str, Mapping[str, str]] = {}
"""Additional headers of a call, by its idempotency key: the SDK sends requests in tasks of its own."""


@contextmanager
def forwarded_headers(key: str, headers: Mapping[str, str]) -> Iterator[None]:
    """Send these headers with the call that has this idempotency key."""
    if headers:
        _headers_by_key[key] = headers
    try:
        yield
    finally:
        _headers_by_key.pop(key, None)


class BoundedHttp(httpx2.AsyncClient):
    """An HTTP client for one session over streamable HTTP, which rejects long and compressed answers."""

    def __init__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_: Any,
    ) -> None:
        """Accept the arguments of the SDK's client factory."""
        timeout = timeout or httpx2.Timeout(30.0, read=300.0)  # the SDK's default
        super().__init__(headers={"Accept-Encoding": "identity", **(headers or {})}, timeout=timeout, auth=auth)
        self.event_hooks["response"].append(_limit_response)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request and return the response. Except for a redirect, a JSON-RPC request gets a JSON-RPC answer."""
        request_id = _request_id(request)
        # the session limits the time of calls; event streams have no limit
        if request_id is not None or request.method == "GET":
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": None}
        if request_id is None:
            return await super().send(request, **options)
        if _headers_by_key:
            request.headers.update(_headers_by_key.get(_call_key(request), {}))
        try:
            response = await super().send(request, **options)
            if response.has_redirect_location:
                return response
            if response.status_code < 400 and _media_type(response) == _EVENT_STREAM:
                source = httpx2.Response(200, headers=response.headers, stream=response.stream, request=request)
                response.stream = _ReplacedStream(_readable_events(source, request_id), source)
                return response
            answer, headers = await _read_answer(response, request_id), response.headers.multi_items()
        except (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError) as error:
            why, failure = str(error) or type(error).__name__, TransportFailure("lost")
            if isinstance(error, _UNSENT):
                why, failure = f"the server cannot be reached: {why}", TransportFailure("unsent")
            elif isinstance(error, httpx2.TransportError):
                failure = TransportFailure("broken")
            answer, headers = failure_message(request_id, why, failure), []
        kept = [(name, value) for name, value in headers if name.lower() not in _BODY_HEADERS]
        headers = [*kept, ("content-type", "application/json")]
        return httpx2.Response(200, headers=headers, content=message_to_json(answer), request=request)


def _request_id(request: httpx2.Request) -> RequestId | None:
    with suppress(ValueError, httpx2.RequestNotRead):
        match json.loads(request.content):
            case {"jsonrpc": "2.0", "method": str(), "id": int() | str() as request_id}:
                return request_id
    return None


def _call_key(request: httpx2.Request) -> str:
    match json.loads(request.content):
        case {"method": "tools/call", "params": {"_meta": {"packetgate/idempotency-key": str() as key}}}:
            return key
    return ""


async def _read_answer(response: httpx2.Response, request: RequestId) -> JSONRPCMessage:
    status, body = response.status_code, b""
    try:
        body = await response.aread()
    except (httpx2.TransportError, httpx2.StreamError):
        if status < 400:  # otherwise, the status alone describes the error
            raise
    await response.aclose()
    with suppress(ValueError, RecursionError):
        message = await read_jsonrpc(body)
        if isinstance(message, JSONRPCError) or (isinstance(message, JSONRPCResponse) and status < 400):
            message.id = request
            return message
    text = _TAG.sub(" ", body[:_MAX_SEARCHED_BYTES].decode(errors="replace"))
    lines = [" ".join(text.split())] if text.lstrip().startswith("{") else text.splitlines()
    line = printable(next((line.strip() for line in lines if line.strip()), ""))[:_MAX_LINE_CHARS]
    why = f"HTTP {status} {response.reason_phrase}".rstrip() + (f": {line}" if line else "")
    if status < 400:
        return failure_message(request, f"the answer is not JSON-RPC: {why}", TransportFailure("lost", status))
    kind: Literal["refused", "lost"] = "refused" if status in _REFUSED_STATUSES else "lost"
    return failure_message(request, why, TransportFailure(kind, status))


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


class _ReplacedStream(httpx2.AsyncByteStream):
    """A stream of `chunks`, which were made from `source`. Closing the stream closes the source."""

    def __init__(self, chunks: AsyncIterator[bytes], source: httpx2.AsyncByteStream | httpx2.Response) -> None:
        self._chunks = chunks
        self._source = source

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._source.aclose()


async def _readable_events(source: httpx2.Response, request: RequestId) -> AsyncIterator[bytes]:
    """Yield the events of an answer. An unreadable message becomes a JSON-RPC error."""
    async for event in httpx2.EventSource(source, max_event_size=MAX_MESSAGE_BYTES):
        data = event.data
        if event.event == "message" and data:
            try:
                message = await read_jsonrpc(data.encode(errors="replace"))
            except (ValueError, RecursionError) as error:
                message = failure_message(request, f"the answer is not JSON: {error}", TransportFailure("lost"))
            data = message_to_json(message).decode()
        lines = [f"event: {event.event}", *([f"id: {event.id}"] if event.id else [])]
        lines += [f"retry: {event.retry}"] if event.retry is not None else []
        lines += [f"data: {line}" for line in data.split("\n")]
        yield ("\n".join(lines) + "\n\n").encode(errors="replace")


async def _limited_chunks(stream: httpx2.AsyncByteStream, problem: str) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if problem or size > MAX_MESSAGE_BYTES:
            raise httpx2.StreamError(problem or f"the answer has more than {MAX_MESSAGE_BYTES // 10**6} MB")
        yield chunk


async def _limit_response(response: httpx2.Response) -> None:
    """Make the body of a response raise StreamError if it is compressed, or too long and not a stream of events."""
    is_plain = response.headers.get("content-encoding", "identity").lower() == "identity"
    is_events = is_plain and _media_type(response) == _EVENT_STREAM
    if isinstance(response.stream, httpx2.AsyncByteStream) and not is_events:
        problem = "" if is_plain else "the answer is compressed, although compression was not requested"
        response.stream = _ReplacedStream(_limited_chunks(response.stream, problem), response.stream)
