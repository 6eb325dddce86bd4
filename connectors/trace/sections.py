"""What the page tells in full of a turn's calls and of its palette."""

from datetime import datetime

from state.html.calls import ARGUMENTS, arguments, judged, result
from state.html.markup import Content, Html, element, excerpt, name
from state.html.parts import pill, value_text
from state.packet import CognitionPacket
from state.routing import ToolCall
from state.sections import Approval, AuditEntry

WHOLE = 50_000
"""Characters of one value or one result."""


def calls(packet: CognitionPacket) -> Html | None:
    """Return every call: its arguments and where they come from, its judges, its trail, its result."""
    routing = packet.tool_routing
    if routing is None or not routing.all_calls:
        return None
    return element("section", element("h2", "Calls"), *(_call(one, packet) for one in routing.all_calls))


def palette(packet: CognitionPacket) -> Html | None:
    """Return what the turn's model could choose from, and why; of several passes the last one's."""
    context = packet.context
    if not context.palette:
        return None
    titles = [element("th", title, scope="col") for title in ("tool", "risk", "because", "shown", "score")]
    rows = [
        element(
            "tr",
            element("th", element("code", name(entry.tool_name)), scope="row"),
            element("td", pill(entry.risk)),
            element("td", entry.reason),
            element("td", "in full" if entry.shown == "full" else "in brief"),
            element("td", f"{entry.score:.2f}" if entry.score else "", kind="number"),
        )
        for entry in context.palette
    ]
    known, chosen = len(context.available_mcp_tools), len(context.palette)
    told = f"{chosen:,} of {known:,} tools, {context.palette_tokens:,} tokens of text; {known - chosen:,} not offered"
    kept_out = f", {context.palette_left_out:,} of them for their access or subject" if context.palette_left_out else ""
    return element(
        "section",
        element("h2", "Palette"),
        element("p", told, kept_out, ".", kind="quiet"),
        element("table", element("thead", element("tr", *titles)), element("tbody", *rows), kind="grid"),
        *_misses(packet),
    )


def moment(at: datetime) -> Html:
    """Return a time of day, to the millisecond."""
    return element("time", f"{at:%H:%M:%S}.{at.microsecond // 1000:03}", datetime=at.isoformat())


def trail(entries: list[AuditEntry]) -> Html | None:
    """Return entries of the audit trail."""
    if not entries:
        return None
    rows = [
        element(
            "li", moment(one.at), " ", element("strong", one.event.replace("_", " ")), f" {excerpt(one.detail, 500)}"
        )
        for one in entries
    ]
    return element("ul", *rows, kind="trail")


def _call(one: ToolCall, packet: CognitionPacket) -> Html:
    governance = packet.governance
    approvals = [_approval(said) for said in governance.approvals if said.call_id == one.call_id]
    audit = trail([entry for entry in governance.audit if entry.call_id == one.call_id])
    dry = " (dry run)" if one.result and one.result.dry_run else ""
    head = element("summary", element("code", name(one.tool_name), kind="tool"), pill(one.risk), pill(one.status, dry))
    structured = one.result.structured if one.result else None
    shown: list[Content] = [
        *_titled("Arguments", arguments(one, WHOLE) or element("p", "none", kind="quiet")),
        *_titled("Judged", judged(one, WHOLE) or element("p", "by nobody", kind="quiet")),
        *(_titled("Asked the user", *approvals) if approvals else ()),
        *(_titled("Trail", audit) if audit else ()),
        *_titled("Result", result(one, WHOLE) or element("p", "none: it did not run", kind="quiet")),
        *(_titled("Structured result", element("pre", excerpt(value_text(structured), WHOLE))) if structured else ()),
    ]
    return element("details", head, *shown, kind="call", open="open")


def _approval(said: Approval) -> Html:
    changed = element("pre", excerpt(value_text(dict(said.params)), WHOLE)) if said.outcome == "edited" else None
    comment = f": {excerpt(said.comment, 500)}" if said.comment else ""
    return element("div", moment(said.at), " ", element("strong", said.outcome.value), comment, changed)


def _misses(packet: CognitionPacket) -> list[Html]:
    routing = packet.tool_routing
    if routing is None:
        return []
    lists = {
        "Selected, but not on the palette": routing.missed_tools,
        "Near to what was wanted": routing.suggestions,
        "Could also have served": tuple(f"{one.tool_name}: {one.reason}" for one in routing.alternative_tools),
        "Corrected": tuple(f"{one.tool_name}: {one.message}" for one in routing.corrections),
    }
    return [
        element("p", f"{title}: {excerpt('; '.join(words[:ARGUMENTS]), 2_000)}", kind="quiet")
        for title, words in lists.items()
        if words
    ]


def _titled(title: str, *content: Content) -> tuple[Content, ...]:
    return element("h3", title), *content
