"""Preferences that vouch for the test servers' reading tools."""

from dataclasses import replace
from typing import Any

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.spec.tool_spec import ToolSpec

_READING = "check convert count echo fetch find get list look peek query read recall search show status web"
READERS: dict[str, Any] = {
    pattern: {"risk": "read"} for verb in _READING.split() for pattern in (f"*.{verb}", f"*.{verb}_*")
}
"""`[tools]` of a `packetgate.toml` that says of such tools that they read."""


def worded(preferences: Preferences | None = None) -> Preferences:
    """Return the preferences with the risks of these tools in front of others."""
    word = Preferences.model_validate({"tools": READERS})
    return preferences.model_copy(update={"tools": {**word.tools, **preferences.tools}}) if preferences else word


def vouched(spec: ToolSpec) -> ToolSpec:
    """Return the tool, vouched for if it looks like a read."""
    if not spec.unvouched:
        return spec
    return replace(spec, risk=Risk.READ, least_risk=Risk.READ, risk_why=("packetgate.toml says so",), unvouched=False)
