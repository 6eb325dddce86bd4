"""HTTP serving for connectors: the socket, limits of requests, token checks, and a graceful shutdown."""

import asyncio
import re
import signal
import socket
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from packetgate.state.errors import ConfigError

GRACE_S = 2
"""Seconds that running requests may take after a signal."""
HEADERS_S = 10.0
"""Seconds in which a request's headers must arrive."""
BODY_S = 60.0
"""Seconds in which a request's body must arrive."""
MAX_CONNECTIONS = 500
"""Maximum connections and running requests; a further request is answered with status 503."""
MAX_BODY_BYTES = 20_000_000
MAX_HEAD_BYTES = 65_536
"""Longest request line and headers."""

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_LENGTH_HEADER = re.compile(rb"^(?:content-length|transfer-encoding)[ \t]*:", re.IGNORECASE | re.MULTILINE)


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raise ConfigError if the address cannot be bound."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"--host {host} --port {port}: cannot bind: {error.strerror or error}") from error
    # its connections inherit that; asyncio sets it only for sockets that name their protocol
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def serve_app(app: ASGIApp, listening: socket.socket) -> None:
    """Serve an application until a signal ends it."""
    config = uvicorn.Config(
        _BoundedBodies(app),
        http=_BoundedProtocol,  # its parser limits the size of headers
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MAX_CONNECTIONS,
        lifespan="on",
        ws="none",
    )
    await _Server(config).serve(sockets=[listening])


def check_tokens_required(listening: socket.socket, *, has_tokens: bool, table: str, variable: str) -> None:
    """Check that a socket is reachable from this machine only, or that clients have tokens.

    Raises:
        ConfigError: other machines can reach the socket, and no client has a token.
    """
    host = str(listening.getsockname()[0])
    if not has_tokens and host != "::1" and not host.startswith("127."):
        raise ConfigError(
            f"{host} can be reached from other machines: give each client a token under [{table}.clients.NAME] in "
            f"packetgate.toml, or set {variable}"
        )


class _Server(uvicorn.Server):
    """Stops at a signal. Unlike uvicorn's own server, it does not raise the signal again, so that cleanup code runs."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving; a second interrupt does not wait for requests."""
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True


class _StrictRequests(h11.Connection):
    """Refuses a request with two headers for its length, which a reverse proxy may parse differently.

    h11 refuses only two different numbers, and ignores a number next to `Transfer-Encoding`.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event. Raise RemoteProtocolError for a request with two lengths."""
        if self.their_state is h11.IDLE:
            head, *rest = _END_OF_HEAD.split(self.trailing_data[0], 1)
            if rest and len(_LENGTH_HEADER.findall(head)) > 1:
                raise h11.RemoteProtocolError("two headers give the length")
        return super().next_event()


class _BoundedProtocol(H11Protocol):
    """Closes a connection on which no complete headers arrive in time.

    uvicorn has a timeout only for the silence between two requests.
    """

    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, config: uvicorn.Config, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        self.conn = _StrictRequests(h11.SERVER, MAX_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_deadline()

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _await_headers(self) -> None:
        self._stop_deadline()
        if self.transport.is_closing():
            return
        last = self.cycle

        def close_if_silent() -> None:
            if self.cycle is last and (last is None or last.response_complete):
                self.transport.close()

        self._deadline = self.loop.call_later(HEADERS_S, close_if_silent)


class _BoundedBodies:
    """Limits the size of a request's body, and the time in which the body arrives."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; if a limit is exceeded, answer in its place and close the connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size, is_complete, has_started = 0, False, False
        problem: tuple[int, str] | None = None
        deadline = asyncio.get_running_loop().time() + BODY_S

        async def bounded_receive() -> Message:
            nonlocal size, is_complete, problem
            try:
                async with asyncio.timeout_at(None if is_complete else deadline):
                    message = await receive()
            except TimeoutError:
                problem = 408, "the request did not arrive in time"
                return {"type": "http.disconnect"}
            size += len(message.get("body", b""))
            is_complete = not message.get("more_body")
            if size > MAX_BODY_BYTES:
                problem = 413, f"the request is larger than {MAX_BODY_BYTES:,} bytes"
            return {"type": "http.disconnect"} if problem else message

        async def unless_refused(message: Message) -> None:
            nonlocal has_started
            if problem is None or has_started:
                has_started = True
                await send(message)

        try:
            await self._app(scope, bounded_receive, unless_refused)
        except ClientDisconnect:
            pass  # the connection was closed while the body arrived
        except Exception:
            if problem is None:
                raise
        if problem is not None and not has_started:
            status, text = problem
            error = {"message": text, "type": "invalid_request_error", "param": None, "code": None}
            await JSONResponse({"error": error}, status, {"Connection": "close"})(scope, receive, send)
