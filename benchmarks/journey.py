"""A packet's journey without models, beside a bare LangGraph of as many empty nodes with the same checkpointer."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.ratio import Ratio, arguments, show
from deciders.choosing import reflex_deciders
from graph.building import build_graph
from graph.settings import Settings
from graph.storage import open_checkpointer
from state.base import new_id
from state.packet import CognitionPacket, TurnInput
from tools.config import McpConfig
from tools.servers import open_hub

GOAL = 2.0
RUNS = 100
WARM_UP = 10
REQUEST = TurnInput(messages=[HumanMessage("Read notes.txt")])


class Empty(TypedDict):
    """The state of the bare graph."""

    text: str


def measure(runs: int = RUNS) -> Ratio:
    """Measure in this process, each journey on a thread of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(runs, Path(folder)))


async def _measure(runs: int, folder: Path) -> Ratio:
    (folder / "notes.txt").write_text("The gate opens at seven.\n")
    settings = Settings(home=folder / "home", root=folder)
    async with (
        await open_hub(McpConfig(), folder, settings.home / "logs", None, settings.patience_s) as hub,
        open_checkpointer(settings) as checkpointer,
    ):
        ours = build_graph(reflex_deciders(), hub).compile(checkpointer=checkpointer)
        packet = CognitionPacket.model_validate(await ours.ainvoke(REQUEST, _thread()))
        assert packet.routing.execution_result, packet.response.candidate
        bare = _bare(len(packet.reasoning.reflection_log), checkpointer)
        pairs = [(await _timed(ours, REQUEST), await _timed(bare, Empty(text=""))) for _ in range(WARM_UP + runs)][
            WARM_UP:
        ]
        calls = [await _call(hub) for _ in range(runs)]
    cost, base = zip(*pairs, strict=True)
    notes = {"of which the MCP call itself is": statistics.median(calls)}
    return Ratio("journey", cost, base, GOAL, notes)


def _bare(nodes: int, checkpointer: BaseCheckpointSaver[str]) -> Any:
    graph: StateGraph[Empty] = StateGraph(Empty)
    names = [f"node_{number}" for number in range(nodes)]
    for name in names:
        graph.add_node(name, _nothing)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=checkpointer)


async def _nothing(state: Empty) -> dict[str, str]:
    return {}


async def _timed(graph: Any, given: Any) -> float:
    """Return how long a run takes, in milliseconds."""
    started = time.perf_counter()
    await graph.ainvoke(given, _thread(), durability="sync")
    return 1000 * (time.perf_counter() - started)


async def _call(hub: Any) -> float:
    started = time.perf_counter()
    await hub.call("ai.read", {"path": "notes.txt"})
    return 1000 * (time.perf_counter() - started)


def _thread() -> RunnableConfig:
    return {"configurable": {"thread_id": new_id()}}


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS)
    show(measure(given.runs), as_json=given.json)
