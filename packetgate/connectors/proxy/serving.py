"""Serving a gateway over standard input and output, or over HTTP: FastMCP's transports, with our checks in front."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, TokenVerifier
from fastmcp.server.http import StarletteWithLifespan
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from packetgate.connectors.clients import client_of
from packetgate.connectors.http import check_guarded, serve_app
from packetgate.connectors.interrupts import end, stopped_by_ctrl_c
from packetgate.connectors.proxy.config import CONTEXT_NAME
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.server import make_server

PATH = "/mcp"
CONTEXTS = "/context/"
TOKEN = "PACKETGATE_PROXY_TOKEN"  # noqa: S105
"""The variable with a token for whoever is configured nowhere."""


class ClientTokens(TokenVerifier):
    """Knows the configured clients by their tokens."""

    def __init__(self, tokens: dict[str, str]) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who has a token, None for nobody."""
        known = client_of(token, self._tokens)
        return AccessToken(token=token, client_id=known, scopes=[]) if known else None


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


async def serve_http(gateway: Gateway, listening: socket.socket, tokens: dict[str, str], hosts: list[str]) -> None:
    """Serve clients over streamable HTTP until stopped.

    Raises:
        ConfigError: others than this machine could reach it, and no client has a token.
    """
    check_guarded(listening, has_tokens=bool(tokens), table="proxy", variable=TOKEN)
    await serve_app(http_app(gateway, tokens, hosts), listening)


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
