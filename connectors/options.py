"""The options that commands share, and what they make: settings, a context, a session's name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from state.errors import ConfigError

if TYPE_CHECKING:
    from graph.settings import Settings
    from state.context import RoutingContext

Session = Annotated[str | None, typer.Option("--session", "-s", help="Name of the conversation; a new one by default.")]
McpConfig = Annotated[
    Path | None, typer.Option("--mcp-config", help="mcp.json; by default ./mcp.json if there is one.")
]
Lite = Annotated[str | None, typer.Option(help="Model for intent and selection: reflex, openai:NAME, llamacpp:FILE.")]
Prime = Annotated[str | None, typer.Option(help="Model for review and answer, likewise.")]
Url = Annotated[
    str | None, typer.Option(help="A running LangGraph-API server whose turns these are, instead of this process's.")
]
Assistant = Annotated[str | None, typer.Option(help="With --url: whose turns they are there, by name or id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts and nothing else.")]
Writes = Annotated[
    bool | None,
    typer.Option(
        "--allow-writes/--no-writes", help="Let tools that change things run, after approval; by default they do not."
    ),
]
Commands = Annotated[
    bool | None, typer.Option("--allow-commands/--no-commands", help="Let tools that run commands run, likewise.")
]


def settings_from(
    *,
    mcp_config: Path | None = None,
    lite: str | None = None,
    prime: str | None = None,
    url: str | None = None,
    assistant: str | None = None,
    own: bool = False,
) -> "Settings":
    """Return the settings: the environment, and over it what the command line gave.

    `own`: whether they are for what this process has itself, whoever runs the turns.

    Raises:
        ConfigError: one of them is not usable, or two do not go together.
    """
    from pydantic import ValidationError

    from graph.settings import Settings

    options = {"mcp_config": mcp_config, "lite": lite, "prime": prime, "url": url, "assistant": assistant}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"PACKETGATE_{str(first['loc'][0]).upper()}: {first['msg']}") from error
    mine = [f"--{name.replace('_', '-')}" for name in ("lite", "prime", "mcp_config") if name in given]
    if settings.url and mine and not own:
        raise ConfigError(f"{', '.join(mine)}: {settings.url} has its own models and servers: leave one of them out")
    if assistant is not None and not settings.url:
        raise ConfigError(f"--assistant {assistant} is a server's: say which with --url or PACKETGATE_URL")
    return settings


def checked(settings: "Settings") -> "Settings":
    """Return settings for turns once their models' names and their files are known to be usable.

    This is told before what takes seconds to import. With a server's turns, all this is the server's.

    Raises:
        ConfigError, ModelError: they are not.
    """
    if settings.url:
        return settings
    from models.pool import ModelPool

    ModelPool(settings.lite, settings.prime)
    return checked_files(settings)


def checked_files(settings: "Settings") -> "Settings":
    """Return settings whose files can be used.

    Raises:
        ConfigError: they cannot.
    """
    from tools.catalogue.preferences import load_preferences
    from tools.servers.config import load_config

    load_config(settings.config_path)
    load_preferences(settings.preferences_path)
    return settings


def context_from(writes: bool | None, commands: bool | None) -> "RoutingContext":
    """Return a context that holds only the switches that were given: the rest is the server's assistant's to say."""
    from state.context import RoutingContext

    switches = {"allow_write_tools": writes, "allow_execute_tools": commands}
    return RoutingContext.model_validate({name: value for name, value in switches.items() if value is not None})


def session_name(given: str | None) -> str:
    """Return the session's name as given, or a new one."""
    from state.base import new_id

    if given is not None and not given.strip():
        raise typer.BadParameter("a session's name must not be empty", param_hint="--session")
    return given or new_id()[:12]
