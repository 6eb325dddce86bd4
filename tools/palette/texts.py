"""How tools read in a prompt: each in brief or in full."""

from collections.abc import Sequence

from state.sections import PaletteEntry
from tools.catalogue.catalogue import Catalogue
from tools.spec.tool_spec import ToolSpec


def describe(spec: ToolSpec, *, full: bool, briefs: bool = True) -> str:
    """Return a tool's text for a prompt: in full with its schema, or in brief; without `briefs`, its name then."""
    if not full:
        return f"- {spec.name}: {spec.brief}" if briefs else f"- {spec.name}"
    return f"- {spec.name}: {spec.full.strip()}\n  arguments (JSON Schema): {spec.schema_text}"


def palette_text(entries: Sequence[PaletteEntry], catalogue: Catalogue, *, briefs: bool = True) -> str:
    """Return the palette as a prompt shows it: what changes least from turn to turn first, then in order of name.

    Without `briefs`, a tool that is not shown in full is only named.
    """
    shown = sorted(
        (entry for entry in entries if entry.tool_name in catalogue),
        key=lambda entry: (entry.reason != "permanent", entry.shown == "full", entry.tool_name),
    )
    return "\n".join(describe(catalogue[entry.tool_name], full=entry.shown == "full", briefs=briefs) for entry in shown)
