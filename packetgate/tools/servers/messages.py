"""Parse what a server sends into JSON-RPC messages, leniently. An unreadable answer fails its request at once.

Errors of servers and connections carry a stamp, which tells them from the SDK's own errors with the same codes.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mcp import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from packetgate.state.base import new_id

_KEYS = frozenset({"jsonrpc", "id", "method", "params", "result", "error", "_meta"})
"""Fields of a message; JSON log lines have others."""
_BEGIN = re.compile(r'[{\[]\s*(?:\{\s*)?"(?:jsonrpc|id|method|result|error)"')
"""The start of a message, alone or in a batch."""
_HALF = re.compile("[\ud800-\udfff]")
_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
"""Accepts control characters in strings; NaN and Infinity become null, as in JavaScript."""
_HEAD_CHARS = 200
"""Characters of an unparsable answer that are searched for its id."""
_MARK = "packetgate"
_PARSED_HERE = 100_000
"""Messages up to this many bytes are parsed on the event loop, longer ones in a thread."""
_STAMP = new_id()
"""Unknown to servers."""


@dataclass(frozen=True)
class Failure:
    """The origin of an error."""

    kind: Literal["answer", "unreadable", "http", "unsent", "broken"]
    """`answer`: a JSON-RPC error of the server. `unreadable`: an unusable answer. `http`: a status of 400 or more.
    `unsent`: the server could not be reached. `broken`: the connection broke before the answer.
    """
    status: int = 0
    """HTTP status; 0: no HTTP."""
    addressed: bool = True
    """Whether the answer has the id of the request; a refused session often has none."""
    retry_after_s: float | None = None
    """`Retry-After` in seconds."""


def failure_of(error: MCPError) -> Failure | None:
    """Return the origin of an error; None: the SDK."""
    data = error.error.data
    known: Any = data.get(_MARK) if isinstance(data, dict) else None
    if not isinstance(known, dict) or known.get("stamp") != _STAMP:
        return None
    return Failure(**{name: inner for name, inner in known.items() if name != "stamp"})


def failed(request: RequestId, message: str, failure: Failure, *, code: int = INTERNAL_ERROR) -> JSONRPCError:
    """Return an error message that ends a request."""
    return JSONRPCError(jsonrpc="2.0", id=request, error=_stamped(ErrorData(code=code, message=message), failure))


def read_messages(raw: bytes, only: RequestId | None = None) -> list[JSONRPCMessage]:
    """Return the messages in a line, a body or an event.

    Args:
        only: the id of the only pending request; None if there are several.
    """
    text = raw.decode(errors="replace").removeprefix("\ufeff")
    if "NaN" not in text and "Infinity" not in text:
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValidationError:
            pass
        else:
            if not isinstance(message, JSONRPCError) or message.error.message:
                return _own(message, only)
    return [message for value in _values(text) for message in _message(value, only)]


async def read_aside(raw: bytes, only: RequestId | None) -> list[JSONRPCMessage]:
    """Return what `read_messages` does; parse long texts in a thread."""
    if len(raw) <= _PARSED_HERE:
        return read_messages(raw, only)
    return await asyncio.to_thread(read_messages, raw, only)


def _own(message: JSONRPCMessage, only: RequestId | None) -> list[JSONRPCMessage]:
    if isinstance(message, JSONRPCError):
        message.error = _stamped(message.error, Failure("answer", addressed=message.id is not None))
        message.id = only if message.id is None else message.id
        return [] if message.id is None else [message]
    return [message]


def restamped(error: ErrorData, status: int, retry_after_s: float | None = None) -> ErrorData:
    """Return a stamped error with the status of its HTTP answer."""
    stamped = {**error.data[_MARK], "status": status, "retry_after_s": retry_after_s}
    return ErrorData(code=error.code, message=error.message, data={**error.data, _MARK: stamped})


def _stamped(error: ErrorData, failure: Failure) -> ErrorData:
    data = error.data if isinstance(error.data, dict) else {} if error.data is None else {"data": error.data}
    return ErrorData(code=error.code, message=error.message, data={**data, _MARK: {"stamp": _STAMP, **asdict(failure)}})


def _values(text: str) -> Iterator[Any]:
    begin = _BEGIN.search(text)
    at = begin.start() if begin else len(text)
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError):
                yield _Unreadable(
                    f"{error.msg.removesuffix(' at')} at character {error.pos:,}", _beginning(text[at : error.pos])
                )
            else:  # nested too deeply, or a number of thousands of digits
                yield _Unreadable(str(error), _beginning(text[at : at + _HEAD_CHARS]))
            return
        yield value
        at = end + len(text[end:]) - len(text[end:].lstrip())
        if text[at : at + 1] not in {"{", "["}:
            return


@dataclass(frozen=True)
class _Unreadable:
    why: str
    value: Any


def _beginning(text: str) -> Any:
    try:
        return from_json(_HALF_ESCAPE.sub(r"\\ufffd", text), allow_partial=True)
    except ValueError:
        return None


def _message(value: Any, only: RequestId | None) -> list[JSONRPCMessage]:
    if isinstance(value, list) and all(_is_message(one) for one in value):
        return [message for one in value for message in _message(one, only)]
    why = ""
    if isinstance(value, _Unreadable):
        why, value = f"its answer is not JSON: {value.why}", value.value
        value = value[-1] if isinstance(value, list) and value else value
    if not _is_message(value):
        return []
    value = _scrubbed(value)
    if isinstance(value.get("method"), str):
        return [] if why else _validated({**_sent(value), "method": value["method"]})
    given = _id(value.get("id"))
    request = given if given is not None or not value.keys() & {"jsonrpc", "id"} else only
    if request is None:
        return []
    if why:
        return [failed(request, why, Failure("unreadable", addressed=given is not None), code=PARSE_ERROR)]
    if value.get("error") is not None and not (_is_empty(value["error"]) and "result" in value):
        error = _stamped(_error(value["error"]), Failure("answer", addressed=given is not None))
        return [JSONRPCError(jsonrpc="2.0", id=request, error=error)]
    if "result" not in value:
        why = "its answer has neither a result nor an error"
        return [failed(request, why, Failure("unreadable", addressed=given is not None), code=PARSE_ERROR)]
    return [JSONRPCResponse(jsonrpc="2.0", id=request, result=_result(value["result"]))]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and ("jsonrpc" in value or value.keys() <= _KEYS)


def _is_empty(error: Any) -> bool:
    return error in ("", False) or (isinstance(error, dict) and not any(error.values()))


def _sent(value: dict[str, Any]) -> dict[str, Any]:
    params = value.get("params")
    sent = {"jsonrpc": "2.0", **({"params": params} if isinstance(params, dict) else {})}
    request = _id(value.get("id"))
    return sent if request is None else {**sent, "id": request}


def _validated(value: dict[str, Any]) -> list[JSONRPCMessage]:
    try:
        return [jsonrpc_message_adapter.validate_python(value, by_name=False)]
    except ValidationError:
        return []


def _id(value: Any) -> RequestId | None:
    match value:
        case bool() | None:
            return None
        case int() | str():
            return value
        case float() if value.is_integer():
            return int(value)
    return None


def _error(value: Any) -> ErrorData:
    if not isinstance(value, dict):
        return ErrorData(code=INTERNAL_ERROR, message=_text(value))
    code, message = value.get("code"), value.get("message")
    text = "" if message is None else _text(message)
    try:
        number = int(code) if isinstance(code, str | int | float) else INTERNAL_ERROR
    except (ValueError, OverflowError):
        number, text = INTERNAL_ERROR, ": ".join(filter(None, [_text(code), text]))
    others = {key: inner for key, inner in value.items() if key not in {"code", "message"}}
    data = others.get("data") if others.keys() <= {"data"} else others
    text = text or (_text(data) if data is not None else f"error {number}, without a message")
    return ErrorData(code=number, message=text, data=data)


def _result(value: Any) -> dict[str, Any]:
    match value:
        case dict():
            return value
        case None:
            return {}
        case list() if value and all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in value):
            return {"content": value}
    return {"content": [{"type": "text", "text": _text(value)}]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scrubbed(value: Any) -> Any:
    match value:
        case str():
            return _HALF.sub("\ufffd", value)
        case list():
            return [_scrubbed(one) for one in value]
        case dict():
            return {_scrubbed(key): _scrubbed(one) for key, one in value.items()}
    return value
