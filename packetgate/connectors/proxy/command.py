"""`packetgate proxy`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from packetgate.connectors.options import Commands, McpConfigPath, Set, Writes
from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from packetgate.graph.settings import Settings


async def proxy(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over streamable HTTP instead of standard input and output.")
    ] = False,
    host: Annotated[str, typer.Option(help="With --http: host to bind. Other machines need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http: port to bind; 0 for a free one.")] = 2025,
    allow_host: Annotated[list[str] | None, typer.Option(help="With --http: additional host name to accept.")] = None,
    client: Annotated[
        str, typer.Option(help="Name of an entry below `proxy.clients`, for requests without a token.")
    ] = "local",
    install: Annotated[
        str | None, typer.Option(help="Add the proxy to a client, such as cursor, and move its servers to mcp.json.")
    ] = None,
    print_entry: Annotated[
        bool, typer.Option("--print", help="With --install: print the entry and change nothing.")
    ] = False,
    folder: Annotated[Path | None, typer.Option(help="Run in this folder, as if started there.")] = None,
    mcp_config: McpConfigPath = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
) -> int:
    """Serve all configured MCP servers as one, with the tools that fit the client's task."""
    from packetgate.connectors.clients import load_clients
    from packetgate.connectors.http import bind_socket
    from packetgate.connectors.options import check_settings_files, context_for_others, run_settings_from, settings_from

    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise ConfigError(f"--folder {folder}: {error.strerror}") from error
    options = settings_from(mcp_config=mcp_config)
    if install is not None:
        switches = (("--allow-writes", allow_writes), ("--allow-commands", allow_commands))
        return _install(options, install, [name for name, is_on in switches if is_on], print_entry=print_entry)
    settings = check_settings_files(options)
    config = load_clients("proxy", settings.preferences_path)
    if config.clients and client not in {*config.clients, "local"}:
        typer.echo(
            f"packetgate: packetgate.toml has no [proxy.clients.{client}]: this client may use all servers", err=True
        )
    context = context_for_others(run_settings_from(settings, overrides, allow_writes, allow_commands))
    from packetgate.connectors.proxy.serving import PROXY_TOKEN_VARIABLE, open_gateway, serve_http, serve_stdio

    tokens = config.tokens("proxy", PROXY_TOKEN_VARIABLE) if http else {}
    async with open_gateway(settings, config, context, client) as gateway:
        if not http:
            await serve_stdio(gateway)
            return 0
        listening = bind_socket(host, port)
        typer.echo(f"packetgate: http://{host}:{listening.getsockname()[1]}/mcp", err=True)
        await serve_http(gateway, listening, tokens, allow_host or [])
        return 0


def _install(settings: "Settings", client: str, options: list[str], *, print_entry: bool) -> int:
    from packetgate.connectors import client_settings

    place = client_settings.settings_place(client)
    if print_entry:
        entry = client_settings.entry_for(client, settings, options)
        empty = client_settings.SettingsFile(place.file, "", {})
        typer.echo(empty.text_with(place.key, {client_settings.ENTRY: entry}), nl=False)
        return 0
    for line in client_settings.install(client, place, settings, options):
        typer.echo(line)
    return 0
