"""Logins by OAuth, with a real authorization server and its MCP server, both over HTTP."""

import asyncio
import json
import re
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.shared.auth import OAuthClientInformationFull
from support.oauth_server import SCOPES, Guarded, guarded_server
from support.scripted_openai import free_port

from packetgate.state.errors import LostCallError, ServerError
from packetgate.state.redaction import redacted
from packetgate.toolsets.servers.config import ServerConfig, UnusableEntryError, read_server_entry
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.logins import LoginStore
from packetgate.toolsets.servers.oauth import AUTHORIZATION_TIMEOUT_S, log_in, login_states
from packetgate.toolsets.servers.opening import new_connection

DOCUMENT = "https://packetgate.example/client.json"
LATE = 3600 * 24


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch):
    """Checks that no connection opens a browser."""
    monkeypatch.setattr(webbrowser, "open", lambda *_: pytest.fail("a browser was opened"))


def config_of(guarded: Guarded, **more: Any) -> ServerConfig:
    return ServerConfig("notes", read_server_entry({"url": guarded.url, **more}).fields)


@asynccontextmanager
async def opened(config: ServerConfig, home: Path) -> AsyncIterator[McpHub]:
    async with McpHub([new_connection(config, home / "logs")], patience_s=20) as hub:
        await hub.catalogue(wait_for_all=True)
        yield hub


def problem(hub: McpHub) -> str:
    return hub.health()[0].problem


def has_login_file(home: Path) -> bool:
    return bool([*home.glob("logins/*.json")])


def login_file(home: Path) -> Path:
    (file,) = (home / "logins").glob("*.json")
    return file


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_running_process_connects_after_the_login(tmp_path: Path, transport: Literal["http", "sse"]):
    async with guarded_server(transport=transport) as guarded:
        config = config_of(guarded)
        async with opened(config, tmp_path) as hub:
            assert problem(hub) == "it needs a login: run `packetgate login notes`"
            assert not guarded.received  # no client was registered, and no browser was opened
            login = await log_in(config, tmp_path / "logins", guarded.browse)
            assert "notes.echo" in await hub.catalogue()
            assert (await hub.call("notes.echo", {"text": "x"})).output == "guarded says x"
        (state,) = login_states([config], tmp_path / "logins")
        assert re.match(r"logged in until 2\d{3}-.* UTC, then refreshed; scopes: notes tasks; stored in", state.text)
        file = login_file(tmp_path)
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert redacted(f"sent {login.tokens.access_token}") == "sent [redacted: login of notes]"
        asked = guarded.paths("/authorize")[0]  # the browser may retry until the program waits for the answer
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == guarded.paths("/token")[0]["resource"] == guarded.url
        assert LoginStore(tmp_path / "logins", guarded.url).delete()
        async with opened(config, tmp_path) as hub:
            assert "packetgate login notes" in problem(hub)


@pytest.mark.parametrize(("entry", "is_shared"), [({}, True), ({"url": "?team=2"}, False)])
async def test_only_the_same_url_uses_a_login(tmp_path: Path, entry: dict[str, str], is_shared: bool):
    async with guarded_server() as guarded:
        await log_in(config_of(guarded), tmp_path / "logins", guarded.browse)
        other = ServerConfig("other", {"url": guarded.url + entry.get("url", "")})
        async with opened(other, tmp_path) as hub:
            assert ("other.echo" in hub.last_catalogue) is is_shared
        copied = login_file(tmp_path)
        store = LoginStore(tmp_path / "logins", other.entry["url"])
        copied.rename(store._file)
        assert (store.read() is not None) is is_shared  # a login names its URL


