"""`packetgate chat`: turn after turn on one session."""

import asyncio
import sys
from collections.abc import Callable

from connectors.terminal import rendering
from connectors.terminal.turns import Terminal
from connectors.turn import Reply, Say, pending_question
from graph.composition import open_app
from graph.settings import Settings
from state.context import RoutingContext
from state.errors import InputError
from state.request import TurnRequest

HELP = (
    "/quit ends, /journey shows or hides each packet's journey, /session says where to come back to; "
    "Ctrl-C stops a turn."
)


async def chat(settings: Callable[[], Settings], session: str, context: RoutingContext) -> int:
    """Read requests until the end; what goes wrong with one leaves the session as it was."""
    made = settings()
    reader = _reader(made)
    async with open_app(made) as app:
        terminal = Terminal(app.graph, session, context, interactive=True, read=reader, show_journey=False)
        out = rendering.console()
        out.print(f"session {session}; /help for help")
        if (
            pending := pending_question(await app.graph.aget_state({"configurable": {"thread_id": session}}))
        ) is not None:
            out.print(rendering.question(pending))
            await _guarded(terminal, Reply(await asyncio.to_thread(reader, "> ")))
        while True:
            try:
                line = await asyncio.to_thread(reader, "you> ")
            except (EOFError, KeyboardInterrupt):
                return 0
            match line.strip():
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
                case request:
                    await _guarded(terminal, Say(request, TurnRequest(origin="terminal")))


async def _guarded(terminal: Terminal, turn: Say | Reply) -> None:
    """Run a turn that Ctrl-C may stop and bad input may end, without ending the session."""
    running = asyncio.ensure_future(terminal.run(turn))
    try:
        await running
    except InputError as error:
        rendering.console(stderr=True).print(f"packetgate: {error}")
    except (asyncio.CancelledError, KeyboardInterrupt):
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        rendering.console().print("stopped; the session is as it was before the last stage")


def _reader(settings: Settings) -> Callable[[str], str]:
    """Return what reads a line: with editing and history at a terminal, plainly from a pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return input
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    settings.home.mkdir(parents=True, exist_ok=True)
    prompt: PromptSession[str] = PromptSession(history=FileHistory(str(settings.home / "history")))
    return prompt.prompt
