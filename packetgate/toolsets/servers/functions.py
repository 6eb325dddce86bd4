"""Offer functions and LangChain tools of this process as a server. They run under LangChain's contract."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from inspect import Parameter, getdoc, signature
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import ToolCall as AgentCall
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp, ParentCommand, is_invalid_resume
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command
from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError

from packetgate.state.base import ms_since, new_id
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolResult
from packetgate.tools.catalogue.toolbox import PausedCallError
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import running_call_id
from packetgate.toolsets.servers.langchain_results import result_of_message, with_json_results
from packetgate.toolsets.servers.results import StoreContent, to_result_async
from packetgate.toolsets.servers.server import Server
from packetgate.toolsets.servers.specs import spec_of

if TYPE_CHECKING:
    from mcp_types import Tool

_T = TypeVar("_T", bound=BaseTool | Callable[..., Any])
_READS = "__packetgate_reads__"
"""Attribute of a function that changes nothing: the function itself, so that a wrapper counts as a write."""
HINT_NAMES = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""MCP names of the annotations that a tool's `metadata` may contain."""
_MARK = "packetgate_reads"
"""Key of the mark of `reads`, in a tool's metadata and in the `meta` of its definition."""


class _Marked(str):
    """The value of the mark. Metadata from a server cannot contain an object of this class."""

    __slots__ = ()


