"""The texts of tools in a prompt: in full, in brief, or by name."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import get_args

from packetgate.state.sections import PaletteDetail, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

LEVELS: tuple[PaletteDetail, ...] = get_args(PaletteDetail)
"""Levels of detail, from the shortest to the longest text."""
CACHED_COUNTS = 32_768


def tool_text(spec: ToolSpec, shown: PaletteDetail) -> str:
    """Return a tool's text for a prompt."""
    if shown == "name":
        return f"- {spec.name}"
    return spec.in_brief if shown == "brief" else spec.in_full


@lru_cache(maxsize=CACHED_COUNTS)
def counted_tokens(count: Callable[[str], int], text: str) -> int:
    """Return the number of tokens of a text, cached. May block."""
    return count(text)


def palette_text(entries: Sequence[PaletteEntry], catalogue: Catalogue, *, briefs: bool = True) -> str:
    """Return the palette as part of a prompt: permanent tools first, then by length and name, for stable prefixes.

    Tools that are only named share a line for each server, if the ledger does not name them. Without `briefs`, tools
    in brief are only named.
    """
    shown = sorted(
        (entry for entry in entries if entry.tool_name in catalogue),
        key=lambda entry: (entry.reason != "permanent", LEVELS.index(entry.shown), entry.tool_name),
    )
    lines: dict[str, str] = {}
    for entry in shown:
        spec = catalogue[entry.tool_name]
        if entry.shown == "full" or (briefs and entry.shown == "brief"):
            lines[spec.name] = tool_text(spec, entry.shown)
        elif not catalogue.names_all:
            line, name = f"- {spec.server}, by name: ", spec.name.removeprefix(f"{spec.server}.")
            lines[line] = f"{lines[line]}, {name}" if line in lines else line + name
    return "\n".join(lines.values())
