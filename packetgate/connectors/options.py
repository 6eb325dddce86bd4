"""Options that commands share, and the settings, context and session name made from them."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from packetgate.state.errors import ConfigError
from packetgate.state.printing import escaped
from packetgate.state.redaction import redacted

if TYPE_CHECKING:
    from packetgate.connectors.run_settings import RunSettings
    from packetgate.graph.settings import Settings
    from packetgate.state.context import RoutingContext
    from packetgate.toolsets.builtin.sandbox import SandboxSettings
    from packetgate.toolsets.servers.config import McpConfig

Session = Annotated[str | None, typer.Option("--session", "-s", help="Name of the session; by default a new session.")]
McpConfigPath = Annotated[
    Path | None, typer.Option("--mcp-config", help="Path of mcp.json; by default ./mcp.json, if that file exists.")
]
Lite = Annotated[
    str | None, typer.Option(help="Model for intent and selection: ollama:NAME, openai:NAME, llamacpp:FILE, ...")
]
Prime = Annotated[
    str | None, typer.Option(help="Model for review and answer; decisions:NAME and systemone:NAME only review.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON, for scripts.")]
Trace = Annotated[bool, typer.Option("--trace", help="Show the trace of a turn below its answer.")]
Writes = Annotated[
    bool | None,
    typer.Option(
        "--allow-writes/--no-writes",
        help="Allow tools that change things (each call still needs approval); off by default.",
    ),
]
Commands = Annotated[
    bool | None,
    typer.Option(
        "--allow-commands/--no-commands", help="Allow tools that execute commands (each call still needs approval)."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the run, such as confidence_threshold=0.8; `settings` lists all.",
    ),
]


def settings_from(*, mcp_config: Path | None = None, lite: str | None = None, prime: str | None = None) -> "Settings":
    """Return the settings of the environment and the command line. The command line overrides the environment.

    Raises:
        ConfigError: a setting is invalid.
    """
    from pydantic import ValidationError

    from packetgate.graph.settings import Settings

    options = {"mcp_config": mcp_config, "lite": lite, "prime": prime}
    try:
        return Settings.model_validate({name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"PACKETGATE_{str(first['loc'][0]).upper()}: {first['msg']}") from error


def check_settings(settings: "Settings") -> "Settings":
    """Return settings after checking the names of their models and their files, before the slow imports.

    Raises:
        ConfigError, ModelError: a file or a model cannot be used.
    """
    from packetgate.graph.composition import model_pool

    model_pool(settings)
    return check_settings_files(settings)


def check_settings_files(settings: "Settings") -> "Settings":
    """Return settings after checking their files; print which entries of `mcp.json` are changed or ignored.

    Raises:
        ConfigError: a file cannot be used.
    """
    from packetgate.graph.servers import sandbox_settings
    from packetgate.tools.catalogue.preferences import load_preferences
    from packetgate.toolsets.servers.config import load_config
    from packetgate.toolsets.servers.confined import sandbox_problem

    preferences = load_preferences(settings.preferences_path)
    config = load_config(settings.config_path, settings.root)
    sandbox = sandbox_settings(preferences, settings)
    may_need_sandbox = config.servers or shutil.which("bwrap") is None  # trying it takes a moment
    note = sandbox_problem(sandbox) if may_need_sandbox else ""
    for line in [*config.entry_problems, *([note] if note else [])]:
        typer.echo(f"packetgate: {line}", err=True)
    if note:
        _confirm_servers(config, sandbox)
    return settings


def _confirm_servers(config: "McpConfig", sandbox: "SandboxSettings") -> None:
    """Ask, in a terminal, whether unknown servers may start without a sandbox."""
    from packetgate.tools.risk.registry import load_registry
    from packetgate.toolsets.servers.confined import confirm_server, unconfirmed_servers

    if sandbox.data is not None and config.servers and sys.stdin.isatty() and sys.stderr.isatty():
        for name, entry in unconfirmed_servers(config, sandbox, load_registry()).items():
            command = shlex.join([str(entry["command"]), *map(str, entry.get("args", ()))])
            shown = f"{escaped(name)} is unknown, and would run with all your permissions: {escaped(redacted(command))}"
            question = f"{shown}\nStart it?"
            if typer.confirm(question, err=True):
                confirm_server(entry, sandbox.data)


def run_settings_from(
    settings: "Settings", overrides: list[str] | None = None, writes: bool | None = None, commands: bool | None = None
) -> "RunSettings":
    """Return the settings of a run, and the source of each; fields of the context without a source stay unset.

    Raises:
        ConfigError: a setting is invalid, or two options contradict each other.
    """
    from packetgate.connectors.run_settings import run_settings
    from packetgate.tools.catalogue.preferences import load_preferences

    path = settings.preferences_path
    load_preferences(path)  # reports a misspelt table
    return run_settings(path, overrides or (), allow_write_tools=writes, allow_execute_tools=commands)


def context_for_others(run_settings: "RunSettings") -> "RoutingContext":
    """Return the settings for other users' runs, and print which values are limited for other users."""
    for where in run_settings.ignored_sources:
        typer.echo(f"packetgate: {where}: applies to other users only where it restricts them", err=True)
    return run_settings.for_others


def session_name(name: str | None) -> str:
    """Return the given session name, or a new one."""
    from packetgate.state.base import new_id

    if name is not None and not name.strip():
        raise typer.BadParameter("the name of a session must not be empty", param_hint="--session")
    return name or new_id()[:12]
