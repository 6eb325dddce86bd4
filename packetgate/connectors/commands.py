"""The commands of the program. A command's module is imported when the command runs."""

from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import iscoroutinefunction
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from packetgate.connectors.running import run
from packetgate.plugins import Command, installed_commands

_CORE = {
    "init": (
        "terminal.init",
        "Find models and MCP servers on this machine, and write packetgate.toml and mcp.json for this folder.",
    ),
    "model": (
        "terminal.model",
        "Download a GGUF model from the Hugging Face hub, set it in packetgate.toml, and try it.",
    ),
    "ask": ("terminal.turns", "Run one turn: print the answer and its calls."),
    "answer": ("terminal.turns", "Answer a session's open question, or continue an interrupted turn."),
    "chat": ("terminal.chat", "Chat in this terminal."),
    "undo": (
        "terminal.turns",
        "Undo the last change that a built-in tool made below this folder, or the named change.",
    ),
    "tools": ("terminal.reports", "List the tools with risk, category and description."),
    "policy": ("terminal.reports", "List the policy rules, remembered answers, and labels of the proxy's clients."),
    "settings": ("terminal.reports", "Show the settings of a run and the options of models, with their sources."),
    "doctor": ("terminal.doctor", "Check the configuration, models, servers and programs."),
    "login": ("terminal.login", "Log in to a server over OAuth, and store the login."),
    "logout": ("terminal.login", "Delete the stored login to a server."),
    "audit": ("terminal.audit", "Show the journal: requests, proposed calls, approvals and results."),
    "trace": ("trace", "Show a past packet's trace."),
    "studio": ("studio", "Serve the graph to LangGraph Studio and to chat front ends, until stopped."),
    "proxy": ("proxy.command", "Serve all configured MCP servers as one, with the tools that fit the client's task."),
}
"""Maps each command, in the order of the help, to its module below `packetgate.connectors` and its help line."""


COMMANDS = {name: Command(f"packetgate.connectors.{module}:{name}", line) for name, (module, line) in _CORE.items()}
COMMANDS |= {name: command for name, command in installed_commands().items() if name not in COMMANDS}
"""The commands of the program. An installed command does not replace one of Packetgate's."""


class CommandGroup(TyperGroup):
    """The commands, imported on demand; a missing package breaks only the commands that need it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=command.help) for name, command in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the named command, imported; a sentence instead of a name is passed to `ask`."""
        if args and args[0] not in COMMANDS and len(args[0].split()) > 1:
            args = ["ask", *args]
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and load_command(name), rest


def load_command(name: str) -> Any:
    """Import a command, and return it with its options."""
    module, _, function = COMMANDS[name].function.partition(":")
    if not module:
        raise typer.BadParameter(COMMANDS[name].help)
    command = getattr(import_module(module), function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    @wraps(command)
    def started(**options: Any) -> None:
        run(lambda: command(**options))

    alone.command(name)(started if iscoroutinefunction(command) else command)
    return get_command(alone)


EXIT_STATUSES = (
    "Exit status: 0 done; 1 a tool failed, something is missing, or an internal error; "
    "2 invalid input, nothing was done; 3 a turn waits for an answer; 130 stopped by Ctrl-C. "
    "PACKETGATE_DEBUG=1 shows where an error comes from."
)

program = typer.Typer(
    cls=CommandGroup, epilog=EXIT_STATUSES, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"packetgate {version('packetgate')}")
        raise typer.Exit


@program.callback()
def packetgate(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Use MCP tools with any chat model: Packetgate reviews each call, and asks before anything changes."""
