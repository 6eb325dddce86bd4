"""The commands. What is heavy is imported when a command needs it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from state.errors import InputError, PacketgateError

if TYPE_CHECKING:
    from connectors.asking import Turn
    from graph.settings import Settings
    from state.context import RoutingContext
    from state.request import TurnRequest

app = typer.Typer(
    name="packetgate",
    help="A tool router: every request is a typed packet that passes a reviewed gate before an MCP tool may run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Session = Annotated[str | None, typer.Option("--session", "-s", help="Name of the conversation; a new one by default.")]
McpConfig = Annotated[
    Path | None, typer.Option("--mcp-config", help="mcp.json; by default ./mcp.json if there is one.")
]
ContextType = Annotated[
    str | None,
    typer.Option("--context", help="Kind of conversation, such as `tasks`: it begins with the tools that are for it."),
]
Lite = Annotated[str | None, typer.Option(help="Model for intent and selection: reflex, openai:NAME, llamacpp:FILE.")]
Prime = Annotated[str | None, typer.Option(help="Model for review and answer, likewise.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts and nothing else.")]
AllowWrites = Annotated[bool, typer.Option("--allow-writes", help="Let tools that change things run, after approval.")]
AllowCommands = Annotated[
    bool, typer.Option("--allow-commands", help="Let tools that run commands run, after approval.")
]


@app.command()
def ask(
    request: Annotated[
        str | None, typer.Argument(help="What you want. Without it, or with -, it is read from standard input.")
    ] = None,
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
    allow_writes: AllowWrites = False,
    allow_commands: AllowCommands = False,
) -> None:
    """Ask once: the answer, and the packet's journey. Exit status 3 means that it waits for your answer."""
    from connectors.asking import Say
    from state.request import check_request

    def start() -> Say:
        return Say(check_request(_request_text(request)), _turn_request(context_type))

    _turn(start, session, _settings(mcp_config, lite, prime), _context(allow_writes, allow_commands), as_json)


@app.command()
def answer(
    reply: Annotated[
        str | None, typer.Argument(help="yes, no, skip, or your words. Without it a stopped turn goes on.")
    ] = None,
    session: Session = None,
    edit: Annotated[str | None, typer.Option(help="Approve with these arguments instead, as a JSON object.")] = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    as_json: AsJson = False,
    allow_writes: AllowWrites = False,
    allow_commands: AllowCommands = False,
) -> None:
    """Answer a session's pending question, or go on with a turn whose process was stopped."""
    from connectors.terminal.replies import reply_or_continue

    def start() -> "Turn":
        if session is None:
            raise InputError("which session? Name it: packetgate answer yes --session NAME")
        return reply_or_continue(reply, edit)

    _turn(start, session, _settings(mcp_config, lite, prime), _context(allow_writes, allow_commands), as_json)


@app.command()
def chat(
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    allow_writes: AllowWrites = False,
    allow_commands: AllowCommands = False,
) -> None:
    """Talk turn after turn. Ctrl-C stops a turn, /quit or Ctrl-D ends."""

    async def run() -> int:
        request, made = _turn_request(context_type), _checked(_settings(mcp_config, lite, prime)())
        from connectors.terminal.chat import chat as run_chat

        return await run_chat(made, _session_name(session), _context(allow_writes, allow_commands), request)

    _run(run)


