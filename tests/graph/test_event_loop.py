"""No stage, built-in tool or decider blocks the event loop, according to the development server's own detector.

All requests, files, results and model outputs are long.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from blockbuster.blockbuster import BlockingError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from support.gguf_model import write_tiny_gguf
from support.graphs import Session, stages
from support.prompts import call, first_call, selection
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.turn import Say
from packetgate.deciders.choosing import language_deciders, reflex_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.options import ModelOptions
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.request import MAX_REQUEST_CHARS, TurnRequest
from packetgate.state.sections import Attachment
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.servers.config import McpConfig
from packetgate.toolsets.servers.opening import open_hub

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_watched")]

REPOSITORY = Path(__file__).parents[2]
LONG = "\n\n".join(f"Paragraph {number} says that the owl sleeps by day and hunts at night." for number in range(500))
ANSWER, WORDS = LONG[:5_000].strip(), " ".join(["owl"] * 5_000)
EXECUTED, ALLOWED = ToolExecutionStatus.EXECUTED, {"allow_write_tools": True, "allow_execute_tools": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a long file."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "owls.txt").write_text(LONG)
    (folder / "README.md").write_bytes((REPOSITORY / "README.md").read_bytes())
    return folder


@pytest.fixture(scope="module")
def _watched() -> Iterator[None]:
    """Detect blocking calls in this process with the development server's own setup."""
    for name, value in {"DATABASE_URI": ":memory:", "REDIS_URI": "fake", "LANGGRAPH_RUNTIME_EDITION": "inmem"}.items():
        os.environ.setdefault(name, value)  # the server's modules require these variables at import
    from langgraph_runtime_inmem.queue import _enable_blockbuster

    blockbuster = _enable_blockbuster()
    yield
    blockbuster.deactivate()


@asynccontextmanager
async def at_work(deciders: Deciders, folder: Path, **context: object) -> AsyncIterator[Session]:
    """Open a session on the built-in tools with records, as on the server."""
    async with await open_hub(McpConfig(), folder, folder.parent / "logs", None, patience_s=30) as hub:
        graph = build_graph(deciders, hub).compile(InMemorySaver(serde=PacketSerializer()), store=InMemoryStore())
        yield Session(graph, RoutingContext.model_validate({"confidence_threshold": 0.1, **context}))  # all calls run


def ran(packet: CognitionPacket) -> list[tuple[str, ToolExecutionStatus]]:
    return [(one.tool_name, one.status) for one in packet.routing.all_calls]


async def test_the_detector_finds_blocking_calls() -> None:
    def blocking() -> None:
        sqlite3.connect(":memory:").execute("SELECT 1")

    await asyncio.to_thread(blocking)
    with pytest.raises(BlockingError):
        blocking()


@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("Read owls.txt", "ai.read"),
        ("Search the files for the owl at night", "ai.search"),
        ("/embedding.query what the owl does at night", "embedding.query"),
        (f'Write "{WORDS}" to new.txt', "ai.write"),
        ("Run `cat owls.txt`", "ai.execute"),
    ],
    ids=lambda value: value[:20],
)
async def test_built_in_tools_do_not_block(folder: Path, request_: str, tool: str) -> None:
    async with at_work(reflex_deciders(), folder) as talk:
        dry = await talk.say(request_)
        talk.context = talk.context.model_copy(update=ALLOWED)
        asked = tool in {"ai.write", "ai.execute"}
        if asked:
            await talk.ask(request_)
        packet = await talk.reply("yes") if asked else dry
    assert dry.routing.all_calls[0].tool_name == tool
    assert ran(packet) == [(tool, EXECUTED)]


@pytest.mark.parametrize("request_", ["Hello", "owl " * (MAX_REQUEST_CHARS // 4 - 1), "Frobnicate the owls"], ids=len)
async def test_requests_without_a_tool_do_not_block(folder: Path, request_: str) -> None:
    async with at_work(reflex_deciders(), folder) as talk:
        packet = await talk.say(request_)
    assert packet.response.candidate


async def test_a_question_and_a_second_turn_do_not_block(folder: Path) -> None:
    async with at_work(reflex_deciders(), folder, **ALLOWED) as talk:
        await talk.ask("Write new.txt")
        await talk.ask_again(LONG)
        packet = await talk.reply("yes")
        await talk.say("Read new.txt")
    assert ran(packet) == [("ai.write", EXECUTED)]
    assert len((folder / "new.txt").read_text()) > 10_000


async def test_an_endpoints_model_does_not_block(
    folder: Path, by_model: Deciders, scripted_openai: ScriptedOpenAI
) -> None:
    wish, miss = selection("describe", tools=["*"]), call("ai.red", path="owls.txt")
    write = call("ai.write", path="new.txt", content=LONG)
    first = (wish, miss, first_call("ai.read", path="owls.txt"))
    scripted_openai.script(*first, write, f"<think>{ANSWER}</think>{ANSWER}")
    attached = TurnRequest(attachments=(Attachment(name="more.txt", text=LONG),))
    async with at_work(by_model, folder, **ALLOWED) as talk:
        events = await talk.events(Say(LONG, attached))
        packet = await talk.reply("yes")
    assert stages(events).count("select_tool") == 4
    assert ran(packet) == [("ai.read", EXECUTED), ("ai.write", EXECUTED)]
    assert packet.response.candidate.startswith(ANSWER)  # the omitted results are below the answer


async def test_a_local_model_does_not_block(folder: Path, llama_cpp_installed: None) -> None:
    async def source() -> LlamaCppModel:
        return await asyncio.shield(loading)

    def load() -> LlamaCppModel:
        file = write_tiny_gguf(folder.parent / "random.gguf", seed=7, terse=True)
        chat = LlamaCppModel.load(str(file), {"n_ctx": 16_384, "n_threads": 1}).chat
        return LlamaCppModel(chat, ModelOptions(seed=6))

    loading = asyncio.ensure_future(asyncio.to_thread(load))
    async with at_work(language_deciders(source, source), folder, on_low_confidence="skip") as talk:
        packet = await talk.say("Read owls.txt")
    assert packet.response.candidate
