"""List a tool for a client: in full, in brief, or only its name and argument names."""

from collections.abc import Callable, Sequence
from typing import Any

import mcp_types
from fastmcp.tools.base import Tool, ToolResult

from packetgate.ranking.choice import PaletteRequest
from packetgate.ranking.learning import DEFAULT_CONTEXT_TYPE, MAX_ADDED_TOOLS
from packetgate.state.context import RoutingContext
from packetgate.state.printing import compact_json
from packetgate.state.routing import Risk
from packetgate.state.sections import PaletteDetail, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import matching_names
from packetgate.tools.spec.tool_spec import TOOL_RESOLUTION, ToolSpec
from packetgate.tools.text.reading import access_of
from packetgate.tools.text.tokens import ESTIMATE

SMALL_CATALOGUE_TOKENS = 4_000
"""A catalogue of at most this many tokens is listed completely."""
MAX_LISTED_TOOLS = 40
"""Maximum listed tools, including the proxy's: models choose worse from longer lists, and some clients refuse them."""
MAX_UPSTREAM = MAX_LISTED_TOOLS - 6
"""Maximum server tools on a list, in addition to the proxy's own six."""
MIN_CONTEXT_TOOLS = 16
"""Size of a context's tool list, if half of the catalogue is less."""
LIST_BUDGET_FACTOR = 3.5
"""Token budget of a tool list, divided by the palette's budget: a list is JSON and needs more tokens."""
NAMED_CHARS = 80
"""Maximum description length of a tool that is listed by name, in characters."""

_TEXTS = {"description", "title", "examples"}

CallTool = Callable[[str, dict[str, Any]], Any]


class ListedTool(Tool):
    """A tool of an upstream server."""

    canonical_name: str
    call: CallTool
    definition: dict[str, Any] | None = None
    """The tool as its server defines it, if it is listed in full."""
    own_meta: dict[str, Any]
    """The server's `_meta`, with the proxy's own mark for `tools/resolve`."""

    def to_mcp_tool(self, **overrides: Any) -> mcp_types.Tool:
        """Return the MCP tool, unchanged except for its name and that mark if it is listed in full."""
        if self.definition:
            meta = {"_meta": self.own_meta or None} if self.own_meta != self.definition.get("_meta", {}) else {}
            return mcp_types.Tool.model_validate({**self.definition, "name": self.name, **meta}, by_name=False)
        return super().to_mcp_tool(**overrides).model_copy(update={"title": self.title, "meta": self.own_meta or None})

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the tool through the gate."""
        result: ToolResult = await self.call(self.canonical_name, arguments)
        return result


def listed_tool(spec: ToolSpec, detail: PaletteDetail, call: CallTool, *, marks_resolvable: bool = False) -> ListedTool:
    """Return a list entry of a tool.

    `marks_resolvable`: whether the client resolves calls of tools that are marked for it.
    """
    in_full = detail == "full"
    definition = dict(spec.definition) if in_full and spec.definition else None
    stated = (definition or {}).get("_meta") or {}
    meta = {key: value for key, value in stated.items() if key != TOOL_RESOLUTION}
    if marks_resolvable and can_be_resolved(spec):
        meta[TOOL_RESOLUTION] = {"resolvable": True}
    return ListedTool(
        name=spec.listed_name,
        canonical_name=spec.name,
        title=(spec.title or None) if in_full else None,
        description=_description(spec, detail),
        parameters=_schema(spec, detail),
        output_schema=spec.output_schema if in_full else None,
        annotations=listed_hints(spec),
        definition=definition,
        own_meta=meta,
        call=call,
    )


def palette_request(words: str, settings: RoutingContext, catalogue: Catalogue, **more: Any) -> PaletteRequest:
    """Return the request that chooses the tools for a context."""
    return PaletteRequest(
        words=words,
        access=access_of(words),
        size=min(settings.palette_size, MAX_UPSTREAM - MAX_ADDED_TOOLS, max(MIN_CONTEXT_TOOLS, len(catalogue) // 2)),
        token_budget=int(LIST_BUDGET_FACTOR * settings.palette_token_budget),
        text=_entry_text,
        **more,
    )


def is_small(catalogue: Catalogue, settings: RoutingContext) -> bool:
    """Whether a catalogue is small enough to list completely."""
    return len(catalogue) <= min(settings.palette_size, MAX_UPSTREAM) and catalogue.derived(_has_few_tokens)


def _has_few_tokens(catalogue: Catalogue) -> bool:
    spent = 0
    for spec in catalogue.values():
        spent += ESTIMATE.count(compact_json([spec.listed_name, spec.full, spec.input_schema]))
        if spent > SMALL_CATALOGUE_TOKENS:
            return False
    return True


def all_entries(catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
    """Return a palette of all tools in full."""
    return tuple(
        PaletteEntry(tool_name=spec.name, detail="full", reason="permanent", risk=spec.risk)
        for spec in catalogue.values()
    )


def permanent_entries(catalogue: Catalogue, client: str) -> tuple[PaletteEntry, ...]:
    """Return a palette of a client's permanent tools."""
    permanent = matching_names(catalogue.preferences.permanent_patterns(DEFAULT_CONTEXT_TYPE, client), catalogue)
    return tuple(entry for entry in catalogue.derived(all_entries) if entry.tool_name in permanent)


