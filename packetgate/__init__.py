"""A tool router: every request is a typed packet that passes a reviewed gate before a tool may run."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packetgate.router import Question, Router, Turn, create_router, reads

__all__ = ["Question", "Router", "Turn", "create_router", "reads"]


def __getattr__(name: str) -> Any:
    """Load the router when it is first asked for: the command line does without."""
    if name in __all__:
        from packetgate import router

        return getattr(router, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
