"""What changes between two texts, as a unified diff."""

from difflib import unified_diff
from io import StringIO


def difference(old: str, new: str, before: str, after: str) -> str:
    """Return the unified diff from `old`, named `before`, to `new`, named `after`, whole. Blocking."""
    if old == new:
        return "[the text stays the same]"
    lines = unified_diff([*StringIO(old)], [*StringIO(new)], before, after)  # only a newline ends a line
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(ended).rstrip("\n")
