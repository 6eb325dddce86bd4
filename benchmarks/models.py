"""Count the calls and tokens that a plain read costs with a perfect model, compared with plain tool calling.

The tools are those that the npm filesystem server lists, and the first of livemcpbench. Both sides use the same
stand-in for a model: it calls the right tool immediately, approves the call, and answers with one sentence. The other
side is LangChain's `create_agent`, which sends all tools with every call. The benchmark counts the billed parts:
messages, tools and answer schemas of the prompt, and calls and answers of the output.

A provider with a prompt cache bills a tenth for a prefix that a prompt shares with an earlier prompt, if the prefix has
at least 1,024 tokens. Here the earlier prompts are those of the same turn, and that of the same call in the previous
turn, in the same session or in another session.
"""

import asyncio
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from benchmarks.command_line import add_data_option, command_parser, errors_in_one_line
from benchmarks.ready import ReadyChat, ReadyModel
from benchmarks.real_models.opening import by_one
from benchmarks.stand_ins import Shelf
from benchmarks.tokens.counting import VOCABULARY, count, tokens
from benchmarks.tokens.sets import filesystem, livemcpbench
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.middleware import SEARCH, PacketgateMiddleware
from packetgate.models.model import ModelAnswer, OfferedTool, WordProbabilities
from packetgate.models.openai.compatible import openai_tool
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.printing import compact_json
from packetgate.state.routing import ToolResult
from packetgate.tools.catalogue.catalogue import Catalogue

CACHED_PRICE, LEAST_CACHED = 0.1, 1_024
GROUPS: tuple[tuple[int, bool], ...] = ((60, False), (60, True), (200, True))
"""Number of tools, and whether all requests belong to one session."""
GOALS = {"calls": 3, "output": 106, "share": 1 / 8, "cached_share": 1.0}
"""Calls, output tokens, and prompt tokens relative to plain tool calling."""
OUTPUT = "The gate opens at seven."
ANSWER = "The file says that the gate opens at seven."


@dataclass(frozen=True)
class Task:
    """A request, and its right call."""

    request: str
    tool: str
    params: dict[str, Any]


TASKS = (
    Task("What is in config.yaml?", "files.read_text_file", {"path": "config.yaml"}),
    Task("Compare a.txt with b.txt", "files.read_multiple_files", {"paths": ["a.txt", "b.txt"]}),
    Task("Which files are in src?", "files.list_directory", {"path": "src"}),
    Task("List the pictures folder, biggest files first", "files.list_directory_with_sizes", {"path": "pictures"}),
    Task("When was report.docx modified?", "files.get_file_info", {"path": "report.docx"}),
    Task("Where are the log files under var?", "files.search_files", {"path": "var", "pattern": "*.log"}),
    Task("Which directories are you allowed to use?", "files.list_allowed_directories", {}),
    Task("Show me the structure of the docs folder", "files.directory_tree", {"path": "docs"}),
    Task("Open logo.png", "files.read_media_file", {"path": "logo.png"}),
    Task("Summarise the minutes in minutes.md", "files.read_text_file", {"path": "minutes.md"}),
)
"""Held-out requests, written before their cost was measured."""


@dataclass(frozen=True)
class ModelCall:
    """One call of a model: the billed prompt, in the provider's order, and the output."""

    prompt: str
    written: str


@dataclass
class Side:
    """A way to do the tasks, and the model calls of each turn."""

    name: str
    turns: list[list[ModelCall]] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Return medians over the turns: calls, prompt tokens, their price with a prompt cache, and output tokens."""
        whole = [sum(count(one.prompt) for one in turn) for turn in self.turns]
        return {
            "calls": statistics.median(map(len, self.turns)),
            "prompt": statistics.median(whole),
            "cached": statistics.median(self._cached(at) for at in range(len(self.turns))),
            "output": statistics.median(sum(count(one.written) for one in turn) for turn in self.turns),
        }

    def _cached(self, at: int) -> float:
        """Return the price of a turn's prompts, in tokens, if prefixes shared with earlier prompts are cached."""
        total = 0.0
        for number, one in enumerate(self.turns[at]):
            before = [*self.turns[at - 1][number : number + 1], *self.turns[at][:number]]
            known = max((_common(tokens(one.prompt), tokens(other.prompt)) for other in before), default=0)
            total += count(one.prompt) - (1 - CACHED_PRICE) * (known if known >= LEAST_CACHED else 0)
        return total


