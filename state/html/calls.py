"""A tool call: what it is, where its arguments come from, how it was judged, what became of it."""

from state.html.markup import Html, element, excerpt, joined, name
from state.html.parts import confidence, duration, pill, value_text
from state.routing import ToolCall

BRIEF = 300
"""Characters of a value or a result in a card."""
ARGUMENTS = 100


def call(one: ToolCall, most: int = BRIEF) -> Html:
    """Return the call, `most` characters of each value."""
    head = element("div", element("code", name(one.tool_name), kind="tool"), pill(one.risk), _status(one), kind="head")
    return element("div", head, arguments(one, most), judged(one, most), result(one, most), kind="call")


def arguments(one: ToolCall, most: int) -> Html | None:
    """Return the arguments with where each came from; None where there are none."""
    if not one.params:
        return None
    rows = [
        element(
            "tr",
            element("th", name(key), scope="row"),
            element("td", element("code", excerpt(value_text(value), most))),
            element("td", _came_from(one.provenance.get(key, "")), kind="from"),
        )
        for key, value in list(one.params.items())[:ARGUMENTS]
    ]
    more = len(one.params) - len(rows)
    rest = element("tr", element("th", "…", scope="row"), element("td", f"and {more:,} more")) if more else None
    return element("table", element("tbody", *rows, rest), kind="arguments")


def result(one: ToolCall, most: int) -> Html | None:
    """Return what the tool answered, or the error it ended in."""
    if one.result is None:
        return None
    error = element("pre", excerpt(one.result.error, most), kind="error") if one.result.error else None
    output = element("pre", excerpt(one.result.output, most)) if one.result.output.strip() else None
    return joined((error, output))


def _status(one: ToolCall) -> Html:
    done = one.result
    took = f" in {duration(done.execution_time_ms)}" if done and done.execution_time_ms else ""
    return pill(one.status, f"{' (dry run)' if done and done.dry_run else ''}{took}")


def _came_from(provenance: str) -> str:
    return f"from {name(provenance.removeprefix('tool:'))}" if provenance.startswith("tool:") else name(provenance)


def judged(one: ToolCall, most: int) -> Html | None:
    """Return who judged the call, how sure they were, and why; None where nobody has."""
    judged = (
        ("selected", one.selection_confidence, one.selection_confidence_source, one.selection_reasoning, False),
        ("reviewed", one.review_confidence, one.review_confidence_source, one.review_reasoning, True),
    )
    rows = [
        element(
            "tr",
            element("th", what, scope="row"),
            element("td", confidence(value, source, gated=gated)),
            element("td", excerpt(why, most)),
        )
        for what, value, source, why, gated in judged
        if value or why
    ]
    return element("table", element("tbody", *rows), kind="judged") if rows else None
