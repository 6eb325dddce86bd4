"""What `packetgate chat` keeps between two turns, and what its slash commands work on."""

from dataclasses import dataclass, field

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.asking import Continue
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.turns import Terminal
from packetgate.graph.settings import Settings
from packetgate.state.errors import SessionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import printable
from packetgate.tools.attached.parts import Part


@dataclass
class Conversation:
    """A conversation at a terminal."""

    terminal: Terminal
    settings: Settings
    is_over: bool = False
    attached: list[Part] = field(default_factory=list)
    """What goes with the next words."""

    @property
    def sessions(self) -> Sessions:
        """Where conversations are kept."""
        return self.terminal.sessions

    async def packet(self) -> CognitionPacket:
        """Return the last turn's packet.

        Raises:
            SessionError: there has been no turn.
        """
        packet = (await self.sessions.state(self.terminal.session)).packet
        if not packet.content.original_prompt:
            raise SessionError(f"nothing has been asked in session {self.terminal.session!r} yet")
        return packet

    async def resume(self) -> bool:
        """Put the pending question again, or go on with a turn that was stopped; return whether there was any."""
        state = await self.sessions.state(self.terminal.session)
        if state.question is not None:
            await self.terminal.put(state.question)
        elif state.is_unfinished:
            await self.terminal.step(Continue())
        return state.question is not None or state.is_unfinished

    async def greet(self) -> None:
        """Say where one is, and put the question that waits there."""
        state = await self.sessions.state(self.terminal.session)
        self.say(f"session {self.terminal.session}; /help for help")
        if state.question is not None:
            await self.terminal.put(state.question)
        elif state.is_unfinished:
            self.say("its last turn was stopped before its end: /continue goes on with it")

    def say(self, text: str) -> None:
        """Print something that is no answer."""
        rendering.console().print(Text(printable(text), style="dim"))
