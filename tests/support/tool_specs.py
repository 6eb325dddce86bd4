"""Specifications of tools for tests, without a server."""

from typing import Any

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec

PATH = {"type": "string", "description": "The file to use."}


def a_tool(
    name: str,
    description: str = "",
    *,
    risk: Risk = Risk.READ,
    required: tuple[str, ...] = (),
    schema: dict[str, Any] | None = None,
    **properties: Any,
) -> ToolSpec:
    """Return the tool `server.tool` with these parameters, or with exactly this schema."""
    server, _, upstream = name.partition(".")
    full = description or f"{upstream.replace('_', ' ').capitalize()}."
    return ToolSpec(
        name=name,
        server=server,
        upstream_name=upstream,
        full=full,
        brief=brief_of(full),
        input_schema=schema or {"type": "object", "properties": properties, "required": list(required)},
        risk=risk,
    )


def files_catalogue() -> Catalogue:
    """Return three tools on files: a read, a write, and a tool that runs commands."""
    mode = {"type": "string", "enum": ["create", "append"], "default": "create"}
    return Catalogue(
        [
            a_tool("files.read_file", "Read a file's text.", required=("path",), path=PATH, lines={"type": "integer"}),
            a_tool(
                "files.write_file",
                "Write text to a file.",
                risk=Risk.WRITE,
                required=("path", "content"),
                path=PATH,
                content={"type": "string"},
                mode=mode,
            ),
            a_tool(
                "shell.run_command",
                "Run a command.",
                risk=Risk.EXECUTE,
                required=("argv",),
                argv={"type": "array", "items": {"type": "string"}},
            ),
        ]
    )
