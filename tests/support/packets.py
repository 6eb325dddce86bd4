"""Tools, calls and packets for tests that need no graph."""

from collections.abc import Collection
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from mcp_types import Tool
from support.confirmed_reads import confirmed

from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import Content, Context, DataField, PaletteEntry, ServerHealth
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.specs import spec_of

CONTEXT = RoutingContext()


def tool(name: str, /, *required: str, description: str = "", **parameters: Any) -> ToolSpec:
    """Return a tool, as a confirmed read if it looks like a read. A parameter is a schema or the name of a type."""
    server, _, upstream = name.partition(".")
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": [*required]}
    listed = Tool(name=upstream, description=description, input_schema=schema)
    return confirmed(spec_of(server, listed, trusted=False))


FILES = Catalogue(
    [
        tool("files.read_file", "path", path="string", description="Read a text file."),
        tool("files.list_directory", "path", path="string", description="List what a directory holds."),
        tool("files.search_files", "query", query="string", description="Search the files for words."),
        tool("files.write_file", "path", "content", path="string", content="string", description="Write a text file."),
        tool("files.delete_file", "path", path="string", description="Delete a file."),
        tool(
            "shell.run_command",
            "command",
            description="Run a program.",
            command={"type": "array", "items": {"type": "string"}},
        ),
        tool("clock.convert_time", "time", "zone", time="string", zone="string", description="Convert a time."),
    ]
)
"""The tools of a few servers."""


class _Shelf:
    last_catalogue = FILES

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        return FILES

    def health(self) -> tuple[ServerHealth, ...]:
        return ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        raise CallRefusedError("nothing runs here")


FILES_TOOLBOX: Toolbox = _Shelf()
"""The same tools, from servers that have started."""


def done(
    tool_name: str, status: ToolExecutionStatus = ToolExecutionStatus.EXECUTED, /, *, why: str = "", **params: Any
) -> ToolCall:
    """Return a call without a result."""
    risk = FILES[tool_name].risk if tool_name in FILES else Risk.READ
    return ToolCall(tool_name=tool_name, params=params, status=status, risk=risk, review_reasoning=why)


def with_output(call: ToolCall, output: str, **more: Any) -> ToolCall:
    """Return the call with its tool's output."""
    return call.model_copy(update={"result": ToolResult(success=True, output=output, **more)})


def with_error(call: ToolCall, error: str) -> ToolCall:
    """Return the call with its tool's error."""
    return call.model_copy(update={"result": ToolResult(success=False, error=error)})


def packet(
    prompt: str,
    *calls: ToolCall,
    catalogue: Catalogue = FILES,
    history: tuple[tuple[str, str], ...] = (),
    clarifications: tuple[str, ...] = (),
    data: tuple[DataField, ...] = (),
    servers: tuple[ServerHealth, ...] = (),
    **routing: Any,
) -> CognitionPacket:
    """Return the packet of a turn that needs tools, with the whole catalogue as the palette."""
    entries = tuple(
        PaletteEntry(tool_name=name, detail="full", reason="ranked", risk=spec.risk) for name, spec in catalogue.items()
    )
    earlier = [message for human, ai in history for message in (HumanMessage(human), AIMessage(ai))]
    return CognitionPacket(
        content=Content(original_prompt=prompt, clarifications=clarifications, data_fields=data),
        context=Context(palette=entries, servers=servers),
        tool_routing=ToolRouting(calls=calls, **routing),
        messages=[*earlier, HumanMessage(prompt)],
    )


def asking(prompt: str) -> CognitionPacket:
    """Return the packet of a turn without decisions."""
    return packet(prompt).model_copy(update={"tool_routing": None})


class Shelf:
    """A toolbox that has only a catalogue, and counts the reads of the catalogue."""

    def __init__(self, catalogue: Catalogue = FILES) -> None:
        self.asked = 0
        self.last_catalogue = catalogue

    async def catalogue(self, *, wait_for_all: bool = False, called: Collection[str] = ()) -> Catalogue:
        self.asked += 1
        return self.last_catalogue

    def health(self) -> tuple[ServerHealth, ...]:
        return ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        raise CallRefusedError(f"{tool_name} is not to be called")


TRAIN = tool(
    "rail.find_trains", "origin", "destination", description="Find trains between two stations.",
    origin={"type": "string", "description": "Station to leave from"},
    destination={"type": "string", "description": "Station to arrive at"},
    day={"type": "string", "description": "Day of travel"},
)  # fmt: skip
"""A tool whose arguments can be swapped."""
