"""Middleware of LangChain's `create_agent`: gates the model's calls, and shows the model a stable list of tools.

The agent's state holds the data that the middleware needs after a restart or in another process.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from packetgate.deciders.packets import facts_of
from packetgate.gate.checks import Check
from packetgate.gate.facts import Facts
from packetgate.gate.gate import Gate
from packetgate.gate.journal import Journal, MemoryJournal
from packetgate.gate.proposal import Proposal, StoredProposal
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.server_graph import USER_ID
from packetgate.middleware.conversation import (
    SERVER,
    GatedState,
    call_key,
    calls_in,
    changed_request,
    last_answer,
    messages_in,
    safe_results,
    shown_names,
    unprefixed_name,
    with_own_ids,
)
from packetgate.middleware.decisions import (
    EDIT_NOTICE,
    Step,
    asked,
    edit_notice_of,
    refusal_message,
    refusals_in_row,
    tool_message,
    unrun_message,
)
from packetgate.middleware.tool_list import (
    MAX_TOOLS,
    SEARCH,
    ToolList,
    definition_of,
    search_result,
    searches_in,
    unlisted_reason,
)
from packetgate.middleware.unread_calls import read_response
from packetgate.plugins import installed
from packetgate.state.base import ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import ToolCallError
from packetgate.state.origins import FlowLabel, SessionLabel, merged_labels
from packetgate.state.packet import CognitionPacket, is_user_message
from packetgate.state.routing import ToolCall, ToolResult
from packetgate.state.sections import Content, Header
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.catalogue.toolbox import PausedCallError
from packetgate.toolsets.servers.functions import usable_tools
from packetgate.toolsets.servers.langchain_results import result_of_message

Handled = ToolMessage | Command[Any]
Modelled = ModelResponse[Any] | ExtendedModelResponse[Any]
MAX_SOURCES = 20
"""Maximum earlier calls to whose outputs a call's values are traced."""
UNSEEN_TOOL = "; if a middleware adds this tool to requests, the program must list it before PacketgateMiddleware"
"""Added to the refusal of an unknown tool: a middleware sees only the tools that earlier middlewares add."""


