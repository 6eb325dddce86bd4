"""HTTP to MCP servers: bounded answers, and a JSON-RPC error for every answer that the SDK cannot read."""

import asyncio
import email.utils
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, RequestId

from packetgate.state.printing import printable
from packetgate.tools.servers.bounds import MAX_MESSAGE_BYTES, MOST_WAITS, BoundedTransport
from packetgate.tools.servers.messages import Failure, failed, read_aside, restamped

_ERROR_BYTES = 100_000
"""Bytes that are read of the body of an HTTP error."""
_LINE_CHARS = 200
_EVENTS = "text/event-stream"
_TITLE = re.compile(r"<title[^>]*>\s*([^<]+?)\s*</title>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_SSE_PATH = re.compile(r"/sse(/|$)")
_NO_ANSWER_TO_THE_WAY = frozenset({401, 403, 407, 408, 425, 429})
"""Statuses that concern the client or the time: the other transport would be refused as well."""


class LenientHttp(httpx2.AsyncClient):
    """An HTTP client for one session over streamable HTTP. It rejects long and compressed answers.

    The SDK's transport calls `send`.
    """

    def __init__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_: Any,
    ) -> None:
        """Accept the arguments of the SDK's client factory."""
        timeout = timeout or httpx2.Timeout(30.0, read=300.0)  # the SDK's own
        super().__init__(headers={"Accept-Encoding": "identity", **(headers or {})}, timeout=timeout, auth=auth)
        self.event_hooks["response"].append(_bound)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request. A JSON-RPC request always gets a JSON-RPC answer."""
        waits = request.extensions.get("timeout") or {}
        if request.method == "GET":  # an event stream may be silent for any time
            request.extensions["timeout"] = {**waits, "read": None}
            return self._event_stream(await super().send(request, **options))
        asked = _request_id(request)
        if asked is None:
            return await self._send_notification(request, **options)
        if waits.get("read"):  # the session has its own time-out, which progress extends
            request.extensions["timeout"] = {**waits, "read": waits["read"] * MOST_WAITS}
        try:
            return await self._answered(await super().send(request, **options), asked)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol) as error:
            failure, why = Failure("unsent"), str(error) or type(error).__name__
        except httpx2.TransportError as error:
            failure, why = Failure("broken"), str(error) or type(error).__name__
        except (httpx2.StreamError, httpx2.DecodingError) as error:
            failure, why = Failure("unreadable"), str(error)
        return await self._deliver(httpx2.Response(200, request=request), [failed(asked, why, failure)])

    def _event_stream(self, response: httpx2.Response) -> httpx2.Response:
        return _with_events(response, None)

    async def _send_notification(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        return await super().send(request, **options)

    async def _answered(self, response: httpx2.Response, asked: RequestId) -> httpx2.Response:
        if response.has_redirect_location:
            return response
        if response.status_code < 400 and _kind(response) == _EVENTS:
            return _with_events(response, asked)
        return await self._deliver(response, await _answer(response, asked))

    async def _deliver(self, response: httpx2.Response, messages: list[JSONRPCMessage]) -> httpx2.Response:
        return _json(response, messages)


class LenientSse(LenientHttp):
    """An HTTP client for one session over the older SSE transport: answers arrive on its event stream."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """Accept the arguments of the SDK's client factory."""
        super().__init__(*given, **named)
        self._events: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(1)

    def _event_stream(self, response: httpx2.Response) -> httpx2.Response:
        response = _with_events(response, None)
        if isinstance(response.stream, _LenientEvents):
            response.stream = _JoinedEvents(response.stream, self._events)
        return response

    async def _send_notification(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super()._send_notification(request, **options)
        return httpx2.Response(202, request=request) if response.status_code >= 400 else response

    async def _answered(self, response: httpx2.Response, asked: RequestId) -> httpx2.Response:
        if response.has_redirect_location or response.status_code >= 400:
            return await self._deliver(response, await _answer(response, asked))
        return response

    async def _deliver(self, response: httpx2.Response, messages: list[JSONRPCMessage]) -> httpx2.Response:
        for one in messages:
            await self._events.put(f"event: message\ndata: {_dumped(one)}\n\n".encode())
        return httpx2.Response(202, request=response.request)


def _request_id(request: httpx2.Request) -> RequestId | None:
    try:
        sent = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    match sent:
        case {"jsonrpc": "2.0", "method": str(), "id": int() | str() as asked}:
            return asked
    return None


async def _answer(response: httpx2.Response, asked: RequestId) -> list[JSONRPCMessage]:
    status = response.status_code
    body = await (_beginning(response) if status >= 400 else response.aread())
    await response.aclose()
    retry_after_s = _retry_after_s(response)
    messages = await read_aside(body, asked)
    answers = [one for one in messages if isinstance(one, JSONRPCResponse | JSONRPCError)]
    mine = next((one for one in answers if str(one.id) == str(asked)), answers[0] if answers else None)
    if isinstance(mine, JSONRPCError):
        mine = JSONRPCError(jsonrpc="2.0", id=asked, error=restamped(mine.error, status, retry_after_s))
    elif mine is None or status >= 400:
        line = _first_line(body)
        what = "" if status >= 400 else "a message" if line else "an answer"
        message = f"HTTP {status} {response.reason_phrase}".rstrip()
        message += (f" without {what}" if what else "") + (f": {line}" if line else "")
        failure = Failure("http" if status >= 400 else "unreadable", status, False, retry_after_s)
        mine = failed(asked, message, failure)
    else:
        mine.id = asked
    return [*(one for one in messages if one not in answers), mine]


async def _beginning(response: httpx2.Response) -> bytes:
    body = b""
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) >= _ERROR_BYTES:
                break
    except (httpx2.TransportError, httpx2.StreamError):
        pass  # the status is enough
    return body[:_ERROR_BYTES]


