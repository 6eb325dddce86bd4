"""The user's decisions on the calls of an agent: the questions, the replies, and the messages for refused calls."""

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Annotated, Any, Literal, cast

from langchain.agents.middleware.human_in_the_loop import ApproveDecision, RejectDecision, RespondDecision
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages import ToolCall as AgentCall
from langgraph.types import interrupt
from pydantic import Discriminator, WithJsonSchema, WrapValidator, create_model

from packetgate.deciders.first_calls import doubt_first_call
from packetgate.deciders.language.evidence import odds_by_tokens
from packetgate.gate.answers import ALREADY_ANSWERED, CALL_CHANGED, decide
from packetgate.gate.facts import Facts, RequestedCall
from packetgate.gate.gate import Doubt, Gate
from packetgate.gate.journal import QUESTION_SHOWN, entry_for
from packetgate.gate.proposal import Proposal
from packetgate.gate.questions import approval_payload
from packetgate.middleware.conversation import SERVER, call_key, earlier_calls, unprefixed_name
from packetgate.state.errors import CallRefusedError, RequestError
from packetgate.state.routing import Risk
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.descriptions import SEPARATOR
from packetgate.tools.spec.tool_spec import digest_of

MAX_REFUSALS = 3
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
"""Metadata sources of messages that replace results: LangChain's for the user's decisions, and the gate's."""


class Step:
    """Checks, reviews and approves the calls of one model answer."""

    def __init__(
        self, gate: Gate, facts: Facts, before: Sequence[AnyMessage], calls: Sequence[AgentCall], answer: AIMessage
    ) -> None:
        self.calls = list(calls)
        self._gate, self._facts, self._messages_before, self._answer = gate, facts, before, answer
        self._answer_id = str(answer.id)
        self.was_answered_before = False
        """Whether the last reply belongs to a question that was answered before.

        A thread that resumes from an earlier checkpoint gets the first reply again, and then the new reply. The new
        reply does not belong to the current question, so it does not count.
        """
        self._proposals: dict[str, Proposal] = {}
        self._shown: dict[str, list[str]] = {}
        """For each call, the digests of the calls in its interrupts, in order."""
        self._replies = 0
        self._refusals: dict[str, str] = {}
        """The reason why a call was refused before its proposal, by call."""
        self._problem = ""

    async def propose(self, unlisted: Mapping[str, str]) -> None:
        """Check and review each call; refuse a change that was already made for the same request.

        Args:
            unlisted: the tools that the model was not shown, with the reason for the refusal of their calls.
        """
        requests = [index for index, message in enumerate(self._messages_before) if isinstance(message, HumanMessage)]
        turn = self._messages_before[requests[-1] :] if requests else self._messages_before
        earlier = [
            (call["name"], call["args"])
            for call, result in earlier_calls(turn)
            if _has_run(result) and f"{SERVER}.{call['name']}" in self._facts.catalogue
        ]
        for call in self.calls:
            change, name, call_id = (call["name"], call["args"]), f"{SERVER}.{call['name']}", str(call["id"])
            spec = self._facts.catalogue.get(name)
            if spec is not None and call["name"] in unlisted:
                self._refusals[call_id] = unlisted[call["name"]]
                continue
            if change in earlier and spec is not None and judge_call(spec, call["args"]).risk is not Risk.READ:
                self._refusals[call_id] = _REPEATED_CHANGE
                continue
            is_first = not earlier
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
            doubt = self._doubt_of(call, facts) if is_first else None
            proposal = await self._gate.propose((traced,), facts, corrections=repairs, doubt=doubt)
            self._proposals[call_id] = await self._gate.record(proposal)
            rows = await self._gate.journal.call_entries(call_digest, call_digest) if proposal.question else ()
            self._shown[call_id] = [
                str(row.entry.detail["digest"]) for row in rows if row.entry.event == QUESTION_SHOWN
            ]

    def _doubt_of(self, call: AgentCall, facts: Facts) -> Doubt:
        by_tokens = odds_by_tokens(call, self._answer)
        # without a thread, no interrupt can be answered
        asks_about_reads = bool(facts.header.session_id)
        return partial(doubt_first_call, facts=facts, asks_about_reads=asks_about_reads, by_tokens=by_tokens)

    @property
    def waiting(self) -> list[str]:
        """Ids of the calls that need an answer from the user."""
        return [name for name, proposal in self._proposals.items() if proposal.question is not None]

    def question(self) -> dict[str, Any]:
        """Return one question about all waiting calls."""
        return _payload(self._proposals.values(), self._problem)

    async def note_shown(self) -> None:
        """Record the call of the next interrupt, so that a step that runs again finds the calls of earlier replies."""
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
        """Return the update of the agent's state: calls that start next, messages for refused calls, and labels.

        The state keeps the labels when messages are removed.
        """
        messages, gated, refusals = list[ToolMessage](), {}, refusals_in_row(self._messages_before)
        for call in self.calls:
            proposal = self._proposals.get(str(call["id"]))
            if proposal is None:
                messages.append(refusal_message(call, self._refusals[str(call["id"])], refusals + len(messages)))
                continue
            (reviewed_call,) = proposal.calls
            if reviewed_call.status is ToolExecutionStatus.APPROVED or proposal.question is not None:
                gated[call_key(self._answer_id, call)] = proposal.stored.model_dump_json(exclude_defaults=True)
                # the call starts next, and its result may never reach this method
                labels = {**dict.fromkeys(reviewed_call.result_labels, reviewed_call.tool_name), **labels}
            else:
                messages.append(unrun_message(call, proposal, refusals + len(messages)))
        return {"messages": messages, "gated": gated, "labels": labels}


