"""What a call's status and a selection's outcome may become: the routing state machine, in one place."""

from enum import StrEnum
from typing import Literal


class ToolExecutionStatus(StrEnum):
    """Where a call stands. Only `EXECUTED` means that the tool did its work."""

    PENDING = "pending"
    AWAITING_CONFIDENCE = "awaiting_confidence"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    EXECUTED = "executed"
    FAILED = "failed"
    SKIPPED = "skipped"
    USER_DENIED = "user_denied"
    UNKNOWN = "unknown"
    """It started, and whether it finished cannot be known."""

    @property
    def awaits_user(self) -> bool:
        """Whether the call waits for the user's word."""
        return self in {ToolExecutionStatus.AWAITING_CONFIDENCE, ToolExecutionStatus.AWAITING_APPROVAL}

    @property
    def is_final(self) -> bool:
        """Whether nothing more becomes of the call."""
        return not STATUSES[self]


Outcome = Literal["pending", "call", "none", "clarify", "describe", "miss"]
"""What a pass's last selection came to; a miss is a tool that was not on the palette, or none that would do."""

_S = ToolExecutionStatus

STATUSES: dict[ToolExecutionStatus, frozenset[ToolExecutionStatus]] = {
    # the review
    _S.PENDING: frozenset({_S.APPROVED, _S.AWAITING_CONFIDENCE, _S.AWAITING_APPROVAL, _S.SKIPPED}),
    # the user, unless a dry run fails; what has changed since the question was put is judged anew, and what may have
    # been run before and is not to be run again stays unknown
    _S.AWAITING_CONFIDENCE: frozenset({_S.APPROVED, _S.USER_DENIED, _S.SKIPPED, _S.FAILED, _S.PENDING}),
    _S.AWAITING_APPROVAL: frozenset({_S.APPROVED, _S.USER_DENIED, _S.SKIPPED, _S.FAILED, _S.PENDING, _S.UNKNOWN}),
    # the execution; a dry run ends skipped, and what was started by a process that ended in the middle is asked about
    _S.APPROVED: frozenset({_S.EXECUTED, _S.FAILED, _S.SKIPPED, _S.UNKNOWN, _S.AWAITING_APPROVAL}),
    _S.EXECUTED: frozenset(),
    _S.FAILED: frozenset(),
    _S.SKIPPED: frozenset(),
    _S.USER_DENIED: frozenset(),
    _S.UNKNOWN: frozenset(),
}
"""The statuses that may follow each."""

_SELECTED: frozenset[Outcome] = frozenset({"call", "none", "clarify", "describe", "miss"})

OUTCOMES: dict[Outcome, frozenset[Outcome]] = {
    "pending": _SELECTED,
    # another palette, and another selection
    "describe": _SELECTED,
    "miss": _SELECTED,
    # the user answers, or does not; with words instead of a decision, selection decides anew
    "clarify": frozenset({"pending", "none"}),
    "call": frozenset({"pending"}),
    "none": frozenset(),
}
"""The outcomes that may follow each within a pass."""
