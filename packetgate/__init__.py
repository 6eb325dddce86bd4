"""A tool router: each request is a typed packet, and each tool call passes a reviewed gate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packetgate.connectors.sessions import AnswerPiece
    from packetgate.deciders.protocols import Review
    from packetgate.decisions import GateDecisionModel
    from packetgate.gate.confidence import CallReview
    from packetgate.middleware import PacketgateMiddleware
    from packetgate.router import Question, Router, Turn, create_router
    from packetgate.state.context import RoutingContext
    from packetgate.state.errors import PacketgateError
    from packetgate.state.events import StageFinished, StageStarted, StageStopped
    from packetgate.state.packet import CognitionPacket
    from packetgate.toolsets.servers.functions import reads

__all__ = [
    "AnswerPiece",
    "CallReview",
    "CognitionPacket",
    "GateDecisionModel",
    "PacketgateError",
    "PacketgateMiddleware",
    "Question",
    "Review",
    "Router",
    "RoutingContext",
    "StageFinished",
    "StageStarted",
    "StageStopped",
    "Turn",
    "create_router",
    "reads",
]

_MODULES = {
    "AnswerPiece": "connectors.sessions",
    "CallReview": "deciders.protocols",
    "CognitionPacket": "state.packet",
    "GateDecisionModel": "decisions",
    "PacketgateError": "state.errors",
    "PacketgateMiddleware": "middleware",
    "Review": "deciders.protocols",
    "RoutingContext": "state.context",
    "StageFinished": "state.events",
    "StageStarted": "state.events",
    "StageStopped": "state.events",
}


def __getattr__(name: str) -> Any:
    """Import exports on first use: the command line needs few of them."""
    if name in __all__:
        return getattr(import_module(f"packetgate.{_MODULES.get(name, 'router')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
