"""`packetgate tools` and `packetgate doctor`."""

from typing import Annotated

import typer

from connectors.options import AsJson, Lite, McpConfig, Prime, checked_files, settings_from
from connectors.running import run


def tools(
    name: Annotated[
        str | None, typer.Argument(help="Show only this tool, in full, or those of this server or category.")
    ] = None,
    mcp_config: McpConfig = None,
    full: Annotated[bool, typer.Option("--full", help="Full descriptions and schemas.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="What was chosen in past turns, and what came of it.")] = False,
    session: Annotated[str | None, typer.Option("--session", "-s", help="With --usage: of this conversation.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the tools: risk, category and brief description, in full on request; or how they were used."""
    if usage and full:
        raise typer.BadParameter("there is no full form of --usage: leave one of them out", param_hint="--full")
    if session is not None and not usage:
        raise typer.BadParameter("goes with --usage: tools belong to no session", param_hint="--session")

    async def look() -> int:
        settings = settings_from(mcp_config=mcp_config, own=True)
        if usage:
            from connectors.terminal.usage import show_usage

            return await show_usage(settings, name, session, as_json=as_json)
        checked_files(settings)
        from connectors.terminal.listing import list_tools

        return await list_tools(settings, name, full=full, as_json=as_json)

    run(look)


def doctor(
    mcp_config: McpConfig = None,
    lite: Lite = None,
    prime: Prime = None,
    models: Annotated[
        bool, typer.Option("--models", help="Load each model, ask it, and tell its speed and how sure it can be.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what is configured, what answers, and what is missing.

    Exit status 1 means that something is missing; with --models, 2 that a model cannot be loaded or asked.
    """

    async def look() -> int:
        settings = settings_from(mcp_config=mcp_config, lite=lite, prime=prime, own=True)
        from connectors.terminal.doctor import run_doctor

        return await run_doctor(settings, models=models, as_json=as_json)

    run(look)
