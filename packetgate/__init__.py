"""A tool router: each request is a typed packet, and each tool call passes a reviewed gate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packetgate.connectors.sessions import AnswerPiece
    from packetgate.deciders.protocols import Answer, Deciders, IntentDecision, Review, SelectedCall, Selection
    from packetgate.decisions import GateDecisionModel
    from packetgate.gate.confidence import CallReview
    from packetgate.gate.facts import Facts
    from packetgate.middleware import PacketgateMiddleware
    from packetgate.plugins import Plugin
    from packetgate.ranking.bm25 import ScoredRequest
    from packetgate.ranking.ranking import Ranker
    from packetgate.router import Question, Router, Turn, create_router
    from packetgate.state.context import RoutingContext
    from packetgate.state.errors import InputError, ModelError, PacketgateError, SessionError
    from packetgate.state.events import StageFinished, StageStarted, StageStopped
    from packetgate.state.packet import CognitionPacket
    from packetgate.state.request import TurnRequest
    from packetgate.state.routing import Risk, ToolCall, Verdict
    from packetgate.tools.catalogue.catalogue import Catalogue
    from packetgate.tools.spec.tool_spec import ToolSpec
    from packetgate.toolsets.servers.functions import reads

__all__ = [
    "Answer",
    "AnswerPiece",
    "CallReview",
    "Catalogue",
    "CognitionPacket",
    "Deciders",
    "Facts",
    "GateDecisionModel",
    "InputError",
    "IntentDecision",
    "ModelError",
    "PacketgateError",
    "PacketgateMiddleware",
    "Plugin",
    "Question",
    "Ranker",
    "Review",
    "Risk",
    "Router",
    "RoutingContext",
    "ScoredRequest",
    "SelectedCall",
    "Selection",
    "SessionError",
    "StageFinished",
    "StageStarted",
    "StageStopped",
    "ToolCall",
    "ToolSpec",
    "Turn",
    "TurnRequest",
    "Verdict",
    "create_router",
    "reads",
]

_MODULES = {
    "Answer": "deciders.protocols",
    "AnswerPiece": "connectors.sessions",
    "CallReview": "gate.confidence",
    "Catalogue": "tools.catalogue.catalogue",
    "CognitionPacket": "state.packet",
    "Deciders": "deciders.protocols",
    "Facts": "gate.facts",
    "GateDecisionModel": "decisions",
    "InputError": "state.errors",
    "IntentDecision": "deciders.protocols",
    "ModelError": "state.errors",
    "PacketgateError": "state.errors",
    "PacketgateMiddleware": "middleware",
    "Plugin": "plugins",
    "Ranker": "ranking.ranking",
    "Review": "deciders.protocols",
    "Risk": "state.routing",
    "RoutingContext": "state.context",
    "ScoredRequest": "ranking.bm25",
    "SelectedCall": "deciders.protocols",
    "Selection": "deciders.protocols",
    "SessionError": "state.errors",
    "StageFinished": "state.events",
    "StageStarted": "state.events",
    "StageStopped": "state.events",
    "ToolCall": "state.routing",
    "ToolSpec": "tools.spec.tool_spec",
    "TurnRequest": "state.request",
    "Verdict": "state.routing",
}


def __getattr__(name: str) -> Any:
    """Import exports on first use: the command line needs few of them."""
    if name in __all__:
        return getattr(import_module(f"packetgate.{_MODULES.get(name, 'router')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
