"""`packetgate chat --json`: a request a line in, an object a line out."""

import json
import sys
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from packetgate.connectors.asking import Reply, Say, Turn
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.reading import read_pipe
from packetgate.connectors.terminal.shown import Shown
from packetgate.connectors.terminal.slash import is_command
from packetgate.connectors.terminal.turns import WAITING
from packetgate.connectors.turn import Aside, Asked, Finished, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError, RequestError
from packetgate.state.request import TurnRequest

REFUSED = 2


async def chat_lines(settings: Settings, session: str, context: RoutingContext, request: TurnRequest) -> int:
    """Run a turn for each line, and print what it came to: a packet, a question, or an error.

    A line is words, or JSON: a text, or a decision such as `{"type": "approve"}`. Where a question waits, it is the
    reply. The exit status is the last line's.
    """
    status, shown = 0, Shown(settings)
    async with open_sessions(settings) as sessions:
        while True:
            try:
                line = (await read_pipe("")).strip()
            except EOFError:
                return status
            if line:
                status, told = await _answered(
                    sessions, partial(_turn, line, shown.of(session), request), session, context
                )
                if told["type"] == "question":
                    shown.remember(session, told["question"]["question_id"])
                sys.stdout.write(json.dumps({"session": session, **told}, ensure_ascii=False) + "\n")
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
    """Return what a line says: a reply to the question that was last printed, where one waits, or a request."""
    said = _read(line)
    if asks:
        return Reply(said, shown)
    return Say(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), request)


def _read(line: str) -> Any:
    """Return the text or the decision that a line holds; whatever else it is, it is words.

    Raises:
        RequestError: it is meant as a slash command.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # no JSON, or thousands of brackets
        if is_command(line):
            raise RequestError(f"{line[:80]}: there are no slash commands with --json: put words in quotes") from None
        return line
    return value if isinstance(value, str | dict | list) else line
