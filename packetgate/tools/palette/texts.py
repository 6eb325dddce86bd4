"""How tools read in a prompt: each in full, in brief, or by name."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import get_args

from packetgate.state.sections import PaletteDetail, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

LEVELS: tuple[PaletteDetail, ...] = get_args(PaletteDetail)
"""From the shortest to the longest."""
KEPT_COUNTS = 32_768
"""Texts whose tokens are kept at hand."""


def describe(spec: ToolSpec, shown: PaletteDetail) -> str:
    """Return a tool's text for a prompt: in full with its schema, in brief, or its name alone."""
    if shown == "name":
        return f"- {spec.name}"
    return spec.in_brief if shown == "brief" else spec.in_full


@lru_cache(maxsize=KEPT_COUNTS)
def counted_tokens(count: Callable[[str], int], text: str) -> int:
    """Return how many tokens a text takes. Blocking, when it was not counted lately."""
    return count(text)


def palette_text(entries: Sequence[PaletteEntry], catalogue: Catalogue, *, briefs: bool = True) -> str:
    """Return the palette as a prompt shows it: what changes least from turn to turn first, then in order of name.

    Names alone stand together, a line a server, where the ledger beside the palette does not name every tool already.
    Without `briefs`, a tool that is not shown in full is only named.
    """
    shown = sorted(
        (entry for entry in entries if entry.tool_name in catalogue),
        key=lambda entry: (entry.reason != "permanent", LEVELS.index(entry.shown), entry.tool_name),
    )
    lines: dict[str, str] = {}
    for entry in shown:
        spec = catalogue[entry.tool_name]
        if entry.shown == "full" or (briefs and entry.shown == "brief"):
            lines[spec.name] = describe(spec, entry.shown)
        elif not catalogue.names_all:
            line, name = f"- {spec.server}, by name: ", spec.name.removeprefix(f"{spec.server}.")
            lines[line] = f"{lines[line]}, {name}" if line in lines else line + name
    return "\n".join(lines.values())
