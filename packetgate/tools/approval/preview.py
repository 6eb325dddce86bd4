"""What a write would change, shown where the user is asked about it.

A tool's preview is another tool of the same server, of read risk, that returns the text which a call would replace; or
the tool itself, where its dry run tells the change. The server says which, if it is trusted, or the user does in
`packetgate.toml`. Whatever is not as expected means that there is no preview; it never keeps a question from being
asked.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import escaped
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import AuditEntry, PaletteEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.checks.validation import canonical_json
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.running import execute_all
from packetgate.tools.provenance.roles import sensitive_part
from packetgate.tools.risk.call import rated
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.differences import difference

PATIENCE_S = 3.0
"""Longest that a question waits for its previews."""
_MAX_CHARS = 200_000
_MAX_LINES = 5_000
"""Of either text: comparing takes time by the product of both."""
_ALL_LINES = {"max_lines": 100_000}
"""What a reader is told that would otherwise return only the beginning."""
_KEEPS_OLD = {"create": None, "overwrite": False, "replace": False, "append": True}
"""What a mode of writing does with the old text; None: there must be none."""
_MISSING = re.compile(r"does not exist|no such file|ENOENT", re.IGNORECASE)
_EMPTY = re.compile(r"\[[^\n]+ is empty\]")
"""What `ai.read` answers for a file without text."""


async def previews(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> tuple[CognitionPacket, tuple[str, ...]]:
    """Return the unified diff of what each call would change, empty where there is none. At most `PATIENCE_S`.

    The reads behind them are calls like any other: their tools stand on the packet's palette, they are checked when
    they run, and the packet that is returned has them in its trail.
    """
    wanted = {call.call_id: reading for call in calls if (reading := _looking(call, packet, catalogue))}
    if not wanted:
        return packet, ("",) * len(calls)
    for reading in [one for one in wanted.values() if one.risk is Risk.READ]:
        entry = PaletteEntry(tool_name=reading.tool_name, shown="brief", reason="preview", risk=reading.risk)
        packet = packet.merged({"context": packet.context.offering(entry)})
    dry = packet.merged({"governance": packet.governance.rehearsing()})
    done: dict[str, ToolCall] = {}

    async def read(call_id: str, reading: ToolCall) -> None:
        (done[call_id],) = await execute_all([reading], dry, catalogue, toolbox, journal)

    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(read(call_id, reading) for call_id, reading in wanted.items()))
    except TimeoutError:
        pass  # those that came in time are shown
    trail = [
        AuditEntry(
            event=f"preview_{_ended(done.get(call_id))}",
            detail=f"{reading.tool_name} {canonical_json(reading.params)}",
            call_id=call_id,
        )
        for call_id, reading in wanted.items()
    ]
    shown = [await asyncio.to_thread(_difference, call, catalogue, done.get(call.call_id)) for call in calls]
    return packet.merged({"governance": packet.governance.audited(*trail)}), tuple(shown)


def _ended(look: ToolCall | None) -> str:
    if look is None:
        return "timed_out"
    return "rehearsed" if look.result and look.result.dry_run else str(look.status)


def _looking(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall | None:
    """Return the call that shows what `call` would change: its own dry run, or one that reads what it would replace."""
    spec = catalogue.get(call.tool_name)
    if spec is None or spec.preview != spec.name:
        return _reading(call, packet, catalogue)
    harmless = spec.has_dry_run and call.risk is not Risk.READ and not sensitive_part(call.params)
    return call if harmless else None


def _reading(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall | None:
    """Return the call that reads what `call` would replace, None where that is not clear."""
    spec = catalogue.get(call.tool_name)
    reader = catalogue.get(spec.preview) if spec else None
    if spec is None or reader is None or reader.server != spec.server:
        return None
    if not packet.governance.settings.allows_tool(reader.name):
        return None
    shared = _shared(call, reader)
    content, _ = _change(call, spec, shared)
    if content is None or not shared or not {*reader.required} <= shared.keys():
        return None
    whole = {name: value for name, value in _ALL_LINES.items() if name in reader.parameters}
    params = {**whole, **shared}
    if sensitive_part(params):  # what it holds is read only after asking
        return None
    read = rated(ToolCall(tool_name=reader.name, params=params, status=ToolExecutionStatus.APPROVED), reader)
    return read if read.risk is Risk.READ else None


def _difference(call: ToolCall, catalogue: Catalogue, read: ToolCall | None) -> str:
    if read is None or read.result is None:
        return ""
    spec = catalogue[call.tool_name]
    if spec.preview == spec.name:
        told = read.result.output if read.result.dry_run and not read.result.truncated else ""
        return escaped(told) if len(told) <= _MAX_CHARS else ""
    shared = _shared(call, catalogue[read.tool_name])
    (content, keeps_old), old = _change(call, spec, shared), _text(read.result)
    if content is None or old is None or (old and keeps_old is None):
        return ""
    new = (old if keeps_old else "") + content
    if max(len(old), len(new)) > _MAX_CHARS or max(old.count("\n"), new.count("\n")) > _MAX_LINES:
        return ""
    name = " ".join(str(value) for value in shared.values())
    return escaped(difference(old, new, f"{name} now" if old else "/dev/null", name))


def _shared(call: ToolCall, reader: ToolSpec) -> dict[str, Any]:
    return {name: value for name, value in call.params.items() if name in reader.parameters}


def _change(call: ToolCall, spec: ToolSpec, shared: dict[str, Any]) -> tuple[str | None, bool | None]:
    """Return the text that a call writes, None if that is not clear, and what becomes of the old text."""
    defaults = {name: schema["default"] for name, schema in spec.parameters.items() if "default" in schema}
    own = {name: value for name, value in {**defaults, **call.params}.items() if name not in shared}
    modes = [own.pop(name) for name in [*own] if "enum" in spec.parameters.get(name, {})]
    if len(own) != 1 or len(modes) > 1 or any(mode not in [*_KEEPS_OLD] for mode in modes):
        return None, None
    (content,) = own.values()
    return content if isinstance(content, str) else None, _KEEPS_OLD[modes[0]] if modes else False


def _text(result: ToolResult) -> str | None:
    """Return the text that there is now, empty where there is none yet, None if that cannot be known."""
    if not result.success:
        return "" if _MISSING.search(result.error or "") else None
    if result.truncated:
        return None
    return "" if _EMPTY.fullmatch(result.output) else result.output
