"""Convert results of LangChain tools: values to text, JSON or content blocks, and messages to results of calls."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic_core import to_jsonable_python

from packetgate.state.packet import CLIENT_SUPPLIED
from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted, redacted_data
from packetgate.state.routing import ToolResult
from packetgate.tools.attached.media import UNKNOWN_TYPE, picture_type
from packetgate.tools.text.result_store import MAX_STORED_CHARS
from packetgate.toolsets.servers.results import (
    MAX_OUTPUT_CHARS,
    StoreContent,
    cut_text,
    result_of_answer,
    small_and_redacted,
    to_result_async,
)

if TYPE_CHECKING:
    from mcp_types import ContentBlock

_MEDIA = frozenset({"image", "image_url", "audio", "input_audio", "video", "file"})
"""Types of content blocks whose bytes no redaction may change."""


def with_json_results(tool: BaseTool) -> BaseTool:
    """Return a copy of a tool whose models, tables and other objects become JSON; LangChain returns their `str()`."""
    changed, is_pair = copy(tool), tool.response_format == "content_and_artifact"
    names = ("func", "coroutine") if isinstance(tool, StructuredTool | Tool) else ("_run", "_arun")
    functions = {name: getattr(tool, name) for name in names}
    if isasyncgenfunction(functions.get("func")):
        functions = {"func": None, "coroutine": _collecting(functions["func"])}
    for name, function in functions.items():
        object.__setattr__(changed, name, function and _with_content(function, is_pair=is_pair))
    return changed


def _with_content(function: Callable[..., Any], *, is_pair: bool) -> Callable[..., Any]:
    def content(value: Any) -> Any:
        if is_pair and isinstance(value, tuple) and len(value) == 2:
            return to_content(value[0]), value[1]
        return to_content(value)

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return content(function(*args, **kwargs))

    @wraps(function)
    async def arun(*args: Any, **kwargs: Any) -> Any:
        return content(await function(*args, **kwargs))

    return arun if iscoroutinefunction(function) else run


def _collecting(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def collect(*args: Any, **kwargs: Any) -> list[Any]:
        return [item async for item in function(*args, **kwargs)]

    return collect


def to_content(value: Any) -> Any:
    """Return a tool's value in a form that LangChain keeps: text, a message, content blocks, or JSON data."""
    if isinstance(value, str | ToolOutputMixin):
        return value
    if isinstance(value, list) and value and all(isinstance(item, ToolOutputMixin) for item in value):
        return value
    if picture := getattr(value, "_repr_png_", None):  # of Pillow, in the protocol of notebooks
        value = picture()
    if not isinstance(value, bytes):
        return _json_data([*value] if isinstance(value, Iterator) else value)
    if kind := picture_type(value):
        return [{"type": "image", "base64": base64.b64encode(value).decode(), "mime_type": kind}]
    with suppress(UnicodeDecodeError):
        return value.decode()
    return f"[binary {UNKNOWN_TYPE}, {byte_size(len(value))}]"


def _json_data(value: Any) -> Any:
    try:
        return to_jsonable_python(value, fallback=_data_of)
    except (ValueError, RecursionError):  # circular, or bytes inside that are not text
        return str(value)


def _data_of(value: Any) -> Any:
    """Return the data of an object that pydantic does not know: a table of polars or pandas, an array, or its text."""
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    if hasattr(value, "to_json"):
        return json.loads(value.to_json(orient="records", date_format="iso"))
    return value.tolist() if hasattr(value, "tolist") else str(value)


async def result_of_message(message: ToolMessage, took_ms: float, keep: StoreContent | None = None) -> ToolResult:
    """Return a tool's message as the result of a call, with its artifact as JSON data.

    Args:
        keep: stores the bytes of an image or file.
    """
    is_error, artifact = message.status == "error", small_and_redacted(_json_data(message.artifact))
    if isinstance(message.content, str):
        result = await to_result_async(message.content, _json_object(message.content), took_ms, is_error=is_error)
        return result if artifact is None else result.changed(artifact=artifact)
    from mcp_types import CallToolResult, TextContent  # slow to load

    answer = CallToolResult(
        content=[_mcp_block(block) for block in message.content_blocks] or [TextContent(text="")],
        structured_content=_json_object(message.text),
        is_error=is_error,
    )
    result = await result_of_answer(answer, took_ms, keep, store_texts=False)
    return result.changed(artifact=artifact)


def _json_object(text: str) -> dict[str, Any] | None:
    with suppress(ValueError, RecursionError):
        value = json.loads(text) if text.startswith("{") else None
        return value if isinstance(value, dict) else None
    return None


def _mcp_block(block: Mapping[str, Any]) -> "ContentBlock":
    """Return a part of a message as a content block of MCP."""
    import mcp_types as mcp  # slow to load

    kind, mime_type, data = block["type"], block.get("mime_type") or UNKNOWN_TYPE, block.get("base64")
    name = str(block.get("filename") or (block.get("extras") or {}).get("filename") or "")
    match kind:
        case "text" | "text-plain":
            return mcp.TextContent(text=block["text"])
        case "image" if data:
            return mcp.ImageContent(data=data, mime_type=mime_type)
        case "audio" if data:
            return mcp.AudioContent(data=data, mime_type=mime_type)
        case _ if data:
            return mcp.EmbeddedResource(resource=mcp.BlobResourceContents(uri=name, blob=data, mime_type=mime_type))
        case _ if url := block.get("url"):
            return mcp.ResourceLink(name=name or kind, uri=url, mime_type=block.get("mime_type"))
    return mcp.TextContent(text=json.dumps(block.get("value", dict(block)), ensure_ascii=False, default=str))


def safe_message(message: BaseMessage) -> BaseMessage:
    """Return a message of a tool without secrets, with limited text, and not in the user's own words."""
    parts = [message.content] if isinstance(message.content, str) else message.content
    length, left = len(message.text), MAX_OUTPUT_CHARS

    def safe(text: str) -> str:
        nonlocal left
        limit, shown = left, redacted(text[:MAX_STORED_CHARS])
        left -= min(left, len(shown))
        return shown if len(shown) <= limit else cut_text(shown, limit, length)

    safe_parts = list[Any]()
    for part in parts:
        if isinstance(part, dict) and not isinstance(part.get("text"), str):
            safe_parts.append(part if part.get("type") in _MEDIA else redacted_data(part))
        elif left:
            text = safe(part if isinstance(part, str) else part["text"])
            safe_parts.append(text if isinstance(part, str) else {**redacted_data(part), "text": text})
    content = safe_parts[0] if isinstance(message.content, str) else safe_parts
    kept = {**message.additional_kwargs, CLIENT_SUPPLIED: True} if isinstance(message, HumanMessage) else None
    return message.model_copy(update={"content": content, **({"additional_kwargs": kept} if kept else {})})
