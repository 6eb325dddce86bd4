"""`packetgate proxy`."""

import os
from typing import Annotated

import typer

from connectors.options import Commands, McpConfig, Writes
from connectors.running import run

TOKEN = "PACKETGATE_PROXY_TOKEN"  # noqa: S105


def proxy(
    http: Annotated[bool, typer.Option("--http", help="Serve over streamable HTTP, not standard input.")] = False,
    host: Annotated[str, typer.Option(help="With --http: where it listens; beyond this machine only with tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http: at which port; 0 for a free one.")] = 2025,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="With --http: another name by which clients reach it.")
    ] = None,
    client: Annotated[str, typer.Option(help="Whose session this is: a [proxy.clients.NAME], where no token says.")] = (
        "local"
    ),
    mcp_config: McpConfig = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
) -> None:
    """Serve all configured MCP servers as one, with the tools that fit what the client is about."""

    async def start() -> int:
        from connectors.options import checked_files, context_from, settings_from
        from connectors.proxy.config import LOCAL, checked_token, load_proxy_config

        settings = checked_files(settings_from(mcp_config=mcp_config, own=True))
        config = load_proxy_config(settings.preferences_path)
        tokens = config.tokens() if http else {}
        given = os.environ.get(TOKEN, "")
        if http and given:
            tokens[checked_token(given, TOKEN)] = LOCAL
        from connectors.proxy.opening import open_gateway
        from connectors.proxy.serving import bound, serve_http, serve_stdio

        async with open_gateway(settings, config, context_from(allow_writes, allow_commands), client) as gateway:
            if not http:
                await serve_stdio(gateway)
                return 0
            listening = bound(host, port)
            typer.echo(f"packetgate: http://{host}:{listening.getsockname()[1]}/mcp", err=True)
            await serve_http(gateway, listening, tokens, allow_host or [])
            return 0

    run(start)
