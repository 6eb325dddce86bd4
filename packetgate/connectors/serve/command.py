"""`packetgate serve`."""

from functools import partial
from typing import Annotated

import typer

from packetgate.connectors.options import Commands, Lite, McpConfig, Prime, Set, Writes
from packetgate.connectors.running import run
from packetgate.state.errors import ConfigError

TOKEN = "PACKETGATE_SERVE_TOKEN"  # noqa: S105


def serve(
    host: Annotated[str, typer.Option(help="Where it listens; beyond this machine only with tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="At which port; 0 for a free one.")] = 2026,
    allow_host: Annotated[list[str] | None, typer.Option(help="Another name by which clients reach it.")] = None,
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    chosen: Set = None,
) -> None:
    """Serve the graph as a model to any chat client that speaks OpenAI's protocol, until stopped."""

    async def start() -> int:
        from packetgate.connectors.clients import load_clients
        from packetgate.connectors.options import checked, others_context, run_settings_from, settings_from
        from packetgate.connectors.serve.config import ServeConfig

        given = settings_from(mcp_config=mcp_config, lite=lite, prime=prime, own=True)
        if given.url:
            raise ConfigError(f"PACKETGATE_URL is {given.url}: these turns run here; unset it")
        settings = checked(given)
        config = load_clients(ServeConfig, settings.preferences_path)
        context = others_context(run_settings_from(settings, chosen, allow_writes, allow_commands))
        tokens = config.tokens(TOKEN)
        from starlette.routing import Route

        from packetgate.connectors.http import bound, check_guarded, serve_app
        from packetgate.connectors.opening import open_sessions
        from packetgate.connectors.serve.app import Endpoint, make_app
        from packetgate.connectors.serve.decisions import Decisions
        from packetgate.graph.pool import model_pool

        models = model_pool(settings)
        with bound(host, port) as listening:
            check_guarded(listening, has_tokens=bool(tokens), table="serve", variable=TOKEN)
            async with open_sessions(settings, models) as sessions:
                typer.echo(f"packetgate: http://{host}:{listening.getsockname()[1]}/v1", err=True)
                model = partial(models.get, "prime")
                endpoint = Endpoint(sessions, config, context, tokens, model)
                decisions = Decisions(endpoint, model)
                route = Route("/v1/decisions", decisions.decide, methods=["POST"])
                await serve_app(make_app(endpoint, allow_host or [], route), listening)
        return 0

    run(start)
