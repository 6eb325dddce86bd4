"""The tools that a model is offered in a turn, and the turn's messages in the model's native tool-calling form.

All stages share one beginning, so that it is evaluated once: system prompt and tools, history, request, calls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages import ToolCall as MessageCall

from packetgate.deciders.language.prompting import (
    conversation,
    fenced_attachments,
    result_of,
    why_not_run,
    without_control_tokens,
)
from packetgate.deciders.outcome import ALL_TOOLS
from packetgate.deciders.reflex.fit import fits_of
from packetgate.deciders.reflex.follow_ups import step_of
from packetgate.deciders.reflex.reading import parts_in
from packetgate.models.calling import OfferedTool
from packetgate.models.model import Model
from packetgate.models.pictures import Picture
from packetgate.models.schemas import ANY_TEXT, Schema, map_schema, object_schema
from packetgate.prompts.rendering import render
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec

ASK, SHOW = "ask_user", "show_tools"  # names of our own tools: ask the user; show the parameters of more tools
ASKING = OfferedTool(
    ASK,
    "Asks the user for what a call needs and the request does not say.",
    object_schema(question={**ANY_TEXT, "minLength": 1}),
)
FEW = 2  # least number of tools in full
PERSONA_CHARS = 4_000  # characters of a persona, if the model's context is too small for all of it
_MOST = 120  # most tools in full: providers take 128
_ROOM: Sequence[tuple[float, int]] = ((250, 600), (1_000, 2_000))
"""For models in this process: (prompt tokens per second, most tokens of tools below this speed)."""
_NAMED, _LIKELY = 24, 12
"""Most tools that are only named: for a model in this process, and for other models, which can ask for any tool."""
_BRIEF_WORDS, _BRIEF_CHARS, _MOST_SHOWN = 5, 100, 5
_REQUIRED = frozenset({"described", "kept", "preview"})  # reasons of palette entries that the next call needs
_ID_CHARS = 9  # mistral's call ids have exactly nine characters


@dataclass(frozen=True)
class ToolOffer:
    """The tools that a model is offered: those in full, and our own."""

    tools: tuple[OfferedTool, ...]
    specs: tuple[ToolSpec, ...]
    named: int = 0  # number of tools that are only named

    def spec(self, name: str) -> ToolSpec | None:
        """Return the spec of an offered tool; None for our own tools."""
        return next((spec for spec in self.specs if spec.name == name), None)


def offer_of(model: Model, packet: CognitionPacket, catalogue: Catalogue) -> ToolOffer:
    """Return the tools to offer from the palette. Blocking.

    A slow model in this process gets few tools in full: the tools that the next call needs, then the likeliest. Any
    other model can ask for tools off the palette.
    """
    entries = {entry.tool_name: entry for entry in packet.context.palette if entry.tool_name in catalogue}
    full = _in_full(model, packet, catalogue, entries)
    names = [*dict.fromkeys([*full, *sorted(entries)])]
    names.sort(key=lambda name: entries[name].reason != "permanent")
    specs = tuple(catalogue[name] for name in names if name in full)
    rest = [name for name in names if name not in full]
    if model.local_info:
        rest = rest[:_NAMED]
        show = [_show_listed(rest, catalogue)] if rest else []
    else:
        rest = sorted(rest, key=lambda name: -entries[name].score)[:_LIKELY]
        show = [_show_any(rest, catalogue)] if len(specs) < len(catalogue) else []
    tools = [offered_tool(spec, offered_name(model, spec)) for spec in specs]
    return ToolOffer((*tools, ASKING, *show), specs, named=len(rest))


def _in_full(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, entries: Mapping[str, PaletteEntry]
) -> list[str]:
    """Return the tools in full: all by name, or the likeliest first."""
    full = sorted(name for name, entry in entries.items() if entry.shown == "full")
    room, count = _room(model), model.token_counter
    if len(full) <= (FEW if room and count else _MOST):
        return full
    now = packet.header.created_at.astimezone()
    fitting = [fit.spec.name for part in parts_in(step_of(packet)) for fit in fits_of(part, catalogue, now)]
    required = [name for name in full if entries[name].reason in _REQUIRED]
    by_rank = sorted(full, key=lambda name: (-entries[name].score, name))
    ordered = list(dict.fromkeys([*required, *(name for name in fitting if name in full), *by_rank]))
    most = _MOST
    if room and count:
        sizes = (count(compact_json(offered_tool(catalogue[name]).for_prompt)) for name in ordered)
        most = sum(size <= room for size in accumulate(sizes))
    return ordered[: max(FEW, len(required), most)]


def _room(model: Model) -> int | None:
    """Return how many tokens of tools a model in this process reads fast enough; None: any number."""
    speed = model.reading_speed or 0.0
    return next((most for below, most in _ROOM if speed < below), None) if model.local_info else None


def is_slow(model: Model) -> bool:
    """Return whether a model takes seconds to read the tools; also if its speed is unknown."""
    return _room(model) is not None


@lru_cache(maxsize=4_096)
def offered_tool(tool: ToolSpec, name: str = "") -> OfferedTool:
    """Return a tool in full, under its own name or another, without control tokens in its texts."""
    return OfferedTool(name or tool.name, without_control_tokens(tool.full), map_schema(arguments_of(tool), _harmless))


def _harmless(schema: Schema) -> Schema:
    texts = {key: schema[key] for key in ("description", "title") if isinstance(schema.get(key), str)}
    return schema | {key: without_control_tokens(text) for key, text in texts.items()}


def offered_name(model: Model, tool: ToolSpec) -> str:
    """Return the tool's name for a model: providers take no dots."""
    return tool.name if model.local_info else tool.listed_name