async def test_an_expired_login_is_refreshed_once_at_its_authorization_server(tmp_path: Path):
    async with guarded_server() as guarded:
        config = config_of(guarded)
        old = await log_in(config, tmp_path / "logins", guarded.browse)
        async with opened(config, tmp_path) as hub:
            guarded.provider.expire_access_tokens()
            results = await asyncio.gather(*(hub.call("notes.echo", {"text": str(i)}) for i in range(5)))
            assert all(result.success for result in results)
        refreshes = [sent for sent in guarded.paths("/token") if sent["grant_type"] == "refresh_token"]
        assert [(sent["refresh_token"], sent["resource"]) for sent in refreshes] == [
            (old.tokens.refresh_token, guarded.url)
        ]
        assert json.loads(login_file(tmp_path).read_text())["tokens"]["refresh_token"] != old.tokens.refresh_token


async def test_a_cancelled_call_does_not_lose_a_rotated_refresh_token(tmp_path: Path):
    async with guarded_server() as guarded:
        config = config_of(guarded)
        await log_in(config, tmp_path / "logins", guarded.browse)
        async with opened(config, tmp_path) as hub:
            guarded.provider.refresh_delay_s = 0.5
            guarded.provider.expire_access_tokens()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(hub.call("notes.echo", {"text": "x"}), 0.3)
            assert (await hub.call("notes.echo", {"text": "y"})).success
        assert len(guarded.paths("/token")) == 2


async def test_processes_that_refresh_at_once_share_the_new_login(tmp_path: Path):
    program = (
        "import asyncio, sys; from pathlib import Path; import httpx2\n"
        "from packetgate.toolsets.servers.oauth import StoredLogin\n"
        "async def main():\n"
        "    auth = StoredLogin('notes', {'url': sys.argv[1]}, Path(sys.argv[2]))\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    async with httpx2.AsyncClient(auth=auth) as client:\n"
        "        print((await client.post(sys.argv[1], json={})).status_code, auth.problem)\n"
        "asyncio.run(main())"
    )
    async with guarded_server() as guarded:
        await log_in(config_of(guarded), tmp_path / "logins", guarded.browse)
        guarded.provider.refresh_delay_s = 0.3
        guarded.provider.expire_access_tokens()
        command = [sys.executable, "-c", program, guarded.url, str(tmp_path / "logins")]
        pipe = asyncio.subprocess.PIPE
        processes = [await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe) for _ in range(3)]
        for process in processes:
            assert process.stdout
            assert await process.stdout.readline() == b"ready\n"
        answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        assert [out.split() for out, _ in answers] == 3 * [[b"400"]]  # accepted, and then refused as no MCP request
        assert [sent["grant_type"] for sent in guarded.paths("/token")] == ["authorization_code", "refresh_token"]


@pytest.mark.parametrize(
    ("metadata", "iss", "error"),
    [
        ({}, "https://attacker.example", "iss mismatch"),
        ({"authorization_response_iss_parameter_supported": True}, "", "missing iss"),
        ({"issuer": "https://attacker.example"}, "", "issuer mismatch"),
        ({"authorization_response_iss_parameter_supported": True}, "own", ""),
    ],
)
async def test_an_answer_of_another_issuer_is_refused(tmp_path: Path, metadata: dict[str, Any], iss: str, error: str):
    async with guarded_server() as guarded:
        guarded.provider.metadata = metadata
        guarded.provider.iss = str(guarded.provider.base_url) if iss == "own" else iss
        if not error:
            await log_in(config_of(guarded), tmp_path / "logins", guarded.browse)
            return
        with pytest.raises(ServerError, match=error):
            await log_in(config_of(guarded), tmp_path / "logins", guarded.browse)
        assert not guarded.paths("/token")
        assert not has_login_file(tmp_path)


