"""For any decisions and replies, every turn ends within its limits, by valid transitions, without loss."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot
from support.confirmed_reads import confirming_preferences
from support.notebook import Notebook
from support.palettes import NIGHTLY
from support.scripted_deciders import ScriptedReviewer, calls, clarify, describe, none, scripted, wanted

from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Finished, Reply, Say, run_turn
from packetgate.deciders.protocols import Selection
from packetgate.gate.confidence import CallReview
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import PacketState
from packetgate.state.transitions import STATUSES
from packetgate.toolsets.servers.hub import McpHub

pytestmark = pytest.mark.slow

EXAMPLES = 1_000 if NIGHTLY else 40
MAX_REPLIES = 40
"""More questions than any turn may come to."""

WANTED = [
    wanted("notebook.read_note", name="a"),
    wanted("notebook.read_note", name="z"),  # fails
    wanted("notebook.read_note"),  # incomplete
    wanted("notebook.list_notes"),
    wanted("notebook.write_note", name="a", text="x"),
    wanted("notebook.save_note", name="b", text="y"),
    wanted("notebook.run_command", command="ls"),
    wanted("notebook.no_such_tool", name="a"),
    wanted("", **{"": None}),
    wanted("notebook.read_note", name=2**70),
]
one_call = st.sampled_from(WANTED)
selections: st.SearchStrategy[Selection] = st.one_of(
    st.lists(one_call, min_size=1, max_size=6).map(lambda several: calls(*several)),
    st.sampled_from([none("nothing fits"), clarify("Which one?"), describe("notebook.read_note"), describe("no.tool")]),
)
judgements = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.5, 0.69, 0.7, 1.0])) | st.none(), max_size=6)
arguments = st.dictionaries(st.text(max_size=5), st.integers(), max_size=2)
decisions = st.sampled_from(["approve", "reject", "ignore", "respond", "edit", "nonsense"]).flatmap(
    lambda kind: st.fixed_dictionaries(
        {"type": st.just(kind)},
        optional={
            "args": st.none() | st.text(max_size=8) | arguments,
            "message": st.text(max_size=8),
        },
    )
)
replies: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["yes", "no", "skip", "never", "always", "", "something else"]),
    st.text(max_size=12),
    decisions,
    st.lists(decisions, max_size=4),
    st.lists(decisions, max_size=4).map(lambda several: {"decisions": several}),
    st.integers(),
    st.none(),
    st.just({"type": "edit", "args": {"args": {"name": 2**70}}}),
)
contexts = st.builds(
    RoutingContext,
    allow_write_tools=st.booleans(),
    allow_execute_tools=st.booleans(),
    confidence_threshold=st.sampled_from([0.0, 0.5, 0.7, 1.0]),
    max_reinjections=st.integers(0, 3),
    max_parallel_calls=st.integers(1, 4),
    on_low_confidence=st.sampled_from(["ask", "skip"]),
)


@dataclass
class Turn:
    """The script of a turn: selections, reviews, replies and settings."""

    selections: list[Selection]
    judgements: list[tuple[bool, float] | None]
    replies: list[Any]
    context: RoutingContext


turns = st.builds(
    Turn,
    selections=st.lists(selections, max_size=6),
    judgements=judgements,
    replies=st.lists(replies, max_size=4),
    context=contexts,
)


def judge(turn: Turn, packet_calls: Counter[str]) -> Any:
    def judged(call: ToolCall) -> CallReview | None:
        if not turn.judgements:
            return CallReview(call_id=call.call_id, approved=True, confidence=0.9)
        said = turn.judgements[packet_calls.total() % len(turn.judgements)]
        packet_calls[call.call_id] += 1
        return None if said is None else CallReview(call_id=call.call_id, approved=said[0], confidence=said[1])

    return judged


async def play(turn: Turn) -> tuple[list[CognitionPacket], Notebook]:
    """Run a turn to its end with `run_turn`, and return every state."""
    notebook, config = Notebook(), {"configurable": {"thread_id": "t"}}
    selections = [*turn.selections, *[none() for _ in range(20)]]
    deciders = scripted(*selections, reviewer=ScriptedReviewer(judge(turn, Counter())))
    async with McpHub([notebook.connection(trusted=True)], preferences=confirming_preferences()) as hub:
        graph = build_graph(deciders, hub).compile(checkpointer=InMemorySaver(serde=PacketSerializer()))
        sessions, replies = Sessions(graph), iter(turn.replies)
        given: Say | Reply = Say("Do something with the notes")
        for _ in range(MAX_REPLIES):
            end = None
            with suppress(RequestError):  # a reply that cannot be read leaves the question as it is
                end = [event async for event in run_turn(sessions, given, "t", turn.context)][-1]
            if isinstance(end, Finished):
                states = [CognitionPacket.model_validate(fields(one)) async for one in graph.aget_state_history(config)]
                return states[::-1], notebook
            given = Reply(next(replies, "no"))
    raise AssertionError(f"{MAX_REPLIES} replies, and it still asks")


def fields(snapshot: StateSnapshot) -> dict[str, Any]:
    return {name: one for name, one in snapshot.values.items() if name in CognitionPacket.model_fields}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(turn=turns)
def test_every_turn_ends_within_its_limits_by_valid_transitions(turn: Turn):
    states, notebook = asyncio.run(play(turn))
    last = states[-1]
    assert last.status.state is PacketState.COMPLETED
    assert last.response.candidate
    routing = last.tool_routing
    if routing is None:
        assert notebook.calls == []
        return
    assert routing.reinjection_count <= turn.context.max_reinjections
    assert not any(call.status.awaits_user for call in routing.all_calls)
    ran = [call for call in routing.all_calls if call.result and not call.result.dry_run and call.status != "skipped"]
    assert len(ran) <= (turn.context.max_reinjections + 1) * turn.context.max_parallel_calls
    changed = [call for call in ran if call.risk is not Risk.READ and call.status == "executed"]
    approved = {one.call_id for one in last.governance.approvals if one.outcome in {"approved", "edited"}}
    assert {call.call_id for call in changed} <= approved
    assert all(turn.context.allows(call.risk) for call in changed)
    before: dict[str, str] = {}
    for state in states:
        assert CognitionPacket.model_validate_json(state.model_dump_json()) == state
        for call in state.tool_routing.all_calls if state.tool_routing else ():
            earlier = before.get(call.call_id, "pending")
            assert call.status == earlier or can_reach(earlier, call.status), (earlier, call.status)
            before[call.call_id] = call.status


def can_reach(before: str, after: str) -> bool:
    """Return whether a status can follow another, directly or through a status that no checkpoint has."""
    direct = {str(one) for one in STATUSES[before]}  # type: ignore[index]
    return after in direct or any(after in {str(one) for one in STATUSES[way]} for way in STATUSES[before])  # type: ignore[index]
