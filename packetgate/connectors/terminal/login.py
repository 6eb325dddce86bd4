"""`packetgate login` and `packetgate logout`: log in to a server over OAuth, and delete the login."""

import asyncio
import os
import sys
import webbrowser
from typing import Annotated

import typer

from packetgate.connectors.options import McpConfigPath, settings_from
from packetgate.connectors.rendering import say
from packetgate.graph.private_files import private_folder
from packetgate.graph.settings import Settings
from packetgate.state.errors import RequestError
from packetgate.toolsets.servers.config import ServerConfig, load_config
from packetgate.toolsets.servers.oauth import log_in, login_states, login_store, may_log_in

Server = Annotated[str, typer.Argument(help="Name of the server in mcp.json.")]


async def login(
    server: Server,
    mcp_config: McpConfigPath = None,
    browser: Annotated[bool, typer.Option(help="Open a browser, or only print the address.")] = True,
) -> int:
    """Log in to a server over OAuth, and store the login."""
    settings = settings_from(mcp_config=mcp_config)
    config = _server(settings, server)

    async def show(address: str) -> None:
        say(f"To log in to {server}, open this address in a browser of this machine:")
        typer.echo(address)
        if browser and _has_browser():
            await asyncio.to_thread(webbrowser.open, address)

    private_folder(settings.home)
    await log_in(config, settings.logins_path, show)
    for state in await asyncio.to_thread(lambda: [*login_states([config], settings.logins_path)]):
        say(f"{server}: {state.text}")
    return 0


async def logout(server: Server, mcp_config: McpConfigPath = None) -> int:
    """Delete the stored login to a server. Its tokens stay valid at the server until they expire."""
    settings = settings_from(mcp_config=mcp_config)
    store = login_store(_server(settings, server), settings.logins_path)
    existed = await asyncio.to_thread(store.delete)
    say(f"{server}: {'the login was deleted' if existed else 'there was no login'}")
    return 0


def _server(settings: Settings, name: str) -> ServerConfig:
    servers = {server.name: server for server in load_config(settings.config_path, settings.root).servers}
    if name not in servers:
        raise RequestError(f"there is no server {name!r} in mcp.json; servers: {', '.join(servers) or 'none'}")
    if not may_log_in(servers[name].entry):
        raise RequestError(f'server {name!r} needs no login: its entry has a "command" or credentials')
    return servers[name]


def _has_browser() -> bool:
    """Whether a browser with a window can open; a text browser would take over the terminal."""
    return sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
