"""Middleware of LangChain's `create_agent`: gates the calls of the model, and shows it a list of tools that is stable.

What it must know after a restart, and in another process, is in the agent's state.
"""

import asyncio
import json
import operator
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ProviderToolSearchMiddleware,
)
from langchain.agents.middleware.human_in_the_loop import ApproveDecision, RejectDecision, RespondDecision
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage, convert_to_messages
from langchain_core.messages import ToolCall as AgentCall
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from mcp_types import Tool
from pydantic import Discriminator, WithJsonSchema, WrapValidator, create_model

from packetgate.deciders.packets import facts_of
from packetgate.gate.answers import ALREADY_ANSWERED, CALL_CHANGED, decide
from packetgate.gate.checks import Check
from packetgate.gate.facts import Facts, RequestedCall
from packetgate.gate.gate import Gate
from packetgate.gate.journal import QUESTION_SHOWN, Journal, MemoryJournal, entry_for
from packetgate.gate.proposal import Proposal, StoredProposal
from packetgate.gate.questions import approval_payload
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.server_graph import USER_ID
from packetgate.graph.settings import shared_vectors_path
from packetgate.plugins import installed
from packetgate.ranking.choice import PaletteRequest, choose_palette
from packetgate.ranking.ranking import ranking_of
from packetgate.state.base import ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import CallRefusedError, ConfigError, RequestError, ToolCallError
from packetgate.state.origins import FlowLabel, SessionLabel, merged_labels
from packetgate.state.packet import CognitionPacket, is_user_message
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Approval, ApprovalOutcome, Content, Header
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.catalogue.toolbox import PausedCallError
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.descriptions import SEPARATOR
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of
from packetgate.tools.text.reading import access_of
from packetgate.toolsets.servers.functions import (
    defined_tool_spec,
    langchain_tool_spec,
    tool_definition,
    usable_tools,
)
from packetgate.toolsets.servers.langchain_results import result_of_message, safe_message

Handled = ToolMessage | Command[Any]
Modelled = ModelResponse[Any] | ExtendedModelResponse[Any]

SERVER = "agent"
"""Server name of the agent's tools, in rules and in the journal."""
SEARCH = "search_tools"
"""Name of the tool that finds the tools that are not on the list."""
MAX_TOOLS = 40
FIRST_TOOLS, MORE_TOOLS, FOUND_TOOLS = 8, 3, 6
"""How many tools the list begins with, how many a new request adds at most, and how many a search adds at most."""
MAX_NAMES = 300
"""Largest number of tools that a search names if it finds none."""
MAX_SOURCES = 20
"""Maximum number of earlier calls. The values of a call are traced to the outputs of these calls."""
MAX_REFUSALS = 3
"""Number of refusals in a row after which the model is told to hand over."""
_TOKEN_BUDGET = 100_000
"""The palette's token budget. It is large because the number of tools is limited."""
_REPEATED_CHANGE = (
    "this change was already made or proposed for the same request, so it was not repeated: continue with its result, "
    "or ask the user whether to repeat it"
)
_HAND_OVER = (
    "\n\n{} calls in a row were refused. Do not call another tool now: tell the user what you wanted to do and why it "
    "was refused, and let them decide."
)
EDIT_NOTICE = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you "
    "produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call."
)
"""LangChain's text before the result of an edited call."""
_DECISION, _REFUSAL = "hitl_interrupt_decision", "packetgate_refusal"
"""Sources in the metadata of messages in place of results: LangChain's for the user's decisions, and the gate's."""


def _grown(shown: list[str], more: list[str]) -> list[str]:
    """Return the names of both lists, each once: the shown ones keep their places."""
    return [*dict.fromkeys([*shown, *more])]


class GatedState(AgentState[Any]):
    """The agent's state, with what the middleware must know in the next step."""

    gated: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    """The proposals of the calls that run next, or are asked about when they start, as JSON, by message and call."""
    labels: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    """The thread's labels with their sources."""
    shown: NotRequired[Annotated[list[str], PrivateStateAttr, _grown]]
    """Names of the tools on the model's list, in order; empty while the model sees all tools."""
    unshown: NotRequired[Annotated[list[str], PrivateStateAttr]]
    """Names that the model's last answer calls although they were not on the list."""
    added: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, operator.or_]]
    """Definitions of the called tools that were not given to the middleware, by name."""


_OWN_STATE = GatedState.__annotations__.keys() - AgentState.__annotations__.keys()
"""Keys of the state that no tool may change."""


