"""Unusable servers: the error names the server."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from langgraph.types import StateSnapshot
from support.http_stub import Answer, answering_all
from support.langgraph_server import serve_langgraph
from support.mcp_servers import until
from support.programs import descendants
from support.scripted_openai import free_port

from packetgate.connectors.remote import open_remote
from packetgate.connectors.sessions import SessionState
from packetgate.connectors.turn import Say, run_turn
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketError, PacketgateError

HTML = "<!doctype html><title>Not Found</title><p>Nothing here."


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def refusal(url: str, code: Code = Code.CONFIGURATION) -> str:
    with pytest.raises(ConfigError) as caught:
        async with open_remote(url, "packetgate"):
            raise AssertionError("it was opened")
    assert url.rpartition("@")[2] in str(caught.value)
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "localhost:2024", "ftp://a.example", "http://", "https://:80", "http://a:b", "http://a:99999"]
)
async def test_an_invalid_address_is_an_error(url: str) -> None:
    await refusal(url)


async def test_the_error_names_an_unreachable_server() -> None:
    await refusal(f"http://127.0.0.1:{free_port()}", Code.SERVER_UNAVAILABLE)


@pytest.mark.parametrize(
    "answer",
    [
        (404, "text/html", HTML),
        (404, "application/json", '{"detail": "Not Found"}'),
        (405, "text/plain", ""),
        (501, "text/html", HTML),
        (500, "application/json", '{"detail": [{"loc": ["body"], "msg": "wrong"}]}'),
        (200, "text/html", HTML),
        (200, "application/json", "{}"),
        (200, "application/json", '[{"id": 1}]'),
        (200, "application/json", ""),
        (302, "text/html", HTML),
    ],
    ids=str,
)
async def test_a_server_without_the_langgraph_api_is_an_error(answer: Answer) -> None:
    with answering_all(lambda _: answer) as url:
        await refusal(url)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_requires_a_key_is_an_error(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"assistant_id": "1", "graph_id": "packetgate", "name": "packetgate"}

    def answer(headers: dict[str, str]) -> Answer:
        if headers.get("x-api-key") != "secret":
            return status, "application/json", '{"detail": "Invalid token"}'
        return 200, "application/json", json.dumps([here])

    with answering_all(answer) as url:
        assert "LANGGRAPH_API_KEY" in await refusal(url)
        monkeypatch.setenv("LANGGRAPH_API_KEY", "wrong")
        told = await refusal(url)
        assert f"{status} Invalid token" in told
        assert "wrong" not in told
        monkeypatch.setenv("LANGGRAPH_API_KEY", "secret")
        async with open_remote(url, "packetgate"):
            pass


async def test_errors_do_not_contain_the_password_of_the_address() -> None:
    assert "hush" not in await refusal(f"http://me:hush@127.0.0.1:{free_port()}", Code.SERVER_UNAVAILABLE)


def test_a_thread_of_another_graph_is_an_error() -> None:
    snapshot = StateSnapshot({"messages": [], "intent": "chat"}, (), {}, None, None, None, (), ())
    with pytest.raises(PacketError, match="intent"):
        SessionState.from_snapshot(snapshot)


@pytest.mark.slow
async def test_a_server_that_dies_during_a_turn_is_an_error(tmp_path: Path) -> None:
    with serve_langgraph(tmp_path) as server:

        async def turn() -> None:
            async with open_remote(server.url, "packetgate") as sessions:
                async for _ in run_turn(sessions, Say('Wait until the clock strikes "nine"'), "s", RoutingContext()):
                    pass

        running = asyncio.create_task(turn())
        await until(lambda: bool(server.clock.begun))
        for pid in (server.pid, *descendants(server.pid)):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(PacketgateError, match=server.url) as caught:
            await running
    assert caught.value.code == Code.CONNECTION_LOST
