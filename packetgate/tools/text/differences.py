"""Unified diffs."""

from difflib import unified_diff
from io import StringIO


def difference(old: str, new: str, old_name: str, new_name: str) -> str:
    """Return the unified diff between two texts. Blocking."""
    if old == new:
        return "[the text stays the same]"
    lines = unified_diff([*StringIO(old)], [*StringIO(new)], old_name, new_name)  # only a newline ends a line
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(ended).rstrip("\n")