class PacketgateMiddleware(AgentMiddleware[GatedState, Any, Any]):
    """Reviews each call of the model before it runs, and shows the model a list of tools that only grows.

    A read runs if the user named its values. One question in the form of LangChain's `HumanInTheLoopMiddleware` asks
    about all other calls of a step. A call that has a result in the journal does not run again.
    """

    state_schema = GatedState

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]] = (),
        *,
        max_tools: int = MAX_TOOLS,
        select: bool | Literal["provider"] = True,
        interrupt_mode: Literal["batched", "per_call"] = "batched",
        edit_notice: str | None = EDIT_NOTICE,
        settings: RoutingContext | Mapping[str, Any] | None = None,
        policy: str | Path | None = None,
        journal: str | Path | None = None,
        unguarded: Collection[str] = (),
        checks: Sequence[Check] = (),
    ) -> None:
        """Gate the calls of an agent.

        Args:
            tools: functions and LangChain tools for the agent, beside those of `create_agent` and of other
                middlewares. The hints in their metadata are believed. `packetgate.reads` marks reads anywhere.
            max_tools: up to this many tools are all shown. Of more, the model sees those that fit its first request,
                and `search_tools`.
            select: False: the model always sees all tools. "provider": the provider of the model searches the tools
                (LangChain's `ProviderToolSearchMiddleware`).
            interrupt_mode: "batched": one question about all calls of a step. "per_call": one for each call.
            edit_notice: text before the result of a call that the user edited; None: no text.
            settings: fields of `RoutingContext`. Changes run after approval.
            policy: a `packetgate.toml`.
            journal: a SQLite file, or a `postgresql://` URL. Needed if the checkpointer outlasts the process.
            unguarded: names of tools that run without a review.
            checks: the gate's checks beside its own and those of the installed plug-ins.

        Raises:
            InputError: a tool cannot be used.
            ConfigError: the settings or the policy cannot be read.
        """
        super().__init__()
        self.tools = [*usable_tools(tools).values()]
        self.max_tools, self.select, self.unguarded = max_tools, select, frozenset(unguarded)
        self.interrupt_mode, self.edit_notice = interrupt_mode, edit_notice
        changing = {"allow_write_tools": True, "allow_execute_tools": True}
        run_settings = settings if isinstance(settings, RoutingContext) else {**changing, **(settings or {})}
        self.settings = routing_context(run_settings)
        database = _journal_at(journal) if journal is not None else MemoryJournal()
        self._preferences = load_preferences(Path(policy)) if policy else Preferences()
        self._specs = {tool.name: langchain_tool_spec(SERVER, tool) for tool in self.tools}
        self._catalogue = self._catalogue_of(self._specs.values())
        self._added: tuple[str, Catalogue] = "{}", self._catalogue
        """The catalogue with the definitions that the state has added, by their JSON."""
        self._listed: tuple[list[BaseTool], Catalogue] = [], self._catalogue
        """The tools of the last request beside those given, and the catalogue with them."""
        self._gate = Gate(database, checks=[*installed().parts("checks"), *checks])
        self._loop, self._search_tool = LoopThread(), _search_tool()
        if select is True and len(self._specs) > max_tools:  # the vectors are read, or made in the background
            Thread(target=ranking_of(self._catalogue).rank, args=["tools"], name="tool ranking").start()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Modelled:
        """Call the model with its list of tools."""
        if not self._selects(request):
            return self._noted(request, request, handler(request))
        listed, more = self._with_list(request)
        return self._noted(request, listed, handler(listed), more)

    def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Coroutine[Any, Any, Modelled]:
        """Call the model with its list of tools.

        This is no `async def`, because LangChain would run two functions of its tracer in threads for each call.
        """
        return self._call_model(request, handler)

    async def _call_model(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Modelled:
        if not self._selects(request):
            return self._noted(request, request, await handler(request))
        listed, more = await asyncio.to_thread(self._with_list, request)
        return self._noted(request, listed, await handler(listed), more)

    def after_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Review the calls of a step, and ask the user if needed."""
        return self._loop.run(self.aafter_model(state, runtime))

    async def aafter_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Review the calls of a step, and ask the user if needed."""
        messages = state["messages"]
        index = max((at for at, item in enumerate(messages) if isinstance(item, AIMessage)), default=len(messages))
        before, rest = messages[:index], messages[index:]
        catalogue = self._known(state)
        earlier = _calls_in(before, catalogue)
        results = merged_labels(label for call in earlier for label in call.labels)
        labels = {**{label.label.value: label.source for label in results}, **(state.get("labels") or {})}
        answer = _with_own_ids(rest[0]) if rest and isinstance(rest[0], AIMessage) else AIMessage("")
        done = {item.tool_call_id for item in rest if isinstance(item, ToolMessage)}
        calls = [
            call for call in answer.tool_calls if call["id"] not in done and not self._runs_freely(call["name"], state)
        ]
        update: dict[str, Any] = {"labels": labels} if labels else {}
        if calls:
            facts = self._facts_of(before, catalogue, earlier[-MAX_SOURCES:], labels)
            step = _Step(self._gate, facts, before, calls, answer_id=str(answer.id))
            await step.propose({name: _unlisted_reason(name, state) for name in state.get("unshown") or ()})
            while self.interrupt_mode == "batched" and step.waiting:
                await step.note_shown()
                await step.answer(interrupt(step.question()))
                if step.was_answered_before:
                    interrupt(step.question())
            update |= step.update(labels)
        if rest and answer is not rest[0] and answer.tool_calls:
            update["messages"] = [answer, *update.get("messages", ())]
        return update or None

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Handled]) -> Handled:
        """Run an approved call once."""
        if request.tool_call["name"] in self.unguarded:
            return handler(request)

        async def handle(changed: ToolCallRequest) -> Handled:
            return await asyncio.to_thread(handler, changed)

        return self._loop.run(self.awrap_tool_call(request, handle))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Handled]]
    ) -> Handled:
        """Run an approved call once.

        Raises:
            Exception: what the tool raises, after it is in the journal.
        """
        call, messages = request.tool_call, request.state["messages"]
        if self._runs_freely(call["name"], request.state):
            is_search = call["name"] == SEARCH and SEARCH not in self.unguarded
            return await (asyncio.to_thread(self._found, request) if is_search else handler(request))
        at = max((at for at, item in enumerate(messages) if isinstance(item, AIMessage)), default=0)
        stored = (request.state.get("gated") or {}).get(_call_key(str(messages[at].id), call))
        if stored is None:  # another middleware jumped to the tools
            told = [one for one in messages[at:] if isinstance(one, ToolMessage) and one.tool_call_id == call["id"]]
            return told[0] if told else _refusal_message(call, "the call was not reviewed, so it did not run")
        handled: Any = None
        raised: Exception | None = None
        was_asked_again = False

        async def execute(tool_name: str, params: dict[str, Any], idempotency_key: str) -> ToolResult:
            nonlocal handled, raised
            started = time.perf_counter()
            try:
                handled = await handler(_changed_request(request, _unprefixed_name(tool_name), params))
            except Exception as error:
                raised = error
                if not (isinstance(error, GraphBubbleUp) or is_invalid_resume(error)):
                    raise
                if was_asked_again:  # LangGraph would give the answer to the first question to the tool
                    text = "the tool asks something, after its call was cut off: call it again"
                    raised = None
                    raise ToolCallError(text) from error
                raise PausedCallError(error) from error
            messages = [one for one in _messages_in(handled) if isinstance(one, ToolMessage)]
            own = [one for one in messages if one.tool_call_id == call["id"]] or [ToolMessage("", tool_call_id="")]
            return await result_of_message(own[0], ms_since(started))

        proposal = self._restored(StoredProposal.model_validate_json(stored), request)
        if proposal.question is not None:
            proposal = await self._asked(proposal, call)
            if not proposal.approved:
                return _unrun_message(call, proposal, _refusals_in_row(messages))
        try:
            proposal = await self._gate.run(proposal, execute)
            while proposal.waiting and raised is None:  # an earlier run may have finished
                was_asked_again = True
                asked = await self._gate.record(await self._gate.ask(proposal))
                proposal = await self._gate.run(await self._asked(asked, call), execute)
        except PausedCallError as paused:
            raise paused.signal from None
        if proposal.entries:
            await self._gate.journal.record(*proposal.entries)
        if raised is not None:
            raise raised
        (done,) = proposal.calls
        text = done.result.output or done.result.error if done.result else done.unfinished_run_text
        if done.result is None:  # the user was asked again
            return _unrun_message(call, proposal, _refusals_in_row(messages))
        notice = _edit_notice(proposal, self.edit_notice)
        is_error = done.status is not ToolExecutionStatus.EXECUTED
        if handled is None or is_error:  # the journal may have the result of an earlier run
            return _message(call, notice + (text or ""), "error" if is_error else "success")
        safe: Handled = _safe(handled, notice)
        return safe

    async def _asked(self, proposal: Proposal, call: AgentCall) -> Proposal:
        """Ask about one call when it starts, until the reply can be read."""
        problem = ""
        while True:
            reply = self._reply_about(proposal, call, problem)
            listed = reply.get("decisions") if isinstance(reply, Mapping) else reply
            decision = _with_canonical_name(listed[0] if isinstance(listed, list) and len(listed) == 1 else reply)
            try:
                return await self._gate.record(await self._gate.answer(proposal, decision))
            except (RequestError, CallRefusedError) as error:
                problem = str(error)
                if problem == ALREADY_ANSWERED and (known := await self._recorded(proposal, decision)):
                    return known

    def _reply_about(self, proposal: Proposal, call: AgentCall, problem: str) -> Any:
        payload = _payload([proposal], problem)
        if self.interrupt_mode == "batched":
            return interrupt(payload)
        (action,), (config,), (reviewed,) = payload["action_requests"], payload["review_configs"], proposal.calls
        asked = {"type": "tool_approval", "tool_call_id": call["id"], "name": action["name"], "args": action["args"]}
        asked["description"] = "\n\n".join(filter(None, [problem, action["description"]]))
        schema = proposal.facts.catalogue[reviewed.tool_name].input_schema
        return interrupt(asked, response_schema=_reply_type(config["allowed_decisions"], action["name"], schema))

    async def _recorded(self, proposal: Proposal, decision: Any) -> Proposal | None:
        """Return the proposal with a decision that is in the journal: a task that runs again gets its replies again."""
        if proposal.question is None:
            return None
        decided, _ = await asyncio.to_thread(decide, proposal, proposal.question, decision)
        new = decided.approvals[-1]
        same = new.model_dump(mode="json", include={"question_id", "tool_name", "params"})
        rows = await self._gate.journal.call_entries(proposal.facts.header.packet_id, new.call_id)
        is_known = any(
            row.entry.event == f"call_{new.outcome}" and same.items() <= row.entry.detail.items() for row in rows
        )
        return replace(decided, entries=()) if is_known else None

    def _restored(self, kept: StoredProposal, request: ToolCallRequest) -> Proposal:
        """Return the proposal of a call that starts, with the definition of the tool that will run."""
        state, name, call_id = request.state, request.tool_call["name"], kept.calls[0].call_id
        added = state.get("added") or {}
        if request.tool is not None and name in added:
            added = {**added, name: _definition(request.tool)}
        catalogue = self._with_added(added)
        if kept.question is None:
            return Proposal.restored(kept, self._facts(catalogue, call_id))  # the call holds its evidence
        messages = state["messages"]
        before = messages[: max(at for at, item in enumerate(messages) if isinstance(item, AIMessage))]
        earlier = _calls_in(before, catalogue)[-MAX_SOURCES:]
        facts = self._facts_of(before, catalogue, earlier, state.get("labels") or {})
        return Proposal.restored(kept, replace(facts, header=facts.header.changed(packet_id=call_id)))

    def _runs_freely(self, name: str, state: Any) -> bool:
        return name in self.unguarded or (name == SEARCH and SEARCH in _shown(state))

    def _selects(self, request: ModelRequest[Any]) -> bool:
        """Whether the model sees only some tools; not if LangChain's middleware lets the provider search them."""
        tools = [tool for tool in request.tools if isinstance(tool, BaseTool)]
        if not self.select or any((tool.extras or {}).get("defer_loading") for tool in tools):
            return False
        number = sum(tool.name not in self.unguarded for tool in tools)
        return number > self.max_tools or bool(_shown(request.state))

    def _with_list(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], list[str]]:
        """Return the request with the tools on the model's list, and the names that are new on it. May block."""
        tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
        if SEARCH in tools:
            raise ConfigError(f"{SEARCH} is the name of Packetgate's own tool: rename yours, or set select=False")
        catalogue, shown = self._listing([*tools.values()]), _shown(request.state)
        more = [] if shown or self.select == "provider" else [SEARCH]
        more += [name for name in tools if name in self.unguarded]
        if not shown:
            more += self._best(request.messages, catalogue, max(1, min(FIRST_TOOLS, self.max_tools - 1)))
        elif len(shown) < self.max_tools and self.select is True and isinstance(request.messages[-1], HumanMessage):
            more += self._best(request.messages, catalogue, MORE_TOOLS, only_ranked=True)
        names = _grown(shown, [name for name in more if name in tools or name == SEARCH])
        if self.select == "provider":
            deferring = ProviderToolSearchMiddleware(searchable_tools=[name for name in tools if name not in names])
            found = deferring.wrap_model_call(request, lambda deferred: cast("ModelResponse[Any]", deferred))
            return cast("ModelRequest[Any]", found), names[len(shown) :]
        tools[SEARCH] = self._search_tool
        listed: list[BaseTool | dict[str, Any]] = [tool for tool in request.tools if not isinstance(tool, BaseTool)]
        listed += [tools[name] for name in names if name in tools]
        return request.override(tools=listed), names[len(shown) :]

    def _best(
        self, messages: Sequence[AnyMessage], catalogue: Catalogue, size: int, *, only_ranked: bool = False
    ) -> list[str]:
        """Return the names of the tools that fit the last request of a conversation."""
        words = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
        wanted = PaletteRequest(words=words, access=access_of(words), size=size, token_budget=_TOKEN_BUDGET)
        palette = choose_palette(wanted, catalogue)
        if only_ranked and not palette.subject_terms:
            return []
        entries = [entry for entry in palette.entries if not only_ranked or entry.reason != "default"]
        return [_unprefixed_name(entry.tool_name) for entry in entries]

    def _found(self, request: ToolCallRequest) -> Command[Any]:
        """Put the tools that a search finds on the model's list. May block."""
        call, shown = request.tool_call, _shown(request.state)
        query, known = str(call["args"].get("query") or ""), self._listed
        tools = {tool.name: tool for tool in (*known[0], *request.runtime.tools)}
        catalogue = self._listing([*tools.values()])
        hits = ranking_of(catalogue).rank(query, limit=FOUND_TOOLS + len(shown))
        best = dict.fromkeys([*catalogue.tools_named_in(query), *(hit.name for hit in hits)])
        found = [name for name in best if _unprefixed_name(name) not in shown][:FOUND_TOOLS]
        if found:
            lines = [f"- {_unprefixed_name(name)}: {catalogue[name].brief}" for name in found]
            text = "\n".join(["These tools are on your list now:", *lines])
        else:
            rest = sorted({*map(_unprefixed_name, catalogue)} - {*shown})
            names = f" The others are: {', '.join(rest)}." if len(rest) <= MAX_NAMES else ""
            text = f"No tool that is not on your list matches {query!r}.{names}"
        message = ToolMessage(text, name=SEARCH, tool_call_id=str(call["id"]))
        return Command(update={"messages": [message], "shown": [*map(_unprefixed_name, found)]})

    def _noted(
        self,
        request: ModelRequest[Any],
        listed: ModelRequest[Any],
        response: ModelResponse[Any],
        more: Iterable[str] = (),
    ) -> Modelled:
        """Return the response with what the next step must know: the list, and what was called besides.

        A tool that was called without being on the list is put on it.
        """
        answers = [message for message in response.result if isinstance(message, AIMessage)]
        called = {call["name"] for answer in answers for call in answer.tool_calls}
        state, update, shown = cast("GatedState", request.state), dict[str, Any](), [*more]
        if called or state.get("unshown"):
            tools = {tool.name: tool for tool in listed.tools if isinstance(tool, BaseTool)}
            others = called - self._specs.keys() - self.unguarded - {SEARCH}
            added = {name: _definition(tools[name]) for name in sorted(others & tools.keys())}
            if not added.items() <= (state.get("added") or {}).items():
                update["added"] = added
            if (unshown := sorted(called - tools.keys())) != (state.get("unshown") or []):
                update["unshown"] = unshown
            if listed is not request:
                shown += [tool.name for tool in request.tools if isinstance(tool, BaseTool) and tool.name in unshown]
        if shown:
            update["shown"] = shown
        return ExtendedModelResponse(response, Command(update=update)) if update else response

    def _catalogue_of(self, specs: Iterable[ToolSpec]) -> Catalogue:
        ranker = installed().part("rankers")
        kept = ranker.kept_in(shared_vectors_path()) if ranker else None
        return Catalogue(specs, self._preferences, kept).restrict(self.settings.allowed_tools, SERVER)

    def _known(self, state: Any) -> Catalogue:
        """Return the tools given, and the others that the thread's model has called."""
        return self._with_added(state.get("added") or {})

    def _with_added(self, added: Mapping[str, Any]) -> Catalogue:
        if not added:
            return self._catalogue
        text = json.dumps(added, sort_keys=True)
        if self._added[0] != text:
            specs = {name: _added_spec(definition) for name, definition in added.items()}
            self._added = text, self._catalogue_of({**specs, **self._specs}.values())
        return self._added[1]

    def _listing(self, tools: Sequence[BaseTool]) -> Catalogue:
        """Return the tools given and the others of a request."""
        others = [tool for tool in tools if tool.name not in self._specs and tool.name != SEARCH]
        known, catalogue = self._listed
        if len(known) != len(others) or any(one is not other for one, other in zip(known, others, strict=True)):
            specs = [_added_spec(_definition(tool)) for tool in others]
            catalogue = self._catalogue_of([*self._specs.values(), *specs])
            self._listed = others, catalogue
        return catalogue

    def _facts(self, catalogue: Catalogue, packet_id: str = "", **more: Any) -> Facts:
        configurable = _configurable()
        person = str(configurable.get(USER_ID) or "")
        thread = str(configurable.get("thread_id") or "")
        header = Header(packet_id=packet_id, session_id=thread, origin=SERVER, person=person)
        return Facts(header, catalogue, frozenset(catalogue), settings=self.settings, renames_calls=True, **more)

    def _facts_of(
        self,
        messages: Sequence[AnyMessage],
        catalogue: Catalogue,
        earlier: tuple[ToolCall, ...],
        labels: Mapping[str, str],
    ) -> Facts:
        """Return the facts of a conversation, with its earlier calls and the labels that it holds."""
        packet = CognitionPacket(
            content=Content(original_prompt=next((one.text for one in reversed(messages) if is_user_message(one)), "")),
            messages=[message for message in messages if not isinstance(message, ToolMessage)],
        )
        said = facts_of(packet, catalogue)
        held = tuple(SessionLabel(label=FlowLabel(label), source=source) for label, source in labels.items())
        return self._facts(
            catalogue,
            words=said.words,
            request=said.request,
            session_words=said.session_words,
            other_texts=said.other_texts,
            earlier=earlier,
            labels=merged_labels([*held, *said.labels]),
        )


