"""The four ways to a tool: graph, library, middleware and proxy. The same calls have the same outcomes."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any, Protocol

import mcp_types
from contract.internals import open_proxy
from contract.model import ScriptedModel
from contract.office import Made, Office
from fastmcp import Client
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from support.mcp_servers import serving
from support.plain_server import configure

import packetgate
from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview
from packetgate.middleware import MAX_TOOLS, PacketgateMiddleware
from packetgate.router import Router, Turn, create_router
from packetgate.state.errors import PacketgateError

Step = Sequence[Made]
"""Calls that are made together."""
Answer = Any
"""A word, a decision as a dict, a list of decisions, or a function that returns one of these at the question."""
GRAPH, LIBRARY, MIDDLEWARE, PROXY = "graph", "library", "middleware", "proxy"
ALL = (GRAPH, LIBRARY, MIDDLEWARE, PROXY)
GATES = (LIBRARY, MIDDLEWARE, PROXY)
"""A door for each way into the gate: the library runs the graph."""
ROUTERS = (GRAPH, LIBRARY)
"""Doors in which Packetgate calls a model: they have their own confidence, passes and answer."""
AGENTS = (*ROUTERS, MIDDLEWARE)
"""Doors with a model, whose questions accept decisions in LangChain's form."""


@dataclass(frozen=True)
class Question:
    """A question as the user sees it."""

    text: str
    calls: tuple[Made, ...] = ()
    """The calls in the question, if the door states them separately from the text."""
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """The outcome of a request."""

    ran: list[Made]
    """The calls that reached a tool, in order."""
    asked: list[Question]
    """The questions, in order."""
    output: str
    """The text for the caller without the questions: answer and results, or the model's last prompt."""
    answer: str = ""
    """The text for the user."""
    waits: bool = False
    """Whether the last question is open."""

    @property
    def question(self) -> str:
        """The text of the last question."""
        return self.asked[-1].text if self.asked else ""


@dataclass(frozen=True)
class Setup:
    """The settings of a door."""

    home: Path
    """A folder for databases and files."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    policy: str = ""
    """Text of a `packetgate.toml`, in which `SERVER` stands for the server's name."""
    trusted: bool = True
    """Whether the annotations of the server are used."""
    confidence: float | Exception = 0.9
    """The confidence of every review, or the error that the review raises."""
    approved: bool = True
    """Whether the review approves."""
    answer: str = "That is all."
    """The model's text when it makes no call."""
    stored: bool = False
    """Whether checkpoints and journal are files in the folder."""
    can_ask: bool = True
    shown: int = 0
    """Number of tools that the model sees; 0 means all that fit."""

    def policy_file(self, server: str) -> Path | None:
        """Write the policy for a server with this name, and return its path."""
        if not self.policy:
            return None
        file = self.home / "packetgate.toml"
        file.write_text(self.policy.replace("SERVER", server), encoding="utf-8")
        return file

    @property
    def run_settings(self) -> dict[str, Any]:
        """The settings; writes and commands are disabled unless the settings say otherwise."""
        shown = {"palette_size": self.shown} if self.shown else {}
        return {"allow_write_tools": False, "allow_execute_tools": False, **shown, **self.settings}


class Door(Protocol):
    """A way from a request to the tools of an office."""

    async def turn(self, *steps: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        """Send a request, make the calls of each step, and answer each question with the next answer."""
        ...

    async def resume(self, step: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        """Continue after a kill of the process during a step of a request."""
        ...


@asynccontextmanager
async def open_door(name: str, setup: Setup, office: Office | None = None) -> AsyncIterator[Any]:
    """Open one way to the gate with the tools of an office, by default a new office."""
    office = office or Office()
    async with AsyncExitStack() as stack:
        if name == PROXY:
            yield await _ProxyDoor.open(office, setup, stack)
        elif name == MIDDLEWARE:
            yield await _MiddlewareDoor.open(office, setup, stack)
        else:
            yield await (_GraphDoor if name == GRAPH else _LibraryDoor).open(office, setup, stack)


async def _checkpointer(setup: Setup, stack: AsyncExitStack) -> BaseCheckpointSaver[Any] | None:
    if not setup.stored:
        return None
    return await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(setup.home / "checkpoints.db")))


def _journal(setup: Setup) -> Path | None:
    return setup.home / "journal.db" if setup.stored else None


async def _value(answer: Answer, server: str = "") -> Any:
    """Return an answer's value, in which an edited call names its server, as in the question."""
    value = answer() if callable(answer) else answer
    value = await value if isawaitable(value) else value
    if not server or not isinstance(value, dict) or "decisions" not in value:
        return value
    return {"decisions": [_with_server(decision, server) for decision in value["decisions"]]}


def _with_server(decision: dict[str, Any], server: str) -> dict[str, Any]:
    edited = decision.get("edited_action")
    return {**decision, "edited_action": {**edited, "name": f"{server}.{edited['name']}"}} if edited else decision


