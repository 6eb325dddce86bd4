"""What a channel tells its users of itself, and what users tell a channel."""

from packetgate.state.base import Section
from packetgate.state.routing import Risk

PROXY = "proxy"
"""The origin of calls that came through the proxy."""


class WayOut(Section):
    """How whoever speaks through a channel has tools of a risk switched on; each a clause."""

    write: str = "`allow_write_tools` switches them on"
    execute: str = "`allow_execute_tools` switches them on"
    rest: str = "ask for a part of it, such as its lines 101 to 200"
    """How the rest is seen of what is too long for an answer."""

    def of(self, risk: Risk) -> str:
        """Return how tools of a risk are switched on; empty for reads, which always are."""
        return {Risk.WRITE: self.write, Risk.EXECUTE: self.execute}.get(risk, "")

    @classmethod
    def by(cls, write: str, execute: str, rest: str) -> "WayOut":
        """Return the way out of a channel where the first two are typed."""
        return cls(write=f"`{write}` switches them on", execute=f"`{execute}` switches them on", rest=rest)


COMMANDS = frozenset(
    "/attach /commands /continue /exit /help /journey /model /quit /reset /rest /save /session /tools /why"
    " /writes".split()
)
"""The slash commands of `packetgate chat`: what is one of these is nobody's answer, wherever it is said."""


def is_command_word(words: str) -> bool:
    """Whether words are one of the commands, with what it takes."""
    return words.strip().partition(" ")[0].casefold() in COMMANDS
