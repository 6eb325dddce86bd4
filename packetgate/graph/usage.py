"""Past calls, read from the journal: those that a person decided, and those that were proposed."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from packetgate.gate.journal import CALL_REVIEWED
from packetgate.graph.journal import DatabaseJournal
from packetgate.state.base import now
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.calibration import AnsweredCall
from packetgate.tools.policy.trial import ProposedCall

_DECIDED = {f"call_{outcome}": outcome for outcome in ApprovalOutcome}
_RIGHT = {
    ApprovalOutcome.APPROVED: True,
    **dict.fromkeys((ApprovalOutcome.DENIED, ApprovalOutcome.EDITED, ApprovalOutcome.ANSWERED), False),
}
"""Whether the call was right, by the person's decision; any other decision says nothing of the call."""


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


async def proposed_calls(journal: DatabaseJournal, days: int) -> list[ProposedCall]:
    """Return the calls that were proposed in the last `days`, oldest first."""
    rows = await journal.event_entries("turn_opened", "call_proposed", since=now() - timedelta(days=days))
    channels = {row.entry.packet_id: str(row.entry.detail["channel"]) for row in rows if "channel" in row.entry.detail}
    return [
        ProposedCall(row.at, str(row.entry.detail["tool_name"]), params, channels.get(row.entry.packet_id, "unknown"))
        for row in rows
        if row.entry.event == "call_proposed"
        if isinstance(params := row.entry.detail.get("params"), dict)
    ]
