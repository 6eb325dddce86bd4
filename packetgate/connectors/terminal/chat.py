"""`packetgate chat`: turn after turn on one session."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.asking import Say
from packetgate.connectors.interrupts import on_ctrl_c
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.running import InterruptedReadError
from packetgate.connectors.terminal.conversation import Conversation
from packetgate.connectors.terminal.reading import at_a_terminal, composer, reader
from packetgate.connectors.terminal.shown import Shown
from packetgate.connectors.terminal.slash import completions, is_command, obey
from packetgate.connectors.terminal.turns import WAITING, Terminal
from packetgate.graph.kept import kept_in
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import printable
from packetgate.state.request import TurnRequest

PROMPT = "you> "
STOPPED = "stopped: /continue goes on with it, or say something else"
LEFT_OPEN = "left unanswered: /continue asks again, or say something else"
LEAVING = "/quit or Ctrl-D leaves"


async def chat(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Read words until the end, each put as `request`; what goes wrong with one leaves the session as it was."""
    async with open_sessions(settings) as sessions:
        terminal = Terminal(
            *(sessions, session, context, Shown(settings), kept_in(settings)),
            interactive=True,
            read=reader(),
            show_journey=False,
        )
        sessions.start_servers()
        talk = Conversation(terminal, settings)
        read = composer(settings.home / "history", completions)
        await _guarded(talk.greet())
        while not talk.is_over:
            try:
                words = (await read(terminal.prompt if terminal.pending else PROMPT)).strip()
            except (InterruptedReadError, EOFError) as end:
                if terminal.pending is None and isinstance(end, EOFError):
                    break
                talk.say(LEFT_OPEN if terminal.pending else LEAVING)
                terminal.pending = None
                continue
            if is_command(words, is_asked=terminal.pending is not None):
                await _guarded(obey(talk, words))
            elif words:
                await _guarded(_say(talk, words, request))
        left = await sessions.state(terminal.session)
        return WAITING if left.question is not None and not at_a_terminal() else 0


async def _say(talk: Conversation, words: str, request: TurnRequest) -> None:
    """Let words go to the question that was put, or begin a turn; what is attached goes with a new request alone."""
    terminal = talk.terminal
    if terminal.pending is None or talk.attached:
        said = Say(words, request, terminal.shown.of(terminal.session), files=tuple(talk.attached))
        talk.attached.clear()
        terminal.pending = None
        await terminal.step(said)
    elif reply := await terminal.heard(words):
        await terminal.step(reply)


async def _guarded(turn: Coroutine[Any, Any, object]) -> None:
    """Run a turn that Ctrl-C may stop and bad input may end, without ending the session."""
    running, loop = asyncio.ensure_future(turn), asyncio.get_running_loop()
    out = rendering.console()
    with on_ctrl_c(lambda: loop.call_soon_threadsafe(running.cancel)):
        try:
            await running
        except PacketgateError as error:
            sys.stdout.flush()
            line = " ".join(printable(str(error)).split())
            rendering.console(stderr=True).print(Text(f"packetgate: {line}", style="red"), soft_wrap=True)
        except asyncio.CancelledError:
            out.print(STOPPED, style="dim")
        except (InterruptedReadError, EOFError):
            out.print(LEFT_OPEN, style="dim")
