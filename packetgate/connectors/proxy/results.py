"""What a call came to, as its client reads it, and the addresses of resources through the proxy."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp_types
from fastmcp.tools.base import ToolResult
from pydantic import AnyUrl, BaseModel, TypeAdapter, ValidationError

from packetgate.state.attachments import ResultAttachment
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.checks.validation import result_flaw
from packetgate.tools.execution.running import result_text
from packetgate.tools.servers.results import json_of, reading_on

_ADDRESS = re.compile(r"([^:]+://|[A-Za-z][A-Za-z0-9+.-]*:)(.*)", re.DOTALL)


def namespaced(server: str, uri: str) -> str:
    """Return the address, or the template of addresses, by which the proxy lists a server's resource."""
    found = _ADDRESS.fullmatch(uri)
    return f"{found[1]}{server}/{found[2]}" if found else uri


def own_address(server: str, uri: str) -> str | None:
    """Return the server's own form of a listed address; None if the address is another server's."""
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        return uri
    own = found[2].removeprefix(f"{server}/")
    return f"{found[1]}{own}" if own != found[2] else None


def address_through(server: str, uri: str) -> str:
    """Return the address by which a client reads a server's resource; web addresses stay as they are."""
    return uri if uri.startswith(("http://", "https://")) else namespaced(server, uri)


FileOf = Callable[[str, str], Path | None]
"""Returns the file of what a session keeps under a handle."""
_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
_OURS = "packetgate/"
FORM = "fastmcp"
"""In a result's `_meta`: how FastMCP's client is to unwrap the tool's own structured content."""
AGE = "packetgate/age-s"
"""In a result's `_meta`: how many seconds ago it was read, where it comes from the cache."""
MOST_EVENT_BYTES = 1_000_000
"""Of a result that is an event of a stream: the official SDK's clients break off at 1,048,576 bytes of JSON."""
MOST_TEXT_BYTES = 300_000
"""Of a text as JSON, and of structured content: a text may be in a result twice. A character has at most six."""


class CallOutcome(BaseModel):
    """What a call by a meta-tool came to."""

    tool: str
    status: str
    """`executed`, `failed`, `skipped` (a dry run, or nobody could be asked), `user_denied` or `unknown`."""
    text: str
    """What the tool returned; of a call that was not run, why, and the way out."""
    structured: dict[str, Any] | None = None
    corrections: list[str] = []
    """What was mended in the call."""
    age_s: float | None = None
    """How many seconds ago it was read, where it comes from the cache."""


def outcome_of(
    packet: CognitionPacket, file_of: FileOf, most: int | None
) -> tuple[CallOutcome, list[mcp_types.ContentBlock]]:
    """Return what a packet's call came to, and its content, in at most so many bytes of JSON.

    Blocking: attachments are read from their files.
    """
    call, routing = packet.routing.calls[0], packet.routing
    corrections = [one.message for one in routing.corrections if one.mended]
    text = _with_own_reader(result_text(call), call) + way_out(call, packet)
    if _bytes_of(text) > MOST_TEXT_BYTES:
        text = f"{text[: MOST_TEXT_BYTES // 6]}\n[cut here: {len(text):,} characters in all{_rest_of(call)}]"
    structured = _structured(call, text)
    is_text = call.result is not None and bool(call.result.wrapped_as)
    if not is_text and _bytes_of(structured) > MOST_TEXT_BYTES:
        structured = None
    room = most - 2 * _bytes_of(text) - _bytes_of(structured) if most else None
    content = [*_content(call, text, _Files(packet.header.session_id, file_of, room))]
    told = CallOutcome(
        tool=call.tool_name,
        status=call.status.value,
        text=text,
        structured=structured,
        corrections=corrections,
        age_s=call.result.age_s if call.result else None,
    )
    return told, content


def _rest_of(call: ToolCall) -> str:
    handle = call.result.handle if call.result else ""
    return f'; read_result with handle "{handle}" returns all of it' if handle else ""


def _with_own_reader(text: str, call: ToolCall) -> str:
    handle = call.result.handle if call.result else ""
    return text.replace(reading_on(handle), _rest_of(call)) if handle else text


def way_out(call: ToolCall, packet: CognitionPacket) -> str:
    """Return how a call can be allowed that is switched off; empty for any other."""
    settings, client = packet.governance.settings, packet.header.person
    if call.status is not ToolExecutionStatus.SKIPPED or settings.allows(call.risk):
        return ""
    what = "commands" if call.risk is Risk.EXECUTE else "writes"
    return (
        f"\nTo allow it: start the proxy with --allow-{what}, or set allow_{what} = true under "
        f"[proxy.clients.{client}] in packetgate.toml. A call is then asked about before it runs."
    )


