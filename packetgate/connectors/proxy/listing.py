"""List a tool for a client: in full, in brief, or by name and argument names."""

from collections.abc import Callable, Sequence
from typing import Any

import mcp_types
from fastmcp.tools.base import Tool, ToolResult

from packetgate.deciders.reflex.reading import access_of
from packetgate.state.context import RoutingContext
from packetgate.state.printing import compact_json
from packetgate.state.routing import Risk
from packetgate.state.sections import PaletteDetail, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.candidates import PaletteRequest
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.tokens import ESTIMATE
from packetgate.tools.usage.learning import GENERAL

WHOLE_TOKENS = 4_000
"""A catalogue of at most so many tokens is listed whole: choosing from it would save little."""
FEWEST = 16
"""Least number of tools for a context, if that is not more than half of the catalogue."""
LISTED = 3.5
"""Factor from the palette's token budget to that of a list, which is JSON."""
NAMED_CHARS = 80
"""Characters of the description of a tool that is listed by name."""

_TEXTS = {"description", "title", "examples"}

Run = Callable[[str, dict[str, Any]], Any]


class ListedTool(Tool):
    """A tool of a server behind the proxy."""

    canonical: str
    called: Run
    said_meta: dict[str, Any] | None = None
    """The `_meta` of its server."""

    def to_mcp_tool(self, **overrides: Any) -> mcp_types.Tool:
        """Return the MCP tool, with the server's `_meta` only."""
        return super().to_mcp_tool(**overrides).model_copy(update={"title": self.title, "meta": self.said_meta})

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the tool through the pipeline."""
        result: ToolResult = await self.called(self.canonical, arguments)
        return result


def listed(spec: ToolSpec, shown: PaletteDetail, called: Run) -> ListedTool:
    """Return a list entry of a tool, with Packetgate's risk hints in place of the server's."""
    in_full = shown == "full"
    return ListedTool(
        name=spec.listed_name,
        canonical=spec.name,
        title=(spec.title or None) if in_full else None,
        description=_description(spec, shown),
        parameters=_schema(spec, shown),
        output_schema=spec.output_schema if in_full else None,
        annotations=annotations(spec),
        said_meta=spec.meta if in_full else None,
        called=called,
    )


def text_of(spec: ToolSpec, shown: PaletteDetail) -> str:
    """Return the text of a list entry, to count its tokens."""
    hints = annotations(spec).model_dump(by_alias=True, exclude_none=True)
    more = [part for part in (spec.title, spec.output_schema, spec.meta) if part] if shown == "full" else []
    return compact_json([spec.listed_name, _description(spec, shown), _schema(spec, shown), hints, *more])


def wanted_by(words: str, settings: RoutingContext, catalogue: Catalogue, **more: Any) -> PaletteRequest:
    """Return the request by which a context's tools are chosen."""
    return PaletteRequest(
        words=words,
        access=access_of(words),
        size=min(settings.palette_size, max(FEWEST, len(catalogue) // 2)),
        token_budget=int(LISTED * settings.palette_token_budget),
        text=text_of,
        **more,
    )


def annotations(spec: ToolSpec) -> mcp_types.ToolAnnotations:
    """Return a tool's risk as MCP annotations."""
    hints = {"open_world_hint": spec.is_external or spec.reaches_outside, "idempotent_hint": spec.idempotent}
    if spec.risk is Risk.READ:
        return mcp_types.ToolAnnotations(read_only_hint=True, **hints)
    return mcp_types.ToolAnnotations(read_only_hint=False, destructive_hint=True, **hints)


def is_small(catalogue: Catalogue, most: int) -> bool:
    """Whether a catalogue is small enough to list whole. May block to count tokens."""
    if len(catalogue) > most:
        return False
    spent = 0
    for spec in catalogue.values():
        spent += ESTIMATE.count(compact_json([spec.listed_name, spec.full, spec.input_schema]))
        if spent > WHOLE_TOKENS:
            return False
    return True


def whole(catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
    """Return a palette of all tools in full."""
    return tuple(_full_entry(spec, "permanent") for spec in catalogue.values())


def permanent(catalogue: Catalogue, client: str) -> tuple[PaletteEntry, ...]:
    """Return a palette of the tools that stand on every palette of a client."""
    names = catalogue.fitting(catalogue.preferences.permanent_for(GENERAL, client))
    return tuple(_full_entry(catalogue[name], "permanent") for name in names)


def _full_entry(spec: ToolSpec, reason: Any) -> PaletteEntry:
    return PaletteEntry(tool_name=spec.name, shown="full", reason=reason, risk=spec.risk)


def in_order(entries: Sequence[PaletteEntry]) -> list[PaletteEntry]:
    """Return the entries in a stable order: permanent tools first, then by level of detail and name."""
    levels = {"full": 0, "brief": 1, "name": 2}
    return sorted(entries, key=lambda entry: (entry.reason != "permanent", levels[entry.shown], entry.tool_name))


def _description(spec: ToolSpec, shown: PaletteDetail) -> str:
    if shown == "full":
        return spec.full
    if shown == "brief":
        return spec.brief
    return spec.brief if len(spec.brief) <= NAMED_CHARS else f"{spec.brief[: NAMED_CHARS - 1]}…"


def _schema(spec: ToolSpec, shown: PaletteDetail) -> dict[str, Any]:
    if shown == "full":
        return spec.input_schema
    if shown == "brief":
        return {name: without_texts(part) for name, part in spec.input_schema.items()}
    return {
        "type": "object",
        "properties": {name: {} for name in spec.parameters},
        **({"required": list(spec.required)} if spec.required else {}),
    }


def without_texts(schema: Any) -> Any:
    """Return a schema without descriptions, titles and examples; parameters of these names stay."""
    match schema:
        case {"type": _} | {"$ref": _} | {"anyOf": _}:
            return {name: without_texts(part) for name, part in schema.items() if name not in _TEXTS}
        case dict():
            return {name: without_texts(part) for name, part in schema.items()}
        case list():
            return [without_texts(part) for part in schema]
    return schema
