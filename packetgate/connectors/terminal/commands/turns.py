"""`packetgate init`, `ask`, `answer` and `chat`."""

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
    McpConfigPath,
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
    from packetgate.connectors.turn import UserInput
    from packetgate.state.context import RoutingContext
    from packetgate.state.request import TurnRequest

SHELL_HINTS = ("--allow-writes", "--allow-commands", "`/rest` in `packetgate chat` with this --session shows all of it")
CHAT_HINTS = ("/writes on", "/commands on", "`/rest` shows all of it")
"""How to enable writes and commands, and how to see a whole result."""

ContextType = Annotated[
    str | None, typer.Option("--context", help="Kind of conversation, such as `tasks`: selects its pool of tools.")
]


async def init(
    model: Annotated[
        str | None, typer.Option("--model", help="Use this model, such as ollama:qwen3:4b; reflex means no model.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: use the first model found and all servers.")
    ] = False,
    servers: Annotated[
        bool, typer.Option("--servers/--no-servers", help="Look for servers of other MCP clients.")
    ] = True,
) -> int:
    """Find models and MCP servers on this machine, and write packetgate.toml and mcp.json for this folder.

    It looks for Ollama, LM Studio, llama.cpp and vLLM on their usual ports, and in the usual folders for GGUF files and
    other clients' settings. Nothing is downloaded and no key is sent.
    """
    settings = settings_from(local=True)
    from packetgate.connectors.terminal import init as setup
    from packetgate.connectors.terminal.reading import at_a_terminal, reader

    return await setup.run_init(settings, model, reader() if at_a_terminal() else None, yes=yes, servers=servers)


async def ask(
    request: Annotated[
        str | None, typer.Argument(help="The request. Without it, or with -, it is read from standard input.")
    ] = None,
    attach: Annotated[
        list[Path] | None, typer.Option("--attach", help="Attach a picture or a text file; can be repeated.")
    ] = None,
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    assistant: Assistant = None,
    as_json: AsJson = False,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
) -> int:
    """Run one turn: print the answer and the packet's trace.

    Exit status 3 means that it waits for your answer, 1 that a tool failed.
    """
    options = {"mcp_config": mcp_config, "lite": lite, "prime": prime, "url": url, "assistant": assistant}

    def start(question_id: str) -> "UserInput":
        from packetgate.connectors.terminal.reading import file_part
        from packetgate.connectors.turn import Say
        from packetgate.state.request import check_request

        files = tuple(file_part(file) for file in attach or ())
        text = _request_text(request)
        return Say(
            text if files else check_request(text), turn_request(context_type, SHELL_HINTS), question_id, files=files
        )

    return await _turn(start, session_name(session), options, as_json, overrides, allow_writes, allow_commands)


async def answer(
    reply: Annotated[
        str | None, typer.Argument(help="yes, no, skip, or other words. Without it an interrupted turn continues.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="Name of the session with the open question.")
    ] = None,
    edit: Annotated[
        str | None,
        typer.Option(
            help="Approve with these arguments instead, as a JSON object; for several calls a list of objects or words."
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="Id of the question that this answers; by default the last one shown.")
    ] = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    assistant: Assistant = None,
    as_json: AsJson = False,
) -> int:
    """Answer a session's open question, or continue a turn whose process was stopped.

    The settings of the run that asked apply. Exit status 3 means that it waits for another answer.
    """
    options = {"mcp_config": mcp_config, "lite": lite, "prime": prime, "url": url, "assistant": assistant}

    def start(question_id: str) -> "UserInput":
        from packetgate.connectors.terminal.reading import reply_or_continue

        return reply_or_continue(reply, edit, question or question_id)

    return await _turn(start, None if session is None else session_name(session), options, as_json)


async def chat(
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    assistant: Assistant = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
) -> int:
    """Run turn after turn. Ctrl-C stops a turn, /quit or Ctrl-D leaves, /help lists the commands."""
    request = turn_request(context_type, CHAT_HINTS)
    settings = checked(settings_from(mcp_config=mcp_config, lite=lite, prime=prime, url=url, assistant=assistant))
    context = run_settings_from(settings, overrides, allow_writes, allow_commands).context
    from packetgate.connectors.terminal.chat import run_chat

    return await run_chat(settings, session_name(session), context, request)


async def _turn(
    start: "Callable[[str], UserInput]",
    session: str | None,
    process_options: dict[str, Any],
    as_json: bool,
    *run_options: Any,
) -> int:
    settings = settings_from(**process_options)
    from packetgate.connectors.terminal.last_question import LastQuestion, only_open

    last = LastQuestion(settings)
    turn = start(last.question_id(session or ""))
    context: RoutingContext = run_settings_from(checked(settings), *run_options).context
    from packetgate.connectors.opening import open_sessions
    from packetgate.connectors.terminal.reading import at_a_terminal
    from packetgate.connectors.terminal.turns import Terminal
    from packetgate.graph.shared_results import result_store

    async with open_sessions(settings) as sessions:
        if session is None:
            session = await only_open(sessions, last)
            turn = start(last.question_id(session))
        options = [
            (f"--{name.replace('_', '-')}", str(value)) for name, value in process_options.items() if value is not None
        ]
        terminal = Terminal(
            *(sessions, session, context, last, result_store(settings), as_json),
            interactive=at_a_terminal() and not as_json,
            options=tuple(part for option in options for part in option),
        )
        return await terminal.run(turn)


def turn_request(context_type: str | None, hints: tuple[str, str, str]) -> "TurnRequest":
    """Return the request's origin, user, context and hints for enabling writes and commands.

    Raises:
        InputError: the kind of conversation is empty.
    """
    from packetgate.state.channels import SwitchHints
    from packetgate.state.request import TurnRequest, decode_request

    kind = None if context_type is None else decode_request(os.fsencode(context_type), "--context").strip()
    if kind == "":
        raise InputError("--context is empty: name a kind of conversation, or leave it out")
    try:
        person = getpass.getuser()
    except (OSError, KeyError):
        person = ""
    return TurnRequest(origin="terminal", person=person, context_type=kind, way_out=SwitchHints.from_commands(*hints))


def _request_text(argument: str | None) -> str:
    from packetgate.state.request import decode_request

    if argument is not None and argument != "-":
        return decode_request(os.fsencode(argument), "the request")
    if argument is None and sys.stdin.isatty():
        return ""
    return decode_request(sys.stdin.buffer.read(), "standard input")
