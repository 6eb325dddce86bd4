"""Measure the overhead of a turn with models and tools that answer immediately.

Other graphs run the same turn. LangChain's `create_agent` runs with `LLMToolSelectorMiddleware`,
`HumanInTheLoopMiddleware` and `ToolCallLimitMiddleware` for the same request and tools, and again without the selector
("HumanInTheLoopMiddleware alone"). A LangGraph graph runs as many empty nodes as Packetgate's graph runs nodes. All
graphs alternate in one process, with `durability="sync"`, as in Packetgate's connectors. Packetgate keeps its store and
journal in the database of its checkpoints, as in a terminal. The others use LangGraph's savers with the documented
settings.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore

from benchmarks.ratio import Ratio, Side, arguments, interleaved, show
from benchmarks.ready import ReadyChat, ReadyModel, grown, office_tools, reading_tool
from benchmarks.real_models.opening import by_one
from benchmarks.stand_ins import Shelf
from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.middleware import PacketgateMiddleware
from packetgate.state.base import new_id
from packetgate.state.packet import TurnInput
from packetgate.state.routing import Risk
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.toolsets.servers.config import McpConfig
from packetgate.toolsets.servers.opening import open_hub

RUNS = 40
WARM_UP = 3
PATIENCE_S = 15.0
"""Maximum time for a row. A slower row is measured only a few times."""
DURABILITY = "sync"
APPROVALS = "HumanInTheLoopMiddleware alone"
GOALS = {"create_agent": 1.0, APPROVALS: 2.0, "empty nodes": 1.5}
GROWTH_GOAL = 1.2
REFLEX_GOAL = 2.0
APPROVALS_GOAL = 1.15
"""Name of the comparison with an agent that has only LangChain's approvals, and sees all tools."""
FEWEST, MOST = 10, 10_000
TURNS = 50
LARGE = 1_000_000 // (TURNS - 1)
"""Characters of each result in a session with a megabyte of results."""
REQUEST = "Read notes.txt and tell me what it says about room {}"
"""Each turn inserts a new number, because users do not repeat the same request."""
_NUMBERS = count(1)
"""All turns of a process share the counter, because the encoder caches texts."""
TOOL, PARAMS = "files.read_text_file", {"path": "notes.txt"}
OUTPUT = "The gate opens at seven."
ANSWER = "The file says that the gate opens at seven."

Where = Literal["no checkpoints", "in memory", "SQLite"]
WHERE: tuple[Where, ...] = ("no checkpoints", "in memory", "SQLite")


class Empty(TypedDict):
    """The state of the bare graph."""

    text: str


@dataclass
class Agent:
    """A compiled graph, its request, and the durations of its stages in each turn, if the graph reports them."""

    graph: Any
    given: Callable[[str], Any]
    """Returns the input of the graph for a request."""
    answer: str = ""
    """Text that its last message must contain."""
    request: str = REQUEST
    stages: list[dict[str, float]] = field(default_factory=list)
    nodes: int = 0
    """Number of stages in its last turn."""

    async def turn(self, thread: str | None = None) -> float:
        """Run one turn on a thread, by default a new thread, and return the duration in milliseconds.

        Raises:
            RuntimeError: the last message is not the expected answer.
        """
        config: RunnableConfig = {"configurable": {"thread_id": thread or new_id()}}
        given = self.given(self.request.format(next(_NUMBERS)))
        started = time.perf_counter()
        state = await self.graph.ainvoke(given, config, durability=DURABILITY if self.graph.checkpointer else None)
        took = 1000 * (time.perf_counter() - started)
        if self.answer and self.answer not in state["messages"][-1].text:
            raise RuntimeError(f"the request was answered {state['messages'][-1].text!r}")
        if "reasoning" in state:
            self.nodes = len(state["reasoning"].reflection_log)
            self.stages.append(state["metrics"].latency_ms)
        return took

    async def grow(self, turns: int) -> str:
        """Run turns on one new thread, and return the thread's id."""
        thread = new_id()
        for _ in range(turns):
            await self.turn(thread)
        return thread

    async def next_turn(self, thread: str) -> float:
        """Run one turn on a copy of a thread, so that the thread does not change; return the duration."""
        copy = new_id()
        kept = await self.graph.checkpointer.aget_tuple({"configurable": {"thread_id": thread}})
        at = {"configurable": {"thread_id": copy, "checkpoint_ns": ""}}
        await self.graph.checkpointer.aput(at, kept.checkpoint, kept.metadata, kept.checkpoint["channel_versions"])
        return await self.turn(copy)

    @property
    def notes(self) -> dict[str, float]:
        """The median duration of each stage in milliseconds, longest first."""
        names = {name for one in self.stages for name in one}
        medians = {name: statistics.median(one.get(name, 0.0) for one in self.stages) for name in names}
        return dict(sorted(medians.items(), key=lambda one: -one[1]))


