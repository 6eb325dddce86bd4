"""A session and its question, stored by the first commit with packet version 16, can be opened."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.old_session import READ, SESSION, WAITING, restore_old_session

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.trace import find_packet
from packetgate.connectors.turn import Asked, Finished, Reply, Say, UserInput, run_turn
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state import sections
from packetgate.state.context import RoutingContext
from packetgate.state.sections import PacketState
from packetgate.state.transitions import ToolExecutionStatus as Status


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with the old database, on the day of its question."""
    monkeypatch.setattr(sections, "now", lambda: datetime(2026, 11, 27, 18, tzinfo=UTC))
    restore_old_session(tmp_path / "home")
    return Settings(home=tmp_path / "home", root=tmp_path, config=None, mcp_config=None)


async def test_past_packets_are_found(settings: Settings) -> None:
    read = (await find_packet(settings, READ[:8], None)).packet
    waiting = await find_packet(settings, "last", None)
    (call,) = read.routing.past_calls or read.routing.calls
    assert (read.content.original_prompt, call.tool_name, call.status) == ("Read plan.txt", "ai.read", Status.EXECUTED)
    assert call.result is not None
    assert call.result.output == "The gate opens at seven.\n"
    assert [step.step for step in read.reasoning.reflection_log][:2] == ["open_packet", "detect_intent"]
    assert waiting.packet.header.packet_id == WAITING
    assert waiting.packet.status.state is PacketState.AWAITING_USER
    assert waiting.packet.routing.calls[0].params == {"path": "gate.txt", "content": "seven"}
    assert waiting.question is not None
    proposed = await open_journal(settings).event_entries("call_proposed")
    assert [row.entry.detail["tool_name"] for row in proposed] == ["ai.read", "ai.write"]


@pytest.mark.parametrize("turn", [Reply("no"), Say("Read plan.txt")], ids=["answer", "request"])
async def test_its_question_can_be_answered_and_its_next_turn_runs(settings: Settings, turn: UserInput) -> None:
    (settings.root / "plan.txt").write_text("The gate opens at eight.\n")
    async with open_sessions(settings) as sessions:
        *_, event = [event async for event in run_turn(sessions, turn, SESSION, RoutingContext())]
        history = [event async for event in sessions.history(SESSION)]
    assert isinstance(event, Finished if isinstance(turn, Reply) else Asked)
    assert len(history) > 2
    if isinstance(turn, Reply):
        assert event.packet.routing.calls[0].status is Status.USER_DENIED
        assert event.packet.header.lineage == (READ,)
