"""`packetgate proxy`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from packetgate.connectors.options import AsJson, Commands, McpConfig, Set, Writes

if TYPE_CHECKING:
    from packetgate.graph.settings import Settings


async def proxy(
    http: Annotated[bool, typer.Option("--http", help="Serve over streamable HTTP, not standard input.")] = False,
    host: Annotated[str, typer.Option(help="With --http: host to bind; beyond this machine only with tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http: port to bind; 0 for a free one.")] = 2025,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="With --http: another name by which clients reach it.")
    ] = None,
    client: Annotated[str, typer.Option(help="The client, one of proxy.clients, of requests without a token.")] = (
        "local"
    ),
    check: Annotated[
        bool, typer.Option("--check", help="Check every server and tool against the pins; serve nothing.")
    ] = False,
    pin: Annotated[bool, typer.Option("--pin", help="Pin the current definition of every tool, for --check.")] = False,
    pins: Annotated[Path | None, typer.Option(help="With --check and --pin: the file of pins.")] = None,
    install: Annotated[
        str | None, typer.Option(help="Put the proxy into a client's settings, such as cursor's, and take its servers.")
    ] = None,
    uninstall: Annotated[str | None, typer.Option(help="Put a client's settings back as they were.")] = None,
    print_entry: Annotated[bool, typer.Option("--print", help="With --install: show the entry, change nothing.")] = (
        False
    ),
    mcp_config: McpConfig = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    chosen: Set = None,
    as_json: AsJson = False,
) -> int:
    """Serve all configured MCP servers as one, with the tools that fit the client's task."""

    from packetgate.connectors.clients import ProxyConfig, load_clients
    from packetgate.connectors.options import checked_files, others_context, run_settings_from, settings_from

    given = settings_from(mcp_config=mcp_config, own=True)
    if install is not None or uninstall is not None:
        return _settle(given, install, uninstall, print_entry=print_entry)
    settings = checked_files(given)
    config = load_clients(ProxyConfig, settings.preferences_path)
    if config.clients and client not in {*config.clients, "local"}:
        typer.echo(
            f"packetgate: no proxy.clients.{client} in packetgate.toml: it may use all that is configured", err=True
        )
    if check or pin:
        from packetgate.connectors.proxy.pins import preflight

        return await preflight(settings, pins, pin=pin, as_json=as_json)
    context = others_context(run_settings_from(settings, chosen, allow_writes, allow_commands))
    from packetgate.connectors.http import bound
    from packetgate.connectors.proxy.serving import TOKEN, open_gateway, serve_http, serve_stdio

    tokens = config.tokens(TOKEN) if http else {}
    async with open_gateway(settings, config, context, client) as gateway:
        if not http:
            await serve_stdio(gateway)
            return 0
        listening = bound(host, port)
        typer.echo(f"packetgate: http://{host}:{listening.getsockname()[1]}/mcp", err=True)
        await serve_http(gateway, listening, tokens, allow_host or [])
        return 0


def _settle(settings: "Settings", install: str | None, uninstall: str | None, *, print_entry: bool) -> int:
    from packetgate.connectors.client_settings import ENTRY, SettingsFile, place_of
    from packetgate.connectors.proxy import installing

    if uninstall is not None:
        done = installing.uninstall(uninstall, place_of(uninstall))
    elif install is not None and print_entry:
        place = place_of(install)
        entry = {ENTRY: installing.entry_for(install, settings)}
        done = [SettingsFile.of(place.file, None).changed(place.key, entry).decode().strip()]
    elif install is not None:
        done = installing.install(install, place_of(install), settings)
    for line in done:
        typer.echo(line)
    return 0
