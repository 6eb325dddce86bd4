"""The journey: what every stage decided, how sure it was, how long it took."""

from state.html.markup import Html, element, excerpt, name
from state.html.parts import confidence, duration
from state.sections import Reflection

SUMMARY = 300
GATED = "review_selection"
"""The stage whose confidence the gate looks at."""


def journey(log: tuple[Reflection, ...]) -> Html:
    """Return the log as a table whose first column is a line of stations."""
    names = [element("th", title, scope="col") for title in ("stage", "decision", "confidence", "time")]
    rows = [
        element(
            "tr",
            element("th", element("i", kind="dot", title=_decider(entry)), name(entry.step), scope="row", kind="stage"),
            element("td", excerpt(entry.summary, SUMMARY), _stood_in(entry), kind="decision"),
            element("td", _sure(entry), kind="sure"),
            element("td", duration(entry.latency_ms), kind="time"),
            kind=("fallback" if entry.is_fallback else entry.decided_by) or "rule",
        )
        for entry in log
    ]
    return element("table", element("thead", element("tr", *names)), element("tbody", *rows), kind="journey")


def _sure(entry: Reflection) -> Html | None:
    return confidence(entry.confidence, entry.confidence_source, gated=entry.step == GATED)


def _decider(entry: Reflection) -> str:
    return f"decided by {entry.decided_by}" if entry.decided_by else ""


def _stood_in(entry: Reflection) -> Html | None:
    return element("em", " reflexes stood in for the model") if entry.is_fallback else None