def sort_entries(entries: Sequence[PaletteEntry]) -> list[PaletteEntry]:
    """Return the entries in a stable order: permanent tools first, then by level of detail and name."""
    levels = {"full": 0, "brief": 1, "name": 2}
    return sorted(entries, key=lambda entry: (entry.reason != "permanent", levels[entry.detail], entry.tool_name))


def without_texts(schema: Any) -> Any:
    """Return a schema without descriptions, titles and examples. Parameters with these names are kept."""
    match schema:
        case {"type": _} | {"$ref": _} | {"anyOf": _}:
            return {name: without_texts(part) for name, part in schema.items() if name not in _TEXTS}
        case dict():
            return {name: without_texts(part) for name, part in schema.items()}
        case list():
            return [without_texts(part) for part in schema]
    return schema


def can_be_resolved(spec: ToolSpec) -> bool:
    """Whether some calls of a tool that changes something may only read."""
    is_lower = spec.least_risk is not None and spec.least_risk.severity < spec.risk.severity
    return spec.risk is not Risk.READ and not spec.has_fixed_risk and (is_lower or spec.ask_hints is not None)


def listed_hints(spec: ToolSpec) -> mcp_types.ToolAnnotations | None:
    """Return the annotations of a list entry: the server's, or for a built-in tool its risk."""
    if spec.definition is not None:
        stated = spec.definition.get("annotations")
        return mcp_types.ToolAnnotations.model_validate(stated, by_name=False) if stated else None
    hints = {"open_world_hint": spec.is_external or spec.reaches_outside, "idempotent_hint": spec.idempotent}
    if spec.risk is Risk.READ:
        return mcp_types.ToolAnnotations(read_only_hint=True, **hints)
    return mcp_types.ToolAnnotations(read_only_hint=False, destructive_hint=True, **hints)


def _entry_text(spec: ToolSpec, detail: PaletteDetail) -> str:
    if detail == "full" and spec.definition is not None:
        return compact_json([spec.listed_name, dict(spec.definition)])
    stated = listed_hints(spec)
    hints = stated.model_dump(by_alias=True, exclude_none=True) if stated else {}
    return compact_json([spec.listed_name, _description(spec, detail), _schema(spec, detail), hints])


def _description(spec: ToolSpec, detail: PaletteDetail) -> str:
    if detail == "full":
        return spec.full
    is_short = detail == "brief" or len(spec.brief) <= NAMED_CHARS
    return spec.brief if is_short else f"{spec.brief[: NAMED_CHARS - 1]}…"


def _schema(spec: ToolSpec, detail: PaletteDetail) -> dict[str, Any]:
    if detail == "full":
        return spec.input_schema
    if detail == "brief":
        return {name: without_texts(part) for name, part in spec.input_schema.items()}
    required = {"required": list(spec.required)} if spec.required else {}
    return {"type": "object", "properties": {name: {} for name in spec.parameters}, **required}
