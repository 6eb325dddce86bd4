"""How long what a tool returns holds, as its server says.

The protocol has such hints for lists and resources alone. In the `_meta` of a tool, or of a result, they are read by
the same name, and so is what SEP-2419 proposes: `cache_hint`.
"""

from collections.abc import Mapping
from typing import Any

MOST_MS = 3_600_000
"""The longest that a server is believed."""


def hinted_s(meta: Mapping[str, Any] | None) -> float | None:
    """Return for how many seconds something holds by its metadata; None where that does not say."""
    match meta:
        case {"cache_hint": "no-cache"} | {"ttlMs": bool()}:
            return 0.0
        case {"ttlMs": int() | float() as ms}:
            return max(0, min(ms, MOST_MS)) / 1000
    return None
