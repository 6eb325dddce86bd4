"""HTTP serving for connectors: the socket, bounds of requests, the check of tokens, and a graceful shutdown."""

import asyncio
import json
import signal
import socket
from types import FrameType

import h11
import uvicorn
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from packetgate.state.errors import ConfigError

GRACE_S = 2
"""Seconds that running requests have to end after a signal."""
HEADERS_S = 10.0
"""Longest time in which a request's headers must arrive."""
BODY_S = 60.0
"""Longest time in which a request's body must arrive."""
MAX_UNFINISHED = 200
"""Connections whose request has not arrived. One more closes the oldest."""
MAX_CONNECTIONS = 500
"""Connections and running requests; a further request is answered with status 503."""
MAX_BODY_BYTES = 20_000_000
MAX_BODIES_BYTES = 200_000_000
"""Bytes of the bodies of all running requests together."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raise ConfigError if the address cannot be bound."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"--host {host} --port {port}: cannot bind: {error.strerror or error}") from error


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


class _BoundedProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time, with status 408 if nothing was answered.

    uvicorn has a timeout only for the time between two requests.
    """

    _deadline: asyncio.TimerHandle | None = None
    """Set while a request is arriving."""
    _awaited: object = None
    """What arrives: the state of the client in h11."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request. Close the oldest of too many waiting connections."""
        super().connection_made(transport)
        self._restart_deadline()
        waiting = [other for other in self.connections if isinstance(other, _BoundedProtocol) and other._deadline]
        if len(waiting) > MAX_UNFINISHED:
            min(waiting, key=_when)._expire()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        if self.conn.their_state is not self._awaited or self._deadline is None:
            self._restart_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_deadline()

    def _restart_deadline(self) -> None:
        self._stop_deadline()
        self._awaited = self.conn.their_state
        seconds = {h11.IDLE: HEADERS_S, h11.SEND_BODY: BODY_S}.get(self.conn.their_state)
        if seconds is not None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(seconds, self._expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._stop_deadline()
        if self.cycle is None or self.cycle.response_complete:
            is_unanswered = self.conn.our_state is h11.IDLE
        else:
            is_unanswered = not self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if is_unanswered:
            body = json.dumps(_error_body("the request did not arrive in time")).encode()
            headers = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\n" + headers.encode() + body)
        self.transport.close()


def _when(connection: _BoundedProtocol) -> float:
    return connection._deadline.when() if connection._deadline else float("inf")


class _BoundedBodies:
    """Limits the size of a request's body, and of all bodies together."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; if a limit is exceeded, answer in its place and close the connection."""
        size, problem, has_started = 0, None, False

        async def bounded_receive() -> Message:
            nonlocal size, problem
            message = await receive()
            added = len(message.get("body", b""))
            size += added
            self._held += added
            if size > MAX_BODY_BYTES:
                problem = 413, f"the request is larger than {MAX_BODY_BYTES:,} bytes"
            elif self._held > MAX_BODIES_BYTES:
                problem = 503, "too many large requests run at once: try again later"
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
        finally:
            self._held -= size
        if problem is not None and not has_started:
            status, message = problem
            await JSONResponse(_error_body(message), status, {"Connection": "close"})(scope, receive, send)


def _error_body(message: str) -> dict[str, object]:
    """Return an error in OpenAI's form."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
