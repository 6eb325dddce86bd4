"""What was judged, and why."""

from dataclasses import dataclass

from packetgate.state.routing import Risk


@dataclass(frozen=True)
class Judgement:
    """What a tool or a call may do, and why that is thought."""

    risk: Risk
    open_world: bool = False
    """Whether it reaches out of the user's own machine and servers."""
    why: tuple[str, ...] = ()
    """Reasons in words, the strongest first."""
    unvouched: bool = False
    """Whether it looks like one that only reads, and counts as more because nothing vouches for that."""

    @property
    def looks(self) -> Risk:
        """What it looks like, by what was learned too: for what a request is about, never for what may run."""
        return Risk.READ if self.unvouched else self.risk
