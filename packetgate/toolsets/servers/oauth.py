"""OAuth to servers over HTTP. A connection uses the stored login; only `log_in` asks the user for one."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from fastmcp.client.auth import OAuth
from key_value.aio.stores.memory import MemoryStore
from key_value.aio.wrappers.read_only import ReadOnlyWrapper
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    create_client_info_from_metadata_url,
    extract_field_from_www_auth,
    should_use_client_metadata_url,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from packetgate.state.errors import ServerError
from packetgate.state.printing import printable
from packetgate.state.redaction import learn_secret, redacted
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.http import BoundedHttp, uses_sse
from packetgate.toolsets.servers.logins import Login, LoginStore

AUTHORIZATION_TIMEOUT_S = 10.0
"""Longest wait for an answer of an authorization server, in seconds."""
LOGIN_TIMEOUT_S = 300.0
"""Longest wait for the user to log in, in seconds."""
_REFUSED = (400, 401, 403)
_MAX_TRIES = 3
"""Attempts of one request: without the login, with the stored one, and with the refreshed one."""

logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # its messages quote answers with tokens
logging.getLogger("fastmcp.client.auth").setLevel(logging.WARNING)

ShowAddress = Callable[[str], Coroutine[Any, Any, None]]


def may_log_in(entry: Mapping[str, Any]) -> bool:
    """Whether a server with this entry may need a login: it has a URL, and the entry has no credentials."""
    headers = {name.lower() for name in entry.get("headers") or ()}
    return "url" in entry and entry.get("auth", "oauth") == "oauth" and "authorization" not in headers


def login_store(config: ServerConfig, folder: Path) -> LoginStore:
    """Return the store of a server's login.

    Raises:
        ServerError: a variable of the entry is not set.
    """
    return LoginStore(folder, config.resolved_entry()["url"])


class LoginState(NamedTuple):
    """State of a server's stored login."""

    server: str
    is_usable: bool
    text: str


def login_states(servers: Iterable[ServerConfig], folder: Path) -> Iterator[LoginState]:
    """Yield the state of each login that is stored, or that a server's entry asks for. Blocking."""
    for server in servers:
        with suppress(ServerError):  # a variable is not set, as the connection reports
            if may_log_in(server.entry) and (state := _login_state(server, folder)):
                yield state


def _login_state(server: ServerConfig, folder: Path) -> LoginState | None:
    store, hint = login_store(server, folder), _hint(server.name)
    login = store.read()
    if login is None:
        is_expected = server.entry.get("auth") == "oauth" or "oauth" in server.entry
        return LoginState(server.name, False, f"not logged in: {hint}") if is_expected else None
    about = f"scopes: {login.tokens.scope or 'not named'}; stored in {store.place}"
    if login.expires_at is None:
        return LoginState(server.name, True, f"logged in; {about}")
    end = f"{datetime.fromtimestamp(login.expires_at, UTC):%Y-%m-%d %H:%M} UTC"
    if login.tokens.refresh_token:
        return LoginState(server.name, True, f"logged in until {end}, then refreshed; {about}")
    if login.expires_at > time.time():
        return LoginState(server.name, True, f"logged in until {end}; {about}")
    return LoginState(server.name, False, f"the login expired at {end}: {hint}; {about}")


async def log_in(config: ServerConfig, folder: Path, show: ShowAddress) -> Login:
    """Let the user log in to a server in a browser, and store the login.

    Args:
        show: shows the address at which the user logs in.

    Raises:
        ServerError: the login failed, or the server asks for none.
    """
    entry = config.resolved_entry()
    auth, accept = _NewLogin(config.name, entry, folder, show), "application/json, text/event-stream"
    method = "GET" if uses_sse(entry) else "POST"
    try:
        async with BoundedHttp({**entry.get("headers", {}), "Accept": accept}, auth=auth) as client:
            client.event_hooks["request"].append(_limit_time)
            async with client.stream(method, entry["url"], json=None if method == "GET" else _INITIALIZE) as response:
                status = response.status_code
    except (OAuthFlowError, httpx2.HTTPError, OSError, RuntimeError, ValueError) as error:
        cause = printable(redacted(str(error) or type(error).__name__)).splitlines()[0]
        raise ServerError(f"the login to server {config.name!r} failed: {cause}") from error
    if auth.login is None:
        raise ServerError(f"server {config.name!r} did not ask for a login: HTTP {status}")
    return auth.login


