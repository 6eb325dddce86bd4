"""Offer functions and LangChain tools of this process as a server."""

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
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.results import to_json_text, to_result_async
from packetgate.toolsets.servers.server import Server
from packetgate.toolsets.servers.specs import spec_of

HINT_NAMES = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""MCP names of the annotations that a tool's `metadata` may contain."""


class FunctionServer(Server):
    """A server whose tools are functions. The hints in their metadata are trusted."""

    def __init__(self, name: str, tools: Iterable[BaseTool | Callable[..., Any]]) -> None:
        """Accept sync or async functions with docstrings and annotations, and LangChain tools.

        Raises:
            InputError: a value is not a tool, or two tools have the same name.
        """
        super().__init__(name)
        self._tools: dict[str, BaseTool] = {}
        for langchain_tool in map(to_langchain_tool, tools):
            if langchain_tool.name in self._tools:
                raise InputError(f"two tools have the name {langchain_tool.name!r}: rename one of them")
            self._tools[langchain_tool.name] = langchain_tool

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of the server's tools."""
        return (langchain_tool_spec(self.name, tool) for tool in self._tools.values())

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool. An exception becomes a failed result with the exception's name and message."""
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
    """Return a function as a read-only tool. Functions without this decorator count as writes."""
    langchain_tool = copy(to_langchain_tool(function))
    langchain_tool.metadata = {**(langchain_tool.metadata or {}), "readOnlyHint": True}
    return langchain_tool


def to_langchain_tool(function: BaseTool | Callable[..., Any]) -> BaseTool:
    """Return a function as a LangChain tool, or a LangChain tool unchanged.

    Raises:
        InputError: `function` is neither a function nor a tool, or has no description.
    """
    if isinstance(function, BaseTool):
        return function
    if not callable(function):
        raise InputError(
            f"{function!r} is not a tool: pass a function, a LangChain tool, a server or the path of an mcp.json"
        )
    try:
        return tool(function)
    except (ValueError, ValidationError) as error:
        raise InputError(f"{getattr(function, '__name__', function)!r} cannot be a tool: {error}") from error


def langchain_tool_spec(server: str, langchain_tool: BaseTool) -> ToolSpec:
    """Return the definition of a LangChain tool. The hints in its metadata are trusted."""
    function = convert_to_openai_tool(langchain_tool)["function"]
    hints = {name: value for name, value in (langchain_tool.metadata or {}).items() if name in HINT_NAMES}
    described = Tool(
        name=langchain_tool.name,
        description=function.get("description") or None,
        input_schema=function["parameters"],
        annotations=ToolAnnotations.model_validate(hints) if hints else None,
    )
    return spec_of(server, described, trusted=True)
