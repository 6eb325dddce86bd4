"""What a call comes to, as clients get it: long texts, pictures, what a server refuses, and one that is not there."""

import json
import sys
from pathlib import Path

from fastmcp import FastMCP
from mcp_types import ImageContent
from support import faulty_server, media_server
from support.mcp_servers import echoing
from support.proxies import Era, Make, gateway_over, served, talking

from packetgate.connectors.clients import ProxyConfig
from packetgate.connectors.proxy.serving import open_gateway
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext


def configured(folder: Path, **servers: object) -> Settings:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return Settings(mcp_config=folder / "mcp.json", home=folder / "home", root=folder)


async def test_texts_of_any_length_arrive(tmp_path: Path, make: Make, era: Era) -> None:
    server: FastMCP[None] = FastMCP("books")
    texts = {"steering": "\x1b" * 100_000, "words": "words " * 50_000, "faces": "\U0001f642" * 99_000}

    @server.tool
    def get_book(title: str) -> str:
        """Get a book."""
        return texts[title]

    async with (
        gateway_over(server, echoing("other"), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        for title, text in texts.items():
            for way in (
                talk.call("books.get_book", title=title),
                talk.call("call_read_tool", name="books.get_book", arguments={"title": title}),
            ):
                said = await way
                assert not said.is_error
                assert said.text[:50_000] == text[:50_000]
                assert "[cut here: " in said.text[50_000:]


async def test_of_pictures_those_arrive_that_there_is_room_for(tmp_path: Path, make: Make, era: Era) -> None:
    settings = configured(tmp_path, media=media_server.entry())
    async with (
        open_gateway(settings, ProxyConfig(), RoutingContext()) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        ask = talk.client.call_tool_mcp if make == "fastmcp" else talk.client.call_tool
        result = await ask("call_read_tool", {"name": "media.get_map"})
        texts = [part.text for part in result.content if not isinstance(part, ImageContent)]
        pictures = [part.data for part in result.content if isinstance(part, ImageContent)]
    assert pictures == [media_server.encoded(media_server.PNG)]
    assert texts[0].startswith("[image image/png, 1.5 MB, kept:")
    handle = texts[0].partition("]")[0].split()[-1]
    assert texts[0].endswith(f"\n[{handle}: left out, as it is too long for one answer]")
    assert texts[1:] == ["drawn"]


async def test_a_servers_own_error_is_told_in_part_and_is_not_its_end(tmp_path: Path, make: Make, era: Era) -> None:
    command, *arguments = faulty_server.entry("refuses at length")
    settings = configured(tmp_path, busy={"command": command, "args": arguments, "trusted": True})
    async with (
        open_gateway(settings, ProxyConfig(), RoutingContext()) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        said = await talk.call("call_read_tool", name="busy.get_ledger")
        (health,) = gateway.chain.hub.health()
        assert said.is_error
        assert "busy busy" in said.text
        assert len(said.text) < 101_000
        assert health.state == "ready"


async def test_by_its_own_name_a_tool_says_that_its_server_is_not_there(tmp_path: Path, make: Make, era: Era) -> None:
    dead = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no')"]}
    settings = configured(tmp_path, notes=dead, media=media_server.entry())
    async with (
        open_gateway(settings, ProxyConfig(), RoutingContext()) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        said = await talk.call("notes.get_pid")
        assert said.is_error
        assert said.text.startswith("server 'notes' is not there: Connection closed; what it printed is in logs/")
        assert str(tmp_path) not in said.text
        assert "Unknown tool" in (await talk.call("elsewhere.get_pid")).text
