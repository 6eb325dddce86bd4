"""A client of the proxy gets again what it read itself a moment ago, and is told so; no other client does."""

from pathlib import Path

from support.proxies import gateway_over, served, talking
from support.tide_server import Tide

from packetgate.connectors.proxy.results import AGE

TOKENS = {"ide-token-0123456789": "ide", "desk-token-0123456789": "desk"}
IDE, DESK = TOKENS
READ = {"name": "tide.read_level", "arguments": {"place": "Brest"}}
WRITE = {"name": "tide.set_level", "arguments": {"level": "high"}}


async def test_it_is_used_again_for_the_same_client_until_somebody_writes(tmp_path: Path) -> None:
    tide = Tide({"ttlMs": 60_000})
    async with (
        gateway_over(tide.server, home=tmp_path, allow_write_tools=True) as gateway,
        served(gateway, TOKENS) as address,
        talking(f"{address}/mcp", "fastmcp", "legacy", token=IDE) as ide,
        talking(f"{address}/mcp", "fastmcp", "legacy", answer=lambda *_: "yes", token=DESK) as desk,
    ):
        first = await ide.call("call_read_tool", **READ)
        again = await ide.client.call_tool_mcp("call_read_tool", READ)
        assert (first.structured["age_s"], tide.reads) == (None, 1)
        assert again.structured_content["text"] == first.structured["text"]
        assert again.structured_content["age_s"] == again.meta[AGE] > 0
        await desk.call("call_read_tool", **READ)
        assert tide.reads == 2
        assert not (await desk.call("call_changing_tool", **WRITE)).is_error
        for talk, reads in ((ide, 3), (desk, 4)):
            assert "high" in (await talk.call("call_read_tool", **READ)).text
            assert tide.reads == reads


async def test_a_tool_by_its_own_name_answers_as_it_did(tmp_path: Path) -> None:
    tide = Tide({"ttlMs": 60_000})
    async with gateway_over(tide.server, home=tmp_path) as gateway, served(gateway) as address:
        async with talking(f"{address}/mcp", "fastmcp", "legacy") as talk:
            first, again = [await talk.client.call_tool_mcp("tide.read_level", {"place": "Brest"}) for _ in range(2)]
        assert tide.reads == 1
        assert (first.content, first.structured_content) == (again.content, again.structured_content)
        assert AGE in again.meta
        assert AGE not in (first.meta or {})


async def test_a_request_without_a_session_uses_nothing_again(tmp_path: Path) -> None:
    tide = Tide({"ttlMs": 60_000})
    async with gateway_over(tide.server, home=tmp_path) as gateway, served(gateway) as address:
        async with talking(f"{address}/mcp", "sdk", "2026-07-28") as talk:
            for _ in range(2):
                await talk.call("tide.read_level", place="Brest")
        assert tide.reads == 2
