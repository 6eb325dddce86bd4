"""`packetgate trace`."""

from pathlib import Path
from typing import Annotated

import typer

from packetgate.connectors.options import AsJson, Assistant, Url, settings_from


async def trace(
    packet: Annotated[
        str,
        typer.Argument(
            help="A packet's id or the 8 characters of it that a journey ends with; `last`, finished or not; "
            "or a file that `ask --json` wrote, - for standard input."
        ),
    ] = "last",
    session: Annotated[str | None, typer.Option("--session", "-s", help="Look only in this conversation.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Save it as a page: a timeline, and the prompts as they were sent.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --html: replace a file that is there.")] = False,
    url: Url = None,
    assistant: Assistant = None,
    as_json: AsJson = False,
) -> int:
    """Show a past packet's journey."""
    if force and html is None:
        raise typer.BadParameter("goes with --html: nothing else is written", param_hint="--force")

    settings = settings_from(url=url, assistant=assistant)
    from packetgate.connectors.trace.page import show

    return await show(settings, packet, session, html, force=force, as_json=as_json)