@pytest.mark.parametrize(
    ("oauth", "supports_documents", "client", "secret", "scopes"),
    [
        ({}, False, "", None, SCOPES),
        ({"scopes": ["tasks"]}, False, "", None, ["tasks"]),
        ({"client_id": "by-hand", "client_secret": "${HAND_SECRET}"}, False, "by-hand", "s3cret-by-hand", SCOPES),
        ({"clientId": "by-hand", "clientSecret": "${HAND_SECRET}", "xaa": True}, False, "by-hand",
         "s3cret-by-hand", SCOPES),
        ({"client_id": "by-hand", "client_metadata_url": DOCUMENT}, True, DOCUMENT, None, SCOPES),
        ({"client_id": "by-hand", "client_metadata_url": DOCUMENT, "client_secret": "${HAND_SECRET}"}, False, "by-hand",
         "s3cret-by-hand", SCOPES),
        ({"client_metadata_url": DOCUMENT}, True, DOCUMENT, None, SCOPES),
        ({"client_metadata_url": DOCUMENT}, False, "", None, SCOPES),
    ],
)  # fmt: skip
async def test_packetgate_registers_in_a_way_that_the_server_supports(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    oauth: dict[str, Any],
    supports_documents: bool,
    client: str,
    secret: str | None,
    scopes: list[str],
):
    monkeypatch.setenv("HAND_SECRET", "s3cret-by-hand")
    async with guarded_server() as guarded:
        port = free_port()
        provider, address = guarded.provider, f"http://localhost:{port}/callback"
        known = {"redirect_uris": [address], "scope": " ".join(SCOPES)}
        by_hand = {"client_secret": "s3cret-by-hand", "token_endpoint_auth_method": "client_secret_post"}
        provider.clients["by-hand"] = OAuthClientInformationFull(client_id="by-hand", **known, **by_hand)
        provider.documents[DOCUMENT] = OAuthClientInformationFull(
            client_id=DOCUMENT, token_endpoint_auth_method="none", **known
        )
        provider.metadata = {"client_id_metadata_document_supported": supports_documents}
        config = config_of(guarded, oauth={"callback_port": port, **oauth} if oauth else {})
        login = await log_in(config, tmp_path / "logins", guarded.browse)
        assert (login.client.client_id == client) if client else guarded.paths("/register") == [{}]
        assert guarded.paths("/token")[0].get("client_secret") == secret
        assert (login.tokens.scope or "").split() == scopes
        assert "s3cret-by-hand" not in login_file(tmp_path).read_text()
        async with opened(config, tmp_path) as hub:
            provider.expire_access_tokens()
            assert (await hub.call("notes.echo", {"text": "x"})).success, problem(hub)
        assert redacted("s3cret-by-hand").startswith("[redacted: ") or not secret


async def test_a_secret_stays_with_the_named_issuer(tmp_path: Path):
    async with guarded_server() as guarded:
        oauth = {"client_id": "by-hand", "client_secret": "s3cret", "issuer": "https://login.example"}
        with pytest.raises(ServerError, match=r"registered with issuer 'https://login\.example'"):
            await log_in(config_of(guarded, oauth=oauth), tmp_path / "logins", guarded.browse)


async def _revoke(guarded: Guarded) -> None:
    guarded.provider.refresh_tokens.clear()


async def _hang(guarded: Guarded) -> None:
    guarded.provider.refresh_delay_s = 60


@pytest.mark.parametrize(
    ("damage", "text", "is_kept"),
    [
        (_revoke, "its login was revoked or has expired: run `packetgate login notes`", False),
        (_hang, "its login was not refreshed: no answer within 0.5 s", True),
    ],
)
async def test_a_login_that_cannot_be_refreshed_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any, text: str, is_kept: bool
):
    assert AUTHORIZATION_TIMEOUT_S > 1
    monkeypatch.setattr("packetgate.toolsets.servers.oauth.AUTHORIZATION_TIMEOUT_S", 0.5)
    async with guarded_server() as guarded:
        config = config_of(guarded)
        await log_in(config, tmp_path / "logins", guarded.browse)
        async with opened(config, tmp_path) as hub:
            guarded.provider.expire_access_tokens()
            await damage(guarded)
            with pytest.raises(ServerError, match=re.escape(text)) as refused:
                await hub.call("notes.echo", {"text": "x"})
            assert not isinstance(refused.value, LostCallError)  # the change certainly did not run
            assert has_login_file(tmp_path) is is_kept
            guarded.provider.refresh_delay_s = 0
            if not is_kept:
                await log_in(config, tmp_path / "logins", guarded.browse)
            assert (await hub.call("notes.echo", {"text": "x"})).success