def direct(
    packet: CognitionPacket, file_of: FileOf, most: int | None, output_schema: dict[str, Any] | None = None
) -> ToolResult:
    """Return what a call of a listed tool came to, as the tool itself would say it.

    Official clients throw a result away that is not as its `output_schema` says, unless it is an error: so it becomes
    one. Blocking.
    """
    told, content = outcome_of(packet, file_of, most)
    is_error, result = told.status != "executed", packet.routing.calls[0].result
    cut = result is not None and result.truncated
    if output_schema and not is_error and (flaw := result_flaw(output_schema, told.structured)):
        why = "is too long for one answer" if told.structured is None and cut else f"breaks its output schema: {flaw}"
        words = f"[the tool ran; its structured content {why}]"
        content.append(mcp_types.TextContent(text=words))
        is_error = True
    meta = _meta(told, packet.routing.calls[0])
    return ToolResult(content=content, structured_content=told.structured, meta=meta, is_error=is_error)


def by_meta_tool(packet: CognitionPacket, file_of: FileOf, most: int | None) -> ToolResult:
    """Return what a call by a meta-tool came to, in the form of its output schema. Blocking."""
    told, content = outcome_of(packet, file_of, most)
    meta = _meta(told, packet.routing.calls[0]) or {}
    return ToolResult(
        content=content,
        structured_content=told.model_dump(),
        meta={key: value for key, value in meta.items() if key != FORM} or None,
        is_error=told.status != "executed",
    )


def _structured(call: ToolCall, text: str) -> dict[str, Any] | None:
    if call.result is None or not call.result.wrapped_as:
        if call.result is None:
            return None
        return call.result.restated if call.result.structured is None else call.result.structured
    return {call.result.wrapped_as: text if call.status is ToolExecutionStatus.EXECUTED else call.result.error}


def _meta(told: CallOutcome, call: ToolCall) -> dict[str, Any] | None:
    said = call.result.meta or {} if call.result else {}
    own = {key: value for key, value in said.items() if not key.startswith(_OURS)}
    return (own | ({AGE: told.age_s} if told.age_s is not None else {})) or None


class _Files:
    def __init__(self, session_id: str, file_of: FileOf, room: int | None) -> None:
        self._session_id = session_id
        self._file_of = file_of
        self._room = room

    def read(self, one: ResultAttachment) -> str | None:
        """Return an attachment as base64; None where it is not kept, or is not what it says it is.

        Raises:
            _NoRoomError: there is no room for it.
        """
        file = self._file_of(one.handle, self._session_id) if one.handle else None
        if file is None or one.kind == "binary":
            return None
        data = b64encode(file.read_bytes()).decode()
        if self._room is not None and len(data) > self._room:
            raise _NoRoomError
        self._room = self._room - len(data) if self._room is not None else None
        return data


class _NoRoomError(Exception):
    pass


def _content(call: ToolCall, text: str, files: _Files) -> Iterator[mcp_types.ContentBlock]:
    """Yield what a tool returned, part by part as it was sent, and then its structured content if no text says that.

    A call without an answer of the tool itself is told in words.
    """
    result, executed = call.result, call.status is ToolExecutionStatus.EXECUTED
    own = result is not None and not result.dry_run and (executed or result.said is None)
    if result is None or not own or _bytes_of(result.parts) > MOST_TEXT_BYTES:
        yield mcp_types.TextContent(text=text)
        return
    said = _with_own_reader(result.output, call) if executed else result.error or ""
    shown = json_of(result.structured) if result.structured else ""
    shown = shown if said.endswith(shown) else ""
    before = said.removesuffix(shown).removesuffix("\n") if shown else said
    attached = {one.sha256: one for one in result.attachments}
    for part in result.parts:
        yield _block(call.tool_name.partition(".")[0], part, attached.get(str(part.get("sha256"))), files)
    if before and not result.parts:
        yield mcp_types.TextContent(text=before if _bytes_of(before) <= MOST_TEXT_BYTES else text)
    if shown:
        yield mcp_types.TextContent(text=shown)


def _block(server: str, part: dict[str, Any], attached: ResultAttachment | None, files: _Files) -> Any:
    """Return a part with its bytes, and with an address that the client can read.

    What is not what it says it is, and what there is no room for, is told in words.
    """
    block = {key: value for key, value in part.items() if key not in {"sha256", "told"}}
    if "told" in part:
        told = part["told"]
        try:
            data = files.read(attached) if attached else None
        except _NoRoomError:
            data = None
            told += f"\n[{attached.handle if attached else ''}: left out, as it is too long for one answer]"
        about: dict[str, Any] = {key: block[key] for key in ("annotations", "_meta") if key in block}
        if attached is None or data is None:
            block = {"type": "text", "text": told, **about}
        elif block["type"] == "resource":
            block["resource"] = {**block["resource"], "blob": data, "mimeType": attached.mime_type}
        else:
            block |= {"data": data, "mimeType": attached.mime_type}
    if block["type"] in {"resource", "resource_link"}:
        named = block.get("resource", block)
        uri = address_through(server, named["uri"])
        if not _is_address(uri):  # official clients would throw the whole answer away
            named = {"type": "text", "text": named.get("text") or json.dumps(named, ensure_ascii=False)}
            return mcp_types.TextContent.model_validate(named)
        block = {**block, "resource": {**named, "uri": uri}} if "resource" in block else {**block, "uri": uri}
    return _BLOCK.validate_python(block, by_name=False)


def _is_address(uri: str) -> bool:
    try:
        AnyUrl(uri)
    except ValidationError:
        return False
    return True


def _bytes_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
