"""A turn that waits for the user while they ask for something else."""

from packetgate.state.base import Section
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Content, Context, Governance, Header, Intent, Metrics, Reasoning, Response


class Parked(Section):
    """The sections of a packet whose question is open."""

    header: Header
    intent: Intent
    context: Context
    content: Content
    reasoning: Reasoning
    response: Response
    governance: Governance
    metrics: Metrics
    tool_routing: ToolRouting | None
