"""Calls on their way through the gate, with the question about them and the user's decisions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from packetgate.gate.checks import call_digest
from packetgate.gate.facts import Facts
from packetgate.gate.journal import Entry, entry_for
from packetgate.gate.questions import preview_of
from packetgate.gate.remembering import remember_offers
from packetgate.state.base import Section, now
from packetgate.state.routing import Correction, Risk, ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome, AskedCall, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus

_APPROVING_OUTCOMES = frozenset({ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED})


class StoredProposal(Section):
    """A proposal without its facts, for a checkpoint."""

    calls: tuple[ToolCall, ...]
    approvals: tuple[Approval, ...] = ()
    question: OpenQuestion | None = None


@dataclass(frozen=True)
class Proposal:
    """The calls of one step, with the gate's decisions so far."""

    facts: Facts
    calls: tuple[ToolCall, ...] = ()
    approvals: tuple[Approval, ...] = ()
    """The decisions of the turn, oldest first."""
    question: OpenQuestion | None = None
    """The question about the calls that wait; None if no call waits."""
    corrections: tuple[Correction, ...] = ()
    """Repairs of the requested calls."""
    entries: tuple[Entry, ...] = ()
    """Events for the journal and the audit trail that are not recorded yet."""

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for the user."""
        return tuple(call for call in self.calls if call.status.awaits_user)

    @property
    def approved(self) -> tuple[ToolCall, ...]:
        """The calls that run next."""
        return tuple(call for call in self.calls if call.status is ToolExecutionStatus.APPROVED)

    @property
    def is_plain_read(self) -> bool:
        """Whether a client chose the calls, and all are reads that needed neither approval nor a rule."""
        was_decided = self.question or self.approvals or self.waiting
        return self.facts.renames_calls and not was_decided and all(call.risk is Risk.READ for call in self.calls)

    @property
    def stored(self) -> StoredProposal:
        """Calls, decisions and question."""
        return StoredProposal(calls=self.calls, approvals=self.approvals, question=self.question)

    @classmethod
    def restored(cls, stored: StoredProposal, facts: Facts) -> "Proposal":
        """Return a stored proposal with the current facts."""
        return cls(facts, stored.calls, stored.approvals, stored.question)

    def with_calls(self, calls: Iterable[ToolCall]) -> "Proposal":
        """Return the proposal with these calls in place of those with the same id."""
        by_id = {call.call_id: call for call in calls}
        return replace(self, calls=tuple(by_id.get(call.call_id, call) for call in self.calls))

    def with_entries(self, *entries: Entry) -> "Proposal":
        """Return the proposal with more events."""
        return replace(self, entries=self.entries + entries)

    def with_reviews(self, reviews: tuple[Entry, ...]) -> "Proposal":
        """Return the proposal with the events of its calls' reviews, before the events that followed."""
        number = len(self.calls)  # the first events are those of the proposed calls
        return replace(self, entries=(*self.entries[:number], *reviews, *self.entries[number:]))

    def with_events(self, event: str, calls: Iterable[ToolCall], text: str = "") -> "Proposal":
        """Return the proposal with an event of each call, and a text for the audit trail."""
        header = self.facts.header
        details = [(call.call_id, f"{call.tool_name} {text}".strip()) for call in calls]
        entries = [entry_for(header, event, call_id, {"detail": detail}) for call_id, detail in details]
        return replace(self, entries=(*self.entries, *entries))

    def with_approvals(self, *approvals: Approval) -> "Proposal":
        """Return the proposal with these decisions."""
        entries = (
            entry_for(
                self.facts.header,
                f"call_{approval.outcome}",
                approval.call_id,
                approval.model_dump(mode="json", exclude={"call_id", "outcome", "at"}),
            )
            for approval in approvals
        )
        return replace(self, approvals=self.approvals + approvals).with_entries(*entries)

    def asking(self, previews: Mapping[str, ToolCall], question_id: str = "") -> "Proposal":
        """Return the proposal with a question about the waiting calls.

        Args:
            previews: ended dry runs, by call id.
            question_id: the id of a question that a client may repeat; empty for a new id.
        """
        asked = tuple(
            AskedCall(
                call_id=call.call_id,
                digest=call_digest(call, self.facts.catalogue[call.tool_name]),
                preview=preview_of(call, previews.get(call.call_id)),
                remember=remember_offers(call, self.facts),
            )
            for call in self.waiting
            if call.tool_name in self.facts.catalogue
        )
        names = {"question_id": question_id} if question_id else {}
        question = OpenQuestion.within(self.facts.settings.ask_timeout_s, calls=asked, **names)
        detail = question.model_dump(mode="json", exclude={"reply"})
        return replace(self, question=question).with_entries(
            entry_for(self.facts.header, "question_asked", detail=detail)
        )

    def approval_of(self, call: ToolCall) -> Approval | None:
        """Return the newest decision that lets exactly this call run now; None without one."""
        for approval in reversed(self.approvals):
            expired = approval.expires_at is None or now() > approval.expires_at
            if approval.call_id != call.call_id or approval.outcome not in _APPROVING_OUTCOMES or expired:
                continue
            if approval.digest == call_digest(call, self.facts.catalogue[call.tool_name]):
                return approval
        return None
