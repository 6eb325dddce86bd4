"""What stands on a client's list, and when it is told that it changed."""

from pathlib import Path

import pytest
from support.proxies import META, Era, Make, gateway_over, heard_of, ledger_server, served, talking

from packetgate.tools.catalogue.preferences import Preferences


async def test_without_a_context_a_large_catalogue_is_the_proxys_own_tools(url: str, make: Make, era: Era) -> None:
    async with talking(url, make, era) as talk:
        assert await talk.names() == META


async def test_a_small_catalogue_is_listed_whole_and_stays(tmp_path: Path, make: Make, era: Era) -> None:
    async with (
        gateway_over(ledger_server([]), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        whole = META | {"ledger__list_entries", "ledger__add_entry", "ledger__read_mail"}
        assert await talk.names() == whole
        said = await talk.call("set_context", query="read the newest mail")
        assert said.structured["listed"] is True
        assert await talk.names() == whole


async def test_a_context_changes_the_list_of_its_session_alone(url: str, make: Make) -> None:
    async with talking(url, make, "legacy") as talk, talking(url, make, "legacy") as beside:
        await beside.names()
        said = await talk.call("set_context", query="list the entries of the ledger")
        assert said.structured["listed"] is True
        assert said.structured["context_id"] is None
        await heard_of(talk.changed)
        assert "ledger__list_entries" in await talk.names()
        assert await beside.names() == META
        assert beside.changes == 0


async def test_the_next_context_replaces_the_last(tmp_path: Path) -> None:
    async with (
        gateway_over(ledger_server([], tools=300), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "fastmcp", "legacy") as talk,
    ):
        await talk.call("set_context", query="turn lamp number 7 of the greenhouse")
        first = await talk.names()
        await talk.call("set_context", query="turn lamp number 299 of the greenhouse")
        second = await talk.names()
        assert "ledger__lamp_7" in first
        assert "ledger__lamp_299" in second
        assert "ledger__lamp_299" not in first


async def test_where_lists_may_not_vary_the_context_is_handed_on(url: str, make: Make) -> None:
    async with talking(url, make, "2026-07-28") as talk:
        said = await talk.call("set_context", query="list the entries of the ledger")
        assert said.structured["listed"] is False
        context = said.structured["context_id"]
        assert "ledger__list_entries" in [tool["name"] for tool in said.structured["tools"]]
        found = await talk.call("search_tools", query="list entries", context_id=context)
        assert found.structured["tools"][0]["name"] == "ledger__list_entries"
        assert await talk.names() == META
        assert talk.changes == 0


async def test_lists_say_how_long_they_are_fresh_and_for_whom(url: str) -> None:
    async with talking(url, "sdk", "2026-07-28") as talk:
        page = await talk.client.list_tools()
        assert (page.ttl_ms, page.cache_scope) == (300_000, "private")


async def test_permanent_tools_are_always_there(tmp_path: Path, make: Make, era: Era) -> None:
    preferences = Preferences(permanent=["ledger.read_mail"])
    async with (
        gateway_over(ledger_server([], tools=60), home=tmp_path, preferences=preferences) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        assert await talk.names() == META | {"ledger__read_mail"}
        await talk.call("set_context", query="turn lamp number 7 of the greenhouse")
        assert "ledger__read_mail" in await talk.names()


async def test_the_proxys_tools_say_what_they_do(url: str) -> None:
    async with talking(url, "sdk", "legacy") as talk:
        tools = {tool.name: tool for tool in await talk.tools()}
    for tool in tools.values():
        assert tool.title
        assert tool.output_schema
        assert tool.annotations.read_only_hint is not None
        assert tool.annotations.destructive_hint is not None
        assert tool.annotations.open_world_hint is not None
    assert not tools["call_changing_tool"].annotations.read_only_hint
    assert tools["call_read_tool"].annotations.read_only_hint
    assert "query" in tools["set_context"].input_schema["required"]


async def test_a_listed_tool_says_what_it_may_do_as_it_is_judged_here(tmp_path: Path) -> None:
    async with (
        gateway_over(ledger_server([]), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", "legacy") as talk,
    ):
        tools = {tool.name: tool.annotations for tool in await talk.tools()}
        assert tools["ledger__list_entries"].read_only_hint
        assert not tools["ledger__add_entry"].read_only_hint


async def test_a_fixed_address_has_one_list_from_the_start(url: str, make: Make, era: Era) -> None:
    fixed = url.replace("/mcp", "/context/list-ledger-entries/mcp")
    async with talking(fixed, make, era) as talk:
        names = await talk.names()
        assert "ledger__list_entries" in names
        said = await talk.call("set_context", query="turn lamp number 7 of the greenhouse")
        assert said.structured["context_id"]
        assert await talk.names() == names
        assert talk.changes == 0
        assert not (await talk.call("ledger.list_entries")).is_error


@pytest.mark.parametrize("name", ["Über", "a/b", "-", "x" * 65])
async def test_an_address_that_is_no_context_is_told_so(url: str, name: str) -> None:
    import httpx2

    async with httpx2.AsyncClient() as client:
        answer = await client.post(url.replace("/mcp", f"/context/{name}/mcp"), json={})
    assert answer.status_code == 404
    assert "/context/NAME/mcp" in answer.json()["error"]


async def test_words_that_no_tool_knows_are_named(url: str) -> None:
    async with talking(url, "sdk", "legacy") as talk:
        said = await talk.call("set_context", query="list the ledgers entries by zorgblatt")
        assert list(said.structured["unknown_words"]) == ["zorgblatt"]