class _Step:
    """Checks, reviews and approves the calls of one model answer."""

    def __init__(
        self,
        gate: Gate,
        facts: Facts,
        before: Sequence[AnyMessage],
        calls: Sequence[AgentCall],
        *,
        answer_id: str,
    ) -> None:
        self.calls = list(calls)
        self._gate, self._facts, self._messages_before, self._answer_id = gate, facts, before, answer_id
        self.was_answered_before = False
        """Whether the last reply belongs to a question that was answered before.

        A thread that resumes from an earlier checkpoint gets the first reply again, and then the new reply. The new
        reply does not belong to the current question, so it does not count.
        """
        self._proposals: dict[str, Proposal] = {}
        self._shown: dict[str, list[str]] = {}
        """For each call, the digests of what the interrupts asked about, in order."""
        self._replies = 0
        self._refusals: dict[str, str] = {}
        """By call, why it was refused before it was proposed."""
        self._problem = ""

    async def propose(self, unlisted: Mapping[str, str]) -> None:
        """Check and review each call; refuse a change that was already made for the same request.

        Args:
            unlisted: the tools that the model was not shown, with the reason for the refusal of their calls.
        """
        requests = [index for index, message in enumerate(self._messages_before) if isinstance(message, HumanMessage)]
        turn = self._messages_before[requests[-1] :] if requests else self._messages_before
        earlier = [(call["name"], call["args"]) for call, result in _earlier_calls(turn) if _has_run(result)]
        for call in self.calls:
            change, name, call_id = (call["name"], call["args"]), f"{SERVER}.{call['name']}", str(call["id"])
            spec = self._facts.catalogue.get(name)
            if spec is not None and call["name"] in unlisted:
                self._refusals[call_id] = unlisted[call["name"]]
                continue
            if change in earlier and spec is not None and judge_call(spec, call["args"]).risk is not Risk.READ:
                self._refusals[call_id] = _REPEATED_CHANGE
                continue
            earlier.append(change)
            # some model servers number the calls of each answer from 0, so the id alone is not unique
            header = self._facts.header
            call_digest = digest_of([header.session_id, self._answer_id, call_id])[:32]
            requested = RequestedCall(name, call["args"], call_id=call_digest)
            try:
                traced, repairs = await self._gate.request(requested, self._facts)
            except CallRefusedError as error:
                self._refusals[call_id] = str(error).replace(f"{SERVER}{SEPARATOR}", "").replace(f"{SERVER}.", "")
                continue
            facts = replace(self._facts, header=header.changed(packet_id=call_digest))
            proposal = await self._gate.propose((traced,), facts, corrections=repairs)
            self._proposals[call_id] = await self._gate.record(proposal)
            rows = await self._gate.journal.call_entries(call_digest, call_digest) if proposal.question else ()
            self._shown[call_id] = [
                str(row.entry.detail["digest"]) for row in rows if row.entry.event == QUESTION_SHOWN
            ]

    @property
    def waiting(self) -> list[str]:
        """Ids of the calls that need an answer from the user."""
        return [name for name, proposal in self._proposals.items() if proposal.question is not None]

    def question(self) -> dict[str, Any]:
        """Return one question about all waiting calls."""
        return _payload(self._proposals.values(), self._problem)

    async def note_shown(self) -> None:
        """Record what the next interrupt asks about. A step that runs again finds what its earlier replies were for."""
        for name in self.waiting:
            proposal, shown = self._proposals[name], self._shown[name]
            if len(shown) <= self._replies:
                call_id, digest = proposal.calls[0].call_id, _asked_digest(proposal)
                await self._gate.journal.record(
                    entry_for(proposal.facts.header, QUESTION_SHOWN, call_id, {"digest": digest})
                )
                shown.append(digest)

    async def answer(self, reply: Any) -> None:
        """Apply the user's reply: a decision for each waiting call, or one decision for all of them."""
        waiting, self.was_answered_before, number = self.waiting, False, self._replies
        self._replies += 1
        listed = reply.get("decisions") if isinstance(reply, Mapping) else reply
        decisions = listed if isinstance(listed, list) else [reply] * len(waiting)
        if len(decisions) != len(waiting):
            self._problem = f"{len(decisions)} decisions for {len(waiting)} calls: send one decision per call, in order"
            return
        self._problem = ""
        for name, decision in zip(waiting, decisions, strict=True):
            proposal = self._proposals[name]
            if self._shown[name][number] != _asked_digest(proposal):  # the reply was for an earlier definition
                self._problem = CALL_CHANGED
                continue
            try:
                proposal = await self._gate.record(await self._gate.answer(proposal, _with_canonical_name(decision)))
            except (RequestError, CallRefusedError) as error:
                self._problem = str(error)
                self.was_answered_before |= self._problem == ALREADY_ANSWERED
                question = proposal.question and proposal.question.repeat(self._problem)
                proposal = replace(proposal, question=question)
            self._proposals[name] = proposal

    def update(self, labels: dict[str, str]) -> dict[str, Any]:
        """Return the change of the agent's state: calls that start next, messages for refused calls, and labels.

        The state keeps the labels when messages are removed.
        """
        messages, gated, refusals = list[ToolMessage](), {}, _refusals_in_row(self._messages_before)
        for call in self.calls:
            proposal = self._proposals.get(str(call["id"]))
            if proposal is None:
                messages.append(_refusal_message(call, self._refusals[str(call["id"])], refusals + len(messages)))
                continue
            (reviewed_call,) = proposal.calls
            if reviewed_call.status is ToolExecutionStatus.APPROVED or proposal.question is not None:
                gated[_call_key(self._answer_id, call)] = proposal.stored.model_dump_json(exclude_defaults=True)
                # the call starts next, and its result may never reach this method
                labels = {**dict.fromkeys(reviewed_call.result_labels, reviewed_call.tool_name), **labels}
            else:
                messages.append(_unrun_message(call, proposal, refusals + len(messages)))
        return {"messages": messages, "gated": gated, "labels": labels}