async def asked(gate: Gate, proposal: Proposal, call: AgentCall, *, per_call: bool) -> Proposal:
    """Ask about one call when it starts, until a reply can be parsed."""
    problem = ""
    while True:
        reply = _reply_about(proposal, call, problem, per_call=per_call)
        listed = reply.get("decisions") if isinstance(reply, Mapping) else reply
        decision = _with_canonical_name(listed[0] if isinstance(listed, list) and len(listed) == 1 else reply)
        try:
            return await gate.record(await gate.answer(proposal, decision))
        except (RequestError, CallRefusedError) as error:
            problem = str(error)
            if problem == ALREADY_ANSWERED and (known := await _recorded(gate, proposal, decision)):
                return known


def _reply_about(proposal: Proposal, call: AgentCall, problem: str, *, per_call: bool) -> Any:
    payload = _payload([proposal], problem)
    if not per_call:
        return interrupt(payload)
    (action,), (config,), (reviewed,) = payload["action_requests"], payload["review_configs"], proposal.calls
    asked = {"type": "tool_approval", "tool_call_id": call["id"], "name": action["name"], "args": action["args"]}
    asked["description"] = "\n\n".join(filter(None, [problem, action["description"]]))
    schema = proposal.facts.catalogue[reviewed.tool_name].input_schema
    return interrupt(asked, response_schema=_reply_type(config["allowed_decisions"], action["name"], schema))


async def _recorded(gate: Gate, proposal: Proposal, decision: Any) -> Proposal | None:
    """Return the proposal with a decision that is in the journal: a task that runs again gets its replies again."""
    if proposal.question is None:
        return None
    decided, _ = await asyncio.to_thread(decide, proposal, proposal.question, decision)
    new = decided.approvals[-1]
    same = new.model_dump(mode="json", include={"question_id", "tool_name", "params"})
    rows = await gate.journal.call_entries(proposal.facts.header.packet_id, new.call_id)
    is_known = any(
        row.entry.event == f"call_{new.outcome}" and same.items() <= row.entry.detail.items() for row in rows
    )
    return replace(decided, entries=()) if is_known else None


def _payload(proposals: Iterable[Proposal], problem: str = "") -> dict[str, Any]:
    """Return one question about all waiting calls."""
    payloads = [approval_payload(item.waiting, item.question) for item in proposals if item.question]
    requests = [
        {**item, "name": unprefixed_name(item["name"])} for payload in payloads for item in payload["action_requests"]
    ]
    configs = [
        {**item, "action_name": unprefixed_name(item["action_name"])}
        for payload in payloads
        for item in payload["review_configs"]
    ]
    return {"action_requests": requests, "review_configs": configs, **({"problem": problem} if problem else {})}


def _asked_digest(proposal: Proposal) -> str:
    return proposal.question.calls[0].digest if proposal.question and proposal.question.calls else ""


