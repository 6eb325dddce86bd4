"""`*` and `**` in patterns of values."""

import re
from functools import lru_cache

_WILD = re.compile(r"\\.|\*\*|\*|[^*\\]+|\\", re.DOTALL)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of values as a regular expression."""
    return re.compile("".join(_regex(part) for part in _WILD.findall(pattern)), re.DOTALL)


def _regex(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    literal = part[1:] if part.startswith("\\") and len(part) > 1 else part
    return wild.get(part) or re.escape(literal)
