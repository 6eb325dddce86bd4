"""What changes between two texts, as a unified diff of bounded size."""

from difflib import unified_diff

MAX_LINES = 200
_MAX_WIDTH = 400


def difference(old: str, new: str, before: str, after: str) -> str:
    """Return the unified diff from `old`, named `before`, to `new`, named `after`. Blocking."""
    if old == new:
        return "[the text stays the same]"
    lines = []
    for line in unified_diff(_lines(old), _lines(new), before, after):
        cut = f"{line[:_MAX_WIDTH]} [cut]\n" if len(line) > _MAX_WIDTH else line
        lines.append(cut if cut.endswith("\n") else f"{cut}\n\\ No newline at end of file\n")
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"[{len(lines) - MAX_LINES:,} more lines of difference]"]
    return "".join(lines).rstrip("\n")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
