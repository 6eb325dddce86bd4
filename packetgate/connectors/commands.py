"""The commands of all connectors. Each command's module is imported on demand."""

from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import iscoroutinefunction
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from packetgate.connectors.running import run

TURNS, REPORTS = "packetgate.connectors.terminal.commands.turns", "packetgate.connectors.terminal.commands.reports"
COMMAND_MODULES = {
    **dict.fromkeys(("init", "ask", "answer", "chat"), TURNS),
    **dict.fromkeys(("tools", "policy", "settings", "calibrate", "evaluate", "doctor", "audit"), REPORTS),
    "trace": "packetgate.connectors.trace.command",
    "discord": "packetgate.connectors.discord.command",
    "studio": "packetgate.connectors.studio",
    "proxy": "packetgate.connectors.proxy.command",
    "serve": "packetgate.connectors.serve.command",
}
"""Maps each command, in the order of the help, to the module that defines it.

The module has a function with the command's name. The function's parameters are the command's options. Printing help
imports the module, so slow imports belong inside the function.
"""


class CommandGroup(TyperGroup):
    """The commands by name; a missing package breaks only the commands that need it."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMAND_MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command. For an unknown name, load all commands to suggest a similar name, and return None."""
        for name in [cmd_name] if cmd_name in COMMAND_MODULES else COMMAND_MODULES:
            if name not in self.commands:
                self.commands[name] = _command(name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the named command; a sentence instead of a name is passed to `ask`."""
        if args and args[0] not in COMMAND_MODULES and len(args[0].split()) > 1:
            return super().resolve_command(ctx, ["ask", *args])
        return super().resolve_command(ctx, args)


def _command(name: str) -> Any:
    command = getattr(import_module(COMMAND_MODULES[name]), name)
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
    """A tool router: every request is a typed packet that passes a reviewed gate before an MCP tool may run."""
