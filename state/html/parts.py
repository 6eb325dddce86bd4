"""What the parts of a packet look like: pills, confidences, times, values."""

import json

from pydantic import JsonValue

from state.base import ConfidenceSource, TokenUsage
from state.context import RoutingContext
from state.html.markup import Html, element
from state.routing import Risk
from state.sections import PacketState
from state.transitions import ToolExecutionStatus

GATE = RoutingContext().confidence_threshold
"""Where the gate stands unless a run was told otherwise; the packet does not say."""

_SOURCES = {
    ConfidenceSource.MEASURED: "measured from the model's token probabilities",
    ConfidenceSource.STATED: "a number that the model stated",
    ConfidenceSource.RULE: "set by a rule",
}
_TONES: dict[str, str] = {
    ToolExecutionStatus.EXECUTED: "good",
    ToolExecutionStatus.APPROVED: "info",
    ToolExecutionStatus.AWAITING_CONFIDENCE: "warn",
    ToolExecutionStatus.AWAITING_APPROVAL: "warn",
    ToolExecutionStatus.UNKNOWN: "warn",
    ToolExecutionStatus.FAILED: "bad",
    ToolExecutionStatus.USER_DENIED: "bad",
    PacketState.COMPLETED: "good",
    PacketState.PROCESSING: "info",
    PacketState.AWAITING_USER: "warn",
    Risk.READ: "good",
    Risk.WRITE: "warn",
    Risk.EXECUTE: "bad",
}


def pill(word: ToolExecutionStatus | PacketState | Risk, note: str = "") -> Html:
    """Return a status or a risk in its colour."""
    return element("span", word.replace("_", " ") + note, kind=f"pill {_TONES.get(word, 'calm')}")


def confidence(value: float | None, source: ConfidenceSource | None, *, gated: bool = False) -> Html | None:
    """Return a confidence as a bar and a number, with the gate's mark where the gate looked at it."""
    if value is None:
        return None
    mark = element("i", kind="gate", style=f"left:{GATE:.0%}", title=f"the gate: {GATE}, unless it was set otherwise")
    bar = element("span", element("b", style=f"width:{value:.1%}"), mark if gated else None, kind="bar")
    stated = "~" if source is ConfidenceSource.STATED else ""
    number = element("span", f"{stated}{value:.2f}", kind="number")
    return element("span", bar, number, kind="confidence", title=_SOURCES[source] if source else "")


def duration(milliseconds: float) -> str:
    """Return a time as people write it."""
    if milliseconds < 1_000:
        return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def spent(usage: TokenUsage) -> str:
    """Return how many tokens went in and came out."""
    cached = f" ({usage.cached_tokens:,} known)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"


def value_text(value: JsonValue) -> str:
    """Return a value as one reads it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
