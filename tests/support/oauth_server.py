"""An MCP server behind OAuth and its authorization server, both over HTTP, and a browser that logs in."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx2
from fastmcp.server.auth import AccessToken, RemoteAuthProvider, TokenVerifier
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.provider import TokenError
from mcp.server.auth.routes import build_metadata
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from support.mcp_servers import echoing, serving

SCOPES = ["notes", "tasks"]


class Provider(InMemoryOAuthProvider):
    """An authorization server whose parts can misbehave, with rotating refresh tokens."""

    def __init__(self, base_url: str) -> None:
        options = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES)
        super().__init__(base_url=base_url, client_registration_options=options, required_scopes=[])
        self.lifetime_s = 3600.0
        self.metadata: dict[str, Any] = {}
        """Additional fields of the metadata."""
        self.iss = ""
        self.documents: dict[str, OAuthClientInformationFull] = {}
        """Client metadata documents by address."""
        self.refresh_delay_s = 0.0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        client = await super().get_client(client_id) or self.documents.get(client_id)
        if client is not None:
            self.clients[client_id] = client
        return client

    async def authorize(self, client: Any, params: Any) -> str:
        address = await super().authorize(client, params)
        return f"{address}&{urlencode({'iss': self.iss})}" if self.iss else address

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> Any:
        return self._shortened(await super().exchange_authorization_code(client, authorization_code))

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> Any:
        await asyncio.sleep(self.refresh_delay_s)
        if refresh_token.token not in self.refresh_tokens:
            raise TokenError("invalid_grant", "the token was used before")
        return self._shortened(await super().exchange_refresh_token(client, refresh_token, scopes))

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        async def metadata(_: Any) -> JSONResponse:
            known = build_metadata(
                AnyHttpUrl(str(self.base_url)), None, self.client_registration_options, RevocationOptions()
            )
            return JSONResponse(known.model_dump(mode="json", exclude_none=True) | self.metadata)

        return [Route("/.well-known/oauth-authorization-server", metadata), *super().get_routes(mcp_path)]

    def expire_access_tokens(self) -> None:
        """Let every access token expire now."""
        self.access_tokens.clear()  # an expired token would also delete its refresh token

    def _shortened(self, token: Any) -> Any:
        token.expires_in = int(self.lifetime_s)
        self.access_tokens[token.access_token].expires_at = int(time.time() + self.lifetime_s)
        return token


@dataclass
class Guarded:
    """A server that requires a login, and the requests to its authorization server."""

    url: str
    provider: Provider
    received: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path and form or query of each request to the authorization server."""

    def paths(self, path: str) -> list[dict[str, str]]:
        """Return the forms and queries of the requests to a path."""
        return [sent for at, sent in self.received if at == path]

    async def browse(self, address: str) -> None:
        """Open an address like a browser, without a password."""
        await follow(address)


async def follow(address: str) -> None:
    """Follow an address to the callback of the program that waits for it."""
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        for _ in range(50):
            try:
                await client.get(address)
            except httpx2.ConnectError:
                await asyncio.sleep(0.1)
            else:
                return


class _Verifier(TokenVerifier):
    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self._provider = provider

    async def verify_token(self, token: str) -> AccessToken | None:
        return await self._provider.verify_token(token)


@asynccontextmanager
async def guarded_server(*, transport: str = "http") -> AsyncIterator[Guarded]:
    """Serve an MCP server with a tool `echo`, and its authorization server at another address."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    issuer, resource = (f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in listeners)
    provider = Provider(issuer)
    auth = RemoteAuthProvider(_Verifier(provider), [AnyHttpUrl(issuer)], resource, scopes_supported=SCOPES)
    server = echoing("guarded")
    server.auth = auth
    path = "/sse" if transport == "sse" else "/mcp"
    guarded = Guarded(f"{resource}{path}", provider)
    app = Starlette(routes=provider.get_routes())

    async def recorded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        sent = parse_qs(body.decode() or scope["query_string"].decode())
        guarded.received.append((scope["path"], {name: values[0] for name, values in sent.items()}))
        messages = [{"type": "http.request", "body": body}]

        async def again() -> Any:
            return messages.pop() if messages else await receive()

        await app(scope, again, send)

    resource_app = server.http_app(path=path, transport=transport)
    async with serving(recorded, listener=listeners[0]), serving(resource_app, listener=listeners[1]):
        yield guarded