class FunctionServer(Server):
    """A server whose tools are functions. The hints in their metadata are trusted.

    LangGraph's `ToolNode` runs them, with injected arguments. Their state is the packet, as a dict.
    """

    def __init__(
        self, name: str, tools: Iterable[BaseTool | Callable[..., Any]], keep: StoreContent | None = None
    ) -> None:
        """Accept sync or async functions with docstrings and annotations, and LangChain tools.

        Args:
            keep: stores the images and files that tools return.

        Raises:
            InputError: a value is not a tool, two tools have the same name, or nothing could fill in a parameter.
        """
        super().__init__(name)
        self._tools, self._keep = usable_tools(tools, CognitionPacket.model_fields), keep
        self._specs = tuple(langchain_tool_spec(name, tool) for tool in self._tools.values())
        self._node = ToolNode([*self._tools.values()], handle_tool_errors=False, awrap_tool_call=_as_message)

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of the server's tools."""
        return self._specs

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool. An exception becomes a failed result with the exception's name and message.

        Raises:
            PausedCallError: the tool interrupts the graph, or hands over to the parent graph.
        """
        started = time.perf_counter()
        call = AgentCall(name=tool, args=params, id=running_call_id() or new_id(), type="tool_call")
        try:
            made = await self._node.ainvoke([call], runtime=_runtime())
            result = await result_of_message(made["messages"][0], ms_since(started), self._keep)
        except GraphBubbleUp as signal:
            raise PausedCallError(signal) from signal
        except PausedCallError:
            raise
        except Exception as error:
            if is_invalid_resume(error):  # the answer to an interrupt; ask again
                raise PausedCallError(error) from error
            text = f"{type(error).__name__}: {error}"
            return await to_result_async(text, None, ms_since(started), is_error=True)
        return result.changed(is_answer=result.success and self._tools[tool].return_direct)


async def _as_message(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Any]]) -> ToolMessage:
    """Run a tool with the packet as a dict, like the state of an agent, and return its message.

    Raises:
        PausedCallError: the tool hands over to the parent graph.
        TypeError: the tool returns a `Command` that a router cannot carry out.
    """
    state, context = request.runtime.state, request.runtime.context
    runtime = replace(
        request.runtime,
        state=dict(state) if isinstance(state, BaseModel) else state,
        context=None if isinstance(context, RoutingContext) else context,  # a parent graph's
    )
    value, messages = await execute(replace(request, runtime=runtime)), list[ToolMessage]()
    for item in value if isinstance(value, list) else [value]:
        update = (item.update or {}) if isinstance(item, Command) else {"messages": [item]}
        own = update.get("messages", []) if isinstance(update, dict) else []
        own = [one for one in own if isinstance(one, ToolMessage) and one.tool_call_id == request.tool_call["id"]]
        if isinstance(item, Command) and item.graph == Command.PARENT:
            result = await result_of_message(own[0] if own else ToolMessage("done", tool_call_id=""), 0.0)
            raise PausedCallError(ParentCommand(item), result)
        if isinstance(item, Command) and (item.goto or update != {"messages": own}):
            raise TypeError(
                f"{request.tool_call['name']} returned a Command that changes more than its own ToolMessage: a tool of"
                " a router can do so only in the parent graph, with graph=Command.PARENT"
            )
        messages += own
    return messages[0]


def _runtime() -> Runtime[Any]:
    with suppress(RuntimeError):  # outside a graph, such as in the proxy
        return get_runtime() or Runtime()
    return Runtime()


def usable_tools(
    tools: Iterable[BaseTool | Callable[..., Any]], state: Iterable[str] | None = None
) -> dict[str, BaseTool]:
    """Return functions and LangChain tools by name, with results in JSON.

    Args:
        state: the fields of the state that a tool can get; None: not known.

    Raises:
        InputError: a value is not a tool, two tools have the same name, or nothing could fill in a parameter.
    """
    named: dict[str, BaseTool] = {}
    for langchain_tool in map(to_langchain_tool, tools):
        if langchain_tool.name in named:
            raise InputError(f"two tools have the name {langchain_tool.name!r}: rename one of them")
        _check_injected(langchain_tool, state)
        named[langchain_tool.name] = with_json_results(langchain_tool)
    return named


def _check_injected(langchain_tool: BaseTool, state: Iterable[str] | None) -> None:
    schema = langchain_tool.args_schema
    fields = schema.model_fields if isinstance(schema, type) and issubclass(schema, BaseModel) else {}
    for name, field in fields.items():
        for marker in field.metadata if field.is_required() else ():
            kind = marker if isinstance(marker, type) else type(marker)
            if not issubclass(kind, InjectedToolArg):
                continue
            if not issubclass(kind, InjectedState | InjectedStore | InjectedToolCallId):
                raise InputError(
                    f"{langchain_tool.name}: nothing fills in the injected parameter {name!r}: give it a default,"
                    " InjectedState, InjectedStore, InjectedToolCallId or ToolRuntime"
                )
            wanted = getattr(marker, "field", None)
            if wanted and state is not None and wanted not in state:
                raise InputError(
                    f"{langchain_tool.name}: the state of a router has no {wanted!r} for the parameter {name!r}:"
                    f" it has {', '.join(state)}"
                )


def reads(function: _T) -> _T:
    """Declare that a function or a LangChain tool only reads, whatever its name says, and return it.

    Without `reads`, or a `readOnlyHint` in a LangChain tool's metadata, a call counts as a change and waits for
    approval.

    Examples:
        >>> @reads
        ... def close_matches(word: str) -> list[str]:
        ...     "List words like this one."
        ...     return [word.lower(), word.upper()]
    """
    if isinstance(function, BaseTool):
        declared = copy(function)
        declared.metadata = {**(declared.metadata or {}), "readOnlyHint": True, _MARK: _Marked("true")}
        return declared
    plain = getattr(function, "__func__", function)
    setattr(plain, _READS, plain)
    return function


def _is_declared_read(function: object) -> bool:
    plain = getattr(function, "__func__", function)
    return plain is not None and getattr(plain, _READS, None) is plain


def to_langchain_tool(function: BaseTool | Callable[..., Any]) -> BaseTool:
    """Return a function as a LangChain tool, or a LangChain tool unchanged.

    Raises:
        InputError: `function` is neither a function nor a tool, or has no description.
    """
    if isinstance(function, BaseTool):
        return function
    made = _made_tool(function)
    return reads(made) if _is_declared_read(function) else made


def _made_tool(function: Callable[..., Any]) -> BaseTool:
    if not callable(function):
        raise InputError(
            f"{function!r} is not a tool: pass a function, a LangChain tool, a server or the path of an mcp.json"
        )
    if only := [one.name for one in _parameters(function) if one.kind is Parameter.POSITIONAL_ONLY]:
        raise InputError(
            f"{getattr(function, '__name__', function)!r} cannot be a tool: {only[0]!r} is positional-only"
        )
    with suppress(ValueError):  # the docstring describes other parameters
        if "\nArgs:" in (getdoc(function) or ""):
            return tool(function, parse_docstring=True, error_on_invalid_docstring=False)
    try:
        return tool(function)
    except (ValueError, ValidationError) as error:
        raise InputError(f"{getattr(function, '__name__', function)!r} cannot be a tool: {error}") from error


def _parameters(function: Callable[..., Any]) -> Iterable[Parameter]:
    with suppress(TypeError, ValueError):  # some functions in C have no signature
        return signature(function).parameters.values()
    return ()


def langchain_tool_spec(server: str, langchain_tool: BaseTool) -> ToolSpec:
    """Return a LangChain tool as a tool of a server. The hints in its metadata are trusted.

    Raises:
        InputError: a parameter's type has no JSON Schema.
    """
    return defined_tool_spec(server, tool_definition(langchain_tool), trusted=True)


def tool_definition(langchain_tool: BaseTool) -> "Tool":
    """Return the definition of a LangChain tool, with the mark of `reads` and its hints, also those of `langchain.mcp`.

    Raises:
        InputError: a parameter's type has no JSON Schema.
    """
    from mcp_types import Tool, ToolAnnotations  # slow to load

    try:
        function = convert_to_openai_tool(langchain_tool)["function"]
    except (PydanticUserError, ValueError, TypeError, NameError) as error:
        raise InputError(f"{langchain_tool.name!r} cannot be a tool: {error}") from error
    metadata = langchain_tool.metadata or {}
    hints = {name: value for name, value in metadata.items() if name in HINT_NAMES} or _nested_hints(metadata)
    functions = (getattr(langchain_tool, "func", None), getattr(langchain_tool, "coroutine", None))
    is_read = isinstance(metadata.get(_MARK), _Marked) or any(map(_is_declared_read, functions))
    return Tool(
        name=langchain_tool.name,
        description=function.get("description") or None,
        input_schema=function["parameters"],
        annotations=ToolAnnotations.model_validate(hints) if hints else None,
        _meta={_MARK: True} if is_read else None,
    )


def defined_tool_spec(server: str, definition: "Tool", *, trusted: bool) -> ToolSpec:
    """Return the tool of a definition that `tool_definition` made; `trusted` is whether its hints are trusted."""
    spec = spec_of(server, definition, trusted=trusted)
    if not (definition.meta or {}).get(_MARK):
        return spec
    why, source = ("`packetgate.reads` marks it as a read",), "the program"
    known = replace(spec, risk=Risk.READ, least_risk=Risk.READ, is_unconfirmed_read=False, meta=None)
    return replace(known, risk_reasons=why, risk_source=source)


def _nested_hints(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    match metadata:
        case {"mcp": {"tool": {"annotations": dict() as annotations}}}:
            return annotations
    return {}
