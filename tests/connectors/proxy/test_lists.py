"""The tools on a client's list, notifications of changes, and learning from used tools."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_headers
from langgraph.store.base import BaseStore
from support import mcp_servers
from support.proxies import (
    DESK,
    IDE,
    META,
    MODERN,
    TOKENS,
    Protocol,
    Talk,
    gateway_over,
    ledger_server,
    proxy_client,
    served,
    talking,
)

from packetgate.connectors.proxy.listing import MAX_LISTED_TOOLS
from packetgate.graph import records
from packetgate.ranking.store import USES_NAMESPACE
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.toolsets.servers.config import ServerConfig, read_server_entry
from packetgate.toolsets.servers.opening import new_connection

LEDGER = {"ledger__list_entries", "ledger__add_entry", "ledger__read_mail"}


async def test_a_small_catalogue_is_listed_completely(tmp_path: Path, kind: Protocol) -> None:
    async with proxy_client(tmp_path, ledger_server([]), kind=kind) as talk:
        assert await talk.names() == META | LEDGER
        assert (await talk.call("set_context", query="read the newest mail")).structured["listed"] is True
        tools = {tool.name: tool.annotations for tool in await talk.client.list_tools()}
    assert tools.keys() == META | LEDGER
    assert {name for name, hints in tools.items() if hints and not hints.read_only_hint} == {"call_changing_tool"}


async def test_a_context_changes_the_list_of_its_own_session(tmp_path: Path) -> None:
    async with (
        gateway_over(ledger_server([], tools=300), home=tmp_path) as gateway,
        served(gateway) as url,
        talking(gateway, url) as talk,
        talking(gateway, url) as beside,
    ):
        assert await talk.names() == await beside.names() == META
        result = await talk.call("set_context", query="turn lamp number 7 of the greenhouse by zorgblatt")
        assert (result.structured["listed"], result.structured["context_id"]) == (True, None)
        assert list(result.structured["unknown_words"]) == ["zorgblatt"]
        await talk.until_list_changed()
        assert "ledger__lamp_7" in await talk.names()
        await talk.set_context("turn lamp number 299 of the greenhouse")
        names = await talk.names()
        assert "ledger__lamp_299" in names
        assert "ledger__lamp_7" not in names
        assert await beside.names() == META
        assert not beside.changed.is_set()


async def test_without_sessions_the_context_is_sent_with_calls(tmp_path: Path) -> None:
    async with proxy_client(tmp_path, ledger_server([], tools=60), kind=MODERN) as talk:
        result = await talk.call("set_context", query="list the entries of the ledger")
        assert result.structured["listed"] is False
        assert "ledger__list_entries" in [tool["name"] for tool in result.structured["tools"]]
        context = result.structured["context_id"]
        found = await talk.call("search_tools", query="list entries", context_id=context)
        assert found.structured["tools"][0]["name"] == "ledger__list_entries"
        assert await talk.names() == META
        assert not talk.changed.is_set()
        page = await talk.client.list_tools_mcp()
        assert (page.ttl_ms, page.cache_scope) == (300_000, "private")


async def test_permanent_tools_are_always_listed(tmp_path: Path, kind: Protocol) -> None:
    preferences = Preferences(permanent=["ledger.read_mail"])
    async with proxy_client(tmp_path, ledger_server([], tools=60), kind=kind, preferences=preferences) as talk:
        assert await talk.names() == META | {"ledger__read_mail"}
        await talk.set_context("turn lamp number 7 of the greenhouse")
        assert "ledger__read_mail" in await talk.names()


QUERY, PARAPHRASE = "zephyr figures for the board", "the board wants zephyr figures again"


def office_server() -> FastMCP:
    """Return a server with many tools, none of whose descriptions fits the request."""
    server = FastMCP("office")
    topics = "wind turbine output quarter revenue board minutes figures chart summary member vote".split()
    for number in range(80):
        about = f"Get the {topics[number % len(topics)]} {topics[(number * 5 + 1) % len(topics)]} of year {number}."
        server.tool(lambda: "done", name=f"get_{number}", description=about)
    server.tool(lambda: "done", name="fetch_q", description="Return the contents of the cabinet.")
    return server


async def uses(store: BaseStore | None) -> list[dict[str, object]]:
    assert store is not None
    return [item.value for item in await store.asearch(USES_NAMESPACE, limit=1000)]


async def is_returned(talk: Talk) -> bool:
    """Return whether the used tool is among the best tools for a paraphrased context."""
    result = await talk.call("set_context", query=PARAPHRASE)
    return "office__fetch_q" in [tool["name"] for tool in result.structured["tools"]]


async def test_repeated_uses_bring_a_tool_to_the_contexts_of_their_client_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "TIMEOUT_S", 60)
    async with gateway_over(office_server(), home=tmp_path) as gateway, served(gateway, TOKENS) as url:
        async with talking(gateway, url, token=IDE) as ide:
            assert not await is_returned(ide)
            for _ in range(6):
                await ide.set_context(QUERY)
                if "office__fetch_q" not in await ide.names():
                    await ide.call("search_tools", query="contents of the cabinet")
                assert not (await ide.call("call_read_tool", name="office.fetch_q")).is_error
                await gateway.recorder.wait_until_written()
            assert await is_returned(ide)
        async with talking(gateway, url, token=DESK) as desk:
            assert not await is_returned(desk)
    async with (
        gateway_over(office_server(), home=tmp_path) as gateway,
        served(gateway, TOKENS) as url,
        talking(gateway, url, token=IDE) as ide,
    ):
        assert await is_returned(ide)


@pytest.mark.parametrize(("way", "weight"), [("searched", 1.5), ("named", 0.5)])
async def test_the_weight_of_a_use_depends_on_how_the_client_found_the_tool(
    tmp_path: Path, way: str, weight: float
) -> None:
    async with proxy_client(tmp_path, office_server()) as talk:
        result = await talk.call("set_context", query="vote of the member")
        listed = {tool["name"] for tool in result.structured["tools"]}
        if way == "searched":
            await talk.call("search_tools", query="contents of the cabinet")
        await talk.call("call_read_tool", name="office.fetch_q")
        await talk.gateway.recorder.wait_until_written()
        (use,) = await uses(await talk.gateway.recorder.store())
        assert (use["tool"], use["weight"]) == ("office.fetch_q", pytest.approx(weight))
        result = await talk.call("set_context", query="vote of the member")
        assert listed <= {tool["name"] for tool in result.structured["tools"]} | await talk.names()


async def test_a_list_has_at_most_forty_tools(tmp_path: Path) -> None:
    preferences = Preferences(permanent=["ledger.lamp_*"])
    async with proxy_client(tmp_path, ledger_server([], tools=300), preferences=preferences) as talk:
        assert len(await talk.names()) == MAX_LISTED_TOOLS
        await talk.set_context("turn the lamps of the greenhouse to another colour, and list the entries")
        names = await talk.names()
        assert names > META
        assert MAX_LISTED_TOOLS // 2 < len(names) <= MAX_LISTED_TOOLS
        found = await talk.call("search_tools", query="read the newest mail")
        assert "ledger__read_mail" in [tool["name"] for tool in found.structured["tools"]]


async def test_every_parameter_of_the_proxys_own_tools_has_one_type(tmp_path: Path, kind: Protocol) -> None:
    async with proxy_client(tmp_path, ledger_server([]), kind=kind) as talk:
        tools = [tool for tool in await talk.client.list_tools() if tool.name in META]
        for tool in tools:
            for parameter in tool.input_schema["properties"].values():
                assert isinstance(parameter["type"], str), (tool.name, parameter)
        call = {"name": "ledger.list_entries", "arguments": None, "context_id": None}
        assert not (await talk.call("call_read_tool", **call)).is_error


async def test_texts_and_defaults_of_the_configuration_replace_the_servers(tmp_path: Path, kind: Protocol) -> None:
    own = {"description": "Note a purchase.", "title": "Purchase", "defaults": {"text": "three pumps", "other": 1}}
    preferences = Preferences.model_validate({"tools": {"ledger.add_entry": own}})
    written: list[str] = []
    plain = gateway_over(ledger_server(written), home=tmp_path / "plain")
    async with (
        plain as without,
        proxy_client(
            tmp_path,
            ledger_server(written),
            kind=kind,
            answer=lambda *_: "yes",
            preferences=preferences,
            allow_write_tools=True,
        ) as talk,
    ):
        tool = {tool.name: tool for tool in await talk.client.list_tools()}["ledger__add_entry"]
        assert (tool.title, tool.description) == ("Purchase", "Note a purchase.")
        assert tool.input_schema["properties"]["text"]["default"] == "three pumps"
        assert "text" not in tool.input_schema.get("required", [])
        await without.hub.catalogue()
        digests = [gateway.hub.last_catalogue["ledger.add_entry"].digest for gateway in (without, talk.gateway)]
        assert digests[0] == digests[1]
        assert not (await talk.call("ledger__add_entry")).is_error
        assert '"text": "three pumps"' in talk.asked[0]
        await talk.call("ledger__add_entry", text="a hose")
    assert written == ["three pumps", "a hose"]


async def test_a_header_reaches_only_the_server_that_names_it(tmp_path: Path, kind: Protocol) -> None:
    async def who() -> str:
        """Get who asks."""
        headers = get_http_headers(include_all=True)
        return f"{headers.get('x-user')}, {headers.get('x-team')}, {'ide-token' in str(headers)}"

    names = {"named": ["X-User"], "other": ["x-team"], "neither": []}
    async with AsyncExitStack() as stack:
        servers = []
        for name, forwarded in names.items():
            server: FastMCP[None] = FastMCP(name)
            server.tool(who)
            url = await stack.enter_async_context(mcp_servers.serving(server.http_app()))
            entry = {"url": f"{url}/mcp", "forward_headers": forwarded, "trusted": True}
            servers.append(new_connection(ServerConfig(name, read_server_entry(entry).fields), tmp_path / "logs"))
        gateway = await stack.enter_async_context(gateway_over(*servers, home=tmp_path, allow_write_tools=True))
        url = await stack.enter_async_context(served(gateway, TOKENS))
        for user in ("ann", "ben"):
            client = talking(gateway, url, kind, lambda *_: "yes", IDE, X_User=user)
            talk = await stack.enter_async_context(client)
            seen_headers = {name: (await talk.call(f"{name}__who")).text for name in names}
            nobody = "None, None, False"
            assert seen_headers == {"named": f"{user}, None, False", "other": nobody, "neither": nobody}
