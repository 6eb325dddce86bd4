"""Hints for switching tools on, and the slash commands of the chat."""

from packetgate.state.base import Section
from packetgate.state.routing import Risk

PROXY = "proxy"
"""Origin of calls that came through the proxy."""
TERMINAL = "terminal"
"""Origin of requests of the commands."""


BY_COMMAND = {
    "model": "`packetgate init` finds one, or name one with --lite and --prime",
    "tools": "`packetgate doctor` shows why; servers are configured in `mcp.json`",
}
"""How the user of a command names a model, and connects tools."""


class SwitchHints(Section):
    """How a user switches on writes and commands, reads a long result, names a model, and connects tools."""

    write: str = "`allow_write_tools` in the settings switches them on"
    execute: str = "`allow_execute_tools` in the settings switches them on"
    rest: str = "ask for a part of it, such as its first 100 lines"
    model: str = "`create_router(model=...)` takes one"
    tools: str = "`create_router(tools=[...])` takes functions, and files that name servers"

    def for_risk(self, risk: Risk) -> str:
        """Return the hint for a risk; empty for reads."""
        return {Risk.WRITE: self.write, Risk.EXECUTE: self.execute}.get(risk, "")

    @classmethod
    def from_commands(cls, write: str, execute: str, rest: str) -> "SwitchHints":
        """Return the hints of a connector with these two commands."""
        on = "`{}` switches them on"
        return cls(write=on.format(write), execute=on.format(execute), rest=rest, **BY_COMMAND)


SLASH_COMMANDS = frozenset("/attach /commands /continue /help /quit /reset /rest /trace /why /writes".split())
"""Slash commands of `packetgate chat`: never an answer to a question, in any connector."""


def is_slash_command(words: str) -> bool:
    """Whether words are a slash command, with or without arguments."""
    return words.strip().partition(" ")[0].casefold() in SLASH_COMMANDS
