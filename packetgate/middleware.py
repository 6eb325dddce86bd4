"""Middleware of LangChain's `create_agent`: chooses the model's tools, and gates its calls."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage, convert_to_messages
from langchain_core.messages import ToolCall as AgentCall
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from packetgate.deciders.packets import facts_of
from packetgate.gate.answers import ALREADY_ANSWERED, CALL_CHANGED
from packetgate.gate.checks import Check
from packetgate.gate.facts import Facts, RequestedCall
from packetgate.gate.gate import Gate
from packetgate.gate.journal import QUESTION_SHOWN, MemoryJournal, entry_for
from packetgate.gate.proposal import Proposal, StoredProposal
from packetgate.gate.questions import approval_payload
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.journal import journal_at
from packetgate.graph.server_graph import USER_ID
from packetgate.plugins import installed
from packetgate.ranking.choice import PaletteRequest, choose_palette, recent_after
from packetgate.state.base import ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import CallRefusedError, ConfigError, RequestError, ToolCallError
from packetgate.state.origins import FlowLabel, SessionLabel, merged_labels
from packetgate.state.packet import CognitionPacket, is_user_message
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Content, Header
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.catalogue.toolbox import PausedCallError
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.descriptions import SEPARATOR
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.tools.text.reading import access_of
from packetgate.toolsets.servers.functions import langchain_tool_spec, usable_tools
from packetgate.toolsets.servers.langchain_results import result_of_message, safe_message

Handled = ToolMessage | Command[Any]

SERVER = "agent"
"""Server name of the agent's tools, in rules and in the journal."""
MAX_SOURCES = 20
"""Maximum number of earlier calls. The values of a call are traced to the outputs of these calls."""
MAX_THREADS = 1_000
"""Maximum number of threads whose shown tools are remembered; for others they are chosen again."""
_TOKEN_BUDGET = 100_000
"""The palette's token budget. It is large because `max_tools` limits the tools."""
_REPEATED_CHANGE = (
    "this change was already made or proposed for the same request, so it was not repeated: continue with its result, "
    "or ask the user whether to repeat it"
)


class GatedState(AgentState[Any]):
    """The agent's state: the proposals of approved calls as JSON, by call id, and the labels with their sources."""

    gated: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    labels: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]


