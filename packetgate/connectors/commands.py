"""The commands of every connector, each imported on demand."""

from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import iscoroutinefunction
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from packetgate.connectors.running import run

COMMANDS = {
    "init": "packetgate.connectors.terminal.commands.turns:init",
    "ask": "packetgate.connectors.terminal.commands.turns:ask",
    "answer": "packetgate.connectors.terminal.commands.turns:answer",
    "chat": "packetgate.connectors.terminal.commands.turns:chat",
    "tools": "packetgate.connectors.terminal.commands.reports:tools",
    "policy": "packetgate.connectors.terminal.commands.reports:policy",
    "settings": "packetgate.connectors.terminal.commands.reports:settings",
    "calibrate": "packetgate.connectors.terminal.commands.reports:calibrate",
    "evaluate": "packetgate.connectors.terminal.commands.reports:evaluate",
    "doctor": "packetgate.connectors.terminal.commands.reports:doctor",
    "audit": "packetgate.connectors.terminal.commands.reports:audit",
    "trace": "packetgate.connectors.trace.command:trace",
    "discord": "packetgate.connectors.discord.command:discord",
    "studio": "packetgate.connectors.studio:studio",
    "proxy": "packetgate.connectors.proxy.command:proxy",
    "serve": "packetgate.connectors.serve.command:serve",
}
"""Each command's name, and the function whose parameters are its options, in the order in which help lists them.

The module that holds the function is imported to show help, so it imports in turn, within the function, what is heavy.
"""


class Commands(TyperGroup):
    """The commands by name; a missing package breaks only the commands that need it."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; for an unknown name load all, so that the nearest can be suggested, and return None."""
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.commands[name] = _command(name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the named command; a sentence instead of a name is passed to `ask`."""
        if args and args[0] not in COMMANDS and len(args[0].split()) > 1:
            return super().resolve_command(ctx, ["ask", *args])
        return super().resolve_command(ctx, args)


def _command(name: str) -> Any:
    module, function = COMMANDS[name].split(":")
    command = getattr(import_module(module), function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    @wraps(command)
    def started(**options: Any) -> None:
        run(lambda: command(**options))

    alone.command(name)(started if iscoroutinefunction(command) else command)
    return get_command(alone)


STATUSES = (
    "Exit status: 0 done; 1 a tool failed, or something is missing or broke; "
    "2 what was given cannot be used, and nothing was done; 3 a turn waits for an answer; 130 stopped by Ctrl-C. "
    "PACKETGATE_DEBUG=1 shows where an error comes from."
)

app = typer.Typer(
    cls=Commands, epilog=STATUSES, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"packetgate {version('packetgate')}")
        raise typer.Exit


@app.callback()
def packetgate(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A tool router: every request is a typed packet that passes a reviewed gate before an MCP tool may run."""