def _journal_at(place: str | Path) -> Journal:
    from packetgate.graph.journal import journal_at  # slow to load

    return journal_at(place)


def _payload(proposals: Iterable[Proposal], problem: str = "") -> dict[str, Any]:
    """Return one question about all waiting calls."""
    payloads = [approval_payload(item.waiting, item.question) for item in proposals if item.question]
    requests = [
        {**item, "name": _unprefixed_name(item["name"])} for payload in payloads for item in payload["action_requests"]
    ]
    configs = [
        {**item, "action_name": _unprefixed_name(item["action_name"])}
        for payload in payloads
        for item in payload["review_configs"]
    ]
    return {"action_requests": requests, "review_configs": configs, **({"problem": problem} if problem else {})}


def _asked_digest(proposal: Proposal) -> str:
    return proposal.question.calls[0].digest if proposal.question and proposal.question.calls else ""


def _call_key(answer_id: str, call: AgentCall) -> str:
    """Return the key of a call in the state: some model servers number the calls of each answer from 0."""
    return f"{answer_id}/{call['id']}"


def _with_own_ids(answer: AIMessage) -> AIMessage:
    """Return an answer in which each call has an id of its own."""
    calls, known = list[AgentCall](), set[str | None]()
    for at, call in enumerate(answer.tool_calls):
        is_own = bool(call["id"]) and call["id"] not in known
        calls.append(call if is_own else {**call, "id": f"call_{digest_of([answer.id, at])[:24]}"})
        known.add(calls[-1]["id"])
    return answer if calls == answer.tool_calls else answer.model_copy(update={"tool_calls": calls})


