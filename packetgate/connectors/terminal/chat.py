"""`packetgate chat`: turn after turn on one session, by hand, or line by line with `--json`."""

import asyncio
import json
import sys
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.process import on_ctrl_c
from packetgate.connectors.running import InterruptedReadError, error_line
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.last_question import LastQuestion
from packetgate.connectors.terminal.reading import at_a_terminal, composer, read_pipe
from packetgate.connectors.terminal.slash import COMMANDS, Conversation, is_command, run_command
from packetgate.connectors.terminal.turns import WAITING, Terminal
from packetgate.connectors.turn import Aside, Asked, Finished, Reply, Say, Turn, run_turn
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError, PacketgateError, RequestError
from packetgate.state.request import TurnRequest

PROMPT = "you> "
STOPPED = "stopped: /continue continues it, or send another message"
LEFT_OPEN = "left unanswered: /continue asks again, or send another message"
LEAVING = "/quit or Ctrl-D leaves"
INVALID_LINE = 2


async def chat(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Read messages and run a turn for each; an error leaves the session as it was."""
    async with open_sessions(settings) as sessions:
        terminal = Terminal(
            *(sessions, session, context, LastQuestion(settings), result_store(settings)),
            interactive=True,
            shows_trace=False,
        )
        sessions.start_servers()
        talk = Conversation(terminal, settings)
        read = composer(settings.home / "history", {command.name: command.about for command in COMMANDS})
        await _guarded(talk.greet())
        while not talk.is_over:
            try:
                text = (await read(terminal.prompt if terminal.pending else PROMPT)).strip()
            except (InterruptedReadError, EOFError) as end:
                if terminal.pending is None and isinstance(end, EOFError):
                    break
                rendering.say(LEFT_OPEN if terminal.pending else LEAVING)
                terminal.pending = None
                continue
            if is_command(text, replies=terminal.pending is not None):
                await _guarded(run_command(talk, text))
            elif text:
                await _guarded(_say(talk, text, request))
        left = await sessions.state(terminal.session)
        return WAITING if left.question is not None and not at_a_terminal() else 0


async def _say(talk: Conversation, text: str, request: TurnRequest) -> None:
    terminal = talk.terminal
    if terminal.pending is None or talk.attached:
        turn = Say(text, request, terminal.last_question.of(terminal.session), files=tuple(talk.attached))
        talk.attached.clear()
        terminal.pending = None
        await terminal.step(turn)
    elif reply := await terminal.reply_to(text):
        await terminal.step(reply)


async def _guarded(turn: Coroutine[Any, Any, object]) -> None:
    running, loop = asyncio.ensure_future(turn), asyncio.get_running_loop()
    with on_ctrl_c(lambda: loop.call_soon_threadsafe(running.cancel)):
        try:
            await running
        except PacketgateError as error:
            sys.stdout.flush()
            rendering.say(error_line(error), "red", stderr=True)
        except asyncio.CancelledError:
            rendering.say(STOPPED)
        except (InterruptedReadError, EOFError):
            rendering.say(LEFT_OPEN)


async def chat_lines(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Run a turn for each input line and print its packet, question or error as a line of JSON.

    A line is text or JSON: a string, or a decision such as `{"type": "approve"}`. It answers an open question. The
    exit status is the last line's.
    """
    status, shown = 0, LastQuestion(settings)
    async with open_sessions(settings) as sessions:
        while True:
            try:
                line = (await read_pipe("")).strip()
            except EOFError:
                return status
            if not line:
                continue
            try:
                state = await sessions.state(session)
                turn = _turn(line, request, shown.of(session), is_reply=state.question is not None)
                status, result = await _result(sessions, turn, session, context)
            except InputError as error:
                status, result = INVALID_LINE, {"type": "error", "error": str(error), "code": error.code}
            if result["type"] == "question":
                shown.remember(session, result["question"]["question_id"])
            sys.stdout.write(json.dumps({"session": session, **result}, ensure_ascii=False) + "\n")
            sys.stdout.flush()


def _turn(line: str, request: TurnRequest, question_id: str, *, is_reply: bool) -> Turn:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # not JSON, or thousands of brackets
        if is_command(line):
            raise RequestError(f"{line[:80]}: slash commands cannot be used with --json: quote the text") from None
        value = line
    value = value if isinstance(value, str | dict | list) else line
    if is_reply:
        return Reply(value, question_id)
    return Say(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), request)


async def _result(sessions: Sessions, turn: Turn, session: str, context: RoutingContext) -> tuple[int, dict[str, Any]]:
    aside: dict[str, Any] = {}
    async with aclosing(run_turn(sessions, turn, session, context)) as events:
        async for event in events:
            match event:
                case Aside(packet):
                    aside = {"packet": packet.model_dump(mode="json")}
                case Finished(packet):
                    return event.status, {"type": "packet", "packet": packet.model_dump(mode="json")}
                case Asked(question):
                    return WAITING, {"type": "question", "question": question, **aside}
    return 1, {"type": "error", "error": "the turn ended without an answer"}
