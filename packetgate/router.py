"""The Python API: a router over functions, LangChain tools and MCP servers."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import (
    Asked,
    Finished,
    Reply,
    Say,
    SideTurnFinished,
    TurnEvent,
    UserInput,
    run_turn,
)
from packetgate.deciders.choosing import language_deciders, with_reviewer
from packetgate.deciders.protocols import Decider, Deciders
from packetgate.gate.checks import Check
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer, async_saver, async_store, check_journal
from packetgate.graph.composition import Graph, deciders_for
from packetgate.graph.event_loops import LoopThread, LoopTools
from packetgate.graph.journal import DatabaseJournal, journal_at
from packetgate.graph.private_files import private_folder
from packetgate.graph.server_graph import ServerGraph
from packetgate.graph.servers import plugged_servers, sandbox_settings
from packetgate.graph.settings import shared_vectors_path
from packetgate.models.kinds import register_kind
from packetgate.models.pool import ModelPool
from packetgate.plugins import Plugins, with_plugins
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import ConfigError, InputError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import shorten
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.builtin.undo_store import UndoStore
from packetgate.toolsets.servers.config import McpConfig, ServerConfig, load_config
from packetgate.toolsets.servers.functions import FunctionServer, reads
from packetgate.toolsets.servers.hub import START_PATIENCE_S, McpHub
from packetgate.toolsets.servers.opening import open_hub
from packetgate.toolsets.servers.server import Server

if TYPE_CHECKING:
    from fastmcp import FastMCP
    from langchain_core.decisions import BaseDecisionModel

    from packetgate.models.model import Model
    from packetgate.ranking.ranking import Ranker

__all__ = ["Question", "Router", "Turn", "create_router", "reads"]
_T = TypeVar("_T")

ChatModel = str | BaseChatModel | Runnable[Any, Any]
"""A model's name, or a LangChain chat model, including those that `with_fallbacks`, `with_retry`, `bind`, `with_config`
or `init_chat_model` return."""
FUNCTIONS = "functions"
"""Server name of functions and LangChain tools."""
STAGES = {"intent", "selector", "reviewer", "responder"}
"""Stages whose decider a caller may replace."""


@dataclass(frozen=True, repr=False)
class Question:
    """The open question of a turn: a request for approval or for a missing value, or a tool's own question.

    Examples:
        >>> def cancel_order(order: str) -> str:
        ...     "Cancel an order."
        ...     return f"cancelled {order}"
        >>> with create_router(tools=[cancel_order], settings={"allow_write_tools": True}) as router:
        ...     question = router.invoke("Cancel order A-17").question
        ...     turn = question.approve()
        >>> question.calls
        [('functions.cancel_order', {'order': 'A-17'})]
        >>> turn.calls[0].result.output
        'cancelled A-17'
    """

    payload: Mapping[str, Any]
    """The question in the form of LangChain's human-in-the-loop middleware; for a tool's `interrupt`, its `value`."""
    thread: str
    _router: "Router | None" = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the router: in another process, `Router.reply` answers the question."""
        return Question, (dict(self.payload), self.thread)

    def __repr__(self) -> str:
        return f"Question({self.id!r}, thread={self.thread!r}, calls={self.calls!r})"

    @property
    def id(self) -> str:
        """The id with which any process can answer the question."""
        return str(self.payload.get("question_id", ""))

    @property
    def text(self) -> str:
        """The text of the question, for the user."""
        return str(
            self.payload.get("question") or "\n\n".join(str(request["description"]) for request in self._requests)
        )

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools with their arguments; empty if the question asks for a value."""
        if self.payload.get("kind") == "question":
            return []
        return [(request["name"], dict(request["args"])) for request in self._requests]

    def approve(self) -> "Turn":
        """Run all calls. Each method has an async counterpart with an `a`, such as `aapprove`."""
        return self._asker.reply(self, "approve")

    async def aapprove(self) -> "Turn":
        """Run all calls."""
        return await self._asker.areply(self, "approve")

    def edit(self, **arguments: Any) -> "Turn":
        """Run the question's only call with other values for these arguments."""
        return self._asker.reply(self, self._edit_decision(arguments))

    async def aedit(self, **arguments: Any) -> "Turn":
        """Run the question's only call with other values for these arguments."""
        return await self._asker.areply(self, self._edit_decision(arguments))

    def reject(self, reason: str = "") -> "Turn":
        """Run no call. The model reads the reason, and may propose something else."""
        return self._asker.reply(self, self._decisions("reject", reason))

    async def areject(self, reason: str = "") -> "Turn":
        """Run no call. The model reads the reason, and may propose something else."""
        return await self._asker.areply(self, self._decisions("reject", reason))

    def respond(self, words: str) -> "Turn":
        """Answer in words: with the value, or with what to do instead of the calls."""
        return self._asker.reply(self, self._decisions("respond", words))

    async def arespond(self, words: str) -> "Turn":
        """Answer in words: with the value, or with what to do instead of the calls."""
        return await self._asker.areply(self, self._decisions("respond", words))

    @property
    def _asker(self) -> "Router":
        if self._router is None:
            raise InputError("the question was pickled and has no router: pass it to `reply` of a router")
        return self._router

    @property
    def _requests(self) -> Sequence[Mapping[str, Any]]:
        return self.payload.get("action_requests") or ()

    def _decisions(self, kind: str, message: str) -> Any:
        if not self._requests:  # a tool asks, and receives the words
            return message or kind
        return {"decisions": [{"type": kind, "message": message} for _ in self._requests]}

    def _edit_decision(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if len(self.calls) != 1:
            raise InputError(
                f"`edit` needs a question about one call, not {len(self.calls)}: pass one decision per call to `reply`"
            )
        ((name, args),) = self.calls
        return {"decisions": [{"type": "edit", "edited_action": {"name": name, "args": {**args, **arguments}}}]}


@dataclass(frozen=True, repr=False)
class Turn:
    """Result of a request."""

    packet: CognitionPacket
    thread: str
    question: Question | None = None
    """The open question of the conversation, possibly of an earlier request than the answer."""

    def __repr__(self) -> str:
        calls = [(call.tool_name, call.status.value) for call in self.calls]
        return (
            f"Turn({shorten(self.answer, 80)!r}, thread={self.thread!r}, calls={calls!r}, question={self.question!r})"
        )

    @property
    def answer(self) -> str:
        """The answer; if the request waits for the user, its question."""
        asks = self.question is not None and self.packet.governance.question is not None
        return self.question.text if self.question and asks else self.packet.messages[-1].text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the turn with status, evidence and result."""
        return self.packet.tool_routing.all_calls if self.packet.tool_routing else ()

    @property
    def usage(self) -> TokenUsage:
        """Token usage of all stages together."""
        return sum(self.packet.metrics.token_usage.values(), TokenUsage())


class Router:
    """A graph with tools and named sessions. `invoke` runs on the router's own thread.

    `create_router` creates a router. Use the router as a context manager, or close it.

    Examples:
        >>> async def print_events(router: Router, request: str) -> None:
        ...     async for event in router.astream(request, thread="orders"):
        ...         print(event)
    """

    def __init__(
        self,
        graph: Graph,
        tools: LoopTools,
        context: RoutingContext,
        journal: DatabaseJournal | None,
        loop: LoopThread,
        *,
        session_graph: Graph,
    ) -> None:
        self.graph = graph
        """The compiled LangGraph graph for a parent graph, Studio or a server, which bring their own storage."""
        self.context = context
        self._session_graph = session_graph
        self._tools, self._journal = tools, journal
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, Sessions] = WeakKeyDictionary()
        self._loop = loop

    def invoke(self, text: str, *, thread: str = "") -> Turn:
        """Run a turn to its answer or question, in the named conversation or in a new conversation.

        Raises:
            PacketgateError: the request cannot be used, or the turn was stopped.
        """
        return self._loop.run(self.ainvoke(text, thread=thread))

    async def ainvoke(self, text: str, *, thread: str = "") -> Turn:
        """Run a turn like `invoke`, on the running event loop."""
        return await self._run_to_turn(Say(text, _REQUEST), thread or uuid4().hex)

    def question(self, thread: str) -> Question | None:
        """Return the open question of a conversation, whichever process asked it; None if there is none."""
        return self._loop.run(self.aquestion(thread))

    async def aquestion(self, thread: str) -> Question | None:
        """Return the open question of a conversation like `question`."""
        payload = (await self._sessions_of_loop().state(thread)).question
        return Question(payload, thread, self) if payload is not None else None

    def reply(self, question: Question | str, value: Any, *, thread: str = "") -> Turn:
        """Answer a question like `areply`, and return the turn's result."""
        return self._loop.run(self.areply(question, value, thread=thread))

    async def areply(self, question: Question | str, value: Any, *, thread: str = "") -> Turn:
        """Answer a question: with words such as `approve`, a decision, or `{"decisions": [...]}` for each call.

        Args:
            question: a question, possibly from another process, or its id.
            thread: the conversation, if `question` is an id.

        Raises:
            SessionError: the question is no longer open.
        """
        if isinstance(question, str):
            question = Question({"question_id": question}, thread)
        if not question.thread:
            raise InputError("a reply by id also needs the conversation: pass `thread`")
        return await self._run_to_turn(Reply(value, question.id), question.thread)

    def astream(self, text: str, *, thread: str = "") -> AsyncGenerator[TurnEvent | Turn]:
        """Run a turn, and yield its events, pieces of the answer, and finally the `Turn`."""
        return self._events(Say(text, _REQUEST), thread or uuid4().hex)

    async def aclose(self) -> None:
        """Stop the servers of the running loop."""
        await self._tools.aclose()

    def close(self) -> None:
        """Stop the servers and the thread of `invoke`."""
        self._loop.close(self.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _run_to_turn(self, turn: UserInput, thread: str) -> Turn:
        async with aclosing(self._events(turn, thread)) as events:
            return [event async for event in events if isinstance(event, Turn)][-1]

    async def _events(self, turn: UserInput, thread: str) -> AsyncGenerator[TurnEvent | Turn]:
        answered: CognitionPacket | None = None
        async with aclosing(run_turn(self._sessions_of_loop(), turn, thread, self.context)) as events:
            async for event in events:
                match event:
                    case SideTurnFinished(packet):
                        answered = packet
                    case Asked(payload, packet):
                        yield Turn(answered or packet, thread, Question(payload, thread, self))
                    case Finished(packet):
                        yield Turn(packet, thread)
                    case _:
                        yield event

    def _sessions_of_loop(self) -> Sessions:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = Sessions(self._session_graph, journal=self._journal, holds_text=False)
        return self._sessions[loop]


_REQUEST = TurnRequest(origin="library")


def create_router(
    model: ChatModel | None = "reflex",
    tools: "Sequence[Callable[..., Any] | BaseTool | FastMCP[Any] | str | Path]" = (),
    *,
    prime: "ChatModel | BaseDecisionModel | None" = None,
    reviewer: "ChatModel | BaseDecisionModel | None" = None,
    fallback: Literal["reflex"] | None = None,
    settings: RoutingContext | Mapping[str, Any] | None = None,
    policy: str | Path | None = None,
    rules: Sequence[Mapping[str, Any]] = (),
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    journal: str | Path | None = None,
    deciders: "Deciders | Mapping[str, Decider[Any, Any]] | None" = None,
    root: str | Path = ".",
    plugins: Sequence[Any] = (),
    checks: Sequence[Check] = (),
    name: str = "packetgate",
) -> Router:
    """Return a router.

    Args:
        model: selects tools and answers: a name such as `openai:gpt-5-mini`, `ollama:NAME` or `llamacpp:PATH`, or a
            LangChain chat model, also with fallbacks, retries or bound options. None and `reflex`: no model.
        tools: functions, LangChain tools, FastMCP servers, and paths of `mcp.json` files. Empty: the built-in tools on
            the files of `root`.
        prime: reviews calls and answers; None: the model. A LangChain decision model, `decisions:NAME` and
            `systemone:NAME` only review.
        reviewer: alias of `prime`.
        fallback: `reflex` decides without a model if a model does not answer, and the answer says so; None: the turn
            raises `ModelError`.
        settings: fields of `RoutingContext`, such as `{"allow_write_tools": True}`.
        policy: a `packetgate.toml`.
        rules: policy rules in addition to those of the file, such as `{"tool": "functions.refund", "effect": "deny"}`.
        checkpointer: stores sessions, sync or async; None: in memory.
        store: stores records and lessons; None: in memory.
        journal: a SQLite file, or a `postgresql://` URL. Needed if sessions outlast the process: a change is journaled
            before it runs, so that it does not run again without a question.
        deciders: your own decider for `intent`, `selector`, `reviewer` or `responder`.
        plugins: objects like `packetgate.plugins.Plugin`. They come before the installed ones.
        checks: checks in addition to the gate's own and those of the plug-ins.
        name: the name of the graph, for parent graphs and traces.

    Raises:
        InputError: a tool, a setting or a file cannot be used.
        ModelError: a name does not name a model.

    Examples:
        >>> @reads
        ... def late_orders() -> list[str]:
        ...     "List the orders that are late."
        ...     return ["A-17", "B-4"]
        >>> with create_router(tools=[late_orders]) as router:
        ...     turn = router.invoke("Which orders are late?")
        >>> turn.calls[0].result.output
        '["A-17", "B-4"]'
    """
    if prime is not None and reviewer is not None:
        raise InputError("`reviewer` is another name of `prime`: use one of them")
    turn_journal = journal_at(journal) if journal else None
    check_journal(turn_journal, checkpointer)
    context, plugged = routing_context(settings), with_plugins(plugins)
    for kind in reversed(plugged.parts("model_kinds")):  # the first kind with a prefix applies
        register_kind(kind)
    folder = Path(root)
    home = (folder / ".packetgate").absolute()  # computed here: it would block an event loop
    preferences = (load_preferences(_existing(policy, "policy")) if policy else Preferences()).with_rules(rules)
    config = _config([tool for tool in tools if isinstance(tool, str | Path)], folder, no_tools=not tools)
    kept = ResultStore(home / "results")
    in_process = _in_process_servers(tools, kept)
    _check_names([*(name for name, _ in in_process), *(server.name for server in config.servers)])

    ranker: Ranker | None = plugged.part("rankers")

    async def make() -> McpHub:
        if config.servers:  # the servers' logs are stored there
            await asyncio.to_thread(private_folder, home)
        return await open_hub(
            config,
            folder,
            home / "logs",
            None,
            patience_s=START_PATIENCE_S,
            preferences=preferences,
            sandbox=replace(sandbox_settings(preferences), data=home),
            kept=kept,
            undo=UndoStore(home / "undo.db"),
            ranker=ranker.kept_in(shared_vectors_path()) if ranker else None,
            other_servers=[
                *(open_server() for _, open_server in in_process),
                *plugged_servers(plugged, folder),
            ],
        )

    toolbox, loop = LoopTools(make), LoopThread()
    if not isinstance(deciders, Deciders):
        custom_deciders: dict[str, Any] = {**(deciders or {})}
        if unknown := custom_deciders.keys() - STAGES:
            raise InputError(f"unknown decider {min(unknown)!r}: use {', '.join(sorted(STAGES))}")
        deciders = replace(
            _deciders(model, reviewer if prime is None else prime, plugged, kept, fallback=fallback == "reflex"),
            **custom_deciders,
        )
    graph = build_graph(
        deciders,
        toolbox,
        journal=turn_journal,
        settings=context,
        loop=loop,
        checks=[*plugged.parts("checks"), *checks],
    ).compile(checkpointer=True, name=name)  # True: a parent's, which keeps the packet between turns
    session_graph = graph.copy(
        {
            "checkpointer": async_saver(checkpointer) if checkpointer else InMemorySaver(serde=PacketSerializer()),
            "store": async_store(store) if store else InMemoryStore(),
        }
    )
    served = ServerGraph.from_graph(graph, kept, context)
    return Router(served, toolbox, context, turn_journal, loop, session_graph=session_graph)


def _config(files: Sequence[str | Path], root: Path, *, no_tools: bool) -> McpConfig:
    """Return the servers of all files, and the built-in tools to use: all if there are no files and no other tools."""
    configs = [load_config(_existing(file, "tools"), root) for file in files]
    builtin = {config.builtin for config in configs} if configs or not no_tools else {"all"}
    servers = tuple(server for config in configs for server in config.servers)
    return McpConfig(servers, "all" if "all" in builtin else "reads" if "reads" in builtin else "none")


def _existing(file: str | Path, argument: str) -> Path:
    if not Path(file).is_file():
        raise ConfigError(f"{file}: no such file: check the argument `{argument}`")
    return Path(file)


def _check_names(names: Sequence[str]) -> None:
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two servers have the name {duplicate!r}: rename one of them")


def _in_process_servers(tools: Sequence[Any], kept: ResultStore) -> list[tuple[str, Callable[[], Server]]]:
    """Return the servers of the functions, LangChain tools and FastMCP servers among the tools: names and factories.

    Event loops share the functions' server, because it has no session.

    Args:
        kept: stores the images and files that the tools return.
    """
    from fastmcp import FastMCP
    from fastmcp.client.transports import FastMCPTransport

    from packetgate.toolsets.servers.connection import Connection

    servers: list[tuple[str, Callable[[], Server]]] = []
    if functions := [tool for tool in tools if not isinstance(tool, str | Path | FastMCP)]:
        function_server = FunctionServer(FUNCTIONS, functions, kept.keep)
        servers.append((FUNCTIONS, lambda: function_server))
    for tool in tools:
        if isinstance(tool, FastMCP):
            config, transport = ServerConfig(tool.name, {"trusted": True}), partial(FastMCPTransport, tool)
            servers.append((tool.name, partial(Connection, config, transport, keep=kept.keep, store_texts=False)))
    return servers


def _deciders(
    model: ChatModel | None,
    prime: "ChatModel | BaseDecisionModel | None",
    plugins: Plugins,
    kept: ResultStore,
    *,
    fallback: bool,
) -> Deciders:
    from langchain_core.decisions import BaseDecisionModel

    model = "reflex" if model is None else model
    alone = partial(_deciders, model, None, plugins, kept, fallback=fallback)
    if isinstance(prime, BaseDecisionModel):
        return with_reviewer(alone(), partial(_return_model, prime))
    if isinstance(model, str) and isinstance(prime, str | None):
        return deciders_for(ModelPool(model, prime or model), kept, plugins, fallback=fallback)
    if isinstance(prime, str) and (pool := ModelPool(prime=prime)).has_reviewer:
        return with_reviewer(alone(), pool.reviewer)
    lite = _model_source(model)
    source = lite if prime is None else _model_source(prime)
    return language_deciders(lite, source, kept, plugins, fallback=fallback)


async def _return_model(model: "BaseDecisionModel") -> "BaseDecisionModel":
    return model


def _model_source(name: ChatModel) -> "Callable[[], Coroutine[Any, Any, Model]]":
    from packetgate.models.model import Model

    loaded = None if isinstance(name, str) else Model(name)
    pool = ModelPool(name) if isinstance(name, str) else None

    async def source() -> "Model":
        model = loaded or (await pool.get("lite") if pool else None)
        if model is None:
            raise ConfigError(f"{name!r} cannot be combined with another model: name a language model")
        return model

    return source
