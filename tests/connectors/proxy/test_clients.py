"""A token identifies a client; each client sees its own tools and finds only its own sessions."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from support.command_line import CommandLine
from support.proxies import ADD, DESK, IDE, META, MODERN, TOKENS, Protocol, gateway_over, ledger_server, served, talking

from packetgate.connectors.clients import Clients, load_clients
from packetgate.state.context import NO_TOOLS, RoutingContext
from packetgate.state.errors import ConfigError

PAGE = Path(__file__).parents[3] / "docs" / "proxy.md"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CONFIG = Clients.model_validate(
    {
        "clients": {
            "ide": {"tools": ["ledger.list_*"]},
            "desk": {"servers": ["ledger"], "allow_writes": True},
            "nobody": {"servers": []},
        }
    }
)


async def test_each_client_lists_and_calls_its_own_tools(tmp_path: Path, kind: Protocol, written: list[str]) -> None:
    async with (
        gateway_over(ledger_server(written), home=tmp_path, config=CONFIG) as gateway,
        served(gateway, TOKENS) as url,
        talking(gateway, url, kind, token=IDE) as ide,
        talking(gateway, url, kind, token=DESK, answer=lambda *_: "yes") as desk,
    ):
        assert await ide.names() == META | {"ledger__list_entries"}
        for name in ("call_read_tool", "call_changing_tool"):
            result = await ide.call(name, name="ledger.read_mail")
            assert result.is_error
            assert "unknown tool" in result.text
        hidden = await ide.call("fetch_tool_description", names=["ledger__read_mail"])
        assert hidden.structured["tools"] == []
        found = await ide.call("search_tools", query="read the newest mail", limit=50)
        assert {tool["name"] for tool in found.structured["tools"]} <= {"ledger__list_entries"}
        assert "ledger__add_entry" in await desk.names()
        assert not (await desk.call("ledger.add_entry", text="x")).is_error
        assert written == ["x"]


@pytest.mark.parametrize(
    ("headers", "tokens", "status"),
    [
        ({}, TOKENS, 401),
        ({"Authorization": "Bearer wrong-token-0123456789"}, TOKENS, 401),
        ({"Authorization": "Bearer ide-token-012345678"}, TOKENS, 401),
        ({"Host": "evil.example"}, {}, 421),
        ({"Origin": "http://evil.example"}, {}, 403),
        ({"Origin": "null"}, {}, 403),
    ],
)
async def test_unknown_clients_and_foreign_origins_are_refused(
    tmp_path: Path, headers: dict[str, str], tokens: dict[str, str], status: int
) -> None:
    async with (
        gateway_over(ledger_server([]), home=tmp_path) as gateway,
        served(gateway, tokens, ["tools.example"]) as url,
        httpx2.AsyncClient() as client,
    ):
        assert (await client.post(url, json=PING, headers=headers)).status_code == status
        allowed = await client.post(url, json=PING, headers={"Host": "tools.example"})
        assert allowed.status_code not in {403, 421}


@pytest.mark.parametrize(
    ("client", "context", "allowed", "writes"),
    [
        ("local", {"allowed_tools": ("ledger.*",), "allow_write_tools": True}, ("ledger.*",), True),
        ("ide", {}, ("ledger.list_*",), False),
        ("ide", {"allowed_tools": ("ledger.*",)}, ("ledger.list_*",), False),
        ("desk", {"allowed_tools": ("ledger.read_mail",)}, ("ledger.read_mail",), True),
        ("ide", {"allowed_tools": ("mail.*",)}, NO_TOOLS, False),
        ("nobody", {"allowed_tools": ("*",)}, NO_TOOLS, False),
    ],
)
def test_the_settings_of_the_proxy_limit_each_client(
    client: str, context: dict[str, Any], allowed: tuple[str, ...], writes: bool
) -> None:
    settings = CONFIG.client_settings(client, RoutingContext.model_validate(context))
    assert (settings.allowed_tools, settings.allow_write_tools) == (allowed, writes)


async def test_contexts_and_questions_belong_to_their_client(tmp_path: Path, written: list[str]) -> None:
    async with (
        gateway_over(ledger_server(written, tools=60), home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway, TOKENS) as url,
        talking(gateway, url, MODERN, token=IDE, answer=lambda *_: "yes") as ide,
        talking(gateway, url, MODERN, token=DESK, answer=lambda *_: "yes") as desk,
    ):
        context = await ide.set_context("list the entries")
        assert not (await ide.call("search_tools", query="list", **context)).is_error
        assert (await desk.call("search_tools", query="list", **context)).is_error
        asked = await ide.client.session.call_tool("call_changing_tool", ADD, allow_input_required=True)
        with pytest.raises(MCPError, match="requestState"):
            await desk.client.session.call_tool("call_changing_tool", ADD, request_state=asked.request_state)
        assert written == []


def test_the_documented_table_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "packetgate.toml").write_text(table)
    monkeypatch.setenv("IDE_TOKEN", IDE)
    config = load_clients("proxy", tmp_path / "packetgate.toml")
    assert config.tokens("proxy") == {IDE: "ide"}
    settings = config.client_settings("ide", RoutingContext())
    assert settings.allow_write_tools
    assert settings.allows_tool("mail.read_newest")
    assert not settings.allows_tool("mail.send")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("proxy = 3", "proxy"),
        ("[proxy]\nclient = 3", "proxy.client"),
        ('[proxy.clients.a]\nservers = "x"', "proxy.clients.a.servers"),
    ],
)
def test_the_error_names_an_invalid_table(tmp_path: Path, text: str, field: str) -> None:
    (tmp_path / "packetgate.toml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"packetgate.toml: {field}")):
        load_clients("proxy", tmp_path / "packetgate.toml")


@pytest.mark.parametrize(
    "tokens",
    [["short"], ["has spaces in it, it has"], ["ümläute-0123456789"], ["0123456789abcdef", "0123456789abcdef"]],
)
def test_weak_and_shared_tokens_are_refused(tokens: list[str]) -> None:
    clients = {f"client{number}": {"token": token} for number, token in enumerate(tokens)}
    with pytest.raises(ConfigError, match=r"proxy\.clients\.client"):
        Clients.model_validate({"clients": clients}).tokens("proxy")


@pytest.mark.parametrize(("client", "is_warned"), [("idd", True), ("ide", False), ("local", False)])
def test_an_unknown_client_causes_a_warning(cli: CommandLine, client: str, is_warned: bool) -> None:
    (cli.folder / "packetgate.toml").write_text('[proxy.clients.ide]\nservers = ["time"]\n')
    outcome = cli.run("proxy", "--client", client)
    assert (f"proxy.clients.{client}" in outcome.err) is is_warned


@pytest.mark.parametrize(
    ("options", "table", "named"),
    [
        (["--http", "--port", "0"], 'token = "${NOT_SET_ANYWHERE}"', "NOT_SET_ANYWHERE"),
        ([], "colour = 3", "proxy.clients.ide.colour"),
        (["--http", "--host", "0.0.0.0", "--port", "0"], "", "PACKETGATE_PROXY_TOKEN"),
    ],
)
def test_the_error_names_unusable_settings(cli: CommandLine, options: list[str], table: str, named: str) -> None:
    (cli.folder / "packetgate.toml").write_text(f"[proxy.clients.ide]\n{table}\n")
    outcome = cli.run("proxy", *options)
    assert outcome.status == 2
    assert named in outcome.err