def _question(payload: Any) -> Question:
    """Return the question in an interrupt of LangChain's form."""
    requests = payload["action_requests"]
    text = "\n".join(str(request["description"]) for request in requests)
    return Question(text, tuple((_own(request["name"]), dict(request["args"])) for request in requests), payload)


def _own(name: str) -> str:
    """Return a tool's name without its server."""
    return name.rpartition(".")[2]


async def _run_to_end(
    graph: Any, given: Any, config: Any, answers: Sequence[Answer], server: str = "", **options: Any
) -> tuple[list[Question], Any]:
    """Run a graph, answer its questions, and return both and the last state (None if a question stays open)."""
    rest, asked = list(answers), list[Question]()
    state = await graph.ainvoke(given, config, **options)
    while interrupts := state.get("__interrupt__"):
        asked.append(_question(interrupts[0].value))
        if not rest:
            return asked, None
        state = await graph.ainvoke(Command(resume=await _value(rest.pop(0), server)), config, **options)
    return asked, state


@dataclass
class _RouterDoor:
    """The common part of the doors of graph and library."""

    office: Office
    setup: Setup
    router: Router
    model: ScriptedModel
    saver: BaseCheckpointSaver[Any]

    @classmethod
    async def open(cls, office: Office, setup: Setup, stack: AsyncExitStack) -> Any:
        model = ScriptedModel(steps=[], answer=setup.answer)

        async def review(packet: Any, catalogue: Any, context: Any) -> Review:
            if isinstance(setup.confidence, Exception):
                raise setup.confidence
            judged = {"approved": setup.approved, "confidence": setup.confidence}
            return Review(reviews=tuple(CallReview(call_id=call.call_id, **judged) for call in packet.routing.calls))

        saver = await _checkpointer(setup, stack) or InMemorySaver()
        tools: Any = office.server() if setup.trusted else await _served(office, setup, stack)
        router = create_router(
            model,
            [tools],
            settings=setup.run_settings,
            policy=setup.policy_file("office"),
            checkpointer=saver,
            journal=_journal(setup),
            deciders={"reviewer": review},
            root=setup.home,
        )
        return cls(office, setup, await stack.enter_async_context(router), model, saver)

    @property
    def graph(self) -> Any:
        """The graph, with its own checkpointer or the door's."""
        graph = self.router.graph
        if not self.setup.can_ask:
            return graph.copy({"checkpointer": None})
        carries_saver = isinstance(graph.checkpointer, BaseCheckpointSaver)
        return graph if carries_saver else graph.copy({"checkpointer": self.saver})

    def begin(self, steps: Sequence[Step]) -> int:
        """Give the model its script, and return the number of calls that have reached the office so far."""
        self.model.steps[:] = [list(step) for step in steps]
        self.model.prompts.clear()
        return len(self.office.made)

    def outcome(self, before: int, asked: list[Question], answer: str, *, waits: bool) -> Outcome:
        """Return the outcome of a turn."""
        output = "\n".join([answer, *self.model.prompts[-1:]])
        return Outcome(self.office.made[before:], asked, output, answer, waits)