async def test_a_login_is_kept_in_a_keyring_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    keyring = pytest.importorskip("keyring")
    from support.file_keyring import FileKeyring

    before, backend = keyring.get_keyring(), FileKeyring(tmp_path / "ring")
    async with guarded_server() as guarded:
        config = config_of(guarded)
        await log_in(config, tmp_path / "logins", guarded.browse)
        assert login_file(tmp_path)
        keyring.set_keyring(backend)
        try:
            await log_in(config, tmp_path / "logins", guarded.browse)
            assert not has_login_file(tmp_path)  # the file's older login is deleted
            async with opened(config, tmp_path) as hub:
                assert (await hub.call("notes.echo", {"text": "x"})).success
            (state,) = login_states([config], tmp_path / "logins")
            assert state.text.endswith("stored in the keyring (file keyring)")
            backend.is_locked = True
            await log_in(config, tmp_path / "logins", guarded.browse)
            assert login_file(tmp_path)
        finally:
            keyring.set_keyring(before)


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        ({"auth": "oauth"}, "not logged in: run `packetgate login notes`"),
        ({"oauth": {"scopes": ["a"]}}, "not logged in: run `packetgate login notes`"),
        ({}, None),
        ({"headers": {"Authorization": "Bearer x"}}, None),
        ({"auth": "some-token"}, None),
        ({"auth": "oauth", "url": "https://${NO_SUCH_VARIABLE}/mcp"}, None),
    ],
)
def test_the_state_without_a_login_is_reported(tmp_path: Path, entry: dict[str, Any], state: str | None):
    config = ServerConfig("notes", read_server_entry({"url": "https://example.org/mcp", **entry}).fields)
    assert [found.text for found in login_states([config], tmp_path)] == ([state] if state else [])


@pytest.mark.parametrize(
    "oauth", ["yes", {"scopes": "all"}, {"callback_port": 0}, {"client_metadata_url": "http://a/b"}]
)
def test_a_wrong_oauth_entry_is_refused(oauth: object):
    with pytest.raises(UnusableEntryError, match="oauth"):
        read_server_entry({"url": "https://example.org/mcp", "oauth": oauth})


async def test_an_expired_access_token_without_a_refresh_token_needs_a_login(tmp_path: Path):
    async with guarded_server() as guarded:
        config = config_of(guarded)
        await log_in(config, tmp_path / "logins", guarded.browse)
        store = LoginStore(tmp_path / "logins", guarded.url)
        login = store.read()
        assert login is not None
        store.write(login.model_copy(update={
            "tokens": login.tokens.model_copy(update={"refresh_token": None}), "expires_at": 1.0,
        }))  # fmt: skip
        (state,) = login_states([config], tmp_path / "logins")
        assert state.text.startswith("the login expired at 1970-01-01 00:00 UTC: run `packetgate login notes`")
        assert not state.is_usable
        async with opened(config, tmp_path) as hub:
            assert problem(hub) == "it needs a login: run `packetgate login notes`"


async def test_a_server_that_needs_no_login_is_an_error(tmp_path: Path):
    from support.mcp_servers import echoing, serving

    async with serving(echoing("open").http_app(path="/mcp")) as address:
        config = ServerConfig("open", {"url": f"{address}/mcp"})
        with pytest.raises(ServerError, match="did not ask for a login: HTTP 200"):
            await log_in(config, tmp_path / "logins", lambda _: pytest.fail("asked"))
        assert not has_login_file(tmp_path)
