"""Stored results in a shared database can be read on every machine."""

import asyncio
from pathlib import Path

import pytest
from support.pictures import png

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Finished, Say, run_turn
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.context import RoutingContext
from packetgate.tools.attached.parts import message_part
from packetgate.tools.text.result_store import ResultStore, session_results


def machine(tmp_path: Path, name: str, url: str) -> ResultStore:
    return result_store(Settings(home=tmp_path / name, database_url=url))


async def test_a_handle_can_be_read_on_another_machine_in_its_session_only(tmp_path: Path, postgres: str) -> None:
    here, there = machine(tmp_path, "here", postgres), machine(tmp_path, "there", postgres)
    with session_results("one"):
        assert there.read("kept:0123456789abcdef") is None
        text, data = here.keep("a long text"), here.keep(b"\x89PNG\xff")
        assert there.read(text) == "a long text"
        file = there.file(data, "one")
        assert file is not None
        assert file.is_relative_to(tmp_path / "there")
        assert file.read_bytes() == b"\x89PNG\xff"
    with session_results("two"):
        assert there.read(text) is None


async def test_the_results_of_all_sessions_together_are_limited(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packetgate.graph.shared_results.MAX_SHARED_BYTES", 100)
    here, handles = machine(tmp_path, "here", postgres), {}
    for session in ("oldest", "old", "new"):
        with session_results(session):
            handles[session] = await asyncio.to_thread(here.keep, 48 * "x")
    left = set()
    for session, handle in handles.items():
        with session_results(session):
            if await asyncio.to_thread(machine(tmp_path, "there", postgres).read, handle):
                left.add(session)
    assert left == {"old", "new"}


async def test_a_picture_attached_on_one_machine_is_available_on_another(tmp_path: Path, postgres: str) -> None:
    settings = Settings(root=tmp_path, home=tmp_path / "here", database_url=postgres)
    async with open_sessions(settings) as sessions:
        turn = Say("Hello", files=(message_part("dot.png", png()),))
        told = [event async for event in run_turn(sessions, turn, "one", RoutingContext())]
    assert isinstance(told[-1], Finished)
    (attached,) = told[-1].packet.content.attachments
    assert attached.handle
    file = await asyncio.to_thread(machine(tmp_path, "there", postgres).file, attached.handle, "one")
    assert file is not None
    assert file.read_bytes() == png()
