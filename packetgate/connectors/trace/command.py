"""`packetgate trace`."""

from typing import Annotated

import typer

from packetgate.connectors.options import AsJson, Assistant, Url, settings_from


async def trace(
    packet: Annotated[
        str,
        typer.Argument(
            help="A packet id or its first 8 characters; `last`, also if it still waits; "
            "or a file that `ask --json` wrote (- for standard input)."
        ),
    ] = "last",
    session: Annotated[str | None, typer.Option("--session", "-s", help="Search only this session.")] = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="Also print the prompts as sent to models.")] = False,
    url: Url = None,
    assistant: Assistant = None,
    as_json: AsJson = False,
) -> int:
    """Show a past packet's trace."""
    settings = settings_from(url=url, assistant=assistant)
    from packetgate.connectors.trace.finding import show

    return await show(settings, packet, session, prompts=prompts, as_json=as_json)
