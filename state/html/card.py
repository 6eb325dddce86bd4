"""A packet at a glance."""

from functools import cache
from importlib.resources import files
from typing import Protocol

from state.base import TokenUsage
from state.html.calls import call
from state.html.journey import journey
from state.html.markup import Content, Html, element, excerpt, joined, name, stylesheet
from state.html.parts import duration, pill, spent
from state.routing import ToolRouting
from state.sections import Content as PacketContent
from state.sections import Context, Header, Intent, Metrics, Reasoning, Response, Status

REQUEST = 1_000
ANSWER = 4_000
CHIPS = 40
TIME = "%d %b %Y, %H:%M:%S %Z"


class Shown(Protocol):
    """What is shown of a packet."""

    header: Header
    intent: Intent
    context: Context
    content: PacketContent
    reasoning: Reasoning
    response: Response
    metrics: Metrics
    status: Status
    tool_routing: ToolRouting | None


def card(packet: Shown) -> str:
    """Return the packet as HTML that stands anywhere, light or dark, with its own styles."""
    return joined((styles(), body(packet))).source


def body(packet: Shown) -> Html:
    """Return the card without its styles."""
    log, routing = packet.reasoning.reflection_log, packet.tool_routing
    calls = [call(one) for one in (routing.all_calls if routing else ())]
    return element(
        "article",
        _header(packet),
        _section("Journey", journey(log)) if log else None,
        _section("Calls" if len(calls) > 1 else "Call", *calls) if calls else None,
        _section("Palette", *_palette(packet.context)) if packet.context.palette else None,
        _section("Answer", element("div", excerpt(packet.response.candidate, ANSWER), kind="answer"))
        if packet.response.candidate
        else None,
        _problems(packet.metrics),
        kind="packetgate card",
    )


@cache
def styles() -> Html:
    """Return the styles of a card and of what stands in it."""
    return stylesheet(files(__package__) / "parts.css", files(__package__) / "card.css")


def _facts(packet: Shown) -> Html:
    """Return what kind of turn it was and what it took, in a line."""
    took = sum(packet.metrics.latency_ms.values())
    tokens = sum(packet.metrics.token_usage.values(), start=TokenUsage())
    routing = packet.tool_routing
    told = [
        packet.intent.access.value if routing else "no tool needed" if packet.response.candidate else "",
        f"{routing.reinjection_count} of {routing.max_reinjections} reinjections" if routing else "",
        duration(took) if took else "",
        spent(tokens) if tokens != TokenUsage() else "",
    ]
    return element("p", " · ".join(filter(None, told)), kind="facts")


def _header(packet: Shown) -> Html:
    header = packet.header
    whose = f"session {name(header.session_id)}" if header.session_id else "no session"
    made = f"{whose}, {name(header.origin)}, {header.created_at:{TIME}}"
    line = element(
        "p", "packet ", element("code", header.packet_id[:8], title=name(header.packet_id)), f", {made}", kind="whose"
    )
    request = excerpt(packet.content.original_prompt, REQUEST) or "nothing asked yet"
    said = [element("p", excerpt(one, REQUEST), kind="said") for one in packet.content.clarifications]
    state = pill(packet.status.state)
    return element("header", state, line, element("h3", request, kind="request"), *said, _facts(packet))


def _section(title: str, *content: Content) -> Html:
    return element("section", element("h4", title), *content)


def _palette(context: Context) -> tuple[Content, ...]:
    chips = [
        element(
            "span",
            element("code", name(entry.tool_name)),
            element("small", f" {entry.reason}{'' if entry.shown == 'full' else ', in brief'}"),
            kind="chip",
        )
        for entry in context.palette[:CHIPS]
    ]
    more = len(context.palette) - len(chips)
    left_out = f"; {context.palette_left_out:,} left out" if context.palette_left_out else ""
    known = f"{len(context.palette):,} of {len(context.available_mcp_tools):,} tools, {context.palette_tokens:,} tokens"
    return (
        element("p", known, left_out, kind="facts"),
        element("div", *chips, f" and {more:,} more" if more else None, kind="chips"),
    )


def _problems(metrics: Metrics) -> Html | None:
    told = [element("li", f"{name(one.stage)}: {excerpt(one.message, REQUEST)}") for one in metrics.errors[:CHIPS]]
    if len(metrics.errors) > CHIPS:
        told.append(element("li", f"and {len(metrics.errors) - CHIPS:,} more"))
    if metrics.violations:
        told.append(element("li", f"tool markup cut out of the answer: {metrics.violations:,}"))
    return element("ul", *told, kind="problems") if told else None
