"""Servers that violate the protocol like real servers: readable answers are read, other answers fail immediately."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import odd_server
from support.odd_server import OddHttp

from packetgate.state.codes import Code
from packetgate.state.errors import LostCallError, ServerError
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection

WAYS = ["stdio", "http", "events"]
IN_TIME_S = 30.0
"""Far below the time-out of a call."""


@asynccontextmanager
async def hub_to(http: OddHttp, folder: Path, **entry: object) -> AsyncIterator[McpHub]:
    """Open a hub to the server over HTTP."""
    with http.serving():
        config = ServerConfig("odd", {"url": http.url, "trusted": True, **entry})
        async with McpHub([new_connection(config, folder)], patience_s=60.0) as hub:
            assert "odd.get_plain" in await hub.catalogue(), hub.health()
            yield hub


@asynccontextmanager
async def hub_by(way: str, folder: Path, **entry: object) -> AsyncIterator[McpHub]:
    """Open a hub to the server over one of the transports in `WAYS`."""
    if way != "stdio":
        http = OddHttp()
        http.as_events = way == "events"
        async with hub_to(http, folder, **entry) as hub:
            yield hub
        return
    args = [str(Path(odd_server.__file__)), str(folder / "log")]
    config = ServerConfig("odd", {"command": sys.executable, "args": args, "trusted": True, **entry})
    async with McpHub([new_connection(config, folder)], patience_s=60.0) as hub:
        assert "odd.get_plain" in await hub.catalogue(), hub.health()
        yield hub


@pytest.mark.parametrize("way", WAYS)
async def test_answers_of_nonconforming_servers_are_read(tmp_path: Path, way: str):
    readable = ["plain", "no_version", "null_error", "null_flag", "text_id", "not_a_number", "null_parts", "odd_part"]
    async with hub_by(way, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        for name in readable:
            result = await hub.call(f"odd.get_{name}", {})
            assert (name, result.success, result.output.partition("\n")[0]) == (name, True, "fine")
        for name in ("half_emoji", "half_bytes"):
            assert (await hub.call(f"odd.get_{name}", {})).output.startswith("hi ")
        assert (await hub.call("odd.get_odd_part", {})).output == 'fine\n{"type": "poem", "x": 1}'
        for name, error in {"own_32001": "Session not found: tab 3", "own_32000": "Connection closed, it says"}.items():
            result = await hub.call(f"odd.get_{name}", {})
            assert (result.success, result.error) == (False, error)
        for name in ("cut_off", "no_result", "no_json"):
            with pytest.raises(LostCallError) as caught:
                await hub.call(f"odd.get_{name}", {})
            assert caught.value.code is Code.NO_ANSWER
            assert (await hub.call("odd.get_plain", {})).output == "fine"
        assert hub.health()[0].state == "ready"


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_of_more_than_32_mb_fails_and_the_next_call_is_answered(tmp_path: Path, way: str):
    async with hub_by(way, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        assert (await hub.call("odd.get_large", {})).success
        with pytest.raises(LostCallError, match="more than 32 MB" if way != "events" else "") as caught:
            await hub.call("odd.get_vast", {})
        assert len(str(caught.value)) < 1_000
        assert (await hub.call("odd.get_plain", {})).output == "fine"


@pytest.mark.parametrize("way", ["stdio", "events"])
async def test_progress_extends_the_timeout(tmp_path: Path, way: str):
    async with hub_by(way, tmp_path, timeout=1000) as hub:
        assert (await hub.call("odd.get_reporting", {})).output == "fine"


@pytest.mark.slow
async def test_progress_does_not_extend_the_timeout_for_ever(tmp_path: Path):
    async with hub_by("stdio", tmp_path, timeout=500) as hub:
        with pytest.raises(LostCallError) as caught:
            await hub.call("odd.get_endless", {})
    assert caught.value.code is Code.CALL_TIMED_OUT


@pytest.mark.slow
async def test_a_server_that_hangs_is_restarted(tmp_path: Path):
    async with hub_by("stdio", tmp_path, timeout=1000) as hub:
        with pytest.raises(LostCallError) as caught:
            await hub.call("odd.get_hanging", {})
        assert caught.value.code is Code.CALL_TIMED_OUT
        assert (await hub.call("odd.get_plain", {})).output == "fine"
    assert (tmp_path / "log").read_text().split() == ["start", "hanging", "start", "plain"]


LOST = [
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
    (401, "who are you?"),
]
"""How servers refuse a session that they do not know."""


async def test_a_lost_session_is_reopened_and_the_call_sent_again(tmp_path: Path):
    http = OddHttp()
    async with hub_to(http, tmp_path) as hub:
        for number, http.refusal in enumerate(LOST):
            http.forget()
            async with asyncio.timeout(IN_TIME_S):
                tool = ("send_word", "get_plain")[number % 2]
                assert (await hub.call(f"odd.{tool}", {})).output == "fine", http.refusal
            assert (len(http.ran), http.initialized) == (number + 1, number + 2)
        http.forget()
        results = await asyncio.gather(*(hub.call("odd.send_word", {}) for _ in range(3)))
    assert [result.output for result in results] == ["fine"] * 3
    assert (len(http.ran), http.initialized) == (len(LOST) + 3, len(LOST) + 2)


@pytest.mark.parametrize(
    "refusal",
    [
        (400, "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26, 2024-11-05)"),
        (
            200,
            '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unsupported protocol version", '
            '"data": {"supported": ["2025-06-18", "2024-11-05"], "requested": "2025-11-25"}}}',
        ),
        (422, '{\n  "detail": "protocolVersion 2025-11-25 is not in",\n  "known": ["2024-11-05", "2025-06-18"]\n}'),
    ],
)
async def test_a_version_that_the_server_names_is_used(tmp_path: Path, refusal: tuple[int, str]):
    http = OddHttp()
    http.refused, http.next = {"initialize"}, [(refusal[0], {}, refusal[1])]
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        assert hub.clients()["odd"].protocol_version == "2025-06-18"
        assert (await hub.call("odd.send_word", {})).output == "fine"


async def test_a_session_that_is_always_refused_is_reopened_once(tmp_path: Path):
    http = OddHttp()
    http.refused = {"tools/call", "ping"}
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.next = [(404, {}, "")] * 5
        with pytest.raises(ServerError) as caught:
            await hub.call("odd.send_word", {})
    assert caught.value.code is Code.SERVER_SESSION_UNKNOWN
    assert (http.ran, http.initialized) == ([], 2)


@pytest.mark.parametrize("refusal", [(404, {}, "no item 7"), (400, {}, "the session of the board is over")])
async def test_a_call_that_is_refused_in_a_live_session_is_not_sent_again(tmp_path: Path, refusal: Any):
    http = OddHttp()
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.next = [refusal]
        with pytest.raises(ServerError, match=f"HTTP {refusal[0]} .*: {refusal[2]}") as caught:
            await hub.call("odd.send_word", {})
    assert caught.value.code is Code.SERVER_UNAVAILABLE
    assert (http.ran, http.initialized, http.next) == ([], 1, [])


@pytest.mark.parametrize(
    ("answer", "says", "error"),
    [
        ((429, {"retry-after": "0"}, "slow down\nplease"), "HTTP 429 Too Many Requests: slow down", ServerError),
        ((502, {}, "<html><title>Bad gateway</title>"), "HTTP 502 Bad Gateway: Bad gateway", LostCallError),
    ],
)
async def test_the_first_line_of_an_http_error_is_shown(tmp_path: Path, answer: Any, says: str, error: type[Exception]):
    http = OddHttp()
    async with hub_to(http, tmp_path) as hub, asyncio.timeout(IN_TIME_S):
        http.next = [answer]
        with pytest.raises(ServerError, match=f"{says}$") as caught:
            await hub.call("odd.get_plain", {})
    assert type(caught.value) is error
    assert (http.ran, http.next) == ([], [])


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (503, "\nmaintenance until noon\nsorry", "HTTP 503 Service Unavailable: maintenance until noon"),
        (404, "", "HTTP 404 Not Found"),
    ],
)
async def test_the_first_line_of_a_refusal_at_the_start_is_shown(tmp_path: Path, status: int, body: str, says: str):
    http = OddHttp()
    http.refused, http.next = {"initialize"}, [(status, {}, body)] * 9
    with http.serving():
        config = ServerConfig("odd", {"url": http.url})
        async with McpHub([new_connection(config, tmp_path)], patience_s=60.0) as hub:
            assert not await hub.catalogue()
            assert hub.health()[0].problem == says
