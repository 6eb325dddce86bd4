"""Preferences that confirm the reads of the test servers."""

from dataclasses import replace
from typing import Any

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.spec.tool_spec import ToolSpec

_READING = "check convert count echo fetch find get list look peek query read recall search show status web"
READERS: dict[str, Any] = {
    pattern: {"risk": "read"} for verb in _READING.split() for pattern in (f"*.{verb}", f"*.{verb}_*")
}
"""The `[tools]` table of a `packetgate.toml` that declares these tools as reads."""


def confirming_preferences(preferences: Preferences | None = None) -> Preferences:
    """Return the preferences, with `READERS` before their own tools."""
    readers = Preferences.model_validate({"tools": READERS})
    return preferences.model_copy(update={"tools": {**readers.tools, **preferences.tools}}) if preferences else readers


def confirmed(spec: ToolSpec) -> ToolSpec:
    """Return the tool, as a read if it looks like a read."""
    if not spec.is_unconfirmed_read:
        return spec
    return replace(
        spec,
        risk=Risk.READ,
        least_risk=Risk.READ,
        risk_reasons=("packetgate.toml sets this risk",),
        is_unconfirmed_read=False,
    )