@dataclass
class Place:
    """The place of the checkpoints. The stack closes its connections."""

    where: Where
    folder: Path
    stack: AsyncExitStack
    _numbers: Iterator[int] = field(default_factory=count)

    async def ours(self, deciders: Deciders, toolbox: Shelf, answer: str, request: str = REQUEST) -> Agent:
        """Return Packetgate's graph."""
        options: dict[str, Any] = {}
        journal = None
        if self.where == "in memory":
            options = {"checkpointer": InMemorySaver(serde=PacketSerializer()), "store": InMemoryStore()}
        elif self.where == "SQLite":
            settings = Settings(home=self.folder / f"home{next(self._numbers)}", root=self.folder)
            options["checkpointer"] = await self.stack.enter_async_context(open_checkpointer(settings))
            options["store"] = await self.stack.enter_async_context(open_store(settings))
            journal = open_journal(settings)
        graph = build_graph(deciders, toolbox, journal=journal).compile(**options)
        return Agent(graph, lambda words: TurnInput(messages=[HumanMessage(words)]), answer, request)

    async def reading(self, tools: int, output: str = OUTPUT) -> Agent:
        """Return Packetgate's graph with models and tools that answer immediately."""
        return await self.ours(by_one(ReadyModel(_chat())), Shelf(_tools(tools), output), ANSWER)

    async def theirs(self, tools: int, output: str = OUTPUT, *, selects: bool = True) -> Agent:
        """Return LangChain's agent with the same tools and answer, its approvals and, by default, its selector."""

        asked: dict[str, Any] = {one.name: True for one in _tools(tools).values() if one.risk is not Risk.READ}
        more = [*([LLMToolSelectorMiddleware()] if selects else []), HumanInTheLoopMiddleware(asked)]
        return await self._agent(_structured(tools, output), more)

    async def gated(self, tools: int) -> Agent:
        """Return LangChain's agent with our middleware instead of LangChain's selector and approvals."""
        return await self._agent([], [PacketgateMiddleware(_structured(tools, OUTPUT))])

    async def _agent(self, tools: list[StructuredTool], more: list[Any]) -> Agent:
        middleware = [*more, ToolCallLimitMiddleware(run_limit=3)]
        graph = create_agent(_chat(), tools, middleware=middleware, checkpointer=await self.saver())
        return Agent(graph, lambda words: {"messages": [HumanMessage(words)]}, ANSWER)

    async def empty(self, nodes: int) -> Agent:
        """Return a graph of `nodes` empty nodes."""
        graph: StateGraph[Empty] = StateGraph(Empty)
        names = [f"node_{number}" for number in range(nodes)]
        for name in names:
            graph.add_node(name, _nothing)
        for before, after in zip([START, *names], [*names, END], strict=True):
            graph.add_edge(before, after)
        return Agent(graph.compile(checkpointer=await self.saver()), lambda words: Empty(text=words))

    async def saver(self) -> BaseCheckpointSaver[Any] | None:
        """Return LangGraph's saver with the documented settings."""
        if self.where == "SQLite":
            path = self.folder / f"{next(self._numbers)}.sqlite"
            return await self.stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path)))
        return InMemorySaver() if self.where == "in memory" else None


async def beside_peers(place: Place, runs: int, name: str, tools: int) -> AsyncIterator[Ratio]:
    """Yield the ratios of a turn with `tools` tools to LangChain's agents and to empty nodes."""
    ours, theirs, asking = (
        await place.reading(tools),
        await place.theirs(tools),
        await place.theirs(tools, selects=False),
    )
    await ours.turn()
    floor = await place.empty(ours.nodes)
    sides = {"packetgate": ours.turn, "create_agent": theirs.turn, APPROVALS: asking.turn, "empty nodes": floor.turn}
    took = await interleaved(sides, runs, WARM_UP if tools < MOST else 1, PATIENCE_S)
    for beside, goal in GOALS.items():
        notes = ours.notes if beside == "empty nodes" else {}
        yield Ratio(name, took["packetgate"], took[beside], goal, beside, notes)


async def growth(place: Place, runs: int, name: str) -> AsyncIterator[Ratio]:
    """Yield the ratio of a turn with the most tools to a turn with the fewest."""
    few, many = await place.reading(FEWEST), await place.reading(MOST)
    took = await interleaved({"many": many.turn, "few": few.turn}, runs, WARM_UP, PATIENCE_S)
    yield Ratio(name, took["many"], took["few"], GROWTH_GOAL, f"{FEWEST} tools", many.notes)