class _GraphDoor(_RouterDoor):
    async def turn(self, *steps: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        return await self._run({"messages": [HumanMessage(words)]}, self.begin(steps), answers, thread)

    async def resume(self, step: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        return await self._run(None, self.begin(()), answers, thread)

    async def reply(self, asked: Question, *answers: Answer, thread: str = "one") -> Outcome:
        given = Command(resume=await _value(answers[0], "office"))
        return await self._run(given, self.begin(()), answers[1:], thread)

    async def _run(self, given: Any, before: int, answers: Sequence[Answer], thread: str) -> Outcome:
        config: Any = {"configurable": {"thread_id": thread} if self.setup.can_ask else {}}
        sync: Any = {"durability": "sync"} if self.setup.can_ask else {}
        asked, state = await _run_to_end(self.graph, given, config, answers, "office", **sync)
        if state is None:
            return self.outcome(before, asked, "", waits=True)
        return self.outcome(before, asked, state["messages"][-1].text, waits=False)


class _LibraryDoor(_RouterDoor):
    async def turn(self, *steps: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        before = self.begin(steps)
        return await self._run(await self.router.ainvoke(words, thread=thread), before, answers)

    async def resume(self, step: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        return await self.turn(words="Go on", answers=answers, thread=thread)

    async def reply(self, asked: Question, *answers: Answer, thread: str = "one") -> Outcome:
        before = self.begin(())
        question = packetgate.Question(asked.payload, thread, self.router)
        try:
            turn = await self._replied(question, answers[0])
        except PacketgateError as error:
            return Outcome(self.office.made[before:], [], str(error))
        return await self._run(turn, before, answers[1:])

    async def _run(self, turn: Turn, before: int, answers: Sequence[Answer]) -> Outcome:
        rest, asked = list(answers), list[Question]()
        while question := turn.question:
            asked.append(_question(question.payload))
            if not rest:
                return self.outcome(before, asked, "", waits=True)
            turn = await self._replied(question, rest.pop(0))
        return self.outcome(before, asked, turn.answer, waits=False)

    async def _replied(self, question: packetgate.Question, answer: Answer) -> Turn:
        value = await _value(answer, "office")
        if value == "approve":
            return await question.aapprove()
        return await (question.areject() if value == "reject" else self.router.areply(question, value))


async def _served(office: Office, setup: Setup, stack: AsyncExitStack) -> Path:
    """Serve the office over HTTP as an untrusted server, and return its `mcp.json`."""
    address = await stack.enter_async_context(serving(office.server().http_app(path="/mcp")))
    return configure(setup.home / "mcp.json", office={"url": f"{address}/mcp"})


@dataclass
class _MiddlewareDoor:
    office: Office
    graph: Any
    model: ScriptedModel

    @classmethod
    async def open(cls, office: Office, setup: Setup, stack: AsyncExitStack) -> "_MiddlewareDoor":
        model = ScriptedModel(steps=[], answer=setup.answer)
        gate = PacketgateMiddleware(
            office.tools(),
            max_tools=setup.shown or MAX_TOOLS,
            settings=setup.run_settings,
            policy=setup.policy_file("agent"),
            journal=_journal(setup),
        )
        saver = await _checkpointer(setup, stack) or InMemorySaver()
        errors = ToolErrorMiddleware(lambda error, _: str(error))
        return cls(office, create_agent(model, middleware=[errors, gate], checkpointer=saver), model)

    async def turn(self, *steps: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        self.model.steps[:] = [list(step) for step in steps]
        return await self._run({"messages": [HumanMessage(words)]}, answers, thread)

    async def resume(self, step: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        return await self._run(None, answers, thread)

    async def reply(self, asked: Question, *answers: Answer, thread: str = "one") -> Outcome:
        return await self._run(Command(resume=await _value(answers[0])), answers[1:], thread)

    async def _run(self, given: Any, answers: Sequence[Answer], thread: str) -> Outcome:
        config: Any = {"configurable": {"thread_id": thread}}
        before = len(self.office.made)
        asked, state = await _run_to_end(self.graph, given, config, answers, durability="sync")
        if state is None:
            return Outcome(self.office.made[before:], asked, "", waits=True)
        messages = state["messages"]
        since = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
        results = [message.text for message in messages[since:] if isinstance(message, ToolMessage)]
        answer = messages[-1].text
        return Outcome(self.office.made[before:], asked, "\n".join([*results, answer]), answer)


@dataclass
class _ProxyDoor:
    """A client that supports elicitation. Each thread is a session of the client."""

    office: Office
    setup: Setup
    server: Any
    stack: AsyncExitStack
    clients: dict[str, Client[Any]] = field(default_factory=dict)
    rest: list[Answer] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    waits: bool = False

    @classmethod
    async def open(cls, office: Office, setup: Setup, stack: AsyncExitStack) -> "_ProxyDoor":
        proxy = open_proxy(
            office.server(), setup.home, setup.run_settings, setup.policy_file("office"), trusted=setup.trusted
        )
        return cls(office, setup, await stack.enter_async_context(proxy), stack)

    async def turn(self, *steps: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        client = await self._client(thread)
        before, self.rest, self.asked, self.waits = len(self.office.made), list(answers), [], False
        await client.call_tool_mcp("set_context", {"query": words})
        outputs = []
        for step in steps:
            outputs += await asyncio.gather(*(self._call(client, name, args) for name, args in step))
        is_parked = any("This proxy then runs the call" in text for text in outputs)
        return Outcome(self.office.made[before:], self.asked, "\n".join(outputs), waits=self.waits or is_parked)

    async def resume(self, step: Step, words: str, answers: Sequence[Answer] = (), thread: str = "one") -> Outcome:
        return await self.turn(step, words=words, answers=answers, thread=thread)

    async def _client(self, thread: str) -> Client[Any]:
        if thread not in self.clients:
            asking: dict[str, Any] = {"elicitation_handler": self._answer} if self.setup.can_ask else {}
            self.clients[thread] = await self.stack.enter_async_context(Client(self.server, mode="legacy", **asking))
        return self.clients[thread]

    async def announce(self) -> None:
        """Let the server announce changed tools, and wait until the proxy knows."""
        await self._call(self.clients["one"], "announce_tools", {})

    async def _call(self, client: Client[Any], name: str, args: dict[str, Any]) -> str:
        name = name if "." in name else f"office.{name}"
        result = await client.call_tool_mcp("call_changing_tool", {"name": name, "arguments": args})
        return "\n".join(part.text for part in result.content if isinstance(part, mcp_types.TextContent))

    async def _answer(self, message: str, _type: Any, params: Any, _context: Any) -> Any:
        self.asked.append(Question(message))
        if not self.rest:
            self.waits = True
            return mcp_types.ElicitResult(action="cancel")
        value = await _value(self.rest.pop(0))
        if value == "skip":
            return mcp_types.ElicitResult(action="cancel")
        words = {"approve": "yes", "reject": "no"}
        return mcp_types.ElicitResult(action="accept", content={"answer": words.get(value, value)})