class PacketgateMiddleware(AgentMiddleware[GatedState, Any, Any]):
    """Reviews each call of the model before it runs, and shows the model a list of tools that only grows.

    A read runs unless an argument is flagged, or the read reaches outside and does not fit the user's words. A question
    in the form of LangChain's `HumanInTheLoopMiddleware` asks about the other calls of a step. A call that has a result
    in the journal does not run again.

    Examples:
        >>> from langchain.agents import create_agent
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> def cancel_order(order: str) -> str:
        ...     "Cancel an order."
        ...     return f"cancelled {order}"
        >>> gate = PacketgateMiddleware([cancel_order])
        >>> create_agent("openai:gpt-5-mini", middleware=[gate], checkpointer=InMemorySaver())  # doctest: +SKIP
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
            tools: functions and LangChain tools for the agent, in addition to those of `create_agent` and other
                middlewares. The hints in their metadata are trusted. `packetgate.reads` marks reads anywhere.
            max_tools: the model sees all tools if there are at most this many. Otherwise, it sees those that fit its
                first request, and `search_tools`.
            select: False: the model always sees all tools. "provider": the provider of the model searches the tools
                (LangChain's `ProviderToolSearchMiddleware`).
            interrupt_mode: "batched": one question about all calls of a step. "per_call": one question for each call.
            edit_notice: text before the result of a call that the user edited; None: no text.
            settings: fields of `RoutingContext`. Changes run after approval. `confidence_threshold`: a first call with
                less confidence is in doubt; 0 switches the judge off.
            policy: a `packetgate.toml`.
            journal: a SQLite file, or a `postgresql://` URL. Needed if the checkpointer outlasts the process.
            unguarded: names of tools that run without a review.
            checks: checks in addition to the gate's own and those of the installed plug-ins.

        Raises:
            InputError: a tool cannot be used.
            ConfigError: the settings or the policy cannot be read.
        """
        super().__init__()
        self.tools = [*usable_tools(tools).values()]
        self.unguarded, self.interrupt_mode, self.edit_notice = frozenset(unguarded), interrupt_mode, edit_notice
        changing = {"allow_write_tools": True, "allow_execute_tools": True}
        run_settings = settings if isinstance(settings, RoutingContext) else {**changing, **(settings or {})}
        self.settings = routing_context(run_settings)
        database: Journal = MemoryJournal()
        if journal is not None:
            from packetgate.graph.journal import journal_at  # slow to load

            database = journal_at(journal)
        preferences, allowed = load_preferences(Path(policy)) if policy else Preferences(), self.settings.allowed_tools
        self._list = ToolList(
            self.tools, preferences, allowed, max_tools=max_tools, select=select, unguarded=self.unguarded
        )
        all_checks = [*installed().parts("checks"), *checks]
        self._gate = Gate(database, checks=all_checks, unknown_hint=UNSEEN_TOOL, logs_errors=False)
        self._loop = LoopThread()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Modelled:
        """Call the model with its list of tools, and again if none of its calls can be parsed."""
        listed, more = self._list.with_list(request, self._list.best(request))
        response, again = read_response(handler(listed), listed)
        if again is not None:
            response, _ = read_response(handler(again), again, is_last=True)
        return _with_update(response, self._list.update(request, listed, response, more))

    def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Coroutine[Any, Any, Modelled]:
        """Call the model with its list of tools, and again if none of its calls can be parsed.

        This is no `async def`, because LangChain would run two functions of its tracer in threads for each call.
        """
        return self._call_model(request, handler)

    async def _call_model(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Modelled:
        best = await asyncio.to_thread(self._list.best, request) if self._list.number_wanted(request) else []
        listed, more = self._list.with_list(request, best)
        response, again = read_response(await handler(listed), listed)
        if again is not None:
            response, _ = read_response(await handler(again), again, is_last=True)
        update = partial(self._list.update, request, listed, response, more)
        return _with_update(response, await asyncio.to_thread(update) if searches_in(response) else update())

    def after_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Review the calls of a step, and ask the user if needed."""
        return self._loop.run(self.aafter_model(state, runtime))

    async def aafter_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Review the calls of a step, and ask the user if needed."""
        messages = state["messages"]
        index = last_answer(messages)
        before, rest = messages[:index], messages[index:]
        catalogue = self._list.catalogue(state.get("added"))
        earlier = calls_in(before, catalogue)
        results = merged_labels(label for call in earlier for label in call.labels)
        labels = {**{label.label.value: label.source for label in results}, **(state.get("labels") or {})}
        answer = with_own_ids(rest[0]) if rest and isinstance(rest[0], AIMessage) else AIMessage("")
        done = {item.tool_call_id for item in rest if isinstance(item, ToolMessage)}
        calls = [
            call for call in answer.tool_calls if call["id"] not in done and not self._runs_freely(call["name"], state)
        ]
        update: dict[str, Any] = {"labels": labels} if labels else {}
        if calls:
            facts = self._facts_of(before, catalogue, earlier[-MAX_SOURCES:], labels)
            step = Step(self._gate, facts, before, calls, answer)
            await step.propose({name: unlisted_reason(name, state) for name in state.get("unshown") or ()})
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
        return self._loop.run(self.awrap_tool_call(request, lambda changed: asyncio.to_thread(handler, changed)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Handled]]
    ) -> Handled:
        """Run an approved call once.

        Raises:
            Exception: the tool's exception, after it was journaled.
        """
        call, messages = request.tool_call, request.state["messages"]
        if self._runs_freely(call["name"], request.state):
            if call["name"] != SEARCH or SEARCH in self.unguarded:
                return await handler(request)
            return tool_message(call, search_result(call, request.state))
        at = last_answer(messages)
        stored = (request.state.get("gated") or {}).get(call_key(str(messages[at].id), call))
        if stored is None:  # another middleware jumped to the tools
            told = [one for one in messages[at:] if isinstance(one, ToolMessage) and one.tool_call_id == call["id"]]
            return told[0] if told else refusal_message(call, "the call was not reviewed, so it did not run")
        handled: Any = None
        raised: Exception | None = None
        was_asked_again, per_call = False, self.interrupt_mode == "per_call"

        async def execute(tool_name: str, params: dict[str, Any], idempotency_key: str) -> ToolResult:
            nonlocal handled, raised
            started = time.perf_counter()
            try:
                handled = await handler(changed_request(request, unprefixed_name(tool_name), params))
            except Exception as error:
                raised = error
                if not (isinstance(error, GraphBubbleUp) or is_invalid_resume(error)):
                    raise
                if was_asked_again:  # LangGraph would pass the answer to the first question to the tool
                    text = "the tool asks something, after its call was cut off: call it again"
                    raised = None
                    raise ToolCallError(text) from error
                raise PausedCallError(error) from error
            messages = [one for one in messages_in(handled) if isinstance(one, ToolMessage)]
            own = [one for one in messages if one.tool_call_id == call["id"]] or [ToolMessage("", tool_call_id="")]
            return await result_of_message(own[0], ms_since(started))

        proposal = self._restored(StoredProposal.model_validate_json(stored), request)
        if proposal.question is not None:
            proposal = await asked(self._gate, proposal, call, per_call=per_call)
            if not proposal.approved:
                return unrun_message(call, proposal, refusals_in_row(messages))
        try:
            proposal = await self._gate.run(proposal, execute)
            while proposal.waiting and raised is None:  # an earlier run may have finished
                was_asked_again = True
                again = await self._gate.record(await self._gate.ask(proposal))
                again = await asked(self._gate, again, call, per_call=per_call)
                proposal = await self._gate.run(again, execute)
        except PausedCallError as paused:
            raise paused.signal from None
        if proposal.entries:
            await self._gate.journal.record(*proposal.entries)
        if raised is not None:
            raise raised
        (done,) = proposal.calls
        if done.result is None:  # the user was asked again
            return unrun_message(call, proposal, refusals_in_row(messages))
        notice, is_error = edit_notice_of(proposal, self.edit_notice), done.status is not ToolExecutionStatus.EXECUTED
        if handled is None or is_error:  # the journal may have the result of an earlier run
            text = done.result.output or done.result.error or ""
            return tool_message(call, notice + text, "error" if is_error else "success")
        return cast("Handled", safe_results(handled, notice))

    def _restored(self, kept: StoredProposal, request: ToolCallRequest) -> Proposal:
        """Return the proposal of a call that starts, with the definition of the tool that will run."""
        state, name, call_id = request.state, request.tool_call["name"], kept.calls[0].call_id
        added = state.get("added") or {}
        if request.tool is not None and name in added:
            added = {**added, name: definition_of(request.tool)}
        catalogue = self._list.catalogue(added)
        if kept.question is None:
            return Proposal.restored(kept, self._facts(catalogue, call_id))  # the call holds its evidence
        messages = state["messages"]
        before = messages[: last_answer(messages)]
        earlier = calls_in(before, catalogue)[-MAX_SOURCES:]
        facts = self._facts_of(before, catalogue, earlier, state.get("labels") or {})
        return Proposal.restored(kept, replace(facts, header=facts.header.changed(packet_id=call_id)))

    def _runs_freely(self, name: str, state: Any) -> bool:
        return name in self.unguarded or (name == SEARCH and SEARCH in shown_names(state))

    def _facts(self, catalogue: Catalogue, packet_id: str = "", **more: Any) -> Facts:
        configurable: Mapping[str, Any] = {}
        with suppress(RuntimeError):  # outside a graph
            configurable = get_config().get("configurable") or {}
        person = str(configurable.get(USER_ID) or "")
        thread = str(configurable.get("thread_id") or "")
        header = Header(packet_id=packet_id, session_id=thread, origin=SERVER, person=person)
        return Facts(header, catalogue, frozenset(catalogue), settings=self.settings, renames_calls=True, **more)

    def _facts_of(
        self,
        messages: Sequence[AnyMessage],
        catalogue: Catalogue,
        earlier: tuple[ToolCall, ...],
        labels: dict[str, str],
    ) -> Facts:
        """Return the facts of a conversation, with its earlier calls and its labels."""
        prompt = next((one.text for one in reversed(messages) if is_user_message(one)), "")
        others = [message for message in messages if not isinstance(message, ToolMessage)]
        said = facts_of(CognitionPacket(content=Content(original_prompt=prompt), messages=others), catalogue)
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


def _with_update(response: ModelResponse[Any], update: dict[str, Any]) -> Modelled:
    return ExtendedModelResponse(response, Command(update=update)) if update else response
