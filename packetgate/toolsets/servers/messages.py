"""Read malformed messages and answers of a server, and separate failures of the transport from the server's errors."""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)

from packetgate.state.base import new_id
from packetgate.toolsets.servers.results import MAX_ANSWER_PARTS

MAX_MESSAGE_BYTES = 32_000_000
"""Longest message of a server. A longer one ends the session or, over HTTP, the request."""

_FAILURE_KEY = f"packetgate/failure/{new_id()}"
"""Key of a transport failure in an error's data. The key is random, so that a server cannot forge such a failure."""
_ANSWER_ID = re.compile(r'"id"\s*:\s*(\d+)')
_MAX_INLINE_BYTES = 100_000
"""Messages up to this many bytes are parsed on the event loop, longer ones in a thread."""


@dataclass(frozen=True)
class TransportFailure:
    """The reason why a request got no usable answer."""

    kind: Literal["unsent", "refused", "lost", "broken"]
    """`unsent`, `refused`: the request did not run. `lost`: no usable answer came. `broken`: the connection broke."""
    status: int = 0
    """HTTP status; 0 if there is none."""


def failure_message(request: RequestId, message: str, failure: TransportFailure) -> JSONRPCError:
    """Return a JSON-RPC error that ends a request with this failure."""
    error = ErrorData(code=PARSE_ERROR, message=message, data={_FAILURE_KEY: asdict(failure)})
    return JSONRPCError(jsonrpc="2.0", id=request, error=error)


def transport_failure(error: MCPError) -> TransportFailure | None:
    """Return the transport failure that an error describes; None for an error of the server."""
    code, message, data = error.error.code, error.error.message, error.error.data
    if isinstance(data, dict) and _FAILURE_KEY in data:
        return TransportFailure(**data[_FAILURE_KEY])
    # the SDK's own messages decide, because servers may use the same code
    is_closed = code == CONNECTION_CLOSED and (message == "Connection closed" or message.startswith("SSE stream "))
    return TransportFailure("broken") if is_closed else None


async def read_jsonrpc(raw: bytes) -> JSONRPCMessage:
    """Return a JSON-RPC message. Lone surrogates, invalid UTF-8, nulls, NaN and a missing `jsonrpc` are tolerated.

    Raises:
        ValueError, RecursionError: `raw` is not a message.
    """
    return _read_jsonrpc(raw) if len(raw) <= _MAX_INLINE_BYTES else await asyncio.to_thread(_read_jsonrpc, raw)


def _read_jsonrpc(raw: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(raw, by_name=False)
    except ValueError:
        value = json.loads(raw.decode(errors="replace"), strict=False, parse_constant=lambda _: None)
        if not isinstance(value, dict) or not value.keys() & {"method", "result", "error"}:
            raise
    scrubbed = json.dumps({"jsonrpc": "2.0", **without_nulls(value)}, ensure_ascii=False).encode(errors="replace")
    return jsonrpc_message_adapter.validate_json(scrubbed, by_name=False)


def unreadable_answer(line: bytes, reason: Exception) -> JSONRPCError | None:
    """Return an error for the request that an unreadable line answers; None if the line is not an answer."""
    start, end = line[:200].decode(errors="replace"), line[-200:].decode(errors="replace")
    match = _ANSWER_ID.search(start) or _ANSWER_ID.search(end)
    if match is None or '"jsonrpc"' not in start + end or '"method"' in start:
        return None
    return failure_message(int(match[1]), f"the answer is not JSON: {reason}", TransportFailure("lost"))


def message_to_json(message: JSONRPCMessage) -> bytes:
    """Return a message as JSON."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode(errors="replace")


def without_nulls(value: Any) -> Any:
    """Return an object without nulls, which many servers write for absent fields. Return other values unchanged."""
    return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, dict) else value


def readable_answer(answer: dict[str, Any], check: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the result of a call in a form that fits the protocol, with at most `MAX_ANSWER_PARTS` parts.

    An unknown part becomes a text with its JSON. Structured content that is not an object is wrapped in an object.

    Args:
        check: raises ValueError for a result that violates the protocol.
    """
    if "inputRequests" in answer or answer.get("resultType") not in {None, "complete"}:
        return answer
    parts = answer.get("content") or []
    parts = parts if isinstance(parts, list) else [parts]
    excess = len(parts) - MAX_ANSWER_PARTS
    cut = [_text_part(f"[cut here: {excess:,} more parts]")] if excess > 0 else []
    readable: dict[str, Any] = {**without_nulls(answer), "content": parts[:MAX_ANSWER_PARTS] + cut}
    if not isinstance(readable.get("structuredContent", {}), dict):
        readable["structuredContent"] = {"result": readable["structuredContent"]}
    with suppress(ValueError):
        check(readable)
        return readable
    return {**readable, "content": [_readable_part(part, check) for part in readable["content"]]}


def _readable_part(part: Any, check: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    if isinstance(part, dict):
        cleaned: dict[str, Any] = {key: without_nulls(inner) for key, inner in without_nulls(part).items()}
        with suppress(ValueError):
            check({"content": [cleaned]})
            return cleaned
    return _text_part(part)


def _text_part(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