class PacketgateMiddleware(AgentMiddleware[GatedState, Any, Any]):
    """Shows the model the tools that fit the request, and reviews each call of the model before it runs.

    A read runs if the user named its values. One question in the form of LangChain's `HumanInTheLoopMiddleware` asks
    about all other calls of a step. A call that has a result in the journal does not run again.
    """

    state_schema = GatedState

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        max_tools: int = 16,
        settings: RoutingContext | Mapping[str, Any] | None = None,
        policy: str | Path | None = None,
        journal: str | Path | None = None,
        unguarded: Collection[str] = (),
        checks: Sequence[Check] = (),
    ) -> None:
        """Gate these tools. Do not pass them to `create_agent` as well.

        Args:
            tools: functions and LangChain tools. `packetgate.reads` marks those that change nothing.
            max_tools: maximum number of tools that the model receives at once.
            settings: fields of `RoutingContext`. Changes run after approval.
            policy: a `packetgate.toml`.
            journal: a SQLite file, or a `postgresql://` URL. Needed if the checkpointer outlasts the process.
            unguarded: names of tools that run without a review, such as the tools of other middleware.
            checks: the gate's checks beside its own and those of the installed plug-ins.

        Raises:
            InputError: a tool cannot be used.
            ConfigError: the settings or the policy cannot be read.
        """
        super().__init__()
        self.tools = [*usable_tools(tools).values()]
        self.max_tools, self.unguarded = max_tools, frozenset(unguarded)
        changing = {"allow_write_tools": True, "allow_execute_tools": True}
        run_settings = settings if isinstance(settings, RoutingContext) else {**changing, **(settings or {})}
        self.settings = routing_context(run_settings)
        database = journal_at(journal) if journal is not None else MemoryJournal()
        preferences = load_preferences(Path(policy)) if policy else Preferences()
        specs = [langchain_tool_spec(SERVER, tool) for tool in self.tools]
        self._catalogue = Catalogue(specs, preferences=preferences).restrict(self.settings.allowed_tools, SERVER)
        self._gate = Gate(database, checks=[*installed().parts("checks"), *checks])
        self._offered: dict[str, frozenset[str]] = {}
        """By thread, the tools that the model was shown last."""
        self._loop = LoopThread()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the tools that fit the request."""
        return handler(self._with_fitting_tools(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with the tools that fit the request."""
        return await handler(await asyncio.to_thread(self._with_fitting_tools, request))

    def after_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Review the calls of a step, and ask the user if needed."""
        return self._loop.run(self.aafter_model(state, runtime))

    async def aafter_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Review the calls of a step, and ask the user if needed."""
        messages = state["messages"]
        index = max((at for at, item in enumerate(messages) if isinstance(item, AIMessage)), default=len(messages))
        before, answers, rest = messages[:index], messages[index : index + 1], messages[index:]
        done = {item.tool_call_id for item in rest if isinstance(item, ToolMessage)}
        calls = [
            call
            for answer in answers
            if isinstance(answer, AIMessage)
            for call in answer.tool_calls
            if call["id"] not in done and call["name"] not in self.unguarded
        ]
        earlier = _calls_in(before, self._catalogue)
        results = merged_labels(label for call in earlier for label in call.labels)
        labels = {**{label.label.value: label.source for label in results}, **(state.get("labels") or {})}
        if not calls:
            return {"labels": labels} if labels else None
        facts = self._facts_of(before, earlier[-MAX_SOURCES:], labels)
        step = _Step(self._gate, facts, before, calls, answer_id="".join(str(item.id) for item in answers))
        await step.propose()
        while step.waiting:
            await step.note_shown()
            await step.answer(interrupt(step.question()))
            if step.was_answered_before:
                interrupt(step.question())
        return step.update(labels)

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
        """Run an approved call once."""
        call = request.tool_call
        if call["name"] in self.unguarded:
            return await handler(request)
        stored = (request.state.get("gated") or {}).get(str(call["id"]))
        if stored is None:
            reason = "the call was not reviewed: list PacketgateMiddleware after middleware that adds calls"
            return _refusal_message(call, reason)
        handled: Any = None
        was_asked_again = False

        async def execute(tool_name: str, params: dict[str, Any], idempotency_key: str) -> ToolResult:
            nonlocal handled
            started = time.perf_counter()
            try:
                handled = await handler(request.override(tool_call=AgentCall(**{**call, "args": params})))
            except GraphBubbleUp as signal:  # the tool's own interrupt, for LangGraph
                if was_asked_again:  # LangGraph would give the answer to the first question to the tool
                    raise ToolCallError(
                        "the tool asks something, after its call was cut off: call it again"
                    ) from signal
                raise PausedCallError(signal) from signal
            messages = [one for one in _messages_in(handled) if isinstance(one, ToolMessage)]
            own = [one for one in messages if one.tool_call_id == call["id"]] or [ToolMessage("", tool_call_id="")]
            return await result_of_message(own[0], ms_since(started))

        kept = StoredProposal.model_validate_json(stored)
        facts = self._facts(kept.calls[0].call_id)  # what the verdict needs: the call holds its evidence
        try:
            proposal = await self._gate.run(Proposal.restored(kept, facts), execute)
            while proposal.waiting:  # an earlier run may have finished
                was_asked_again = True
                proposal = await self._gate.run(await self._asked_again(proposal), execute)
        except PausedCallError as paused:
            raise paused.signal from None
        if proposal.entries:
            await self._gate.journal.record(*proposal.entries)
        (done,) = proposal.calls
        text = done.result.output or done.result.error if done.result else done.unfinished_run_text
        if done.status is not ToolExecutionStatus.EXECUTED:
            return _refusal_message(call, text or f"not executed: the call is {done.status}")
        if handled is None:  # the journal has the result of an earlier run
            return ToolMessage(text or "", name=call["name"], tool_call_id=str(call["id"]))
        safe: Handled = _safe(handled)
        return safe

    async def _asked_again(self, proposal: Proposal) -> Proposal:
        """Ask about a call whose earlier run has no recorded end, until the reply can be read."""
        asked, problem = await self._gate.record(await self._gate.ask(proposal)), ""
        while True:
            reply = interrupt(_payload([asked], problem))
            listed = reply.get("decisions") if isinstance(reply, Mapping) else reply
            decision = listed[0] if isinstance(listed, list) and len(listed) == 1 else reply
            try:
                return await self._gate.record(await self._gate.answer(asked, _with_canonical_name(decision)))
            except (RequestError, CallRefusedError) as error:
                problem = str(error)

    def _with_fitting_tools(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        own_names = {tool.name for tool in self.tools}
        ungated = {tool.name for tool in request.tools if isinstance(tool, BaseTool)} - own_names - self.unguarded
        if ungated:
            raise ConfigError(
                f"{', '.join(sorted(ungated))}: give these tools to PacketgateMiddleware, or name them in `unguarded`"
            )
        if len(own_names) <= self.max_tools:
            return request
        offered_names = self._offered_names(request.messages) | self.unguarded
        if thread := str(_configurable().get("thread_id") or ""):
            self._offered.pop(thread, None)
            self._offered[thread] = offered_names
        for oldest in [*self._offered][:-MAX_THREADS]:
            del self._offered[oldest]
        return request.override(
            tools=[tool for tool in request.tools if not isinstance(tool, BaseTool) or tool.name in offered_names]
        )

    def _offered_names(self, messages: Sequence[AnyMessage]) -> frozenset[str]:
        """Return the names of the tools that fit a conversation."""
        words = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
        used = [f"{SERVER}.{call['name']}" for call, _ in _earlier_calls(messages)]
        palette_request = PaletteRequest(
            words=words,
            access=access_of(words),
            size=self.max_tools,
            token_budget=_TOKEN_BUDGET,
            recent=recent_after((), reversed(used)),
        )
        palette = choose_palette(palette_request, self._catalogue)
        return frozenset(_unprefixed_name(entry.tool_name) for entry in palette.entries)

    def _facts(self, packet_id: str = "", **more: Any) -> Facts:
        configurable = _configurable()
        person = str(configurable.get(USER_ID) or "")
        thread = str(configurable.get("thread_id") or "")
        header = Header(packet_id=packet_id, session_id=thread, origin=SERVER, person=person)
        offered = frozenset(self._catalogue)
        return Facts(header, self._catalogue, offered, settings=self.settings, renames_calls=True, **more)

    def _facts_of(
        self, messages: Sequence[AnyMessage], earlier: tuple[ToolCall, ...], labels: Mapping[str, str]
    ) -> Facts:
        """Return the facts of a conversation, with its earlier calls and the labels that it holds."""
        packet = CognitionPacket(
            content=Content(original_prompt=next((one.text for one in reversed(messages) if is_user_message(one)), "")),
            messages=[message for message in messages if not isinstance(message, ToolMessage)],
        )
        said = facts_of(packet, self._catalogue)
        held = tuple(SessionLabel(label=FlowLabel(label), source=source) for label, source in labels.items())
        facts = self._facts(
            words=said.words,
            request=said.request,
            session_words=said.session_words,
            other_texts=said.other_texts,
            earlier=earlier,
            labels=merged_labels([*held, *said.labels]),
        )
        if len(self.tools) <= self.max_tools:
            return facts
        shown = self._offered.get(facts.header.session_id) or self._offered_names(messages)
        return replace(facts, offered=frozenset(f"{SERVER}.{name}" for name in shown) & facts.offered)


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
        self._refusals: dict[str, ToolMessage] = {}
        self._problem = ""

    async def propose(self) -> None:
        """Check and review each call; refuse a change that was already made for the same request."""
        requests = [index for index, message in enumerate(self._messages_before) if isinstance(message, HumanMessage)]
        turn = self._messages_before[requests[-1] :] if requests else self._messages_before
        earlier = [(call["name"], call["args"]) for call, result in _earlier_calls(turn) if result.status != "error"]
        for call in self.calls:
            change, name, call_id = (call["name"], call["args"]), f"{SERVER}.{call['name']}", str(call["id"])
            spec = self._facts.catalogue.get(name)
            if change in earlier and spec is not None and judge_call(spec, call["args"]).risk is not Risk.READ:
                self._refusals[call_id] = _refusal_message(call, _REPEATED_CHANGE)
                continue
            earlier.append(change)
            # some model servers number the calls of each answer from 0, so the id alone is not unique
            header = self._facts.header
            call_digest = digest_of([header.session_id, self._answer_id, call_id])[:32]
            requested = RequestedCall(name, call["args"], call_id=call_digest)
            try:
                traced, repairs = await self._gate.request(requested, self._facts)
            except CallRefusedError as error:
                reason = str(error).replace(f"{SERVER}{SEPARATOR}", "").replace(f"{SERVER}.", "")
                self._refusals[call_id] = _refusal_message(call, reason)
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
        """Return the change of the agent's state: approved calls, messages for refused calls, and labels with sources.

        The state keeps the labels when messages are removed.
        """
        messages, gated = [*self._refusals.values()], {}
        for call in self.calls:
            proposal = self._proposals.get(str(call["id"]))
            if proposal is None:
                continue
            (reviewed_call,) = proposal.calls
            if reviewed_call.status is ToolExecutionStatus.APPROVED:
                gated[str(call["id"])] = proposal.stored.model_dump_json(exclude_defaults=True)
                # the call runs next, and its result may never reach this method
                labels = {**dict.fromkeys(reviewed_call.result_labels, reviewed_call.tool_name), **labels}
            else:
                messages.append(_refusal_message(call, _why_not_run(proposal)))
        return {"messages": messages, "gated": gated, "labels": labels}


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


def _why_not_run(proposal: Proposal) -> str:
    (call,) = proposal.calls
    comment = next((approval.comment for approval in proposal.approvals if approval.comment), "")
    if not comment and call.verdict is not None and call.verdict.effect == "refuse":
        return call.verdict.why.replace(f"{SERVER}.", "")
    return comment or f"not approved by the user: {call.status}"


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
    earlier = {
        str(call["id"]): call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls
    }
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in earlier:
            yield earlier[message.tool_call_id], message


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


def _safe(handled: Any) -> Any:
    """Return what a tool returned with safe messages, and without approvals and labels of its own."""
    if isinstance(handled, list):
        return [_safe(item) for item in handled]
    messages = [safe_message(message) for message in _messages_in(handled)]
    if not isinstance(handled, Command):
        return messages[0]
    if not isinstance(handled.update, dict):
        return replace(handled, update=messages) if messages else handled
    others = {key: value for key, value in handled.update.items() if key not in {"messages", "gated", "labels"}}
    return replace(handled, update={**others, **({"messages": messages} if messages else {})})


def _refusal_message(call: AgentCall, reason: str) -> ToolMessage:
    return ToolMessage(reason, name=call["name"], tool_call_id=str(call["id"]), status="error")
