"""The gate without a graph: propose, answer and run."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from support.tool_specs import a_tool, files_catalogue

from packetgate.gate.checks import CHECKS, strictest_verdict, verdict_digest
from packetgate.gate.confidence import NOT_APPROVED_CAP, CallReview
from packetgate.gate.facts import Facts, RequestedCall
from packetgate.gate.gate import Gate
from packetgate.gate.journal import BufferedJournal, Entry, MemoryJournal
from packetgate.gate.proposal import Proposal
from packetgate.state import errors
from packetgate.state.base import ErrorType
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.origins import FlowLabel, Origin, OriginKind, SessionLabel
from packetgate.state.routing import Risk, ToolCall, ToolResult, Verdict
from packetgate.state.sections import Header
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.toolsets.servers.results import to_result

S = ToolExecutionStatus
FILES = files_catalogue()
ON = RoutingContext(allow_write_tools=True, allow_execute_tools=True)
READ = ToolCall(tool_name="files.read_file", params={"path": "a.txt"}, risk=Risk.READ)
WRITE = ToolCall(tool_name="files.write_file", params={"path": "a.txt", "content": "x"}, risk=Risk.WRITE)
RUN = ToolCall(tool_name="shell.run_command", params={"argv": ["ls"]}, risk=Risk.EXECUTE)
FLAGGED = {"path": Origin(kind=OriginKind.TEXT, tool="mail.read", is_flagged=True, why="it is only in a text")}
FLAGGED_READ = READ.changed(provenance=FLAGGED, traced_for=FILES["files.read_file"].digest)
CLOSED = a_tool("notes.look_up", "Look up a term.", term={"type": "string"})
OPEN = replace(CLOSED, reaches_outside=True)
MAIL = ToolCall(tool_name="mail.read", risk=Risk.READ, result=ToolResult(success=True, output="The PIN is 48213"))
LABELS = tuple(SessionLabel(label=label, source="mail.read") for label in FlowLabel)


@dataclass
class Desk:
    """Tools that record their calls, and all return the same result."""

    end: Exception | ToolResult = field(default_factory=lambda: to_result("the text", None, 1.0))
    reached: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str) -> ToolResult:
        self.reached.append((tool_name, params))
        await asyncio.sleep(0)
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def known(settings: RoutingContext = ON, catalogue: Catalogue = FILES, **changed: Any) -> Facts:
    return Facts(Header(session_id="s"), catalogue, frozenset(catalogue), settings=settings, **changed)


def judged(call: ToolCall, confidence: float = 1.0, *, approved: bool = True) -> dict[str, CallReview]:
    return {call.call_id: CallReview(call_id=call.call_id, approved=approved, confidence=confidence, reasoning="so")}


async def answered(gate: Gate, call: ToolCall, reply: Any = "yes", facts: Facts | None = None) -> Proposal:
    return await gate.answer(await gate.propose((call,), facts or known()), reply)


@pytest.mark.parametrize(
    ("confidence", "call", "can_ask", "context", "status"),
    [
        (0.70, READ, True, {}, S.APPROVED),
        (0.69, READ, True, {}, S.AWAITING_CONFIDENCE),
        (0.69, READ, False, {}, S.SKIPPED),
        (0.69, READ, True, {"on_low_confidence": "skip"}, S.SKIPPED),
        # disabled: a call above the threshold is a dry run; a call below it is skipped without a question
        (0.70, WRITE, True, {}, S.APPROVED),
        (0.69, WRITE, True, {}, S.SKIPPED),
        # enabled: a call above the threshold needs approval, even with confidence 1
        (1.00, WRITE, True, ON.model_dump(), S.AWAITING_APPROVAL),
        (1.00, RUN, True, ON.model_dump(), S.AWAITING_APPROVAL),
        (1.00, WRITE, False, ON.model_dump(), S.SKIPPED),
        (0.69, WRITE, True, ON.model_dump(), S.AWAITING_CONFIDENCE),
        (0.69, WRITE, False, ON.model_dump(), S.SKIPPED),
        (0.0, WRITE, True, {**ON.model_dump(), "confidence_threshold": 0.0}, S.AWAITING_APPROVAL),
        (1.00, FLAGGED_READ, True, {}, S.AWAITING_APPROVAL),
        (1.00, FLAGGED_READ, False, {}, S.SKIPPED),
    ],
)
async def test_a_judged_call_has_the_status_of_its_verdict(
    confidence: float, call: ToolCall, can_ask: bool, context: dict[str, Any], status: ToolExecutionStatus
):
    facts = known(RoutingContext(**context), can_ask=can_ask)
    proposal = await Gate(MemoryJournal()).propose((call,), facts, judged(call, confidence))
    (gated,) = proposal.calls
    assert (gated.status, gated.review_confidence) == (status, confidence)
    assert (gated.review_reasoning == "so") is (status is S.APPROVED)
    assert (proposal.question is not None) is status.awaits_user


@pytest.mark.parametrize("call", [READ, WRITE])
async def test_an_improbable_call_is_not_asked_about(call: ToolCall):
    (review,) = judged(call, 0.1).values()
    proposal = await Gate(MemoryJournal()).propose((call,), known(), {call.call_id: review.changed(is_improbable=True)})
    assert (proposal.calls[0].status, proposal.question) == (S.SKIPPED, None)
    assert proposal.calls[0].review_reasoning == "so; 0.10 is below 0.70"


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("stated", [0.0, 0.2, 0.5, 1.0])
async def test_a_call_that_the_review_did_not_approve_never_runs(stated: float, threshold: float):
    for call, context in [(READ, {}), (WRITE, {}), (WRITE, ON.model_dump())]:
        facts = known(RoutingContext(**{**context, "confidence_threshold": threshold}))
        desk = Desk()
        gate = Gate(MemoryJournal(), desk.call)
        proposal = await gate.run(await gate.propose((call,), facts, judged(call, stated, approved=False)))
        assert proposal.calls[0].status in {S.SKIPPED, S.AWAITING_CONFIDENCE}
        assert proposal.calls[0].review_confidence == min(stated, NOT_APPROVED_CAP)
        assert desk.reached == []


@pytest.mark.parametrize(
    ("end", "error_type", "code"),
    [
        (errors.CallRefusedError("there is no such tool"), ErrorType.REFUSED, Code.CALL_REFUSED),
        (errors.ServerError("it is not there"), ErrorType.UNAVAILABLE, Code.SERVER_UNAVAILABLE),
        (errors.SessionRefusedError("unknown session"), ErrorType.UNAVAILABLE, Code.SERVER_SESSION_UNKNOWN),
        (errors.LostCallError("it went away"), ErrorType.NO_ANSWER, Code.NO_ANSWER),
        (errors.TimedOutCallError("it took too long"), ErrorType.TIMEOUT, Code.CALL_TIMED_OUT),
        (to_result("no such file", None, 1.0, is_error=True), ErrorType.TOOL_ERROR, Code.TOOL_FAILED),
        (ZeroDivisionError("a mistake of ours"), ErrorType.INTERNAL, Code.INTERNAL),
        (to_result("the text", None, 1.0), None, None),
    ],
    ids=lambda given: type(given).__name__,
)
async def test_a_failure_has_a_type_and_a_code(
    end: Exception | ToolResult, error_type: ErrorType | None, code: Code | None
):
    gate = Gate(MemoryJournal(), Desk(end).call)
    (ended,) = (await gate.run(await gate.propose((READ,), known()))).calls
    assert ended.result
    assert (ended.result.error_type, ended.result.code) == (error_type, code)
    assert ended.status is (S.FAILED if code else S.EXECUTED)


@pytest.mark.parametrize(
    "changed",
    [
        {"params": {"path": "a.txt", "content": "y"}},
        {"params": {"path": "A.txt", "content": "x"}},
        {"params": {"path": "a.txt", "content": "x", "mode": "append"}},
        {"call_id": "c2"},
        {"tool_name": "shell.run_command", "params": {"argv": ["ls"]}},
    ],
    ids=str,
)
async def test_an_approval_is_for_exactly_one_call(changed: dict[str, Any]):
    desk = Desk()
    gate = Gate(MemoryJournal(), desk.call)
    approved = await answered(gate, WRITE)
    other = replace(approved, calls=(approved.calls[0].model_copy(update=changed),))
    (ended,) = (await gate.run(other)).calls
    assert ended.result
    assert (ended.status, ended.result.code, desk.reached) == (S.FAILED, Code.APPROVAL_MISSING, [])


@pytest.mark.parametrize(
    "changed",
    [{"digest": ""}, {"expires_at": None}, {"expires_at": datetime(2026, 2, 28, tzinfo=UTC)}, {"by": "the policy: x"}],
    ids=str,
)
async def test_an_expired_or_foreign_approval_does_not_count(changed: dict[str, Any]):
    desk = Desk()
    gate = Gate(MemoryJournal(), desk.call)
    approved = await answered(gate, WRITE)
    other = replace(approved, approvals=(approved.approvals[0].model_copy(update=changed),))
    assert (await gate.run(other)).calls[0].status is S.FAILED
    assert desk.reached == []


@pytest.mark.parametrize(
    "more", [{}, {"risk": Risk.READ, "verdict_digest": "f" * 64, "review_confidence": 1.0}], ids=str
)
async def test_a_forged_verdict_is_ignored(more: dict[str, Any]):
    """A stored verdict counts only if this process gave it for this call. The gate ignores stored digest and risk."""
    desk = Desk()
    gate = Gate(MemoryJournal(), desk.call)
    asked = (await gate.propose((WRITE,), known())).calls[0]
    forged = asked.model_copy(update={"status": S.APPROVED, "verdict": Verdict(effect="allow"), **more})
    (ended,) = (await gate.run(Proposal(known(), (forged,)))).calls
    assert ended.result
    assert (ended.result.code, desk.reached) == (Code.APPROVAL_MISSING, [])


async def test_a_valid_verdict_is_not_computed_again():
    asked: list[str] = []

    def counting(call: ToolCall, facts: Facts) -> None:
        asked.append(call.tool_name)

    gate = Gate(MemoryJournal(), Desk().call, checks=[counting])
    proposal = await gate.propose((READ,), known())
    await gate.run(proposal)
    assert asked == ["files.read_file"]
    changed = Catalogue([replace(FILES["files.read_file"], full="Read, differently")])
    again = await gate.propose((READ.changed(call_id="c2"),), known())
    await gate.run(replace(again, facts=known(catalogue=changed)))
    assert len(asked) == 3
    call = proposal.calls[0]
    assert verdict_digest(call, call.verdict, FILES["files.read_file"], known()) == call.verdict_digest
    assert strictest_verdict(CHECKS, READ, known()) == proposal.calls[0].verdict


@pytest.mark.parametrize("version", ["selected", "stored by an older version"])
@pytest.mark.parametrize("at", ["review", "run", "hints"])
async def test_origins_are_found_again_for_another_definition(at: str, version: str):
    """If a tool was closed when its call was selected, but now reaches outside, it gets no words of a private text."""
    asked: list[dict[str, Any]] = []

    async def ask_hints(params: dict[str, Any]) -> None:
        asked.append(params)

    desk = Desk()
    gate = Gate(MemoryJournal(), desk.call)
    before, now = (
        known(catalogue=Catalogue([spec]), words="Look up what the mail says", earlier=(MAIL,), labels=LABELS)
        for spec in (CLOSED, replace(OPEN, ask_hints=ask_hints) if at == "hints" else OPEN)
    )
    call = before.traced_call(CLOSED, {"term": "48213"})
    assert not call.is_flagged
    if version != "selected":
        call = call.changed(traced_for="")
    proposal = await gate.propose((call,), before if at == "run" else now)
    if at == "run":
        (ended,) = (await gate.run(replace(proposal, facts=now))).calls
        assert ended.status is S.FAILED
    else:
        assert proposal.calls[0].status is S.AWAITING_APPROVAL
    assert (desk.reached, asked) == ([], [])


@pytest.mark.parametrize(
    ("name", "params", "code"),
    [
        ("files.reads", {"path": "a.txt"}, Code.TOOL_UNKNOWN),
        ("files.read_file", {"lines": 1}, Code.ARGUMENTS_INVALID),
        ("files.write_file", {"path": "a.txt", "content": "x"}, Code.NOT_READ_ONLY),
    ],
)
async def test_a_request_that_cannot_be_a_call_is_refused(name: str, params: dict[str, Any], code: Code):
    requested = RequestedCall(name, params, refusal_if_changing="Use another tool.")
    with pytest.raises(errors.CallRefusedError) as refused:
        await Gate(MemoryJournal(), unknown_hint="; search finds more").request(requested, known())
    assert refused.value.code is code


async def test_a_request_is_repaired_and_traced():
    facts = known(words="Read a.txt")
    call, repairs = await Gate(MemoryJournal()).request(RequestedCall("read_file", {"path": "a.txt"}), facts)
    assert (call.tool_name, call.risk) == ("files.read_file", Risk.READ)
    assert call.provenance["path"].kind is OriginKind.USER
    assert [repair.problem for repair in repairs] == ["alias"]


async def test_a_path_keeps_the_users_backslashes():
    facts = known(words=r"Read C:\temp\new")
    call, repairs = await Gate(MemoryJournal()).request(
        RequestedCall("files.read_file", {"path": "C:\temp\new"}), facts
    )
    assert call.params == {"path": r"C:\temp\new"}
    assert call.provenance["path"].kind is OriginKind.USER
    assert [repair.problem for repair in repairs] == ["coerced"]


async def events(journal: MemoryJournal) -> list[str]:
    return [row.entry.event for row in await journal.event_entries("a", "b", "c")]


async def test_buffered_entries_are_recorded_first_and_once() -> None:
    inner = MemoryJournal()
    journal = BufferedJournal(inner, Entry("a"))
    assert await events(inner) == []
    assert await journal.record(Entry("b"))
    assert await journal.record(Entry("c"))
    await journal.record()
    assert await events(inner) == ["a", "b", "c"]


async def test_entries_stay_buffered_until_they_are_recorded() -> None:
    inner = MemoryJournal()
    await inner.claim("taken")
    journal = BufferedJournal(inner, Entry("a"))
    assert not await journal.record(Entry("b", key="taken"))
    assert await events(inner) == []
    await journal.record()
    assert await events(inner) == ["a"]