def _show_listed(names: Sequence[str], catalogue: Catalogue) -> OfferedTool:
    wanted = {"type": "array", "items": {"enum": [*names]}, "minItems": 1, "maxItems": _MOST_SHOWN}
    listed = "; ".join(_about(name, catalogue) for name in names)
    about = f"Shows what more tools take, so that they can be called: {listed}"
    return OfferedTool(
        SHOW, about, object_schema(names=wanted), object_schema(names={"type": "array", "items": {"type": "string"}})
    )


def _show_any(names: Sequence[str], catalogue: Catalogue) -> OfferedTool:
    others = f"all tools of a server or a kind, by its name; {ALL_TOOLS} for all there are"
    listed = "; ".join([*(shorten(_about(name, catalogue), _BRIEF_CHARS) for name in names), others])
    wanted = {"type": "array", "items": ANY_TEXT, "description": listed}
    return OfferedTool(SHOW, "Shows what more tools take, so that they can be called.", object_schema(names=wanted))


def _about(name: str, catalogue: Catalogue) -> str:
    return f"{name}: {without_control_tokens(brief_of(catalogue[name].brief, _BRIEF_WORDS))}"


def arguments_of(tool: ToolSpec) -> Schema:
    """Return the tool's schema as it is validated: a tool without declared parameters takes none."""
    declared = tool.input_schema.get("properties")
    properties = {**tool.parameters, **(declared if isinstance(declared, dict) else {})}
    closed = {} if tool.is_open else {"additionalProperties": False}
    return {**tool.input_schema, "type": "object", "properties": properties, **closed}


def persona_of(model: Model, context: RoutingContext) -> str:
    """Return the persona of the settings, or the default."""
    return without_control_tokens(context.persona.strip()) or render(
        "turn_persona", model=model.name.removesuffix(".gguf")
    )


async def turn_messages(  # noqa: PLR0917
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    offer: ToolOffer,
    max_tokens: int,
    pictures: Sequence[Picture] = (),
    *,
    note: str = "",
) -> list[BaseMessage]:
    """Return the turn so far, with a note after the request, within the model's context."""
    persona = persona_of(model, context)
    shows_all = len(offer.specs) + offer.named == len(catalogue)
    ledger = "" if shows_all else f"\nConnected servers:\n{without_control_tokens(catalogue.ledger)}"
    personas = dict.fromkeys((persona, persona[:PERSONA_CHARS]))
    systems = [render("turn_system", persona=one, ledger=ledger) for one in personas]
    user = packet.content.user_words + fenced_attachments(packet) + note
    after = [*_calls(model, packet, catalogue)]
    return await conversation(
        model, packet, systems, user, max_tokens, pictures=pictures, tools=offer.tools, after=after
    )


def _calls(model: Model, packet: CognitionPacket, catalogue: Catalogue) -> Iterator[BaseMessage]:
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    if calls:
        yield AIMessage("", tool_calls=[_message_call(call, model, catalogue) for call in calls])
        for call in calls:
            text = "\n".join(filter(None, (result_of(call.call_id, packet), why_not_run(call, packet))))
            yield ToolMessage(text or call.status.replace("_", " "), tool_call_id=call.call_id[:_ID_CHARS])


def _message_call(call: ToolCall, model: Model, catalogue: Catalogue) -> MessageCall:
    spec = catalogue.get(call.tool_name)
    name = offered_name(model, spec) if spec else call.tool_name
    return MessageCall(name=name, args=call.params, id=call.call_id[:_ID_CHARS], type="tool_call")
