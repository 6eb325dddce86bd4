"""Servers that break the protocol as real ones do: what can be read is read, and what cannot fails at once."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import odd_server
from support.http_stub import answering_all
from support.odd_server import OddHttp

from packetgate.state.errors import LostCallError, ServerError
from packetgate.tools.servers.config import ServerConfig
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.starting import configured

WAYS = ["stdio", "http", "events", "sse"]
IN_TIME_S = 30.0
"""Far less than the time-out of a call."""


@asynccontextmanager
async def hub_to(http: OddHttp, folder: Path, **entry: object) -> AsyncIterator[McpHub]:
    """Open a hub to the server over HTTP."""
    with http.serving():
        more = {"type": "sse"} if http.sse else {}
        config = ServerConfig("odd", {"url": http.url, "trusted": True, **more, **entry})
        async with McpHub([configured(config, folder)], patience_s=60.0) as hub:
            assert "odd.get_plain" in await hub.catalogue(), hub.health()
            yield hub


@asynccontextmanager
async def hub_by(way: str, folder: Path, **entry: object) -> AsyncIterator[McpHub]:
    """Open a hub to the server by one of the `WAYS`."""
    if way != "stdio":
        http = OddHttp(sse=way == "sse")
        http.as_events = way == "events"
        async with hub_to(http, folder, **entry) as hub:
            yield hub
        return
    args = [str(Path(odd_server.__file__)), str(folder / "log")]
    config = ServerConfig("odd", {"command": sys.executable, "args": args, "trusted": True, **entry})
    async with McpHub([configured(config, folder)], patience_s=60.0) as hub:
        assert "odd.get_plain" in await hub.catalogue(), hub.health()
        yield hub


@pytest.mark.parametrize("way", WAYS)
async def test_odd_answers_are_read(tmp_path: Path, way: str):
    fine = [
        "plain", "no_version", "null_error", "zero_error", "null_flag", "text_id", "batch", "bare_array", "bare_text",
        "not_a_number", "null_parts", "logged", "foreign", "prefixed", "odd_part",
    ]  # fmt: skip
    async with hub_by(way, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        for name in fine:
            result = await hub.call(f"odd.get_{name}", {})
            assert (name, result.success, result.output.partition("\n")[0]) == (name, True, "fine")
        for name in ("half_emoji", "half_bytes"):
            assert (await hub.call(f"odd.get_{name}", {})).output == "hi �"
        assert (await hub.call("odd.get_bare_object", {})).output == '{"apples": 3}'
        assert (await hub.call("odd.get_odd_part", {})).output == 'fine\n{"type": "poem", "x": 1}'


OWN_ERRORS = {
    "no_message": "error -32000, without a message",
    "text_code": "ENOENT: no such file",
    "own_32001": "Session not found: tab 3",
    "own_32000": "Connection closed, it says",
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_tools_own_error_is_the_tools(tmp_path: Path, way: str):
    async with hub_by(way, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        results = {name: await hub.call(f"odd.get_{name}", {}) for name in OWN_ERRORS}
        assert {name: (result.success, result.error) for name, result in results.items()} == {
            name: (False, error) for name, error in OWN_ERRORS.items()
        }
        assert hub.health()[0].state == "ready"


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_cannot_be_read_fails_its_call_alone_and_at_once(tmp_path: Path, way: str):
    async with hub_by(way, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        for name in ("cut_off", "no_result", "no_json", *(["cut_early"] if way != "sse" else [])):
            with pytest.raises(LostCallError, match="'odd' gave no usable answer: "):
                await hub.call(f"odd.get_{name}", {})
            assert (await hub.call("odd.get_plain", {})).output == "fine"
        assert hub.health()[0].state == "ready"


@pytest.mark.parametrize("way", ["stdio", "events", "sse"])
async def test_progress_extends_the_wait(tmp_path: Path, way: str):
    async with hub_by(way, tmp_path, timeout=1000) as hub:
        assert (await hub.call("odd.get_reporting", {})).output == "fine"


async def test_progress_does_not_extend_the_wait_for_ever(tmp_path: Path):
    async with hub_by("stdio", tmp_path, timeout=500) as hub:
        with pytest.raises(LostCallError, match="'odd' gave no answer within 5 s, though it reported progress"):
            await hub.call("odd.get_endless", {})


async def test_a_server_that_hangs_is_started_anew(tmp_path: Path):
    async with hub_by("stdio", tmp_path, timeout=1000) as hub:
        with pytest.raises(LostCallError, match="'odd' gave no answer within 1 s"):
            await hub.call("odd.get_hanging", {})
        assert (await hub.call("odd.get_plain", {})).output == "fine"
    assert (tmp_path / "log").read_text().split() == ["start", "hanging", "start", "plain"]


FORGOTTEN = [
    (404, ""),
    (404, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}'),
    (404, '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32600, "message": "Session terminated"}}'),
    (410, "gone"),
    (400, "Bad Request: No valid session ID provided"),
    (400, "nope"),
    (400, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "No valid session"}}'),
    (200, '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32001, "message": "Session not found"}}'),
    (200, '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32600, "message": "Unbekannte Sitzung"}}'),
    (200, '{"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "session expired"}}'),
    (200, '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32602, "message": "initialize first"}}'),
    (401, "who are you?"),
]


async def test_a_forgotten_session_is_opened_anew_and_the_call_sent_again(tmp_path: Path):
    http = OddHttp()
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        for count, http.refusal in enumerate(FORGOTTEN, 1):
            for tool in ("send_word", "get_plain"):
                http.forget()
                assert (await hub.call(f"odd.{tool}", {})).output == "fine", http.refusal
            assert (http.ran, http.initialized) == (["send_word", "plain"] * count, 1 + 2 * count), http.refusal


@pytest.mark.parametrize("refusal", [(404, "Could not find session"), (400, "unknown session")])
async def test_a_forgotten_session_of_the_older_transport_too(tmp_path: Path, refusal: tuple[int, str]):
    http = OddHttp(sse=True)
    http.refusal = refusal
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.forget()
        assert (await hub.call("odd.send_word", {})).output == "fine"
    assert (http.ran, http.initialized) == (["send_word"], 2)


async def test_a_session_that_is_refused_for_good_is_asked_for_once(tmp_path: Path):
    http = OddHttp()
    http.refused = {"tools/call", "ping"}
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.next = [(404, {}, "")] * 5
        with pytest.raises(ServerError, match="'odd' does not know its session any more"):
            await hub.call("odd.send_word", {})
    assert (http.ran, http.initialized) == ([], 2)


@pytest.mark.parametrize("refusal", [(404, {}, "no item 7"), (400, {}, "the session of the board is over")])
async def test_a_call_that_is_refused_in_a_session_that_answers_is_not_sent_again(tmp_path: Path, refusal: Any):
    http = OddHttp()
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.next = [refusal]
        with pytest.raises(ServerError, match=f"'odd' answered HTTP {refusal[0]} .*: {refusal[2]}"):
            await hub.call("odd.send_word", {})
    assert (http.ran, http.initialized, http.next) == ([], 1, [])


async def test_calls_beside_each_other_share_one_new_session(tmp_path: Path):
    http = OddHttp()
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.forget()
        results = await asyncio.gather(*(hub.call("odd.send_word", {}) for _ in range(5)))
    assert [result.output for result in results] == ["fine"] * 5
    assert (http.ran, http.initialized) == (["send_word"] * 5, 2)


BUSY = [
    (429, {"retry-after": "0"}, "slow down\nplease"),
    (502, {"content-type": "text/html"}, "<html><title>Bad gateway</title>"),
]


@pytest.mark.parametrize("way", ["http", "sse"])
async def test_a_busy_server_is_asked_again_for_what_it_only_reads(tmp_path: Path, way: str):
    http = OddHttp(sse=way == "sse")
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.next = list(BUSY)
        assert (await hub.call("odd.get_plain", {})).output == "fine"
        http.next = BUSY[:1] * 5
        with pytest.raises(ServerError, match=r"'odd' answered HTTP 429 Too Many Requests: slow down$"):
            await hub.call("odd.get_plain", {})
        assert len(http.next) == 2
        http.next = BUSY[1:]
        with pytest.raises(LostCallError, match=r"'odd' answered HTTP 502 Bad Gateway: Bad gateway$"):
            await hub.call("odd.send_word", {})
    assert http.ran == ["plain"]


async def test_a_server_that_refuses_to_start_is_told_by_what_it_says(tmp_path: Path):
    with answering_all(lambda _: (503, "text/plain", "\nmaintenance until noon\nsorry")) as url:
        async with McpHub([configured(ServerConfig("odd", {"url": url}), tmp_path)], patience_s=60.0) as hub:
            assert not await hub.catalogue()
            assert hub.health()[0].problem == "HTTP 503 Service Unavailable: maintenance until noon"
