"""What a client's list holds, when the client is notified of a change, and what the proxy learns from uses."""

from pathlib import Path

import pytest
from fastmcp import FastMCP
from langgraph.store.base import BaseStore
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

from packetgate.graph import records
from packetgate.ranking.store import USES_NAMESPACE
from packetgate.tools.catalogue.preferences import Preferences

LEDGER = {"ledger__list_entries", "ledger__add_entry", "ledger__read_mail"}


async def test_a_small_catalogue_is_listed_completely(tmp_path: Path, kind: Protocol) -> None:
    async with proxy_client(tmp_path, ledger_server([]), kind=kind) as talk:
        assert await talk.names() == META | LEDGER
        assert (await talk.call("set_context", query="read the newest mail")).structured["listed"] is True
        tools = {tool.name: tool.annotations for tool in await talk.client.list_tools()}
    assert tools.keys() == META | LEDGER
    assert {name for name, hints in tools.items() if not hints.read_only_hint} == {
        "call_changing_tool",
        "ledger__add_entry",
    }


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
        await talk.is_told()
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


QUERY, SAME_IN_OTHER_WORDS = "zephyr figures for the board", "the board wants zephyr figures again"


def office_server() -> FastMCP:
    """Return a server of many tools; none of their descriptions fits the request."""
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
    """Whether the used tool is among the best tools for a paraphrased context."""
    result = await talk.call("set_context", query=SAME_IN_OTHER_WORDS)
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
        (use,) = await uses(talk.gateway.recorder.store)
        assert (use["tool"], use["weight"]) == ("office.fetch_q", pytest.approx(weight))
        result = await talk.call("set_context", query="vote of the member")
        assert listed <= {tool["name"] for tool in result.structured["tools"]} | await talk.names()