def _first_line(body: bytes) -> str:
    text = body.decode(errors="replace")
    title = _TITLE.search(text)
    lines = [title[1]] if title else (_TAG.sub(" ", text) if text.lstrip().startswith("<") else text).splitlines()
    return printable(next((line.strip() for line in lines if line.strip()), ""))[:_LINE_CHARS]


def _retry_after_s(response: httpx2.Response) -> float | None:
    header = response.headers.get("retry-after", "")
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _json(response: httpx2.Response, messages: list[JSONRPCMessage]) -> httpx2.Response:
    if len(messages) == 1:
        kind, body = "application/json", _dumped(messages[0])
    else:
        kind, body = _EVENTS, "".join(f"data: {_dumped(one)}\n\n" for one in messages)
    dropped = {"content-type", "content-length", "content-encoding", "transfer-encoding"}
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in dropped]
    headers.append(("content-type", kind))
    return httpx2.Response(200, headers=headers, content=body.encode(), request=response.request)


def _dumped(message: JSONRPCMessage) -> str:
    return message.model_dump_json(by_alias=True, exclude_unset=True)


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _with_events(response: httpx2.Response, asked: RequestId | None) -> httpx2.Response:
    if _kind(response) == _EVENTS and response.status_code < 400:
        source = httpx2.Response(200, headers=response.headers, stream=response.stream, request=response.request)
        response.stream = _LenientEvents(source, asked)
    return response


class _LenientEvents(httpx2.AsyncByteStream):
    def __init__(self, source: httpx2.Response, asked: RequestId | None) -> None:
        self._source = source
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        foreign: list[JSONRPCMessage] = []
        async for event in httpx2.EventSource(self._source, max_event_size=MAX_MESSAGE_BYTES):
            about = [f"id: {event.id}"] if event.id else []
            about += [f"retry: {event.retry}"] if event.retry is not None else []
            if event.event != "message" or not event.data:
                datas = [event.data] if event.event != "message" else [""]
            else:
                messages = await read_aside(event.data.encode(errors="surrogatepass"), self._asked)
                for one in messages:
                    if isinstance(one, JSONRPCError):
                        one.error = restamped(one.error, self._source.status_code)
                foreign += [one for one in messages if self._is_foreign(one)]
                datas = [_dumped(one) for one in messages if one not in foreign] or [""]
            for data in datas:
                lines = [f"event: {event.event}", *about, *(f"data: {line}" for line in data.split("\n"))]
                yield ("\n".join(lines) + "\n\n").encode(errors="replace")
        for one in foreign[:1]:  # no other answer came, or the SDK has stopped reading
            yield f"data: {_dumped(one)}\n\n".encode()

    def _is_foreign(self, message: JSONRPCMessage) -> bool:
        if self._asked is None or not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        return str(message.id) != str(self._asked)

    async def aclose(self) -> None:
        await self._source.aclose()


class _JoinedEvents(httpx2.AsyncByteStream):
    def __init__(self, events: _LenientEvents, joined: "asyncio.Queue[bytes | Exception | None]") -> None:
        self._events = events
        self._joined = joined

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reading = asyncio.create_task(self._read())
        try:
            while (event := await self._joined.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            reading.cancel()

    async def _read(self) -> None:
        try:
            async for event in self._events:
                await self._joined.put(event)
        except (httpx2.TransportError, httpx2.StreamError) as error:
            await self._joined.put(error)
        else:
            await self._joined.put(None)

    async def aclose(self) -> None:
        await self._events.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, flaw: str = "") -> None:
        self._stream = stream
        self._flaw = flaw

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._stream:
            count += len(chunk)
            if self._flaw or count > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(self._flaw or f"the answer has more than {MAX_MESSAGE_BYTES // 10**6} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        response.stream = _BoundedStream(response.stream, "the answer is compressed, which it was not asked to be")
    elif _kind(response) != _EVENTS:
        response.stream = _BoundedStream(response.stream)


class RemoteTransport(BoundedTransport):
    """A transport to a server at a URL: streamable HTTP or SSE."""

    def __init__(self, entry: Mapping[str, Any], *, sse: bool = False) -> None:
        """Accept an entry of `mcp.json` with its variables filled in."""
        self._entry = entry
        by_path = entry.get("transport") is None and _SSE_PATH.search(urlsplit(entry["url"]).path)
        self._sse = sse or entry.get("transport") == "sse" or bool(by_path)
        self._status = 0
        given: dict[str, Any] = {"headers": entry.get("headers"), "auth": entry.get("auth")}
        given["httpx_client_factory"] = self._client
        super().__init__(
            SSETransport(entry["url"], sse_read_timeout=entry.get("sse_read_timeout"), **given)
            if self._sse
            else StreamableHttpTransport(entry["url"], **given)
        )

    def other_way(self) -> "RemoteTransport | None":
        """Return the SSE transport if the server refused the request, as SSE servers do; else None."""
        refused = 400 <= self._status < 500 and self._status not in _NO_ANSWER_TO_THE_WAY
        return RemoteTransport(self._entry, sse=True) if refused and not self._sse else None

    def _client(self, *given: Any, **named: Any) -> httpx2.AsyncClient:
        client = LenientSse(*given, **named) if self._sse else LenientHttp(*given, **named)
        client.event_hooks["response"].append(self._note)
        return client

    async def _note(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self._status = response.status_code
