"""`packetgate init`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from packetgate.connectors.options import checked, run_settings_from, session_name, settings_from
from packetgate.state.errors import InputError

REQUEST = "Which files are in this folder?"


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
    folders: Annotated[
        list[Path] | None, typer.Option("--models-in", help="Another folder with GGUF files; can be repeated.")
    ] = None,
    request: Annotated[bool, typer.Option("--request/--no-request", help=f"Ask {REQUEST!r} at the end.")] = True,
) -> int:
    """Find models and MCP servers on this machine, and write packetgate.toml and mcp.json for this folder.

    It looks for Ollama, LM Studio, llama.cpp and vLLM on their usual ports, and in the usual folders for GGUF files and
    other clients' settings. Nothing is downloaded and no key is sent. An existing file is changed only if you agree,
    and a copy is kept. The request at the end uses the model and starts the servers.
    """

    settings = settings_from(own=True)
    from packetgate.connectors.terminal.reading import at_a_terminal, reader
    from packetgate.connectors.terminal.setting_up import SetUp, Wishes

    wishes = Wishes(yes, model, servers, tuple(folders or ()))
    setting_up = SetUp(settings, wishes, reader() if at_a_terminal() else None)
    try:
        chosen = await setting_up.run()
    except EOFError as error:
        raise InputError("cancelled: nothing more was written") from error
    settings = settings_from(own=True).model_copy(update={"url": None})
    for variable in ("PACKETGATE_LITE", "PACKETGATE_PRIME"):
        if chosen and os.environ.get(variable):
            typer.echo(f"packetgate: {variable} is set and wins over packetgate.toml: unset it", err=True)
    if not request:
        return 0
    from packetgate.connectors.opening import open_sessions
    from packetgate.connectors.terminal.commands.turns import OPTIONS, turn_request
    from packetgate.connectors.terminal.last_question import LastQuestion
    from packetgate.connectors.terminal.turns import Terminal
    from packetgate.connectors.turn import Say
    from packetgate.graph.kept import kept_in

    context = run_settings_from(checked(settings)).context
    typer.echo(f"\n> {REQUEST}")
    pool = setting_up.pool if (settings.lite, settings.prime) == (chosen, "reflex") else None
    async with open_sessions(settings, pool) as sessions:
        terminal = Terminal(
            *(sessions, session_name(None), context, LastQuestion(settings), kept_in(settings)),
            interactive=at_a_terminal(),
        )
        return await terminal.run_once(Say(REQUEST, turn_request(None, OPTIONS)))