def _with_canonical_name(decision: Any) -> Any:
    """Return a decision. If it edits a call, the edited call gets its canonical name."""
    edited = decision.get("edited_action") if isinstance(decision, Mapping) else None
    if not isinstance(edited, Mapping) or "name" not in edited:
        return decision
    return {**decision, "edited_action": {**edited, "name": f"{SERVER}.{unprefixed_name(str(edited['name']))}"}}


def _reply_type(allowed: Sequence[str], name: str, schema: dict[str, Any]) -> Any:
    """Return the type of a reply about one call: LangChain's decisions, and an edit of exactly this tool."""
    shown = schema if "$defs" not in schema else {"type": "object"}
    literal, model = cast("Any", Literal), cast("Any", create_model)  # types created at run time
    args = Annotated[dict[str, Any], WithJsonSchema(shown)]
    action = model("EditedAction", name=(literal[name], ...), args=(args, ...))
    edit = model("EditDecision", type=(literal["edit"], ...), edited_action=(action, ...))
    kinds = {"approve": ApproveDecision, "edit": edit, "reject": RejectDecision, "respond": RespondDecision}
    union = reduce(operator.or_, [kinds[one] for one in allowed])
    return Annotated[union, Discriminator("type"), WrapValidator(_as_sent)]


def _as_sent(reply: Any, check: Callable[[Any], Any]) -> Any:
    """Check a reply, and return it unchanged: the gate parses it."""
    check(reply)
    return reply


def edit_notice_of(proposal: Proposal, text: str | None) -> str:
    """Return the text before the result of an edited call, for the model; empty if the call was not edited."""
    (call,) = proposal.calls
    if not text or not any(one.outcome is ApprovalOutcome.EDITED for one in proposal.approvals):
        return ""
    args = json.dumps(call.params, default=str)
    return f"{text} Executed instead: {unprefixed_name(call.tool_name)} with arguments {args}.\n\nTool response:\n"


def unrun_message(call: AgentCall, proposal: Proposal, refusals: int) -> ToolMessage:
    """Return the message in place of the result of a call that did not run, after this number of consecutive
    refusals."""
    (reviewed_call,) = proposal.calls
    decisions = [one for one in proposal.approvals if one.call_id == reviewed_call.call_id]
    decision: Approval | None = decisions[-1] if decisions else None
    if decision is None or decision.outcome not in {ApprovalOutcome.ANSWERED, ApprovalOutcome.DENIED}:
        verdict = reviewed_call.verdict
        refusal = verdict.why.replace(f"{SERVER}.", "") if verdict and verdict.effect == "refuse" else ""
        reason = (
            (decision.comment if decision else "") or refusal or f"not approved by the user: {reviewed_call.status}"
        )
        return refusal_message(call, reason, refusals)
    if decision.outcome is ApprovalOutcome.ANSWERED:  # the user answers in place of the tool
        return tool_message(call, decision.comment, lc_source=_DECISION, lc_data={"decision": "respond"})
    text = f"User rejected the tool call for `{call['name']}`"
    if decision.comment:
        text += f" with reason: {decision.comment}"
    else:
        text += f" with id {call['id']}. The tool was not executed. Do not retry this tool call unless the user "
        text += "explicitly requests it."
    return refusal_message(call, text, refusals, lc_source=_DECISION, lc_data={"decision": "reject"})


def refusal_message(call: AgentCall, reason: str, refusals: int = 0, **marks: Any) -> ToolMessage:
    """Return the message in place of the result of a refused call, after this number of consecutive refusals."""
    text = reason + (_HAND_OVER.format(refusals + 1) if refusals + 1 >= MAX_REFUSALS else "")
    return tool_message(call, text, status="error", **{"lc_source": _REFUSAL, **marks})


def tool_message(
    call: AgentCall, text: str, status: Literal["success", "error"] = "success", **marks: Any
) -> ToolMessage:
    """Return a result of a call; `marks` give its source."""
    name, call_id = call["name"], str(call["id"])
    return ToolMessage(text, name=name, tool_call_id=call_id, status=status, additional_kwargs=marks)


def refusals_in_row(messages: Sequence[AnyMessage]) -> int:
    """Return how many calls were refused since a conversation's last result or request."""
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
