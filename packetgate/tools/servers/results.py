"""Turn the answer of a tool into a result: redacted, bounded, with long texts stored."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from packetgate.state.base import ErrorType, is_storable
from packetgate.state.codes import Code
from packetgate.state.redaction import redacted, redacted_data
from packetgate.state.routing import ResultAttachment, ToolResult
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, MAX_STORED_CHARS

Keep = Callable[[str | bytes], str]
MAX_OUTPUT_CHARS = 100_000
LINE_CHARS = 120
"""Longer JSON of structured content is indented."""
MOST_COMPARED = 200
"""Names and values of structured content that are compared with a text."""


def to_result(
    text: str,
    structured: Any,
    execution_time_ms: float,
    *,
    is_error: bool = False,
    complete: bool = False,
    cut: bool = False,
    keep: Keep | None = None,
    attachments: tuple[ResultAttachment, ...] = (),
    parts: tuple[dict[str, Any], ...] = (),
    meta: dict[str, Any] | None = None,
) -> ToolResult:
    """Return the result for an answer; an error becomes a failed result with the text as error.

    Args:
        complete: whether the text contains all of the structured content.
        keep: stores a text that is too long to show, and returns its handle.

    Blocking where the text is long.
    """
    said, structured = redacted(text[:MAX_STORED_CHARS]), redacted_data(structured)
    text = said if complete or says(said, structured) else "\n".join(filter(None, [said, json_of(structured)]))
    content, same, wrapped = _storable(structured), _is_same(said, structured), _wrapped(said, structured)
    length = len(text)
    handle = keep(text) if keep and length > MAX_SHOWN_CHARS and not is_error else ""
    if length > MAX_OUTPUT_CHARS:
        cut = True
        text = f"{text[:MAX_OUTPUT_CHARS]}\n[cut here: {length:,} characters in all{reading_on(handle)}]"
    own = text.strip()
    foreign = (None if own else "") if is_error else said if text != said and content else None
    return ToolResult(
        success=not is_error,
        output="" if is_error else text,
        error=own or "the tool reported an error without saying which" if is_error else None,
        error_type=ErrorType.TOOL_ERROR if is_error else None,
        code=Code.TOOL_FAILED if is_error else None,
        said=foreign,
        handle=handle,
        structured=None if same else content,
        restated=content if same and not wrapped else None,
        wrapped_as=wrapped,
        execution_time_ms=execution_time_ms,
        truncated=cut,
        attachments=attachments,
        parts=_small(redacted_data([*parts])) or (),
        meta=_storable(redacted_data(meta)),
    )


async def to_result_aside(text: str, *answer: Any, **how: Any) -> ToolResult:
    """Return what `to_result` does; use a thread for a long text."""
    if len(text) <= MAX_SHOWN_CHARS and len(str(answer[0] or "")) <= MAX_SHOWN_CHARS:
        return to_result(text, *answer, **how)
    return await asyncio.to_thread(to_result, text, *answer, **how)


def reading_on(handle: str) -> str:
    """Return a hint how to read the rest of a result; empty without a handle."""
    return f'; all of it can be read with ai.read, path "{handle}"' if handle else ""


def json_of(structured: Any) -> str:
    """Return structured content as text."""
    line = json.dumps(structured, ensure_ascii=False, default=str)
    return line if len(line) <= LINE_CHARS else json.dumps(structured, ensure_ascii=False, indent=2, default=str)


def says(text: str, structured: Any) -> bool:
    """Whether a text contains all of the structured content, as JSON or name by name and value by value."""
    if not structured or _is_same(text, structured) or _is_its_value(text, structured):
        return True
    values = [*_leaves(structured)]
    few = 0 < len(values) <= MOST_COMPARED and len(text) <= MAX_OUTPUT_CHARS
    return few and all(_stands_in(text, value) for value in values)


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for name, inner in value.items():
                yield name
                yield from _leaves(inner)
        case list():
            for inner in value:
                yield from _leaves(inner)
        case _:
            yield value


def _stands_in(text: str, value: Any) -> bool:
    word = value if isinstance(value, str) else json.dumps(value)
    match = re.search(rf"(?<![\w.]){re.escape(word)}(?!\w|\.\d)", text, re.IGNORECASE) if word else None
    return not word or match is not None


def _is_same(text: str, structured: Any) -> bool:
    return isinstance(structured, dict) and (bool(_wrapped(text, structured)) or _parsed(text) == structured)


def _wrapped(text: str, structured: Any) -> str:
    same = isinstance(structured, dict) and list(structured.values()) == [text]
    return next(iter(structured), "") if same and is_storable(structured) else ""


def _is_its_value(text: str, structured: Any) -> bool:
    if not isinstance(structured, dict) or len(structured) != 1:
        return False
    (value,) = structured.values()
    lines = text.splitlines()
    return value in (_parsed(text), lines, [_parsed(line) for line in lines[:MOST_COMPARED]])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # not JSON, or thousands of brackets
        return text


def _storable(content: Any) -> dict[str, Any] | None:
    kept: dict[str, Any] | None = _small(content) if isinstance(content, dict) and is_storable(content) else None
    return kept


def _small(content: Any) -> Any:
    return content if len(str(content)) <= MAX_OUTPUT_CHARS and is_storable(content) else None
