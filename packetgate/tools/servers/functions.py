"""Functions and LangChain tools of this process as the tools of a server."""

import time
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp_types import Tool, ToolAnnotations
from pydantic import ValidationError

from packetgate.state.base import ms_since
from packetgate.state.errors import InputError
from packetgate.state.routing import ToolResult
from packetgate.tools.servers.results import to_json_text, to_result_async
from packetgate.tools.servers.server import Server
from packetgate.tools.servers.specs import spec_of
from packetgate.tools.spec.tool_spec import ToolSpec

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""Annotations that a tool's `metadata` may contain, by their MCP names."""


class FunctionServer(Server):
    """Functions as the tools of one server. The hints in their metadata are trusted."""

    def __init__(self, name: str, tools: Iterable[BaseTool | Callable[..., Any]]) -> None:
        """Accept sync or async functions with docstrings and annotations, and LangChain tools.

        Raises:
            InputError: a value is not a tool, or two tools have the same name.
        """
        super().__init__(name)
        self._tools: dict[str, BaseTool] = {}
        for made in map(as_tool, tools):
            if made.name in self._tools:
                raise InputError(f"two tools are called {made.name!r}: give one of them another name")
            self._tools[made.name] = made

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of its tools."""
        return (spec_of_tool(self.name, one) for one in self._tools.values())

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool. An exception becomes a failed result that names it."""
        started = time.perf_counter()
        try:
            value, failed = await self._tools[tool].ainvoke(params), False
        except Exception as error:  # noqa: BLE001  foreign code: its exceptions must not end the turn
            value, failed = f"{type(error).__name__}: {error}", True
        text = value if isinstance(value, str) else to_json_text(value)
        structured = value if isinstance(value, dict) and not failed else None
        took_ms = ms_since(started)
        return await to_result_async(text, structured, took_ms, is_error=failed, complete=True)


def reads(function: BaseTool | Callable[..., Any]) -> BaseTool:
    """Return a function as a read-only tool; other functions count as writes."""
    made = copy(as_tool(function))
    made.metadata = {**(made.metadata or {}), "readOnlyHint": True}
    return made


def as_tool(function: BaseTool | Callable[..., Any]) -> BaseTool:
    """Return a function as a LangChain tool; a tool unchanged.

    Raises:
        InputError: `function` is neither, or has no description.
    """
    if isinstance(function, BaseTool):
        return function
    if not callable(function):
        raise InputError(
            f"{function!r} is not a tool: pass a function, a LangChain tool, a server or a file of servers"
        )
    try:
        return tool(function)
    except (ValueError, ValidationError) as error:
        raise InputError(f"{getattr(function, '__name__', function)!r} cannot be a tool: {error}") from error


def spec_of_tool(server: str, made: BaseTool) -> ToolSpec:
    """Return the definition of a LangChain tool, trusting the hints in its metadata."""
    function = convert_to_openai_tool(made)["function"]
    hints = {name: value for name, value in (made.metadata or {}).items() if name in HINTS}
    described = Tool(
        name=made.name,
        description=function.get("description") or None,
        input_schema=function["parameters"],
        annotations=ToolAnnotations.model_validate(hints) if hints else None,
    )
    return spec_of(server, described, trusted=True)
