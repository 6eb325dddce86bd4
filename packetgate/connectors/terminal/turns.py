"""`packetgate ask`, `answer` and `undo`: run one turn."""

import getpass
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_records, open_sessions
from packetgate.connectors.options import (
    AsJson,
    Commands,
    Lite,
    McpConfigPath,
    Prime,
    Session,
    Set,
    Trace,
    Writes,
    check_settings,
    run_settings_from,
    session_name,
    settings_from,
)
from packetgate.connectors.recorded_answers import asked_sessions, record_answer, turn_owner
from packetgate.connectors.shell_commands import command_here
from packetgate.connectors.terminal.reading import file_part, is_at_terminal
from packetgate.connectors.terminal.screen import WAITING, LastQuestion, Terminal, only_open_session, selecting_model
from packetgate.connectors.turn import Continue, Reply, Say, UserInput, run_input, words_reply
from packetgate.deciders.commands import is_undo, undo_command
from packetgate.graph.journal import open_journal
from packetgate.graph.private_files import private_file
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.channels import TERMINAL, SwitchHints
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError, RequestError
from packetgate.state.request import TurnRequest, check_request, decode_request
from packetgate.toolsets.builtin.files import ToolFailure
from packetgate.toolsets.builtin.undo_store import History, UndoStore

_OWNER_ENDED = (
    "The {} that asked has ended, and the MCP servers that it started with it. {}. To start servers here and go on "
    "there, use --run-here:"
)
INIT_OFFER = "No language model is set up. Look for one now (packetgate init)? This is asked once."

ContextType = Annotated[
    str | None, typer.Option("--context", help="Kind of conversation, such as `tasks`: selects its pool of tools.")
]


async def ask(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="REQUEST", help="The request. Without it, or with -, standard input is read."),
    ] = None,
    attach: Annotated[
        list[Path] | None, typer.Option("--attach", help="Attach an image or a text file; can be repeated.")
    ] = None,
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
    show_trace: Trace = False,
) -> int:
    """Run one turn: print the answer and its calls.

    Exit status 3 means that the turn waits for your answer, and 1 that a tool failed.
    """
    options: dict[str, Any] = {"mcp_config": mcp_config, "lite": lite, "prime": prime}
    files = tuple(file_part(file) for file in attach or ())
    request = " ".join(words) if words else None
    text = _request_text(request)
    text = text if files else check_request(text)
    is_piped = request in {None, "-"} and not sys.stdin.isatty()
    settings, session = settings_from(**options), session_name(session)
    request_data = turn_request(context_type, _shell_hints(settings, session)).changed(takes_commands=not is_piped)
    if not as_json:
        await offer_init(settings)
    return await _run_turn(
        lambda question_id: Say(text, request_data, None if is_piped else question_id, files=files),
        session,
        options,
        as_json=as_json,
        show_trace=show_trace,
        overrides=overrides,
        writes=allow_writes,
        commands=allow_commands,
    )


async def answer(
    reply: Annotated[
        str | None,
        typer.Argument(help="yes, no, skip, or other words. Without a reply, an interrupted turn continues."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="Name of the session with the open question.")
    ] = None,
    edit: Annotated[
        str | None,
        typer.Option(
            help="Approve with these new values of arguments, as a JSON object; other arguments keep their values. "
            "For several calls, a list of objects or words."
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="Id of the question to answer; by default the question that was shown last.")
    ] = None,
    run_here: Annotated[
        bool, typer.Option("--run-here", help="Run the call in this process if the process that asked has ended.")
    ] = False,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
    show_trace: Trace = False,
) -> int:
    """Answer a session's open question, or continue an interrupted turn.

    The process that asked runs the call, if it still runs. The settings of the run that asked apply. Exit status 3
    means that the turn waits for another answer.
    """
    options: dict[str, Any] = {"mcp_config": mcp_config, "lite": lite, "prime": prime}
    if edit is not None and not edit.lstrip().startswith(("{", "[")):
        raise RequestError(f"--edit takes a JSON object of arguments, or a list for several calls, not {edit[:60]}")
    words = reply if edit is None else f"edit {edit}"
    settings, name = settings_from(**options), None if session is None else session_name(session)

    def turn(shown: str) -> UserInput:
        return Continue() if words is None else Reply(words, question or shown)

    if settings.has_database:
        ended = await _answer_elsewhere(settings, turn, name, options, as_json=as_json, run_here=run_here)
        if ended is not None:
            return ended
    return await _run_turn(turn, name, options, as_json=as_json, show_trace=show_trace)


async def _answer_elsewhere(
    settings: Settings,
    turn: Callable[[str], UserInput],
    session: str | None,
    process_options: dict[str, Any],
    *,
    as_json: bool,
    run_here: bool,
) -> int | None:
    """Record the answer to a question of another process, and return the exit status; None if it is to run here.

    If the process that asked has ended, show its question, and how to run the call here. A terminal that ended needs no
    hint, because only its session is lost.
    """
    last, journal = LastQuestion(settings), open_journal(settings)
    async with open_records(settings) as records:
        session = session or await only_open_session(records, last, await asked_sessions(journal))
        state, user_input = await records.state(session), turn(last.question_id(session))
        owner, options = await turn_owner(state, records, journal), _given_options(process_options)
        if state.question is None and not state.is_unfinished:
            run_input(user_input, state, session)  # raises the error
        if owner is None or (not owner.is_alive and (run_here or owner.channel == TERMINAL)):
            return None
        if owner.is_alive and state.question is None and not await records.is_leased(session):
            return None  # the turn was stopped there
        if not owner.is_alive:
            outcome = "Nothing was run" if state.question else "It had begun to run the answer"
            rendering.say(_OWNER_ENDED.format(owner.channel, outcome), "yellow", stderr=True)
            user_input, options = Continue(), [*options, "--run-here"]
        elif isinstance(user_input, Reply):
            user_input = replace(user_input, value=words_reply(user_input.value, state.question or {}))
        terminal = Terminal(
            *(records, session, RoutingContext(), last, result_store(settings), as_json),
            interactive=is_at_terminal() and not as_json and owner.is_alive,
            options=options,
            program=command_here(settings, options),
            turns=partial(record_answer, owner=owner, journal=journal),
        )
        if not owner.is_alive and state.question is None:
            rendering.say(terminal.answer_command(), "")
            return WAITING
        return await terminal.run(user_input)


