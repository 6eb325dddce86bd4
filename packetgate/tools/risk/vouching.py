"""How people say that a tool only reads which nothing else vouches for."""

import json
from collections.abc import Sequence

from packetgate.state.printing import printable
from packetgate.state.routing import ToolCall
from packetgate.tools.risk.tool import UNTRUSTED
from packetgate.tools.spec.tool_spec import ToolSpec

_WILD = frozenset("*?[")
_NAMED = 6
"""Tools of a server that are named in a line."""


def way_to_vouch(call: ToolCall) -> str:
    """Return how the user says that the tool of a call only reads; empty where the call would do more all the same."""
    if not call.unvouched:
        return ""
    line = line_for(call.tool_name)
    trust = ', or `"trusted": true` in its server\'s entry of mcp.json' if UNTRUSTED in call.risk_why else ""
    return f"If it only reads, say so by a line at the top of packetgate.toml: `{line}`{trust}." if line else ""


def line_for(name: str) -> str:
    """Return the line of `packetgate.toml` for a tool; none where its name would stand for other tools as well."""
    return "" if _WILD & {*name} else f'tools.{json.dumps(printable(name), ensure_ascii=False)}.risk = "read"'


def unvouched_line(held: Sequence[ToolSpec]) -> str:
    """Return what is said of a server's tools that look like reads and count as more."""
    named = ", ".join(spec.upstream_name for spec in held[:_NAMED]) + (", …" if len(held) > _NAMED else "")
    lines = [line for spec in held if (line := line_for(spec.name))]
    trusts = '"trusted": true in its entry of mcp.json; or, ' if all(UNTRUSTED in one.risk_why for one in held) else ""
    example = f"{trusts}for each, a line at the top of packetgate.toml such as {lines[0]}" if lines else trusts
    said = f"counted as more than the reads that they look like, as nothing vouches for them: {len(held)}"
    return f"{said} ({named}): {example}"