class _Chat(ReadyChat):
    """Records its prompts and outputs."""

    _asked: list[ModelCall] = PrivateAttr(default_factory=list)

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Return the message of a `ReadyChat`; if its tool is not listed, search for the tool first."""
        offered = [tool["function"]["name"] for tool in options.get("tools", ())]
        if SEARCH in offered and self.tool not in offered:  # the middleware's list does not contain the tool
            said = AIMessage("", tool_calls=[{"name": SEARCH, "args": {"query": self.tool}, "id": "search"}])
        else:
            is_found = isinstance(messages[-1], ToolMessage) and messages[-1].name == SEARCH
            said = super().reply(messages[:-1] if is_found else messages, **options)
        called = [{"name": call["name"], "args": call["args"]} for call in said.tool_calls]
        written = compact_json(called[0]) if called else said.text
        self._asked.append(ModelCall(_billed(messages, compact_json(options.get("tools", []))), written))
        return said

    def takes_up(self, task: Task) -> list[ModelCall]:
        """Switch to this task, and return the list that collects its calls."""
        self.tool, self.params, self._asked = task.tool, task.params, []
        return self._asked


class _Model(ReadyModel):
    """Records its calls in the list of its chat model."""

    chat: _Chat

    token_counter = staticmethod(count)

    async def call(self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], **request: Any) -> ModelAnswer:
        """Return the right call, in the shortest form."""
        answer = await super().call(messages, tools, **request)
        offered = compact_json([openai_tool(one, plain=False) for one in tools])
        called = [{"name": call.name, "args": call.arguments} for call in answer.calls]
        written = compact_json(called[0]) if called else answer.text
        self.chat._asked.append(ModelCall(_billed(messages, offered), written))
        return answer

    async def word_probabilities(
        self, messages: Sequence[BaseMessage], words: tuple[str, ...], **options: Any
    ) -> WordProbabilities:
        """Answer yes."""
        answer = await super().word_probabilities(messages, words, **options)
        self.chat._asked.append(ModelCall(_billed(messages, ""), answer.said or ""))
        return answer


def _chat() -> _Chat:
    return _Chat(tool="", params={}, words=ANSWER)


@dataclass
class _Files(Shelf):
    """Tools that all return the same sentence."""

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        return ToolResult(success=True, output=OUTPUT)


async def packetgate(catalogue: Catalogue, tasks: Sequence[Task], *, one_session: bool = False) -> Side:
    """Do the tasks with Packetgate's graph and default settings.

    Raises:
        RuntimeError: a call did not run.
    """
    side, model = Side("packetgate"), _Model(_chat())
    graph = build_graph(by_one(model), _Files(catalogue)).compile(checkpointer=InMemorySaver(serde=PacketSerializer()))
    for at, task in enumerate(tasks):
        asked = model.chat.takes_up(task)
        state = await graph.ainvoke(
            TurnInput(messages=[HumanMessage(task.request)]), _session(at, one_session), context=RoutingContext()
        )
        packet = CognitionPacket.model_validate(state)
        if packet.response.candidate != ANSWER or [call.params for call in packet.routing.all_calls] != [task.params]:
            raise RuntimeError(f"{task.request!r} did not come to {task.tool}: {packet.response.candidate!r}")
        side.turns.append(asked)
    return side


async def plain(
    catalogue: Catalogue, tasks: Sequence[Task], *, one_session: bool = False, is_gated: bool = False
) -> Side:
    """Do the tasks with an agent that receives all tools, or with an agent that uses Packetgate's middleware.

    Raises:
        RuntimeError: a call did not run.
    """
    name = "create_agent, PacketgateMiddleware" if is_gated else "create_agent, plain tool calling"
    side, chat, reads = Side(name), _chat(), {"readOnlyHint": True}
    tools = [
        StructuredTool(
            name=tool.name, description=tool.full, args_schema=tool.input_schema, coroutine=_read, metadata=reads
        )
        for tool in catalogue.values()
    ]
    given = {"middleware": [PacketgateMiddleware(tools)]} if is_gated else {"tools": tools}
    agent = create_agent(chat, checkpointer=InMemorySaver(), **given)
    for at, task in enumerate(tasks):
        asked = chat.takes_up(task)
        state = await agent.ainvoke({"messages": [HumanMessage(task.request)]}, _session(at, one_session))
        if OUTPUT not in [message.text for message in state["messages"][-2:]]:
            raise RuntimeError(f"{task.request!r} did not come to {task.tool}")
        side.turns.append(asked)
    return side


def _session(turn: int, one_session: bool) -> RunnableConfig:
    return {"configurable": {"thread_id": "0" if one_session else str(turn)}}


async def _read(**arguments: Any) -> str:
    return OUTPUT


def _billed(messages: Sequence[BaseMessage], schemas: str) -> str:
    """Return a prompt in a provider's order: first tools or answer schema, then messages."""
    said = [message.text or compact_json(getattr(message, "tool_calls", [])) for message in messages]
    return "\n".join([schemas, *said])


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


