"""Requests that never end, over real sockets: the server limits their time and bytes, and answers other requests."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from packetgate.connectors import http

SHORT_S = 0.4
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


async def read(request: Request) -> Response:
    """Return the length of the body; for other methods, answer before the body arrives."""
    if request.method == "PUT":
        return PlainTextResponse("refused", 401)
    return PlainTextResponse(str(len(await request.body())))


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    """Run a server, and yield its port."""
    with http.bind_socket("127.0.0.1", 0) as listening:
        app = Starlette(routes=[Route("/", read, methods=["GET", "POST", "PUT"])])
        serving = asyncio.create_task(http.serve_app(app, listening))
        try:
            await wait_until_ready(port := listening.getsockname()[1])
            yield port
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def wait_until_ready(port: int) -> None:
    while True:
        with suppress(OSError):
            assert await exchange(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return
        await asyncio.sleep(0.01)


async def exchange(port: int, *parts: bytes, pause_s: float = 0) -> bytes:
    """Send the parts, and return everything that the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        with suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause_s)

    sending = asyncio.create_task(send())
    received = b""
    try:
        with suppress(ConnectionError):
            while part := await reader.read(65_536):
                received += part
    finally:
        sending.cancel()
        writer.close()
    return received


async def answered(port: int) -> bool:
    request = HEAD + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc"
    return (await exchange(port, request)).endswith(b"\r\n\r\n3")


def status_of(received: bytes) -> int:
    return int(received.split()[1])


@pytest.fixture
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEADERS_S", SHORT_S)
    monkeypatch.setattr(http, "BODY_S", SHORT_S)


TRICKLE = [b"x"] * 1_000


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((), None),
        ((HEAD,), None),
        ((HEAD, *[b"X-A: b\r\n"] * 1_000), None),
        ((HEAD + b"Content-Length: 100\r\n\r\nbegin",), 408),
        ((HEAD + b"Content-Length: 5000\r\n\r\n", *TRICKLE), 408),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n"] * 1_000), 408),
    ],
    ids=["silent", "half a header", "trickled headers", "half a body", "trickled body", "trickled chunks"],
)
@pytest.mark.usefixtures("short_deadlines")
async def test_an_unfinished_request_is_closed(parts: tuple[bytes, ...], status: int | None) -> None:
    async with server() as port:
        stuck = asyncio.create_task(exchange(port, *parts, pause_s=0.02))
        await asyncio.sleep(SHORT_S / 4)
        assert await answered(port)
        received = await stuck
        if status is None:
            assert received == b""
        else:
            assert status_of(received) == status
            assert (
                json.loads(received.partition(b"\r\n\r\n")[2])["error"]["message"]
                == "the request did not arrive in time"
            )
            assert received.count(b"HTTP/1.1") == 1
        assert await answered(port)


@pytest.mark.usefixtures("short_deadlines")
async def test_a_body_that_continues_after_the_answer_is_closed() -> None:
    async with server() as port:
        head = HEAD.replace(b"POST", b"PUT")
        received = await exchange(port, head + b"Content-Length: 9000\r\n\r\n", *TRICKLE, pause_s=0.02)
        assert status_of(received) == 401
        assert received.count(b"HTTP/1.1") == 1


@pytest.mark.usefixtures("short_deadlines")
def test_an_answer_in_parts_is_sent_at_once():
    with http.bind_socket("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_silent_connection_after_an_answer_is_closed() -> None:
    async with server() as port:
        received = await exchange(port, HEAD + b"Content-Length: 1\r\n\r\nx", b"P", pause_s=0.05)
        assert next(line.split()[1] for line in received.splitlines() if line.startswith(b"HTTP/1.1")) == b"200"


@pytest.mark.usefixtures("short_deadlines")
async def test_a_slow_answer_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(request: Request) -> Response:
        body = await request.body()
        await asyncio.sleep(SHORT_S * 2)
        return PlainTextResponse(body.decode() or "ready")

    monkeypatch.setitem(globals(), "read", slow)
    async with server() as port:
        received = await exchange(port, HEAD + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc")
        assert received.endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_too_large_body_is_refused(monkeypatch: pytest.MonkeyPatch, framing: str) -> None:
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 1_000_000)
    chunk = b"x" * 65_536
    if framing == "length":
        parts = [HEAD + b"Content-Length: 100000000\r\n\r\n", *[chunk] * 1_500]
    else:
        parts = [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"10000\r\n" + chunk + b"\r\n"] * 1_500]
    async with server() as port:
        received = await exchange(port, *parts)  # the reset may arrive before the answer
        assert not received or status_of(received) == 413
        assert await answered(port)
        exact = HEAD + b"Connection: close\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
        assert (await exchange(port, exact)).endswith(b"\r\n\r\n1000000")


async def test_headers_without_end_are_refused() -> None:
    async with server() as port:
        received = await exchange(port, HEAD, *[b"X-A: " + b"y" * 8_000 + b"\r\n"] * 100)
        assert not received or status_of(received) == 400
        assert await answered(port)


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 3\r\nContent-Length: 4",
        b"Content-Length: 3\r\ncontent-length : 3",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Content-Length: 3, 4",
        b"Content-Length: three",
        b"Content-Length: +3",
        b"Content-Length: -3",
    ],
)
async def test_a_request_whose_length_is_unclear_is_refused_and_closed(headers: bytes) -> None:
    smuggled = HEAD + b"Content-Length: 1\r\n\r\nx"
    async with server() as port:
        received = await exchange(port, HEAD + headers + b"\r\n\r\n0\r\n\r\n" + smuggled)
        assert (status_of(received), received.count(b"HTTP/1.1")) == (400, 1)
        assert b"connection: close" in received.lower()
        one, body = HEAD + b"Content-Length: 3\r\n\r\n", b"\nContent-Length: 1\nTransfer-Encoding: x\n\n"
        pipelined = await exchange(
            port, one + b"abc" + HEAD + b"Connection: close\r\nContent-Length: 40\r\n\r\n" + body
        )
        assert pipelined.endswith(b"\r\n\r\n40")
