"""What a write would change, shown where the user is asked about it.

A tool's preview is another tool of the same server, of read risk, that returns the text which a call would replace.
The server says which, if it is trusted, or the user does in `packetgate.toml`. Whatever is not as expected means that
there is no preview; it never keeps a question from being asked.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from state.context import RoutingContext
from state.errors import ToolCallError
from state.printing import escaped
from state.routing import Risk, ToolCall, ToolResult
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.toolbox import Toolbox
from tools.spec.tool_spec import ToolSpec
from tools.text.differences import difference

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


async def previews(calls: Sequence[ToolCall], toolbox: Toolbox, context: RoutingContext) -> tuple[str, ...]:
    """Return the unified diff of what each call would change, empty where there is none. At most `PATIENCE_S`."""
    shown = [""] * len(calls)
    catalogue = await toolbox.catalogue() if calls else toolbox.known

    async def show(at: int, call: ToolCall) -> None:
        shown[at] = await _preview(call, catalogue, toolbox, context)

    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(show(at, call) for at, call in enumerate(calls)))
    except TimeoutError:
        pass  # those that came in time are shown
    return tuple(shown)


async def _preview(call: ToolCall, catalogue: Catalogue, toolbox: Toolbox, context: RoutingContext) -> str:
    spec = catalogue.get(call.tool_name)
    reader = catalogue.get(spec.preview) if spec else None
    if spec is None or reader is None or not _may_read(reader, spec, context):
        return ""
    shared = {name: value for name, value in call.params.items() if name in reader.parameters}
    whole = {name: value for name, value in _ALL_LINES.items() if name in reader.parameters}
    content, keeps_old = _change(call, spec, shared)
    if content is None or not shared or not {*reader.required} <= shared.keys():
        return ""
    try:
        old = _text(await toolbox.call(reader.name, {**whole, **shared}))
    except ToolCallError:
        return ""
    if old is None or (old and keeps_old is None):
        return ""
    new = (old if keeps_old else "") + content
    if max(len(old), len(new)) > _MAX_CHARS or max(old.count("\n"), new.count("\n")) > _MAX_LINES:
        return ""
    name = " ".join(str(value) for value in shared.values())
    return escaped(await asyncio.to_thread(difference, old, new, f"{name} now" if old else "/dev/null", name))


def _may_read(reader: ToolSpec, spec: ToolSpec, context: RoutingContext) -> bool:
    return reader.server == spec.server and reader.risk is Risk.READ and context.allows_tool(reader.name)


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