async def turns(place: Place, runs: int, name: str, output: str) -> AsyncIterator[Ratio]:
    """Yield the ratios of the last of many turns to the first turn, and to the agent's last turn."""
    ours, theirs = await place.reading(FEWEST, output), await place.theirs(FEWEST, output)
    threads = [await one.grow(TURNS - 1) for one in (ours, theirs)]
    sides: dict[str, Side] = {
        "last": partial(ours.next_turn, threads[0]), "first": ours.turn,
        "their last": partial(theirs.next_turn, threads[1]), "their first": theirs.turn,
    }  # fmt: skip
    took = await interleaved(sides, runs, WARM_UP, PATIENCE_S)
    yield Ratio(name, took["last"], took["first"], GROWTH_GOAL, "turn 1")
    yield Ratio(name, took["last"], took["their last"], GOALS["create_agent"], "create_agent")
    yield Ratio(f"create_agent, {name}", took["their last"], took["their first"], None, "turn 1")


async def reflexes(place: Place, runs: int, name: str, request: str) -> AsyncIterator[Ratio]:
    """Yield the ratio of a turn without a model, on the built-in tools, to empty nodes."""
    hub = await open_hub(McpConfig(), place.folder, place.folder / "logs", None, patience_s=PATIENCE_S)
    async with hub:
        toolbox = Shelf(await hub.catalogue(), OUTPUT)
        ours = await place.ours(reflex_deciders(), toolbox, OUTPUT, request)
        await ours.turn()
        floor = await place.empty(ours.nodes)
        took = await interleaved({"packetgate": ours.turn, "floor": floor.turn}, runs, WARM_UP, PATIENCE_S)
    yield Ratio(name, took["packetgate"], took["floor"], REFLEX_GOAL, "empty nodes", ours.notes)


async def gates(place: Place, runs: int, name: str, tools: int) -> AsyncIterator[Ratio]:
    """Yield the ratios of an agent turn with our middleware to turns with LangChain's selector and approvals."""
    ours, theirs = await place.gated(tools), await place.theirs(tools)
    asking = await place.theirs(tools, selects=False)
    sides = {"ours": ours.turn, "theirs": theirs.turn, "asking": asking.turn}
    took = await interleaved(sides, runs, WARM_UP, PATIENCE_S)
    yield Ratio(name, took["ours"], took["theirs"], GOALS["create_agent"], "create_agent")
    yield Ratio(name, took["ours"], took["asking"], APPROVALS_GOAL, APPROVALS)


Row = Callable[[Place, int, str], AsyncIterator[Ratio]]
ROWS: dict[str, tuple[Where, Row]] = {
    **{
        f"{where}, {tools:,} tools": (where, partial(beside_peers, tools=tools))
        for where in WHERE
        for tools in (FEWEST, 100, 1_000, MOST)
    },
    **{
        f"{where}, middleware, {tools} tools": (where, partial(gates, tools=tools))
        for where in WHERE
        for tools in (10, 100)
    },
    **{f"{where}, from {FEWEST} to {MOST:,} tools": (where, growth) for where in WHERE},
    **{
        f"{where}, turn {TURNS}{more}": (where, partial(turns, output=output))
        for where in WHERE[1:]
        for more, output in (("", OUTPUT), (", 1 MB of results", (OUTPUT + " ").ljust(LARGE, ".")))
    },
    **{f"{where}, reflexes, one request": (where, partial(reflexes, request="Read notes.txt")) for where in WHERE},
    "in memory, reflexes, new requests": ("in memory", partial(reflexes, request="Read notes{}.txt")),
}
"""Maps each row to the place of the checkpoints and the function that measures the row.

Without a model, a small encoder judges requests. It caches its results, so it runs only for new requests.
"""


def measure(runs: int = RUNS, only: list[str] | None = None) -> Iterator[Ratio]:
    """Yield all rows, or those in `only`, each measured in a new event loop."""
    for name in only or ROWS:
        yield from asyncio.run(_row(runs, name))


async def _row(runs: int, name: str) -> list[Ratio]:
    where, row = ROWS[name]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "notes.txt").write_text(f"{OUTPUT}\n")
        return [ratio async for ratio in row(Place(where, folder, stack), runs, name)]


def _structured(number: int, output: str) -> list[StructuredTool]:
    """Return LangChain tools that answer immediately. Reads are annotated as read-only."""

    async def read(**arguments: Any) -> str:
        return output

    return [
        StructuredTool(
            name=one.name,
            description=one.full,
            args_schema=one.input_schema,
            coroutine=read,
            metadata={"readOnlyHint": one.risk is Risk.READ},
        )
        for one in _tools(number).values()
    ]


@cache
def _tools(number: int) -> Catalogue:
    return grown(office_tools(), number, reading_tool(TOOL))


def _chat() -> ReadyChat:
    return ReadyChat(tool=TOOL, params=PARAMS, words=ANSWER)


async def _nothing(state: Empty) -> dict[str, str]:
    return {}


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS, ROWS)
    show(measure(given.runs, given.only), as_json=given.json)
