"""The past calls that a person decided, read from the journal."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from packetgate.gate.journal import CALL_REVIEWED
from packetgate.graph.journal import DatabaseJournal
from packetgate.state.base import now
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.calibration import AnsweredCall

_DECIDED = {f"call_{outcome}": outcome for outcome in ApprovalOutcome}
_RIGHT = {
    ApprovalOutcome.APPROVED: True,
    **dict.fromkeys((ApprovalOutcome.DENIED, ApprovalOutcome.EDITED, ApprovalOutcome.ANSWERED), False),
}
"""Whether the call was right, by the person's decision; any other decision says nothing about the call."""


async def answered_calls(journal: DatabaseJournal, days: int) -> list[AnsweredCall]:
    """Return the calls of the last `days` that were reviewed and that a person decided, oldest first."""
    reviews: dict[tuple[str, str], tuple[str, float]] = {}
    answers: dict[tuple[str, str], ApprovalOutcome] = {}
    for row in await journal.event_entries(CALL_REVIEWED, *_DECIDED, since=now() - timedelta(days=days)):
        key, detail = (row.entry.packet_id, row.entry.call_id), dict[str, Any](row.entry.detail)
        with suppress(LookupError):  # a forgotten session
            if row.entry.event != CALL_REVIEWED:
                if "params" in detail and not detail["by"]:
                    answers[key] = _DECIDED[row.entry.event]
            elif detail["stated"] is not None:
                reviews[key] = detail["kind"], detail["stated"]
    return [
        AnsweredCall(*review, _RIGHT[answers[key]]) for key, review in reviews.items() if answers.get(key) in _RIGHT
    ]
