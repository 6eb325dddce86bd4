"""`packetgate discord`."""

import os
from importlib.util import find_spec

from packetgate.connectors.options import Lite, McpConfigPath, Prime, Set
from packetgate.state.errors import ConfigError

SWITCH_TABLES = {"allow_write_tools": "[discord.writes]", "allow_execute_tools": "[discord.commands]"}


async def discord(
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    overrides: Set = None,
) -> int:
    """Answer on Discord until stopped.

    The bot's token is read only from the environment: DISCORD_TOKEN.
    """
    from packetgate.connectors.discord.config import load_discord_config
    from packetgate.connectors.options import check_settings, context_for_others, run_settings_from, settings_from

    token = os.environ.get("DISCORD_TOKEN", "").strip()
    if not token:
        raise ConfigError(
            "DISCORD_TOKEN is not set: create a bot at https://discord.com/developers/applications, "
            "and set the variable to its token"
        )
    settings = check_settings(settings_from(mcp_config=mcp_config, lite=lite, prime=prime))
    run_settings = run_settings_from(settings, overrides)
    for name, table in SWITCH_TABLES.items():
        if run_settings.sources.get(name) == f"--set {name}" and getattr(run_settings.context, name):
            raise ConfigError(f"--set {name} cannot be used with discord: set {table} in packetgate.toml")
    config = load_discord_config(settings.preferences_path).limited_by(context_for_others(run_settings))
    if find_spec("discord") is None:
        raise ConfigError("discord.py is not installed: in a clone of Packetgate, pip install '.[discord]'")
    from packetgate.connectors.discord.bot import run_bot

    return await run_bot(settings, config, token)
