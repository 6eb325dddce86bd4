"""A packet at a glance."""

from functools import cache
from typing import Protocol

from jinja2 import Environment

from state.base import TokenUsage
from state.html.rendering import duration, environment, spent
from state.routing import ToolRouting
from state.sections import Content, Context, Header, Intent, Metrics, Reasoning, Response, Status


class Shown(Protocol):
    """What is shown of a packet."""

    header: Header
    intent: Intent
    context: Context
    content: Content
    reasoning: Reasoning
    response: Response
    metrics: Metrics
    status: Status
    tool_routing: ToolRouting | None


def card(packet: Shown) -> str:
    """Return the packet as HTML that stands anywhere, light or dark, with its own styles. Blocking."""
    template = '{% import "card.html" as card %}{{ card.styles() }}{{ card.body(packet, facts) }}'
    return _templates().from_string(template).render(packet=packet, facts=facts(packet))


def facts(packet: Shown) -> list[str]:
    """Return what kind of turn it was and what it took."""
    took = sum(packet.metrics.latency_ms.values())
    tokens = sum(packet.metrics.token_usage.values(), start=TokenUsage())
    routing = packet.tool_routing
    told = [
        packet.intent.access.value if routing else "no tool needed" if packet.response.candidate else "",
        f"{routing.reinjection_count} of {routing.max_reinjections} reinjections" if routing else "",
        duration(took) if took else "",
        spent(tokens) if tokens != TokenUsage() else "",
    ]
    return [one for one in told if one]


@cache
def _templates() -> Environment:
    return environment()