_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "packetgate", "version": "0"},
    },
}
"""The request that makes a server answer that it needs a login."""


class _ServerLogin(OAuth):
    """FastMCP's OAuth client, which stores a whole login at a time."""

    def __init__(self, server: str, entry: Mapping[str, Any], folder: Path) -> None:
        settings = dict(entry.get("oauth") or {})
        self._configured_scopes = settings.pop("scopes", None)
        super().__init__(
            entry["url"],
            scopes=self._configured_scopes,
            client_name="Packetgate",
            token_storage=ReadOnlyWrapper(MemoryStore()),  # `context.storage` is used instead
            callback_timeout=LOGIN_TIMEOUT_S,
            **settings,
        )
        self.login: Login | None = None
        self._server = server
        self._store = LoginStore(folder, entry["url"])
        self.context.storage = self

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens in use."""
        return self.context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the login, which is complete with its tokens."""
        context = self.context
        if context.client_info is None:
            return
        is_static = self._client_id is not None and context.client_info.client_id == self._client_id
        kept = {"client_secret": None} if is_static else {}  # the entry has it
        self.login = Login(
            url=self._store.url,
            tokens=tokens,
            expires_at=context.token_expiry_time,
            client=context.client_info.model_copy(update=kept),
            authorization_server=context.oauth_metadata,
            resource=context.protected_resource_metadata,
        )
        self._learn_secrets()
        await asyncio.to_thread(self._store.write, self.login)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration in use."""
        return self.context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the registration is stored with the tokens."""

    def _learn_secrets(self) -> None:
        login, name = self.login, f"login of {self._server}"
        for secret in (
            (login.tokens.access_token, login.tokens.refresh_token, login.client.client_secret) if login else ()
        ):
            learn_secret(name, secret or "")


