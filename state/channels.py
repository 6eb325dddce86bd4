"""What a channel tells its users of itself."""

from state.base import Section
from state.routing import Risk


class WayOut(Section):
    """How whoever speaks through a channel has tools of a risk switched on; each a clause."""

    write: str = "`allow_write_tools` switches them on"
    execute: str = "`allow_execute_tools` switches them on"

    def of(self, risk: Risk) -> str:
        """Return how tools of a risk are switched on; empty for reads, which always are."""
        return {Risk.WRITE: self.write, Risk.EXECUTE: self.execute}.get(risk, "")

    @classmethod
    def by(cls, write: str, execute: str) -> "WayOut":
        """Return the way out of a channel where these are typed."""
        return cls(write=f"`{write}` switches them on", execute=f"`{execute}` switches them on")
