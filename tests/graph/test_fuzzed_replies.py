"""The server's graph accepts or refuses replies, inputs and updates of any shape, and loses no data."""

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from support.full_packet import full_packet
from support.fuzzing import fuzzed, mutated, texts, values

from packetgate.connectors.sessions import Sessions
from packetgate.deciders.choosing import reflex_deciders
from packetgate.gate.replies import parse_answer, parse_replies
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.graph.server_graph import ServerGraph
from packetgate.state.errors import PacketgateError, RequestError
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import builtin_servers

pytestmark = pytest.mark.slow

WRITES = {"allow_write_tools": True}
INPUT = {"messages": [{"role": "user", "content": 'Write "hello" to notes.txt'}], "request": {"origin": "studio"}}
EDIT = {"type": "edit", "edited_action": {"name": "ai.write", "args": {"path": "b.txt", "content": "x"}}}
REPLY = {"decisions": [{"type": "approve", "remember": "session"}, EDIT, {"type": "respond", "message": "words"}]}

replies = values | texts | mutated(REPLY) | mutated({"decisions": [EDIT]}) | mutated([{"type": "reject", "args": "no"}])
inputs = mutated(INPUT) | values
updates = mutated(full_packet().model_dump(mode="json")) | values
contexts = st.none() | mutated({**WRITES, "confidence_threshold": 0.5, "allowed_tools": ["ai.*"]})


@fuzzed(300, 5_000)
@given(reply=replies, count=st.integers(1, 3))
def test_any_reply_is_read_or_refused(reply: Any, count: int):
    for read in (lambda: parse_replies(reply, count), lambda: parse_answer(reply)):
        with suppress(RequestError):
            read()


async def served(root: Path, what: str, value: Any) -> str:
    """Run a turn to a question, send the value, and return the outcome."""
    async with McpHub(builtin_servers(root).values()) as hub:
        built = build_graph(reflex_deciders(), hub)
        graph = ServerGraph.from_graph(built.compile(checkpointer=InMemorySaver(serde=PacketSerializer())))
        config: Any = {"configurable": {"thread_id": "t"}}
        async for _ in graph.astream(INPUT, config, context=WRITES):
            pass
        sessions = Sessions(graph)
        before = await sessions.state("t")
        assert before.question is not None
        try:
            match what:
                case "update":
                    await graph.aupdate_state(config, value)
                case "resume":
                    await _run(graph, Command(resume=value), config, WRITES)
                case "resume with an update":
                    await _run(graph, Command(resume=value, update={"messages": []}), config, WRITES)
                case "input":
                    await _run(graph, value, config, WRITES)
                case "context":
                    await _run(graph, INPUT, config, value)
        except PacketgateError:
            after = await sessions.state("t")
            assert (after.packet, after.question) == (before.packet, before.question)
            return "refused"
        after = await sessions.state("t")
        return "waits" if after.question else "went on"


async def _run(graph: ServerGraph, given: Any, config: Any, context: Any) -> None:
    async for _ in graph.astream(given, config, context=context):
        pass


@pytest.mark.parametrize("messages", [[], "", {"role": "user", "content": " "}, [{"role": "ai", "content": "x"}]])
async def test_an_invalid_request_leaves_the_question_open(messages: Any, tmp_path: Path):
    assert await served(tmp_path, "input", {"messages": messages}) == "refused"


@pytest.mark.parametrize("what", ["resume", "resume with an update"])
@pytest.mark.parametrize("args", [{"path": 2**70}, {"\ud800": None}])
async def test_a_reply_that_cannot_be_stored_leaves_the_question_open(args: dict[str, Any], what: str, tmp_path: Path):
    assert await served(tmp_path, what, {"type": "edit", "args": {"args": args}}) == "refused"


@pytest.mark.parametrize(
    ("what", "sent"), [("resume", replies), ("input", inputs), ("update", updates), ("context", contexts)]
)
def test_any_input_to_a_server_is_accepted_or_refused_and_the_session_survives(
    what: str, sent: st.SearchStrategy[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    counts = Counter[str]()

    @fuzzed(40, 500)
    @given(value=sent)
    def check(value: Any) -> None:
        for file in tmp_path.iterdir():  # files from writes that earlier replies approved
            file.unlink()
        counts[asyncio.run(served(tmp_path, what, value))] += 1

    check()
    with capsys.disabled():
        print(f"\n{what}: {dict(counts)}")  # noqa: T201  the figures are the point
    assert counts["refused"]