def _changed_request(request: ToolCallRequest, name: str, params: dict[str, Any]) -> ToolCallRequest:
    """Return the request with the approved call, which the user may have edited."""
    call = AgentCall(**{**request.tool_call, "name": name, "args": params})
    if name == request.tool_call["name"]:
        return request.override(tool_call=call)
    tools = [tool for tool in request.runtime.tools if tool.name == name]
    if not tools:
        raise RequestError(f"the call was edited to {name}, which the agent cannot run")
    return request.override(tool_call=call, tool=tools[0])


def _calls_in(messages: Sequence[AnyMessage], catalogue: Catalogue) -> tuple[ToolCall, ...]:
    """Return the calls of a conversation that have a result, as calls of reads."""
    calls = []
    for call, message in _earlier_calls(messages):
        name = f"{SERVER}.{call['name']}"
        result = ToolResult(success=message.status != "error", output=message.text)
        earlier = ToolCall(tool_name=name, params=call["args"], risk=Risk.READ, result=result)
        spec = catalogue.get(name)
        calls.append(earlier.changed(result_labels=spec.result_labels) if spec else earlier)
    return tuple(calls)


def _earlier_calls(messages: Sequence[AnyMessage]) -> Iterator[tuple[AgentCall, ToolMessage]]:
    """Yield the calls of a conversation with their results."""
    calls: dict[str, AgentCall] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls |= {str(call["id"]): call for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in calls:
            yield calls[message.tool_call_id], message


def _configurable() -> Mapping[str, Any]:
    with suppress(RuntimeError):  # outside a graph
        return get_config().get("configurable") or {}
    return {}


def _unprefixed_name(name: str) -> str:
    return name.removeprefix(f"{SERVER}.")


def _with_canonical_name(decision: Any) -> Any:
    """Return a decision. If it edits a call, the edited call gets its canonical name."""
    edited = decision.get("edited_action") if isinstance(decision, Mapping) else None
    if not isinstance(edited, Mapping) or "name" not in edited:
        return decision
    return {**decision, "edited_action": {**edited, "name": f"{SERVER}.{_unprefixed_name(str(edited['name']))}"}}


def _messages_in(handled: Any) -> list[BaseMessage]:
    """Return the messages in what a tool returned: a message, a `Command`, or a list of both."""
    if isinstance(handled, list):
        return [message for item in handled for message in _messages_in(item)]
    if not isinstance(handled, Command):
        return [handled]
    update = handled.update.get("messages", []) if isinstance(handled.update, dict) else handled.update or []
    return convert_to_messages(update if isinstance(update, list) else [update])


def _safe(handled: Any, notice: str = "") -> Any:
    """Return what a tool returned with safe messages, after a notice, and without a state of ours."""
    if isinstance(handled, list):
        return [_safe(item, notice) for item in handled]
    messages = [_noticed(safe_message(message), notice) for message in _messages_in(handled)]
    if not isinstance(handled, Command):
        return messages[0]
    if not isinstance(handled.update, dict):
        return replace(handled, update=messages) if messages else handled
    others = {key: value for key, value in handled.update.items() if key not in {"messages", *_OWN_STATE}}
    return replace(handled, update={**others, **({"messages": messages} if messages else {})})


def _noticed(message: BaseMessage, notice: str) -> BaseMessage:
    if not notice or not isinstance(message, ToolMessage):
        return message
    content = (
        notice + message.content
        if isinstance(message.content, str)
        else [{"type": "text", "text": notice}, *message.content]
    )
    return message.model_copy(update={"content": content})


def _edit_notice(proposal: Proposal, text: str | None) -> str:
    """Return what the model reads before the result of an edited call; empty if the call was not edited."""
    (call,) = proposal.calls
    if not text or not any(one.outcome is ApprovalOutcome.EDITED for one in proposal.approvals):
        return ""
    args = json.dumps(call.params, default=str)
    return f"{text} Executed instead: {_unprefixed_name(call.tool_name)} with arguments {args}.\n\nTool response:\n"


def _unrun_message(call: AgentCall, proposal: Proposal, refusals: int) -> ToolMessage:
    """Return the message in place of the result of a call that did not run, after so many refusals in a row."""
    (reviewed_call,) = proposal.calls
    decisions = [one for one in proposal.approvals if one.call_id == reviewed_call.call_id]
    decision: Approval | None = decisions[-1] if decisions else None
    if decision is None or decision.outcome not in {ApprovalOutcome.ANSWERED, ApprovalOutcome.DENIED}:
        verdict = reviewed_call.verdict
        refusal = verdict.why.replace(f"{SERVER}.", "") if verdict and verdict.effect == "refuse" else ""
        reason = (
            (decision.comment if decision else "") or refusal or f"not approved by the user: {reviewed_call.status}"
        )
        return _refusal_message(call, reason, refusals)
    if decision.outcome is ApprovalOutcome.ANSWERED:  # the user answers in place of the tool
        return _message(call, decision.comment, lc_source=_DECISION, lc_data={"decision": "respond"})
    text = f"User rejected the tool call for `{call['name']}`"
    if decision.comment:
        text += f" with reason: {decision.comment}"
    else:
        text += f" with id {call['id']}. The tool was not executed. Do not retry this tool call unless the user "
        text += "explicitly requests it."
    return _refusal_message(call, text, refusals, lc_source=_DECISION, lc_data={"decision": "reject"})


def _refusal_message(call: AgentCall, reason: str, refusals: int = 0, **marks: Any) -> ToolMessage:
    text = reason + (_HAND_OVER.format(refusals + 1) if refusals + 1 >= MAX_REFUSALS else "")
    return _message(call, text, status="error", **{"lc_source": _REFUSAL, **marks})


def _message(call: AgentCall, text: str, status: Literal["success", "error"] = "success", **marks: Any) -> ToolMessage:
    name, call_id = call["name"], str(call["id"])
    return ToolMessage(text, name=name, tool_call_id=call_id, status=status, additional_kwargs=marks)


def _refusals_in_row(messages: Sequence[AnyMessage]) -> int:
    """Return how many calls at the end of a conversation were refused, since the last result or request."""
    number = 0
    for message in reversed(messages):
        if isinstance(message, HumanMessage) or (isinstance(message, ToolMessage) and not _is_refusal(message)):
            break
        number += isinstance(message, ToolMessage)
    return number


def _is_refusal(message: ToolMessage) -> bool:
    return message.status == "error" and message.additional_kwargs.get("lc_source") in {_DECISION, _REFUSAL}


def _has_run(result: ToolMessage) -> bool:
    """Whether a message is the result of a tool, and not the user's answer in place of the tool."""
    return result.status != "error" and result.additional_kwargs.get("lc_source") != _DECISION


def _shown(state: Any) -> list[str]:
    """Return the names on the model's list, in order; empty if it sees all tools."""
    return [*(state.get("shown") or ())]


def _unlisted_reason(name: str, state: Any) -> str:
    reason = f"{name} was not on your list of tools, so it did not run"
    return f"{reason}. It is on the list now: call it again if it fits" if name in _shown(state) else reason


def _definition(tool: BaseTool) -> dict[str, Any]:
    return tool_definition(tool).model_dump(mode="json", by_alias=True, exclude_none=True)


def _added_spec(definition: Mapping[str, Any]) -> ToolSpec:
    """Return a tool that was not given to the middleware: its hints are not believed."""
    return defined_tool_spec(SERVER, Tool.model_validate(definition), trusted=False)


def _search_tool() -> StructuredTool:
    """Return the tool that finds tools; the middleware runs it."""
    return StructuredTool(
        name=SEARCH,
        description="Finds more tools, by what they do or by name, and puts them on your list of tools. Call it if no "
        "tool on your list fits.",
        args_schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        func=str,
    )


def _reply_type(allowed: Sequence[str], name: str, schema: dict[str, Any]) -> Any:
    """Return the type of a reply about one call: LangChain's decisions, and an edit of exactly this tool."""
    shown = schema if "$defs" not in schema else {"type": "object"}
    literal, model = cast("Any", Literal), cast("Any", create_model)  # types that are made at run time
    args = Annotated[dict[str, Any], WithJsonSchema(shown)]
    action = model("EditedAction", name=(literal[name], ...), args=(args, ...))
    edit = model("EditDecision", type=(literal["edit"], ...), edited_action=(action, ...))
    kinds = {"approve": ApproveDecision, "edit": edit, "reject": RejectDecision, "respond": RespondDecision}
    union = reduce(operator.or_, [kinds[one] for one in allowed])
    return Annotated[union, Discriminator("type"), WrapValidator(_as_sent)]


def _as_sent(reply: Any, check: Callable[[Any], Any]) -> Any:
    """Check a reply, and return it as it came: the gate reads it."""
    check(reply)
    return reply
