"""`packetgate studio`."""

import signal
from importlib.util import find_spec
from typing import Annotated

import typer

GRAPHS = {"packetgate": "packetgate.graph.app:graph"}
HTTP = "packetgate.graph.http:app"
ENVIRONMENT = {"LANGGRAPH_STRICT_MSGPACK": "true"}


def studio(
    host: Annotated[str, typer.Option(help="Host to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to bind.")] = 2024,
) -> None:
    """Serve the graph to LangGraph Studio and to chat front ends, until stopped."""
    if find_spec("langgraph_api") is None:
        typer.echo(
            "packetgate: the LangGraph server is not installed: in a clone of Packetgate, pip install '.[studio]'",
            err=True,
        )
        raise typer.Exit(2)
    from langgraph_api.cli import run_server

    # On Ctrl-C, the server first stops itself and its MCP servers, and then raises the interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # No reload: tools write files in this folder, and a reload would end the running turn.
    run_server(host, port, reload=False, graphs=GRAPHS, env=ENVIRONMENT, n_jobs_per_worker=10, http={"app": HTTP})
