"""A packet's own journey without models, beside a bare LangGraph of as many empty nodes with the same checkpointer.

The call to the tool's server is not the packet's own: it is taken off, run by run, and printed beside.
"""

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
from graph.storage import open_checkpointer, open_store
from state.base import new_id
from state.packet import CognitionPacket, TurnInput
from tools.servers.config import McpConfig
from tools.servers.opening import open_hub

GOAL = 2.0
RUNS = 100
WARM_UP = 10
REQUEST = TurnInput(messages=[HumanMessage("Read notes.txt")])


class Empty(TypedDict):
    """The state of the bare graph."""

    text: str


def measure(runs: int = RUNS) -> list[Ratio]:
    """Measure in this process, each journey on a thread of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(runs, Path(folder)))


async def _measure(count: int, folder: Path) -> list[Ratio]:
    (folder / "notes.txt").write_text("The gate opens at seven.\n")
    settings = Settings(home=folder / "home", root=folder)
    async with (
        await open_hub(McpConfig(), folder, settings.home / "logs", None, patience_s=settings.patience_s) as hub,
        open_checkpointer(settings) as checkpointer,
        open_store(settings) as store,
    ):
        ours = build_graph(reflex_deciders(), hub).compile(checkpointer=checkpointer, store=store)
        packet = CognitionPacket.model_validate(await ours.ainvoke(REQUEST, _thread()))
        bare = _bare(len(packet.reasoning.reflection_log), checkpointer)
        runs = [(await _timed(ours, REQUEST), await _timed(bare, Empty(text=""))) for _ in range(WARM_UP + count)][
            WARM_UP:
        ]
    whole = [took for (took, _), _ in runs]
    calls = [_call_of(state) for (_, state), _ in runs]
    base = [took for _, (took, _) in runs]
    alone = [took - call for took, call in zip(whole, calls, strict=True)]
    return [
        Ratio("journey", whole, base, GOAL, {"of which the call to the tool's server": statistics.median(calls)}),
        Ratio("journey without the call to the tool's server", alone, base, GOAL),
    ]


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


async def _timed(graph: Any, given: Any) -> tuple[float, dict[str, Any]]:
    """Return how long a run takes, in milliseconds, and the state it ends in."""
    started = time.perf_counter()
    state = await graph.ainvoke(given, _thread(), durability="sync")
    return 1000 * (time.perf_counter() - started), state


def _call_of(state: dict[str, Any]) -> float:
    """Return how long the tool call of a journey took, in milliseconds."""
    result = CognitionPacket.model_validate(state).routing.execution_result
    if result is None:
        raise RuntimeError(f"no tool was called: {state['response'].candidate}")
    return result.execution_time_ms


def _thread() -> RunnableConfig:
    return {"configurable": {"thread_id": new_id()}}


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS)
    show(measure(given.runs), as_json=given.json)