class StoredLogin(_ServerLogin):
    """Sends a server's stored login, and refreshes it. It never asks the user."""

    def __init__(self, server: str, entry: Mapping[str, Any], folder: Path) -> None:
        super().__init__(server, entry, folder)
        self.problem = ""
        """Why the last request was sent without a login that the server accepts; empty if it was accepted."""
        self._renewals: set[asyncio.Task[None]] = set()

    async def _initialize(self) -> None:
        """Load the stored login."""
        self.login, context = await asyncio.to_thread(self._store.read), self.context
        self._initialized = True
        context.clear_tokens()
        if login := self.login:
            self._learn_secrets()
            context.current_tokens, context.token_expiry_time = login.tokens, login.expires_at
            is_static = self._static_client_info and self._static_client_info.client_id == login.client.client_id
            context.client_info = self._static_client_info if is_static else login.client
            context.oauth_metadata, context.protected_resource_metadata = login.authorization_server, login.resource

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with the login. The SDK's flow would block other requests until the answer."""
        token, response = await self._token(None), None
        for _ in range(_MAX_TRIES):
            if token:  # not every server with a URL asks for a login
                self._add_auth_header(request)
            response = yield request
            refused, could_not_refresh = token, not token and self.context.current_tokens is not None
            if response.status_code != 401 or could_not_refresh or not (token := await self._token(refused)):
                break
        if response is not None:
            self._note(response)

    def _note(self, response: httpx2.Response) -> None:
        challenge = response.headers.get("www-authenticate", "")
        lacking = extract_field_from_www_auth(response, "error") == "insufficient_scope"
        if response.status_code == 401 and ("bearer" in challenge.lower() or self.login):
            self.problem = self.problem or f"it needs a login: {_hint(self._server)}"
        elif response.status_code == 403 and lacking:
            scope = extract_field_from_www_auth(response, "scope") or "more"
            names = printable(scope)[:100]
            self.problem = (
                f'the login lacks scopes: add {names} to "scopes" of "oauth" in its entry; {_hint(self._server)}'
            )
        elif response.status_code != 401:
            self.problem = ""

    async def _token(self, refused: str | None) -> str:
        """Return a valid access token other than the refused one, after a refresh if need be; empty if there is none.

        `refused`: the token of the request that the server refused; None before the first request.
        """
        has_none = self._initialized and self.context.current_tokens is None
        if not self._is_usable(refused) and not (refused is None and has_none):
            # cancelling the call does not cancel the refresh, which may have replaced the refresh token
            renewal = asyncio.create_task(self._renew(refused))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
            await asyncio.shield(renewal)
        tokens = self.context.current_tokens
        return tokens.access_token if tokens and self._is_usable(refused) else ""

    def _is_usable(self, refused: str | None) -> bool:
        tokens = self.context.current_tokens
        return tokens is not None and self.context.is_token_valid() and tokens.access_token != refused

    async def _renew(self, refused: str | None) -> None:
        """Load the login, and refresh it unless another process or call has done so."""
        try:
            async with self.context.lock:
                if await self._needs_refresh(refused):
                    async with self._store.locked():
                        if await self._needs_refresh(refused):
                            await self._refresh()
        except TimeoutError:
            self.problem = f"its login was not refreshed: no answer within {AUTHORIZATION_TIMEOUT_S:g} s"
        except (OAuthFlowError, httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            self.problem = f"its login was not refreshed: {error or type(error).__name__}"

    async def _needs_refresh(self, refused: str | None) -> bool:
        await self._initialize()
        return not self._is_usable(refused) and self.context.can_refresh_token()

    async def _refresh(self) -> None:
        async with asyncio.timeout(AUTHORIZATION_TIMEOUT_S), BoundedHttp() as client:
            response = await client.send(request := await self._refresh_token())
        if response.status_code in _REFUSED:
            self.problem = f"its login was revoked or has expired: {_hint(self._server)}"
            self.context.clear_tokens()
            if b'"invalid_grant"' in response.content:
                await asyncio.to_thread(self._store.delete)
        elif response.status_code != 200 or not await self._handle_refresh_response(response):
            self.problem = f"{request.url.host} did not refresh its login: HTTP {response.status_code}"


class _FixedScopes(OAuthClientMetadata):
    """Keeps the configured scopes, which the SDK would replace by those that the server names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "scope":
            super().__setattr__(name, value)


class _NewLogin(_ServerLogin):
    """The SDK's flow without a stored login: the user logs in."""

    def __init__(self, server: str, entry: Mapping[str, Any], folder: Path, show: ShowAddress) -> None:
        super().__init__(server, entry, folder)
        self._show = show
        if self._configured_scopes:
            self.context.client_metadata = _FixedScopes(**self.context.client_metadata.model_dump())

    async def _initialize(self) -> None:
        """Start without a login, and with a new registration: the callback's port is part of it."""
        self.context.client_info, self._initialized = self._static_client_info, True

    async def _perform_authorization(self) -> httpx2.Request:
        """Prefer a client metadata document over the client that was registered by hand."""
        url, metadata = self.context.client_metadata_url, self.context.oauth_metadata
        if url and should_use_client_metadata_url(metadata, url):
            redirects = self.context.client_metadata.redirect_uris
            self.context.client_info = create_client_info_from_metadata_url(url, redirect_uris=redirects)
        return await super()._perform_authorization()

    async def redirect_handler(self, authorization_url: str) -> None:
        """Show the address at which the user logs in. The callback does not wait: some browsers run until closed."""
        self._shown = asyncio.create_task(self._show(authorization_url))


async def _limit_time(request: httpx2.Request) -> None:
    request.extensions.setdefault("timeout", httpx2.Timeout(AUTHORIZATION_TIMEOUT_S).as_dict())


def _hint(server: str) -> str:
    return f"run `packetgate login {server}`"