@app.command()
def tools(
    name: Annotated[
        str | None, typer.Argument(help="Show only this tool, in full, or those of this server or category.")
    ] = None,
    mcp_config: McpConfig = None,
    full: Annotated[bool, typer.Option("--full", help="Full descriptions and schemas.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="What was chosen in past turns, and what came of it.")] = False,
    session: Annotated[str | None, typer.Option("--session", "-s", help="With --usage: of this conversation.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the tools: risk, category and brief description, in full on request; or how they were used."""
    if usage:
        from connectors.terminal.usage import show_usage

        if full:
            raise typer.BadParameter("there is no full form of --usage: leave one of them out", param_hint="--full")
        _run(lambda: show_usage(_settings(mcp_config, None, None), name, session, as_json=as_json))
        return
    if session is not None:
        raise typer.BadParameter("goes with --usage: tools belong to no session", param_hint="--session")

    async def run() -> int:
        made = _with_checked_files(_settings(mcp_config, None, None)())
        from connectors.terminal.listing import list_tools

        return await list_tools(made, name, full=full, as_json=as_json)

    _run(run)


@app.command()
def doctor(
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    models: Annotated[
        bool, typer.Option("--models", help="Load each model, ask it, and tell its speed and how sure it can be.")
    ] = False,
) -> None:
    """Check what is configured, what answers, and what is missing.

    Exit status 1 means that something is missing; with --models, 2 that a model cannot be loaded or asked.
    """
    from connectors.terminal.doctor import examine

    _run(lambda: examine(_settings(mcp_config, lite, prime), models=models))


@app.command()
def trace(
    packet: Annotated[Path, typer.Argument(help="A packet as JSON, as `ask --json` prints it; - for standard input.")],
) -> None:
    """Show the journey of a packet kept as JSON."""
    from connectors.terminal.listing import show_packet

    _run(lambda: show_packet(packet))


def main() -> None:
    """Run the command line; errors that are not the user's to mend show a traceback only with PACKETGATE_DEBUG set."""
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    app()


def _turn(
    start: "Callable[[], Turn]",
    session: str | None,
    settings: "Callable[[], Settings]",
    context: "RoutingContext",
    as_json: bool,
) -> None:
    async def run() -> int:
        turn, made = start(), _checked(settings())
        from connectors.opening import open_sessions
        from connectors.terminal.reading import at_a_terminal
        from connectors.terminal.turns import Terminal

        async with open_sessions(made) as sessions:
            terminal = Terminal(
                sessions=sessions,
                session=_session_name(session),
                context=context,
                as_json=as_json,
                interactive=at_a_terminal() and not as_json,
            )
            return await terminal.run(turn)

    _run(run)


def _run(command: Callable[[], Awaitable[int]]) -> None:
    """Run a command to its exit status: 2 and one line for input that cannot be used, 1 for what should not happen."""
    from connectors.terminal.reading import InterruptedReadError

    try:
        status = asyncio.run(_awaited(command))
    except PacketgateError as error:
        if os.environ.get("PACKETGATE_DEBUG"):
            raise
        typer.echo(f"packetgate: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2 if isinstance(error, InputError) else 1) from error
    except (KeyboardInterrupt, InterruptedReadError) as error:
        raise typer.Exit(130) from error
    raise typer.Exit(status)


async def _awaited(command: Callable[[], Awaitable[int]]) -> int:
    return await command()


def _settings(mcp_config: Path | None, lite: str | None, prime: str | None) -> "Callable[[], Settings]":
    """Return what makes the settings: the environment, then what the command line says."""

    def make() -> "Settings":
        from pydantic import ValidationError

        from graph.settings import Settings
        from state.errors import ConfigError

        given = {"mcp_config": mcp_config, "lite": lite, "prime": prime}
        try:
            return Settings.model_validate({name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ConfigError(f"PACKETGATE_{str(first['loc'][0]).upper()}: {first['msg']}") from error

    return make


def _checked(settings: "Settings") -> "Settings":
    """Return settings for turns once their model names and files are known to be usable."""
    from models.pool import ModelPool

    ModelPool(settings.lite, settings.prime)
    return _with_checked_files(settings)


def _with_checked_files(settings: "Settings") -> "Settings":
    """Return settings whose files can be used: told before what takes seconds to import."""
    from tools.config import load_config
    from tools.preferences import load_preferences

    load_config(settings.config_path)
    load_preferences(settings.preferences_path)
    return settings


def _turn_request(context_type: str | None) -> "TurnRequest":
    from state.request import TurnRequest, decode_request

    kind = None if context_type is None else decode_request(os.fsencode(context_type), "--context").strip()
    if kind == "":
        raise InputError("--context is empty: name a kind of conversation, or leave it out")
    return TurnRequest(origin="terminal", context_type=kind)


def _context(allow_writes: bool, allow_commands: bool) -> "RoutingContext":
    from state.context import RoutingContext

    return RoutingContext(allow_write_tools=allow_writes, allow_execute_tools=allow_commands)


def _session_name(given: str | None) -> str:
    from state.base import new_id

    if given is not None and not given.strip():
        raise typer.BadParameter("a session's name must not be empty", param_hint="--session")
    return given or new_id()[:12]


def _request_text(given: str | None) -> str:
    from state.request import decode_request

    if given is not None and given != "-":
        return decode_request(os.fsencode(given), "the request")
    if given is None and sys.stdin.isatty():
        return ""
    return decode_request(sys.stdin.buffer.read(), "standard input")
