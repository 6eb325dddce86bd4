"""What was judged, and why."""

from dataclasses import dataclass

from state.routing import Risk


@dataclass(frozen=True)
class Judgement:
    """What a tool or a call may do, and why that is thought."""

    risk: Risk
    open_world: bool = False
    """Whether it reaches out of the user's own machine and servers."""
    why: tuple[str, ...] = ()
    """Reasons in words, the strongest first."""