async def undo(
    change: Annotated[
        str | None,
        typer.Argument(help="Id of the change, or its beginning, as --list and `packetgate audit` show it."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="Only changes of this session; by default of all sessions."),
    ] = None,
    list_changes: Annotated[
        bool, typer.Option("--list", help="Only list the changes that are in effect, newest first.")
    ] = False,
    allow_writes: Writes = None,
) -> int:
    """Undo the last change that a built-in tool made below this folder, or the named change.

    The undo is a write: without --allow-writes it is a dry run; with it, it needs approval.
    """
    settings = settings_from()
    root = str(settings.root.expanduser().resolve())
    try:
        history = History(UndoStore(settings.undo_path).changes(), session, root)
        found = None if list_changes else history.find(change or "")
    except ToolFailure as error:
        raise RequestError(str(error)) from error
    if found is None:
        lines = [f"{listed.label}, session {listed.session}" for listed in history.undoable]
        for line in lines or [f"No change below {root} is in effect."]:
            rendering.say(line, "")
        return 0
    message = undo_message(found.call_id if change else "")  # the tool itself finds the session's last change again
    session = session or found.session
    request = turn_request(None, _shell_hints(settings, session)).changed(is_new=True)
    return await _run_turn(lambda _: Say(message, request), session, {}, writes=allow_writes)


def _shell_hints(settings: Settings, session: str) -> SwitchHints:
    chat = f"{command_here(settings, ())} chat --session {quote(session)}"
    return SwitchHints.from_commands("--allow-writes", "--allow-commands", f"`/rest` in `{chat}` shows all of it")


def undo_message(change: str) -> str:
    """Return the message that undoes a change, or the last change.

    Raises:
        RequestError: `change` is not the id of a change.
    """
    message = undo_command(change)
    if not is_undo(message):
        raise RequestError(f"{change!r} is not the id of a change: `packetgate undo --list` lists the changes")
    return message


async def _run_turn(
    turn: Callable[[str], UserInput],
    session: str | None,
    process_options: dict[str, Any],
    *,
    as_json: bool = False,
    show_trace: bool = False,
    **run_options: Any,
) -> int:
    settings = check_settings(settings_from(**process_options))
    context = run_settings_from(settings, **run_options).context
    last = LastQuestion(settings)
    shown_id = last.question_id(session) if session else ""  # before opening, which takes time
    options, interactive = _given_options(process_options), is_at_terminal() and not as_json
    async with open_sessions(settings, channel=TERMINAL if interactive else "") as sessions:
        if session is None:
            session = await only_open_session(sessions, last, ())
            shown_id = last.question_id(session)
        terminal = Terminal(
            *(sessions, session, context, last, result_store(settings), as_json),
            interactive=interactive,
            shows_trace=show_trace,
            model=selecting_model(settings),
            options=options,
            program=command_here(settings, options),
        )
        user_input = turn(shown_id)
        if isinstance(user_input, Reply):
            question = (await sessions.state(session)).question or {}
            user_input = replace(user_input, value=words_reply(user_input.value, question))
        return await terminal.run(user_input)


def _given_options(process_options: dict[str, Any]) -> list[str]:
    given = {f"--{name.replace('_', '-')}": str(value) for name, value in process_options.items() if value}
    return [part for option in given.items() for part in option]


async def offer_init(settings: Settings) -> None:
    """Offer `packetgate init` if no model was chosen: at a terminal, and once for each user."""
    offered = settings.home / "offered"
    if not is_at_terminal() or {"lite", "prime"} & settings.model_fields_set or offered.exists():
        return
    try:
        private_file(offered)
    except OSError:  # the command itself reports the unusable folder
        return
    if typer.confirm(INIT_OFFER):
        from packetgate.connectors.terminal.init import init

        await init()


def turn_request(context_type: str | None, hints: SwitchHints) -> TurnRequest:
    """Return the request's origin, user, context and hints. Raise InputError for an empty kind of conversation."""
    kind = None if context_type is None else decode_request(os.fsencode(context_type), "--context").strip()
    if kind == "":
        raise InputError("--context is empty: name a kind of conversation, or leave it out")
    try:
        person = getpass.getuser()
    except (OSError, KeyError):
        person = ""
    return TurnRequest(origin=TERMINAL, person=person, context_type=kind, switch_hints=hints)


def _request_text(argument: str | None) -> str:
    if argument is not None and argument != "-":
        return decode_request(os.fsencode(argument), "the request")
    if argument is None and sys.stdin.isatty():
        return ""
    return decode_request(sys.stdin.buffer.read(), "standard input")
