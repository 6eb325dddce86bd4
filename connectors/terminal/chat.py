"""`packetgate chat`: turn after turn on one session."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

from connectors.asking import Say
from connectors.opening import open_sessions
from connectors.terminal import rendering
from connectors.terminal.reading import InterruptedReadError, reader
from connectors.terminal.turns import Terminal
from graph.settings import Settings
from state.context import RoutingContext
from state.errors import InputError
from state.request import TurnRequest

HELP = (
    "/quit ends, /journey shows or hides each packet's journey, /session says where to come back to; "
    "Ctrl-C stops a turn."
)


async def chat(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Read words until the end, each put as `request`; what goes wrong with one leaves the session as it was."""
    read = reader(settings.home / "history")
    async with open_sessions(settings) as sessions:
        terminal = Terminal(sessions, session, context, interactive=True, read=read, show_journey=False)
        out = rendering.console()
        out.print(f"session {session}; /help for help")
        pending = (await sessions.state(session)).question
        if pending is not None:
            await _guarded(terminal.ask_again(pending))
        while True:
            try:
                line = (await read("you> ")).strip()
            except InterruptedReadError:
                continue
            except EOFError:
                return 0
            match line:
                case "":
                    continue
                case "/quit" | "/exit":
                    return 0
                case "/help":
                    out.print(HELP)
                case "/session":
                    out.print(f"packetgate chat --session {session}")
                case "/journey":
                    terminal.show_journey = not terminal.show_journey
                case command if command.startswith("/"):
                    out.print(f"there is no {command.split()[0]}: {HELP}")
                case words:
                    await _guarded(terminal.run(Say(words, request)))


async def _guarded(turn: Coroutine[Any, Any, int]) -> None:
    """Run a turn that Ctrl-C may stop and bad input may end, without ending the session."""
    running = asyncio.ensure_future(turn)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, running.cancel)
    try:
        await running
    except InputError as error:
        rendering.console(stderr=True).print(f"packetgate: {error}")
    except (asyncio.CancelledError, InterruptedReadError):
        rendering.console().print("stopped; the session is as it was before the last stage")
    finally:
        loop.remove_signal_handler(signal.SIGINT)
