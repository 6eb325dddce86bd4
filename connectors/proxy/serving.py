"""Serving a gateway over standard input and output, or over HTTP: FastMCP's transports, with our checks in front."""

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, TokenVerifier
from fastmcp.server.http import StarletteWithLifespan
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from connectors.interrupts import end, stopped_by_ctrl_c
from connectors.proxy.config import CONTEXT_NAME
from connectors.proxy.gateway import Gateway
from connectors.proxy.server import make_server
from state.errors import ConfigError

PATH = "/mcp"
CONTEXTS = "/context/"
GRACE_S = 2
"""How long requests may take to end when the proxy is stopped."""


class ClientTokens(TokenVerifier):
    """Knows the configured clients by their tokens."""

    def __init__(self, tokens: dict[str, str]) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who has a token, None for nobody. Every token is compared, so that the time tells none."""
        given = token.encode()
        known = [name for own, name in self._tokens.items() if hmac.compare_digest(own.encode(), given)]
        return AccessToken(token=token, client_id=known[0], scopes=[]) if known else None


class ByContext:
    """Requests of `/context/NAME/mcp` to the server of fixed lists, all others to the one whose lists follow."""

    def __init__(self, follows: StarletteWithLifespan, fixed: StarletteWithLifespan) -> None:
        self._follows = follows
        self._fixed = fixed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        path = scope.get("path", "")
        if not path.startswith(CONTEXTS):
            await self._follows(scope, receive, send)
            return
        name = path.removeprefix(CONTEXTS).removesuffix(PATH)
        if path.endswith(PATH) and CONTEXT_NAME.fullmatch(name):
            await self._fixed(scope, receive, send)
            return
        error = f"{path}: a context's address is /context/NAME/mcp, its name at most 64 of a-z, 0-9, - and _"
        await JSONResponse({"error": error}, status_code=404)(scope, receive, send)


async def serve_stdio(gateway: Gateway) -> None:
    """Serve the one client at standard input and output, until it goes away.

    A signal ends the process when what has ended is recorded: what reads standard input cannot be stopped.
    """
    loop = asyncio.get_running_loop()

    async def stopped() -> None:
        await gateway.recorder.written()
        end()

    with stopped_by_ctrl_c(lambda: asyncio.run_coroutine_threadsafe(stopped(), loop)):
        await make_server(gateway).run_stdio_async(show_banner=False, log_level="WARNING")


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound there.

    Raises:
        ConfigError: that cannot be.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"--host {host} --port {port}: cannot listen there: {error.strerror or error}") from error


class _Server(uvicorn.Server):
    """Ends when it is told to, and lets what stands around it end too: uvicorn would raise the signal once more."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Heed signals while it runs."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def serve_http(gateway: Gateway, listening: socket.socket, tokens: dict[str, str], hosts: list[str]) -> None:
    """Serve clients over streamable HTTP until stopped.

    Raises:
        ConfigError: others than this machine could reach it, and no client has a token.
    """
    host = listening.getsockname()[0]
    if not tokens and not _is_local(host):
        raise ConfigError(
            f"{host} is reached from other machines: give each client a token under [proxy.clients.NAME] in "
            "packetgate.toml, or set PACKETGATE_PROXY_TOKEN"
        )
    app = http_app(gateway, tokens, hosts)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S, lifespan="on", ws="none")
    await _Server(config).serve(sockets=[listening])


def http_app(gateway: Gateway, tokens: dict[str, str], hosts: list[str]) -> Starlette:
    """Return both servers as one application."""
    auth = ClientTokens(tokens) if tokens else None

    def guarded(server: FastMCP[Any], path: str) -> StarletteWithLifespan:
        return server.http_app(path=path, host_origin_protection=True, allowed_hosts=hosts)

    follows = guarded(make_server(gateway, auth), PATH)
    fixed = guarded(make_server(gateway, auth), f"{CONTEXTS}{{name}}{PATH}")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for app in (follows, fixed):
                await running.enter_async_context(app.lifespan(app))
            yield

    return Starlette(routes=[Mount("/", ByContext(follows, fixed))], lifespan=lifespan)


def _is_local(address: Any) -> bool:
    return str(address) == "::1" or str(address).startswith("127.")
