"""Render a call's result for its client."""

import json
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types
from fastmcp.tools.base import ToolResult
from pydantic import AnyUrl, TypeAdapter, ValidationError

from packetgate.connectors.shell_commands import preferences_hint
from packetgate.gate.facts import Facts
from packetgate.gate.proposal import Proposal
from packetgate.graph.settings import Settings
from packetgate.state.routing import ResultAttachment, Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.checks.validation import result_error
from packetgate.tools.text.result_store import read_more_hint
from packetgate.toolsets.servers.results import to_json_text

FindFile = Callable[[str, str], Path | None]
"""Returns the file of a stored result, by handle and session."""
WRAPPING_META = "fastmcp"
"""In a result's `_meta`: how FastMCP's client unwraps the tool's own structured content."""
MAX_EVENT_BYTES = 1_000_000
"""Limit for a result over HTTP: the official SDK's clients fail at 1,048,576 bytes of JSON."""
MAX_RESULT_TEXT_BYTES = 300_000
"""Limit over HTTP for a text as JSON, and for structured content: a text may be in a result twice."""

_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)


def call_result(
    proposal: Proposal,
    find_file: FindFile,
    max_bytes: int | None,
    output_schema: dict[str, Any] | None = None,
    *,
    settings: Settings,
    by_meta_tool: bool = False,
) -> ToolResult:
    """Return a call's outcome in at most `max_bytes`: the tool's own result, or the status of the call. Blocking.

    Official clients drop a result that violates its `output_schema`. Such a result is returned as an error instead.
    """
    call = _with_whole_text(proposal.calls[0], find_file, proposal.facts.header.session_id)
    result, max_text = call.result, MAX_RESULT_TEXT_BYTES if max_bytes else sys.maxsize
    is_error = call.status is not ToolExecutionStatus.EXECUTED
    text = _with_continuation_hint(call.result_text, call) + _switch_hint(call, proposal.facts, settings)
    if _json_bytes(text) > max_text:
        beginning = text[: max_text // 6]
        text = f"{beginning}\n[cut here: {len(text):,} characters in all{_continuation_hint(call)}]"
    structured: Any = None
    if result and result.output_field:
        structured = {result.output_field: result.error if is_error else text}
    elif result and result.fields is None and output_schema and result.handle:
        with suppress(ValueError, RecursionError):  # the packet keeps no large structured content
            value = json.loads(text)
            is_wrapped = bool(output_schema.get("x-fastmcp-wrap-result"))
            structured = value if isinstance(value, dict) else {"result": value} if is_wrapped else None
    elif result and _json_bytes(result.fields) <= max_text:
        structured = result.fields
    bytes_left = max_bytes - 2 * _json_bytes(text) - _json_bytes(structured) if max_bytes else None

    def encode(attached: ResultAttachment | None) -> str | None:
        """Return an attachment as base64; None if it is not stored, has another type, or is too long."""
        nonlocal bytes_left
        file = find_file(attached.handle, proposal.facts.header.session_id) if attached and attached.handle else None
        if attached is None or file is None or attached.kind == "binary":
            return None
        data = b64encode(file.read_bytes()).decode()
        if bytes_left is not None:
            if len(data) > bytes_left:
                return None
            bytes_left -= len(data)
        return data

    content = [*_content_blocks(call, text, encode, max_text)]
    meta = {key: value for key, value in ((result and result.meta) or {}).items() if not key.startswith("packetgate/")}
    if by_meta_tool:
        meta.pop(WRAPPING_META, None)
        structured = {
            "tool": call.tool_name,
            "status": call.status.value,
            "text": text,
            "structured": structured,
            "corrections": [correction.message for correction in proposal.corrections if correction.is_repaired],
        }
    elif output_schema and not is_error and (flaw := result_error(output_schema, structured)):
        if structured is None and result and result.truncated:
            flaw = "too long for one answer"
        content.append(mcp_types.TextContent(text=f"[the tool ran; its structured content is unusable: {flaw}]"))
        is_error = True
    return ToolResult(content=content, structured_content=structured, meta=meta or None, is_error=is_error)


def _with_whole_text(call: ToolCall, find_file: FindFile, session: str) -> ToolCall:
    """Return a call with the whole stored text of its result, because the packet has only its beginning."""
    result = call.result
    if result is None or not (result.success and result.truncated and result.handle):
        return call
    file = find_file(result.handle, session)
    with suppress(OSError):  # another process may have deleted it
        whole = file.read_bytes().decode("utf-8", "replace") if file else result.output
        return call.changed(result=result.model_copy(update={"output": whole, "truncated": file is None}))
    return call


def _continuation_hint(call: ToolCall) -> str:
    handle = call.result.handle if call.result else ""
    return f'; read_result with handle "{handle}" returns the whole text' if handle else ""


def _with_continuation_hint(text: str, call: ToolCall) -> str:
    handle = call.result.handle if call.result else ""
    return text.replace(read_more_hint(handle), _continuation_hint(call)) if handle else text


def _switch_hint(call: ToolCall, facts: Facts, settings: Settings) -> str:
    """Return instructions to enable a call that was a dry run; empty for any other call."""
    if call.status is not ToolExecutionStatus.SKIPPED or facts.settings.allows(call.risk):
        return ""
    what = "commands" if call.risk is Risk.EXECUTE else "writes"
    return (
        f"\nTo allow the call: start the proxy with --allow-{what}, or set allow_{what} = true under "
        f"[proxy.clients.{facts.header.person}] in packetgate.toml. Each call then waits for approval. "
        f"{preferences_hint(settings)}"
    )


def _content_blocks(
    call: ToolCall, text: str, encode: Callable[[ResultAttachment | None], str | None], max_text: int
) -> Iterator[mcp_types.ContentBlock]:
    """Yield the parts of the tool's answer; without parts, or without an answer, yield the text."""
    result, executed = call.result, call.status is ToolExecutionStatus.EXECUTED
    is_from_server = result is not None and not result.dry_run and (executed or result.server_part is None)
    if result is None or not is_from_server or _json_bytes(result.parts) > max_text:
        yield mcp_types.TextContent(text=text)
        return
    output = _with_continuation_hint(result.output, call) if executed else result.error or ""
    structured = to_json_text(result.structured) if result.structured else ""
    structured = structured if output.endswith(structured) else ""
    before = output.removesuffix(structured).removesuffix("\n") if structured else output
    attached = {attachment.sha256: attachment for attachment in result.attachments}
    for part in result.parts:
        attachment = attached.get(str(part.get("sha256")))
        data = encode(attachment) if "fallback_text" in part else None
        yield _content_block(call.tool_name.partition(".")[0], part, data, attachment.mime_type if attachment else "")
    if before and not result.parts:
        yield mcp_types.TextContent(text=before if _json_bytes(before) <= max_text else text)
    if structured:
        yield mcp_types.TextContent(text=structured)


def _content_block(server: str, part: dict[str, Any], data: str | None, mime_type: str) -> Any:
    """Return a part with its bytes and its listed address, or a text if the bytes cannot be sent."""
    block = {key: value for key, value in part.items() if key not in {"sha256", "fallback_text"}}
    if "fallback_text" in part and data is None:
        about: dict[str, Any] = {key: block[key] for key in ("annotations", "_meta") if key in block}
        block = {"type": "text", "text": part["fallback_text"], **about}
    elif "fallback_text" in part and block["type"] == "resource":
        block["resource"] = {**block["resource"], "blob": data, "mimeType": mime_type}
    elif "fallback_text" in part:
        block |= {"data": data, "mimeType": mime_type}
    if block["type"] in {"resource", "resource_link"}:
        named = block.get("resource", block)
        uri = named["uri"]
        if not uri.startswith(("http://", "https://")):  # FastMCP's Namespace lists it under this address
            uri = re.sub(r"^[^:]+://", lambda scheme: f"{scheme[0]}{server}/", uri)
        if not _is_uri(uri):  # official clients would drop the whole answer
            return mcp_types.TextContent(text=named.get("text") or json.dumps(named, ensure_ascii=False))
        block = {**block, "resource": {**named, "uri": uri}} if "resource" in block else {**block, "uri": uri}
    return _BLOCK.validate_python(block, by_name=False)


def _is_uri(uri: str) -> bool:
    try:
        AnyUrl(uri)
    except ValidationError:
        return False
    return True


def _json_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
