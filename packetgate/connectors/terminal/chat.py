"""`packetgate chat`: turn after turn on one session, by hand or a line at a time with `--json`."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.process import on_ctrl_c
from packetgate.connectors.running import InterruptedReadError
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.last_question import LastQuestion
from packetgate.connectors.terminal.reading import at_a_terminal, composer, read_pipe, reader
from packetgate.connectors.terminal.slash import Conversation, completions, is_command, obey
from packetgate.connectors.terminal.turns import WAITING, Terminal
from packetgate.connectors.turn import Aside, Asked, Finished, Reply, Say, Turn, run_turn
from packetgate.graph.kept import kept_in
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError, PacketgateError, RequestError
from packetgate.state.request import TurnRequest

PROMPT = "you> "
STOPPED = "stopped: /continue continues it, or send another message"
LEFT_OPEN = "left unanswered: /continue asks again, or send another message"
LEAVING = "/quit or Ctrl-D leaves"


async def chat(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Read messages and run a turn for each; an error leaves the session as it was."""
    async with open_sessions(settings) as sessions:
        terminal = Terminal(
            *(sessions, session, context, LastQuestion(settings), kept_in(settings)),
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
    terminal = talk.terminal
    if terminal.pending is None or talk.attached:
        said = Say(words, request, terminal.shown.of(terminal.session), files=tuple(talk.attached))
        talk.attached.clear()
        terminal.pending = None
        await terminal.step(said)
    elif reply := await terminal.reply_to(words):
        await terminal.step(reply)


async def _guarded(turn: Coroutine[Any, Any, object]) -> None:
    running, loop = asyncio.ensure_future(turn), asyncio.get_running_loop()
    out = rendering.console()
    with on_ctrl_c(lambda: loop.call_soon_threadsafe(running.cancel)):
        try:
            await running
        except PacketgateError as error:
            sys.stdout.flush()
            rendering.say(f"packetgate: {' '.join(str(error).split())}", "red", stderr=True)
        except asyncio.CancelledError:
            out.print(STOPPED, style="dim")
        except (InterruptedReadError, EOFError):
            out.print(LEFT_OPEN, style="dim")


REFUSED = 2


async def chat_lines(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Run a turn for each input line and print its packet, question or error.

    A line is words, or JSON: a text, or a decision such as `{"type": "approve"}`. Where a question waits, it is the
    reply. The exit status is the last line's.
    """
    status, shown = 0, LastQuestion(settings)
    async with open_sessions(settings) as sessions:
        while True:
            try:
                line = (await read_pipe("")).strip()
            except EOFError:
                return status
            if line:
                status, result = await _answered(
                    sessions, partial(_turn, line, shown.of(session), request), session, context
                )
                if result["type"] == "question":
                    shown.remember(session, result["question"]["question_id"])
                sys.stdout.write(json.dumps({"session": session, **result}, ensure_ascii=False) + "\n")
                sys.stdout.flush()


async def _answered(
    sessions: Sessions, read: Callable[[bool], Turn], session: str, context: RoutingContext
) -> tuple[int, dict[str, Any]]:
    try:
        turn = read((await sessions.state(session)).question is not None)
        said: dict[str, Any] = {}
        async with aclosing(run_turn(sessions, turn, session, context)) as events:
            async for event in events:
                if isinstance(event, Aside):
                    said = {"packet": event.packet.model_dump(mode="json")}
                if isinstance(event, Finished):
                    return event.status, {"type": "packet", "packet": event.packet.model_dump(mode="json")}
                if isinstance(event, Asked):
                    return WAITING, {"type": "question", "question": event.question, **said}
    except InputError as error:
        return REFUSED, {"type": "error", "error": str(error)}
    return 1, {"type": "error", "error": "the turn ended without an answer"}


def _turn(line: str, shown: str, request: TurnRequest, asks: bool) -> Turn:
    said = _read(line)
    if asks:
        return Reply(said, shown)
    return Say(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), request)


def _read(line: str) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # no JSON, or thousands of brackets
        if is_command(line):
            raise RequestError(f"{line[:80]}: there are no slash commands with --json: put words in quotes") from None
        return line
    return value if isinstance(value, str | dict | list) else line
