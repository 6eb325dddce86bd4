"""After a kill at any point of a turn, a new process continues from the checkpoint to the correct end."""

from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from support.killed_turn import KilledTurn, dies

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Continue, Finished, Reply, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.transitions import ToolExecutionStatus

pytestmark = pytest.mark.slow

WRITES = RoutingContext(allow_write_tools=True)
READ = TurnInput(messages=[HumanMessage("Read plan.txt")])
WRITE = TurnInput(messages=[HumanMessage('Write "seven" to new.txt')])

READ_STAGES = "open_packet detect_intent build_palette select_tool review_selection execute_tool inject_result".split()
ASK_STAGES = "open_packet detect_intent build_palette select_tool review_selection".split()
WRITE_STAGES = [*ASK_STAGES, "ask_user", "execute_tool", "inject_result", "detect_intent", "respond"]

# LangGraph reports a turn's first checkpoint before any stage, then each stage and the checkpoint after it.
READ_EVENTS = 20
ASK_EVENTS = 13
ANSWER_EVENTS = 11


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    root = tmp_path / "root"
    root.mkdir()
    (root / "plan.txt").write_text("The gate opens at seven.\n")
    return Settings(home=tmp_path / "home", root=root)


async def last_event(sessions: Sessions, turn: Continue | Reply) -> Asked | Finished:
    end = [event async for event in run_turn(sessions, turn, "s", WRITES)][-1]
    assert isinstance(end, Asked | Finished)
    return end


async def resume(settings: Settings) -> Asked | Finished:
    """Continue in this process until the pending question or the end."""
    async with open_sessions(settings) as sessions:
        state = await sessions.state("s")
        if state.question is not None:
            return Asked(state.question, state.packet)
        return await last_event(sessions, Continue()) if state.is_unfinished else Finished(state.packet)


async def finish(settings: Settings) -> CognitionPacket:
    """Continue to the answer, approving every question."""
    end = await resume(settings)
    if isinstance(end, Asked):
        async with open_sessions(settings) as sessions:
            end = await last_event(sessions, Reply("yes"))
    assert isinstance(end, Finished)
    return end.packet


def stages(packet: CognitionPacket) -> list[str]:
    return [entry.step for entry in packet.reasoning.reflection_log]


@pytest.mark.parametrize("events", range(2, READ_EVENTS + 1))
async def test_a_killed_read_continues_to_its_answer(settings: Settings, events: int) -> None:
    assert dies(KilledTurn(settings, "s", READ, WRITES, events))
    packet = await finish(settings)
    assert "The gate opens at seven." in packet.response.candidate
    assert stages(packet) == [*READ_STAGES, "detect_intent", "respond"]
    assert [call.status for call in packet.routing.all_calls] == [ToolExecutionStatus.EXECUTED]
    assert [message.type for message in packet.messages] == ["human", "ai"]


@pytest.mark.parametrize("events", range(2, ASK_EVENTS + 1))
async def test_a_killed_question_is_still_asked(settings: Settings, events: int) -> None:
    assert dies(KilledTurn(settings, "s", WRITE, WRITES, events))
    asked = await resume(settings)
    assert isinstance(asked, Asked)
    assert asked.question["action_requests"][0]["args"] == {"path": "new.txt", "content": "seven"}
    assert stages(asked.packet) == ASK_STAGES
    assert not (settings.root / "new.txt").exists()
    assert stages(await finish(settings)) == WRITE_STAGES
    assert (settings.root / "new.txt").read_text() == "seven"


@pytest.mark.parametrize("events", range(1, ANSWER_EVENTS + 1))
async def test_a_turn_killed_after_its_answer_continues(settings: Settings, events: int) -> None:
    assert dies(KilledTurn(settings, "s", WRITE, WRITES, ASK_EVENTS))
    assert dies(KilledTurn(settings, "s", Command(resume="yes"), WRITES, events))
    packet = await finish(settings)
    assert (settings.root / "new.txt").read_text() == "seven"
    assert stages(packet) == WRITE_STAGES
    assert [call.status for call in packet.routing.all_calls] == [ToolExecutionStatus.EXECUTED]


def test_the_tested_boundaries_are_complete(settings: Settings) -> None:
    assert not dies(KilledTurn(settings, "s", READ, WRITES, READ_EVENTS + 1))
    assert not dies(KilledTurn(settings, "w", WRITE, WRITES, ASK_EVENTS + 1))
    assert not dies(KilledTurn(settings, "w", Command(resume="yes"), WRITES, ANSWER_EVENTS + 1))
