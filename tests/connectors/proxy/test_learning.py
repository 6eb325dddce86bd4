"""What clients use teaches: by client, more for what they had to search for, and it outlives the process."""

from pathlib import Path

import pytest
from fastmcp import FastMCP
from langgraph.store.base import BaseStore
from support.proxies import Era, Talk, gateway_over, served, talking

from packetgate.connectors.proxy.gateway import Gateway
from packetgate.tools.usage.store import LEARNED

TOKENS = {"ide-token-0123456789": "ide", "desk-token-0123456789": "desk"}
IDE, DESK = TOKENS
QUERY = "zephyr figures for the board"
ANEW = "the board wants zephyr figures again"


def offices() -> FastMCP:
    """Return a server of many tools of which none tells that it serves the request."""
    server = FastMCP("office")
    topics = "wind turbine output quarter revenue board minutes figures chart summary member vote".split()
    for number in range(80):
        about = f"Get the {topics[number % len(topics)]} {topics[(number * 5 + 1) % len(topics)]} of year {number}."
        server.tool(lambda: "done", name=f"get_{number}", description=about)
    server.tool(lambda: "done", name="fetch_q", description="Return the contents of the cabinet.")
    return server


async def uses(store: BaseStore | None) -> list[dict[str, object]]:
    """Return what was learned, by whomever."""
    assert store is not None
    return [{**item.value, "who": item.namespace[-1]} for item in await store.asearch(LEARNED, limit=1000)]


async def used(talk: Talk, times: int = 1) -> None:
    """Have the tool used in the context, as a client does that searches where its list has nothing."""
    for _ in range(times):
        await talk.call("set_context", query=QUERY)
        if "office__fetch_q" not in await talk.names():
            await talk.call("search_tools", query="contents of the cabinet")
        assert not (await talk.call("call_read_tool", name="office.fetch_q")).is_error


async def place(gateway: Gateway, talk: Talk) -> int:
    """Return the place of the tool in a context that is worded anew."""
    await gateway.recorder.written()
    said = await talk.call("set_context", query=ANEW)
    names = [tool["name"] for tool in said.structured["tools"]]
    return names.index("office__fetch_q") + 1 if "office__fetch_q" in names else 99


async def test_after_twenty_uses_the_tool_is_among_the_first_three_for_its_client_alone(tmp_path: Path) -> None:
    async with gateway_over(offices(), home=tmp_path) as gateway, served(gateway, TOKENS) as address:
        async with talking(f"{address}/mcp", "sdk", "legacy", token=IDE) as ide:
            assert await place(gateway, ide) > 3
            await used(ide, 20)
            assert await place(gateway, ide) <= 3
        async with talking(f"{address}/mcp", "sdk", "legacy", token=DESK) as desk:
            assert await place(gateway, desk) > 3
    async with (
        gateway_over(offices(), home=tmp_path) as gateway,
        served(gateway, TOKENS) as address,
        talking(f"{address}/mcp", "sdk", "legacy", token=IDE) as ide,
    ):
        assert await place(gateway, ide) <= 3
        found = await ide.call("search_tools", query=ANEW)
        assert "office__fetch_q" in [tool["name"] for tool in found.structured["tools"][:3]]


@pytest.mark.parametrize("query", ["frobnicate the quux", "get the wind turbine of year 3", "vote of the member"])
async def test_a_use_removes_no_tool_from_a_later_list(tmp_path: Path, era: Era, query: str) -> None:
    async def listed(talk: Talk) -> set[str]:
        said = await talk.call("set_context", query=query)
        return await talk.names() if said.structured["listed"] else {tool["name"] for tool in said.structured["tools"]}

    async with (
        gateway_over(offices(), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", era) as talk,
    ):
        before = await listed(talk)
        context = (await talk.call("set_context", query=query)).structured["context_id"]
        more = {"context_id": context} if context else {}
        assert not (await talk.call("call_read_tool", name="office.fetch_q", **more)).is_error
        await gateway.recorder.written()
        after = await listed(talk)
        assert len(before) > 5
        assert before <= after


@pytest.mark.parametrize(("way", "weight"), [("searched", 1.5), ("named", 0.5)])
async def test_a_use_counts_by_how_its_client_came_to_it(tmp_path: Path, way: str, weight: float) -> None:
    async with (
        gateway_over(offices(), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", "legacy") as talk,
    ):
        await talk.call("set_context", query="vote of the member")
        if way == "searched":
            await talk.call("search_tools", query="contents of the cabinet")
        await talk.call("call_read_tool", name="office.fetch_q")
        await gateway.recorder.written()
        (use,) = await uses(gateway.chain.store)
        assert use["weight"] == pytest.approx(weight)
        assert use["tool"] == "office.fetch_q"


async def test_what_is_listed_and_used_counts_once(tmp_path: Path) -> None:
    async with (
        gateway_over(offices(), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", "legacy") as talk,
    ):
        said = await talk.call("set_context", query="vote of the member")
        listed = said.structured["tools"][-1]["name"]
        await talk.call(listed)
        await gateway.recorder.written()
        (use,) = await uses(gateway.chain.store)
        assert 0 < use["weight"] <= 1.0


async def test_failures_denials_dry_runs_and_calls_without_a_context_teach_nothing(tmp_path: Path) -> None:
    server = offices()

    @server.tool
    def read_broken() -> str:
        """Read what cannot be read."""
        raise ValueError("no")

    @server.tool
    def delete_all() -> str:
        """Delete all."""
        return "gone"

    async with (
        gateway_over(server, home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", "sdk", "legacy", answer=lambda *_: "no") as talk,
    ):
        assert not (await talk.call("call_read_tool", name="office.fetch_q")).is_error
        await talk.call("set_context", query=QUERY)
        assert (await talk.call("call_read_tool", name="office.read_broken")).is_error
        assert (await talk.call("call_changing_tool", name="office.delete_all")).is_error
        await gateway.recorder.written()
        assert await uses(gateway.chain.store) == []
