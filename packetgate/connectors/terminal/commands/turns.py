"""`packetgate ask`, `packetgate answer` and `packetgate chat`."""

import getpass
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from packetgate.connectors.options import (
    AsJson,
    Assistant,
    Commands,
    Lite,
    McpConfig,
    OldSession,
    Prime,
    Session,
    Set,
    Url,
    Writes,
    checked,
    run_settings_from,
    session_name,
    settings_from,
)
from packetgate.state.errors import InputError

if TYPE_CHECKING:
    from packetgate.connectors.turn import Turn
    from packetgate.state.request import TurnRequest

OPTIONS = ("--allow-writes", "--allow-commands", "`/rest` in `packetgate chat` with this --session shows all of it")
TYPED = ("/writes on", "/commands on", "`/rest` shows all of it")
"""How to enable writes and commands and how to see a whole result, for commands and in `packetgate chat`."""

ContextType = Annotated[
    str | None,
    typer.Option("--context", help="Kind of conversation, such as `tasks`: it begins with the tools that are for it."),
]


async def ask(
    request: Annotated[
        str | None, typer.Argument(help="What you want. Without it, or with -, it is read from standard input.")
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", help="A picture or a text file that goes with it, as often as needed."),
    ] = None,
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    assistant: Assistant = None,
    as_json: AsJson = False,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    chosen: Set = None,
) -> int:
    """Ask once: the answer, and the packet's journey. Exit status 3 means that it waits for your answer, 1 that a tool
    failed.
    """

    def start(shown: str) -> "Turn":
        from packetgate.connectors.terminal.reading import file_part
        from packetgate.connectors.turn import Say
        from packetgate.state.request import check_request

        files = tuple(file_part(one) for one in attach or ())
        words = _request_text(request)
        asked = turn_request(context_type, OPTIONS)
        return Say(words if files else check_request(words), asked, shown, files=files)

    given = {"mcp_config": mcp_config, "lite": lite, "prime": prime, "url": url, "assistant": assistant}
    return await _turn(start, session, given, (chosen, allow_writes, allow_commands), as_json)


async def answer(
    reply: Annotated[
        str | None, typer.Argument(help="yes, no, skip, or your words. Without it a stopped turn goes on.")
    ] = None,
    session: OldSession = None,
    edit: Annotated[
        str | None,
        typer.Option(
            help="Approve with these arguments instead, as a JSON object; for several calls a list of them, "
            'or of words such as "yes".'
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="The question that this answers, by its id; else the one last shown.")
    ] = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    assistant: Assistant = None,
    as_json: AsJson = False,
) -> int:
    """Answer a session's pending question, or go on with a turn whose process was stopped.

    The settings of the run that asked hold for the answer. Exit status 3 means that it waits for another answer.
    """

    def start(shown: str) -> "Turn":
        from packetgate.connectors.terminal.reading import reply_or_continue

        return reply_or_continue(reply, edit, question or shown)

    given = {"mcp_config": mcp_config, "lite": lite, "prime": prime, "url": url, "assistant": assistant}
    return await _turn(start, session, given, (), as_json, answers=True)


async def chat(
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    assistant: Assistant = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For scripts: a request a line from standard input, an object a line out.")
    ] = False,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    chosen: Set = None,
) -> int:
    """Talk turn after turn. Ctrl-C stops a turn, /quit or Ctrl-D ends, /help lists what else there is.

    With --json, each object has a type: packet, question (the next line is the reply) or error. The exit status is
    the last turn's: 3 if it waits for an answer, 2 if its line could not be used, 1 if its tool failed.
    """

    request = turn_request(context_type, OPTIONS if as_json else TYPED)
    settings = checked(settings_from(mcp_config=mcp_config, lite=lite, prime=prime, url=url, assistant=assistant))
    from packetgate.connectors.terminal.chat import chat as run_chat
    from packetgate.connectors.terminal.chat import chat_lines

    converse = chat_lines if as_json else run_chat
    context = run_settings_from(settings, chosen, allow_writes, allow_commands).context
    return await converse(settings, session_name(session), context, request)


async def _turn(
    start: "Callable[[str], Turn]",
    session: str | None,
    given: "dict[str, Any]",
    run_given: "tuple[Any, ...]",
    as_json: bool,
    *,
    answers: bool = False,
) -> int:
    settings = settings_from(**given)
    name = "" if answers and session is None else session_name(session)
    from packetgate.connectors.terminal.last_question import LastQuestion, only_open

    shown = LastQuestion(settings)
    said = start(shown.of(name))
    context = run_settings_from(checked(settings), *run_given).context
    from packetgate.connectors.opening import open_sessions
    from packetgate.connectors.terminal.reading import at_a_terminal
    from packetgate.connectors.terminal.turns import Terminal
    from packetgate.graph.kept import kept_in

    async with open_sessions(settings) as sessions:
        if not name:
            name = await only_open(sessions, shown)
            said = start(shown.of(name))
        terminal = Terminal(
            sessions=sessions,
            session=name,
            context=context,
            as_json=as_json,
            interactive=at_a_terminal() and not as_json,
            shown=shown,
            kept=kept_in(settings),
            options=_again(given),
        )
        return await terminal.run_once(said)


def _again(given: "dict[str, Any]") -> tuple[str, ...]:
    """Return the options that `packetgate answer` must repeat."""
    named = [(f"--{name.replace('_', '-')}", str(value)) for name, value in given.items() if value is not None]
    return tuple(part for pair in named for part in pair)


def turn_request(context_type: str | None, ways: tuple[str, str, str]) -> "TurnRequest":
    """Return the request's origin, user and context; `ways` are the hints for enabling writes and commands.

    Raises:
        InputError: the kind of conversation is empty.
    """
    from packetgate.state.channels import SwitchHints
    from packetgate.state.request import TurnRequest, decode_request

    kind = None if context_type is None else decode_request(os.fsencode(context_type), "--context").strip()
    if kind == "":
        raise InputError("--context is empty: name a kind of conversation, or leave it out")
    return TurnRequest(origin="terminal", person=_who(), context_type=kind, way_out=SwitchHints.by(*ways))


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _request_text(given: str | None) -> str:
    from packetgate.state.request import decode_request

    if given is not None and given != "-":
        return decode_request(os.fsencode(given), "the request")
    if given is None and sys.stdin.isatty():
        return ""
    return decode_request(sys.stdin.buffer.read(), "standard input")