async def measure(data: Path, *, as_middleware: bool = False) -> list[dict[str, Any]]:
    """Return the metrics of each side, with goals for Packetgate; `as_middleware`: its middleware instead of its graph.

    Raises:
        InputError: the data sets or `npx` are missing.
    """
    own, more = (await filesystem()).catalogue, livemcpbench(data).catalogue
    rows: list[dict[str, Any]] = []
    for number, one_session in GROUPS:
        catalogue = Catalogue([*own.values(), *more.values()][:number])
        asked = f"{len(catalogue)} tools, {'one session' if one_session else 'new sessions'}"
        ways = (partial(plain, is_gated=True) if as_middleware else packetgate, plain)
        sides = [await way(catalogue, TASKS, one_session=one_session) for way in ways]
        ours, theirs = (dict[str, Any](asked=asked, name=side.name, **side.figures()) for side in sides)
        ours |= {"share": ours["prompt"] / theirs["prompt"], "cached_share": ours["cached"] / theirs["cached"]}
        goals = {"cached_share": GOALS["cached_share"]} if as_middleware else GOALS
        ours["met"] = {name: ours[name] <= most for name, most in goals.items()}
        rows += [ours, theirs]
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print a readable table."""
    print(f"a plain read, medians of {len(TASKS)} requests; {VOCABULARY}")
    labels = {"calls": "calls", "output": "written", "share": "of its prompt", "cached_share": "of its cached price"}
    for row in rows:
        print(
            f"  {row['asked']}, {row['name']:34} {row['calls']:.0f} calls, {row['prompt']:>8,.0f} prompt tokens"
            f" ({row['cached']:>8,.0f} with a prompt cache), {row['output']:>5,.0f} written"
        )
        for name, met in row.get("met", {}).items():
            print(f"    {labels[name]}: {row[name]:,.3g}, goal at most {GOALS[name]:g}, {'met' if met else 'missed'}")


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.models", __doc__)
    add_data_option(parser, "data")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per side")
    parser.add_argument("--middleware", action="store_true", help="measure the middleware instead of the graph")
    given = parser.parse_args()
    if given.data is None:
        parser.error("the folder of the data sets is missing: give it as an argument, or set PACKETGATE_DATA")
    with errors_in_one_line(parser):
        rows = asyncio.run(measure(given.data, as_middleware=given.middleware))
    if given.json:
        for row in rows:
            print(json.dumps(row))
    else:
        show(rows)


if __name__ == "__main__":
    main()
