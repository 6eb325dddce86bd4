"""A tool router: every request is a typed packet that passes a reviewed gate before a tool may run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packetgate.middleware import PacketgateMiddleware
    from packetgate.router import Question, Router, Turn, create_router, reads

__all__ = ["PacketgateMiddleware", "Question", "Router", "Turn", "create_router", "reads"]


def __getattr__(name: str) -> Any:
    """Load the router, or the middleware, when it is first asked for: the command line does without."""
    if name in __all__:
        room = "middleware" if name == "PacketgateMiddleware" else "router"
        return getattr(import_module(f"packetgate.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
