"""The messages of `tools/resolve`, a draft extension of MCP: hints on one call before it runs."""

from collections.abc import Mapping
from typing import Any, Literal

from mcp_types import Request, RequestParams, Result, Tool
from pydantic import BaseModel, ConfigDict, StrictBool
from pydantic.alias_generators import to_camel

from packetgate.tools.spec.tool_spec import TOOL_RESOLUTION

RESOLVE_TOOL: Literal["tools/resolve"] = "tools/resolve"


def is_marked(tool: Tool) -> bool:
    """Whether a server lists a tool as one whose calls can be resolved."""
    marker = (tool.meta or {}).get(TOOL_RESOLUTION)
    return isinstance(marker, Mapping) and marker.get("resolvable") is True


class ResolveToolParams(RequestParams):
    """A call: the tool's name as listed, and all arguments."""

    name: str
    arguments: dict[str, Any]


class ResolveToolRequest(Request[ResolveToolParams, Literal["tools/resolve"]]):
    """Asks for the hints on a call."""

    method: Literal["tools/resolve"] = RESOLVE_TOOL
    params: ResolveToolParams


class ResolvedHints(BaseModel):
    """The hints on a call, all four of them."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, validate_by_name=True)

    read_only_hint: StrictBool
    destructive_hint: StrictBool
    idempotent_hint: StrictBool
    open_world_hint: StrictBool


class ResolveToolResult(Result):
    """The answer. It cannot change the tool's definition."""

    result_type: Literal["complete"] = "complete"
    name: str
    annotations: ResolvedHints
