"""`packetgate serve`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from packetgate.connectors.options import Commands, Lite, McpConfigPath, Prime, Set, Writes

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from packetgate.connectors.clients import Clients
    from packetgate.graph.settings import Settings
    from packetgate.state.context import RoutingContext

TOKEN_VARIABLE = "PACKETGATE_SERVE_TOKEN"  # noqa: S105


async def serve(
    host: Annotated[str, typer.Option(help="Host to bind. Other machines need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to bind; 0 for a free one.")] = 2026,
    allow_host: Annotated[list[str] | None, typer.Option(help="Additional host name to accept.")] = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
) -> int:
    """Serve the graph as a model, over OpenAI's protocol, to any chat client until stopped."""
    from packetgate.connectors.clients import load_clients
    from packetgate.connectors.http import bind_socket, check_tokens_required, serve_app
    from packetgate.connectors.options import check_settings, context_for_others, run_settings_from, settings_from

    settings = check_settings(settings_from(mcp_config=mcp_config, lite=lite, prime=prime))
    config = load_clients("serve", settings.preferences_path)
    context = context_for_others(run_settings_from(settings, overrides, allow_writes, allow_commands))
    tokens = config.tokens("serve", TOKEN_VARIABLE)
    with bind_socket(host, port) as listening:
        check_tokens_required(listening, has_tokens=bool(tokens), table="serve", variable=TOKEN_VARIABLE)
        async with open_app(settings, config, context, tokens, allow_host or []) as app:
            typer.echo(f"packetgate: http://{host}:{listening.getsockname()[1]}/v1", err=True)
            await serve_app(app, listening)
    return 0


@asynccontextmanager
async def open_app(
    settings: "Settings", config: "Clients", context: "RoutingContext", tokens: dict[str, str], hosts: list[str]
) -> AsyncIterator["Starlette"]:
    """Open the sessions, and yield the application that serves them."""
    from packetgate.connectors.opening import open_sessions
    from packetgate.connectors.serve.app import ServeEndpoint, make_app
    from packetgate.connectors.serve.conversations import SERVE_CHANNEL
    from packetgate.graph.composition import model_pool

    models = model_pool(settings)
    async with open_sessions(settings, models, "chat server") as sessions:
        sessions.start(context, SERVE_CHANNEL)
        yield make_app(ServeEndpoint(sessions, config, context, tokens, partial(models.get, "prime")), hosts)
