"""HTTP serving for connectors: the socket, the check that other machines need a token, and a graceful shutdown."""

import signal
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from packetgate.state.errors import ConfigError

GRACE_S = 2
"""Seconds that running requests have to end after a signal."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raise ConfigError if the address cannot be bound."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"--host {host} --port {port}: cannot bind: {error.strerror or error}") from error


async def serve_app(app: ASGIApp, listening: socket.socket) -> None:
    """Serve an application until a signal ends it."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S, lifespan="on", ws="none")
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
