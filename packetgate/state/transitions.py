"""State machines of a call's status and of a selection's outcome."""

from enum import StrEnum
from typing import Literal


class ToolExecutionStatus(StrEnum):
    """Status of a call. Only `EXECUTED` means that the tool succeeded."""

    PENDING = "pending"
    AWAITING_CONFIDENCE = "awaiting_confidence"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    EXECUTED = "executed"
    FAILED = "failed"
    SKIPPED = "skipped"
    USER_DENIED = "user_denied"
    UNKNOWN = "unknown"
    """The call started; whether it finished is unknown."""

    @property
    def awaits_user(self) -> bool:
        """Whether the call waits for the user."""
        return self in {ToolExecutionStatus.AWAITING_CONFIDENCE, ToolExecutionStatus.AWAITING_APPROVAL}

    @property
    def is_final(self) -> bool:
        """Whether the status cannot change."""
        return not STATUSES[self]


Outcome = Literal["pending", "call", "none", "clarify", "describe", "miss"]
"""Outcome of a pass's last selection. A miss: the tool is not on the palette, or no tool on the palette fits."""

_S = ToolExecutionStatus

STATUSES: dict[ToolExecutionStatus, frozenset[ToolExecutionStatus]] = {
    # after the review
    _S.PENDING: frozenset({_S.APPROVED, _S.AWAITING_CONFIDENCE, _S.AWAITING_APPROVAL, _S.SKIPPED}),
    # after the user's answer or a failed dry run; pending: the call or its tool has changed since the question
    _S.AWAITING_CONFIDENCE: frozenset({_S.APPROVED, _S.USER_DENIED, _S.SKIPPED, _S.FAILED, _S.PENDING, _S.UNKNOWN}),
    _S.AWAITING_APPROVAL: frozenset({_S.APPROVED, _S.USER_DENIED, _S.SKIPPED, _S.FAILED, _S.PENDING, _S.UNKNOWN}),
    # after the execution; skipped: a dry run; awaiting approval: an earlier run has no recorded end
    _S.APPROVED: frozenset({_S.EXECUTED, _S.FAILED, _S.SKIPPED, _S.UNKNOWN, _S.AWAITING_APPROVAL}),
    **dict.fromkeys((_S.EXECUTED, _S.FAILED, _S.SKIPPED, _S.USER_DENIED, _S.UNKNOWN), frozenset[_S]()),
}
"""Maps each status to the statuses that may follow it."""

_SELECTED: frozenset[Outcome] = frozenset({"call", "none", "clarify", "describe", "miss"})

OUTCOMES: dict[Outcome, frozenset[Outcome]] = {
    "pending": _SELECTED,
    "describe": _SELECTED,
    "miss": _SELECTED,
    "clarify": frozenset({"pending", "none"}),
    "call": frozenset({"pending"}),
    "none": frozenset(),
}
"""Maps each outcome to the outcomes that may follow it within a pass."""
