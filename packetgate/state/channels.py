"""Hints for switching tools on, and the slash commands of the chat."""

from packetgate.state.base import Section
from packetgate.state.routing import Risk

PROXY = "proxy"
"""Origin of calls that came through the proxy."""


class SwitchHints(Section):
    """How a connector's user switches on writes and commands, and reads the rest of a long result."""

    write: str = "`allow_write_tools` switches them on"
    execute: str = "`allow_execute_tools` switches them on"
    rest: str = "ask for a part of it, such as its lines 101 to 200"

    def for_risk(self, risk: Risk) -> str:
        """Return the hint for a risk; empty for reads."""
        return {Risk.WRITE: self.write, Risk.EXECUTE: self.execute}.get(risk, "")

    @classmethod
    def from_commands(cls, write: str, execute: str, rest: str) -> "SwitchHints":
        """Return the hints of a connector with these two commands."""
        return cls(write=f"`{write}` switches them on", execute=f"`{execute}` switches them on", rest=rest)


SLASH_COMMANDS = frozenset("/attach /commands /continue /help /quit /reset /rest /why /writes".split())
"""Slash commands of `packetgate chat`: never an answer to a question, in any connector."""


def is_slash_command(words: str) -> bool:
    """Whether words are a slash command, with or without arguments."""
    return words.strip().partition(" ")[0].casefold() in SLASH_COMMANDS
