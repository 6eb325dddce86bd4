"""Who asks is known by a token; each client hears of its own tools, and finds its own sessions alone."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import MCPError
from support.command_line import COMMAND, CommandLine
from support.proxies import META, Make, gateway_over, ledger_server, served, talking

from packetgate.connectors.clients import ProxyConfig, load_clients
from packetgate.state.context import NO_TOOLS, RoutingContext
from packetgate.state.errors import ConfigError

ROOT = Path(__file__).parents[3]

TOKENS = {"ide-token-0123456789": "ide", "desk-token-0123456789": "desk"}
IDE, DESK = TOKENS
CONFIG = ProxyConfig.model_validate(
    {
        "clients": {
            "ide": {"tools": ["ledger.list_*"]},
            "desk": {"servers": ["ledger"], "allow_writes": True},
            "nobody": {"servers": []},
        }
    }
)


async def test_each_client_lists_and_calls_its_own_tools(tmp_path: Path, make: Make, written: list[str]) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, config=CONFIG) as gateway,
        served(gateway, TOKENS) as address,
        talking(f"{address}/mcp", make, "legacy", token=IDE) as ide,
        talking(f"{address}/mcp", make, "legacy", token=DESK, answer=lambda *_: "yes") as desk,
    ):
        assert await ide.names() == META | {"ledger__list_entries"}
        for name in ("call_read_tool", "call_changing_tool"):
            said = await ide.call(name, name="ledger.read_mail")
            assert said.is_error
            assert "there is no tool" in said.text
        hidden = await ide.call("fetch_tool_description", names=["ledger__read_mail"])
        assert hidden.structured["tools"] == []
        found = await ide.call("search_tools", query="read the newest mail", limit=50)
        assert {tool["name"] for tool in found.structured["tools"]} <= {"ledger__list_entries"}
        assert "ledger__add_entry" in await desk.names()
        assert not (await desk.call("ledger.add_entry", text="x")).is_error
        assert written == ["x"]


@pytest.mark.parametrize("token", ["", "wrong-token-0123456789", "ide-token-012345678"])
async def test_without_its_token_nobody_is_answered(tmp_path: Path, token: str) -> None:
    async with gateway_over(ledger_server([]), home=tmp_path) as gateway, served(gateway, TOKENS) as address:
        for path in ("/mcp", "/context/mail/mcp"):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with httpx2.AsyncClient(headers=headers) as client:
                answer = await client.post(address + path, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert answer.status_code == 401


@pytest.mark.parametrize(
    ("header", "status"),
    [({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403)],
)
async def test_pages_of_elsewhere_are_turned_away(tmp_path: Path, header: dict[str, str], status: int) -> None:
    async with gateway_over(ledger_server([]), home=tmp_path) as gateway, served(gateway) as address:
        for path in ("/mcp", "/context/mail/mcp"):
            async with httpx2.AsyncClient(headers=header) as client:
                answer = await client.post(address + path, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert answer.status_code == status


async def test_a_named_host_is_let_in(tmp_path: Path) -> None:
    async with (
        gateway_over(ledger_server([]), home=tmp_path) as gateway,
        served(gateway, hosts=["tools.example"]) as address,
    ):
        async with httpx2.AsyncClient(headers={"Host": "tools.example"}) as client:
            answer = await client.post(f"{address}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert answer.status_code not in {403, 421}


@pytest.mark.parametrize(
    ("client", "started", "allowed", "writes"),
    [
        ("local", {"allowed_tools": ("ledger.*",), "allow_write_tools": True}, ("ledger.*",), True),
        ("ide", {}, ("ledger.list_*",), False),
        ("ide", {"allowed_tools": ("ledger.*",)}, ("ledger.list_*",), False),
        ("desk", {"allowed_tools": ("ledger.read_mail",)}, ("ledger.read_mail",), True),
        ("ide", {"allowed_tools": ("mail.*",)}, NO_TOOLS, False),
        ("nobody", {"allowed_tools": ("*",)}, NO_TOOLS, False),
    ],
)
def test_what_the_proxy_was_started_with_limits_each_client(
    client: str, started: dict[str, Any], allowed: tuple[str, ...], writes: bool
) -> None:
    settings = CONFIG.settings_of(client, RoutingContext.model_validate(started))
    assert (settings.allowed_tools, settings.allow_write_tools) == (allowed, writes)


@pytest.mark.parametrize(
    ("options", "variables", "file", "says"),
    [
        ([], {"PACKETGATE_ALLOW_WRITE_TOOLS": "true"}, "", "NOT run (dry run only)"),
        ([], {}, "allow_write_tools = true", "NOT run (dry run only)"),
        (["--set", "allow_write_tools=true"], {}, "", "packetgate answer --session"),
        (["--allow-writes"], {"PACKETGATE_ALLOWED_TOOLS": "ai.read"}, "", "there is no tool"),
    ],
)
async def test_it_is_switched_on_by_its_own_options_alone(
    cli: CommandLine, options: list[str], variables: dict[str, str], file: str, says: str
) -> None:
    (cli.folder / "packetgate.toml").write_text(f"[settings]\n{file}\n")
    environment = {**cli.environment, **variables}
    transport = StdioTransport(str(COMMAND), ["proxy", *options], cwd=str(cli.folder), env=environment)
    call = {"name": "ai.write", "arguments": {"path": "new.txt", "content": "hello", "mode": "overwrite"}}
    async with Client(transport, mode="legacy") as client:
        said = await client.call_tool_mcp("call_changing_tool", call)
    assert said.is_error
    assert says in said.content[0].text
    assert not (cli.folder / "new.txt").exists()


async def test_a_context_is_found_by_its_own_client_alone(tmp_path: Path, make: Make) -> None:
    async with (
        gateway_over(ledger_server([], tools=60), home=tmp_path) as gateway,
        served(gateway, TOKENS) as address,
        talking(f"{address}/mcp", make, "2026-07-28", token=IDE) as ide,
        talking(f"{address}/mcp", make, "2026-07-28", token=DESK) as desk,
    ):
        context = (await ide.call("set_context", query="list the entries")).structured["context_id"]
        assert not (await ide.call("search_tools", query="list", context_id=context)).is_error
        assert (await desk.call("search_tools", query="list", context_id=context)).is_error


async def test_a_question_is_answered_by_its_own_client_alone(tmp_path: Path, written: list[str]) -> None:
    call = {"name": "ledger.add_entry", "arguments": {"text": "x"}}
    async with (
        gateway_over(ledger_server(written), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway, TOKENS) as address,
        talking(f"{address}/mcp", "sdk", "2026-07-28", token=IDE, answer=lambda *_: "yes") as ide,
        talking(f"{address}/mcp", "sdk", "2026-07-28", token=DESK, answer=lambda *_: "yes") as desk,
    ):
        asked = await ide.client.session.call_tool("call_changing_tool", call, allow_input_required=True)
        with pytest.raises(MCPError, match="requestState"):
            await desk.client.session.call_tool("call_changing_tool", call, request_state=asked.request_state)
        assert written == []


def test_the_page_shows_a_table_that_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (written,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "proxy.md").read_text(), re.DOTALL)
    (tmp_path / "packetgate.toml").write_text(written)
    monkeypatch.setenv("IDE_TOKEN", IDE)
    config = load_clients(ProxyConfig, tmp_path / "packetgate.toml")
    assert config.tokens() == {IDE: "ide"}
    settings = config.settings_of("ide", RoutingContext())
    assert settings.allow_write_tools
    assert settings.allows_tool("mail.read_newest")
    assert not settings.allows_tool("mail.send")
    assert config.query_of("release") == "write and check the notes of a release"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("proxy = 3", "[proxy]"),
        ("[proxy]\nclient = 3", "proxy.client"),
        ('[proxy.clients.a]\nservers = "x"', "proxy.clients.a.servers"),
        ('[proxy.contexts]\n"A b" = "x"', "A b"),
    ],
)
def test_a_table_that_is_not_understood_is_named(tmp_path: Path, said: str, told: str) -> None:
    file = tmp_path / "packetgate.toml"
    file.write_text(said)
    with pytest.raises(ConfigError, match=r"packetgate\.toml") as caught:
        load_clients(ProxyConfig, file)
    assert told in str(caught.value)


@pytest.mark.parametrize("token", ["short", "has spaces in it, it has", "ümläute-0123456789"])
def test_a_token_that_could_be_guessed_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match=r"proxy\.clients\.a\.token"):
        ProxyConfig.model_validate({"clients": {"a": {"token": token}}}).tokens()


def test_two_clients_have_two_tokens() -> None:
    both = {"a": {"token": "0123456789abcdef"}, "b": {"token": "0123456789abcdef"}}
    with pytest.raises(ConfigError, match="each its own"):
        ProxyConfig.model_validate({"clients": both}).tokens()


@pytest.mark.parametrize(("client", "told"), [("idd", True), ("ide", False), ("local", False)])
def test_a_client_of_no_table_is_told_of(cli: CommandLine, client: str, told: bool) -> None:
    (cli.folder / "packetgate.toml").write_text('[proxy.clients.ide]\nservers = ["time"]\n')
    outcome = cli.run("proxy", "--client", client)
    assert (f"no proxy.clients.{client} in packetgate.toml" in outcome.err) is told
