"""HTTP to MCP servers: the size of answers is limited, and an unreadable answer becomes a JSON-RPC error."""

import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from fastmcp.mcp_config import infer_transport_type_from_url
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, RequestId

from packetgate.state.printing import printable
from packetgate.tools.servers.messages import TransportFailure, failure_message, message_to_json, read_jsonrpc_async
from packetgate.tools.servers.session import MAX_MESSAGE_BYTES, BoundedTransport

_MAX_SEARCHED_BYTES = 100_000
"""Bytes of an error's body that are searched for its first line."""
_MAX_LINE_CHARS = 200
_EVENT_STREAM = "text/event-stream"
_TAG = re.compile(r"<[^>]*>")


def remote_transport(entry: Mapping[str, Any]) -> BoundedTransport:
    """Return the transport to a server that has a URL. `entry` is the server's resolved entry of `mcp.json`."""
    url = entry["url"]
    options: dict[str, Any] = {"headers": entry.get("headers"), "auth": entry.get("auth")}
    if (entry.get("transport") or infer_transport_type_from_url(url)) == "sse":
        return BoundedTransport(SSETransport(url, sse_read_timeout=entry.get("sse_read_timeout"), **options))
    return BoundedTransport(StreamableHttpTransport(url, httpx_client_factory=BoundedHttp, **options))


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
        """Send a request and return the response. A JSON-RPC request always gets a JSON-RPC answer."""
        request_id = _request_id(request)
        # the session limits the time of calls; event streams have no limit
        if request_id is not None or request.method == "GET":
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": None}
        if request_id is None:
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
            if response.has_redirect_location:
                return response
            if response.status_code < 400 and _media_type(response) == _EVENT_STREAM:
                source = httpx2.Response(200, headers=response.headers, stream=response.stream, request=request)
                response.stream = _ReplacedStream(_readable_events(source, request_id), source)
                return response
            return _json_response(response, await _read_answer(response, request_id))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol) as error:
            failure, why = TransportFailure("unsent"), str(error) or type(error).__name__
        except httpx2.TransportError as error:
            failure, why = TransportFailure("broken"), str(error) or type(error).__name__
        except (httpx2.StreamError, httpx2.DecodingError) as error:
            failure, why = TransportFailure("unreadable"), str(error)
        return _json_response(httpx2.Response(200, request=request), failure_message(request_id, why, failure))


def _request_id(request: httpx2.Request) -> RequestId | None:
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    match message:
        case {"jsonrpc": "2.0", "method": str(), "id": int() | str() as request_id}:
            return request_id
    return None


async def _read_answer(response: httpx2.Response, request: RequestId) -> JSONRPCMessage:
    status = response.status_code
    try:
        body = await response.aread()
    except (httpx2.TransportError, httpx2.StreamError):
        if status < 400:
            raise
        body = b""  # the status alone describes the error
    await response.aclose()
    try:
        message = await read_jsonrpc_async(body)
    except (ValueError, RecursionError):
        message = None
    if isinstance(message, JSONRPCError) or (isinstance(message, JSONRPCResponse) and status < 400):
        message.id = request
        return message
    line = _first_line(body)
    why = f"HTTP {status} {response.reason_phrase}".rstrip() + (f": {line}" if line else "")
    retry_after_s = _retry_after_s(response.headers.get("retry-after", "").strip())
    if status < 400:
        return failure_message(request, f"the answer is not JSON-RPC: {why}", TransportFailure("unreadable", status))
    return failure_message(request, why, TransportFailure("http", status, retry_after_s))


def _retry_after_s(header: str) -> float | None:
    if header.isdecimal():
        return float(header)
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return None


def _first_line(body: bytes) -> str:
    lines = _TAG.sub(" ", body[:_MAX_SEARCHED_BYTES].decode(errors="replace")).splitlines()
    return printable(next((line.strip() for line in lines if line.strip()), ""))[:_MAX_LINE_CHARS]


def _json_response(response: httpx2.Response, message: JSONRPCMessage) -> httpx2.Response:
    replaced = {"content-type", "content-length", "content-encoding", "transfer-encoding"}
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in replaced]
    headers.append(("content-type", "application/json"))
    return httpx2.Response(200, headers=headers, content=message_to_json(message), request=response.request)


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
                message = await read_jsonrpc_async(data.encode(errors="replace"))
            except (ValueError, RecursionError) as error:
                message = failure_message(request, f"the answer is not JSON: {error}", TransportFailure("unreadable"))
            data = message_to_json(message).decode()
        lines = [f"event: {event.event}", *([f"id: {event.id}"] if event.id else [])]
        lines += [f"retry: {event.retry}"] if event.retry is not None else []
        lines += [f"data: {line}" for line in data.split("\n")]
        yield ("\n".join(lines) + "\n\n").encode(errors="replace")


async def _limited_chunks(stream: httpx2.AsyncByteStream, problem: str) -> AsyncIterator[bytes]:
    """Yield the bytes of a stream.

    Raises:
        StreamError: `problem` is not empty, or the stream has more than `MAX_MESSAGE_BYTES`.
    """
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if problem or size > MAX_MESSAGE_BYTES:
            raise httpx2.StreamError(problem or f"the answer has more than {MAX_MESSAGE_BYTES // 10**6} MB")
        yield chunk


async def _limit_response(response: httpx2.Response) -> None:
    is_plain = response.headers.get("content-encoding", "identity").lower() == "identity"
    if isinstance(response.stream, httpx2.AsyncByteStream) and not (
        is_plain and _media_type(response) == _EVENT_STREAM
    ):
        problem = "" if is_plain else "the answer is compressed, although compression was not requested"
        response.stream = _ReplacedStream(_limited_chunks(response.stream, problem), response.stream)
