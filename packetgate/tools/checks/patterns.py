"""Regular expressions of JSON Schema, which are JavaScript's, as the validator here takes them."""

import re
from functools import lru_cache

from jsonschema_rs import FancyRegexOptions, validator_for

BACKTRACK_LIMIT = 100_000
"""Steps a schema's pattern may take on a value: a hostile one ends there, and the value does not pass."""
PATTERN_OPTIONS = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)

_READ_DIFFERENTLY = re.compile(r"\[[:.=]|&&|~~|--|^/.+/[a-z]*$|\{,\d", re.DOTALL)
"""Named classes, operations on sets, a JavaScript literal with its slashes, a count without a least one."""
_DASH_BESIDE_CLASS = re.compile(r"(?<!\\)(\\[dDwWsS])-|-(?=\\[dDwWsS])")


@lru_cache(maxsize=4096)
def translated(pattern: str) -> str | None:
    """Return a pattern as the validator takes it, unchanged where it does already; None where it cannot be used.

    A pattern that languages read differently is not used.
    """
    if _READ_DIFFERENTLY.search(pattern):
        return None
    escaped = _DASH_BESIDE_CLASS.sub(r"\1\\-", pattern)
    return next(filter(_compiles, (pattern, escaped)), None)


def _compiles(pattern: str) -> bool:
    try:
        validator_for({"pattern": pattern}, pattern_options=PATTERN_OPTIONS)
    except ValueError:
        return False
    return True
