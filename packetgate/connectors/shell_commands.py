"""Commands for a person to paste into a shell: with the program, the folder and the settings of this process."""

import shlex
import shutil
import sys
from collections.abc import Collection
from pathlib import Path

from packetgate.graph.settings import DEFAULT_PREFERENCES, Settings

CARRIED = ("home", "root", "config", "mcp_config", "sandbox", "sandbox_network", "embeddings", "patience_s")
"""Settings that a command repeats. An answer needs no models; a database URL may hold a password."""


def program_path() -> str:
    """Return the absolute path of the `packetgate` command."""
    installed = Path(sys.executable).with_name("packetgate")
    return str(installed) if installed.exists() else shutil.which("packetgate") or "packetgate"


def setting_variables(settings: Settings) -> dict[str, str]:
    """Return the variables that repeat the settings of the environment and of the command line."""
    values = {name: getattr(settings, name) for name in CARRIED if name in settings.model_fields_set}
    return {f"PACKETGATE_{name.upper()}": str(value) for name, value in values.items() if value is not None}


def command_here(settings: Settings, options: Collection[str]) -> str:
    """Return how a command begins in any shell in this folder. The `options` that were given must follow."""
    variables = setting_variables(settings)
    if "--mcp-config" in options:
        del variables["PACKETGATE_MCP_CONFIG"]
    found = shutil.which("packetgate")
    is_found = found is not None and Path(found).resolve() == Path(program_path()).resolve()
    return _assigned(variables, "packetgate" if is_found else program_path())


def command_anywhere(settings: Settings) -> str:
    """Return how a command begins in any shell of this machine, in any folder."""
    return f"cd {shlex.quote(str(Path.cwd()))} && {_assigned(setting_variables(settings), program_path())}"


def preferences_hint(settings: Settings) -> str:
    """Return which `packetgate.toml` the proxy reads, and when."""
    return f"The proxy reads {(settings.config or DEFAULT_PREFERENCES).absolute()} when it starts."


def _assigned(variables: dict[str, str], program: str) -> str:
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.quote(program)])
