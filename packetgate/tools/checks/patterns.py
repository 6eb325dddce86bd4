"""Regular expressions of JSON Schema (JavaScript syntax) for the validator."""

import re
from functools import lru_cache

from jsonschema_rs import FancyRegexOptions, validator_for

BACKTRACK_LIMIT = 100_000
"""Steps of a pattern on one value; a hostile pattern stops there, and the value is invalid."""
PATTERN_OPTIONS = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)

_READ_DIFFERENTLY = re.compile(r"\[[:.=]|&&|~~|--|^/.+/[a-z]*$|\{,\d", re.DOTALL)
"""Named classes, set operations, JavaScript literals with slashes, counts without a minimum."""
_DASH_BESIDE_CLASS = re.compile(r"(?<!\\)(\\[dDwWsS])-|-(?=\\[dDwWsS])")


@lru_cache(maxsize=4096)
def translated(pattern: str) -> str | None:
    """Return a pattern that the validator accepts; None if it cannot be used, or differs between languages."""
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
