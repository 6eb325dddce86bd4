"""The messages of a turn in a model's own language: one beginning for all stages, so that it is evaluated once.

System prompt and tools come first, then what was said before, the request, and the turn's calls with their results.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from deciders.language.prompting import attached, conversation, harmless, result_of
from deciders.reflex.fit import fits_of
from deciders.reflex.following import step_of
from deciders.reflex.reading import parts_in
from models.calling import OfferedTool
from models.forms import ANY_TEXT, obj
from models.model import Model
from models.pictures import Picture
from models.schemas import Schema
from prompts.rendering import render
from state.context import RoutingContext
from state.packet import CognitionPacket
from tools.catalogue.catalogue import Catalogue
from tools.spec.descriptions import brief_of
from tools.spec.tool_spec import ToolSpec

ASK, SHOW = "ask_user", "show_tools"
"""Names of the tools that are ours."""
ASKING = OfferedTool(
    ASK, "Asks the user for what a call needs and the request does not say.", obj(question={**ANY_TEXT, "minLength": 1})
)
MOST_SHOWN = 5
FEW = 5
"""Tools that a model in this process is offered in full."""
NAMED, WORDS = 24, 8
"""Tools that are named besides, and words that are told of each."""
_HELD = frozenset({"described", "kept", "preview"})
"""Why a tool is on the palette that was asked for, or is to be read on in."""
PERSONA_CHARS = 4_000
"""Of a longer persona, what is kept where the model's context is too small for all of it."""


@dataclass(frozen=True)
class Offer:
    """The tools that a turn's model is offered: those of the palette that are shown in full, and ours."""

    tools: tuple[OfferedTool, ...]
    specs: tuple[ToolSpec, ...]

    def spec(self, name: str) -> ToolSpec | None:
        """Return the tool that a name on offer stands for; None for one of ours."""
        return next((one for one in self.specs if one.name == name), None)


def offer_of(model: Model, packet: CognitionPacket, catalogue: Catalogue) -> Offer:
    """Return what this turn's palette offers. Blocking.

    A model in this process is offered few in full: it takes seconds to read more, and small ones choose what stands
    first. They are those that a call must be able to name, and then those that fit best as the request is read without
    a model.
    """
    entries = {one.tool_name: one for one in packet.context.palette if one.tool_name in catalogue}
    names, full = sorted(entries), [name for name, one in entries.items() if one.shown == "full"]
    if model.local_info and len(full) > FEW:
        now = packet.header.created_at.astimezone()
        fitting = [fit.spec.name for part in parts_in(step_of(packet)) for fit in fits_of(part, catalogue, now)]
        held = [name for name in full if entries[name].reason in _HELD]
        by_rank = sorted(full, key=lambda name: (-entries[name].score, name))
        names = list(dict.fromkeys([*held, *(name for name in fitting if name in full), *by_rank, *names]))
        full = names[: max(FEW, len(held))]
    names.sort(key=lambda name: entries[name].reason != "permanent")
    specs = tuple(catalogue[name] for name in names if name in full)
    rest = [name for name in names if name not in full][:NAMED]
    tools = [OfferedTool(one.name, one.full, arguments_of(one)) for one in specs]
    own = [ASKING, *([_showing(rest, catalogue)] if rest else [])]
    return Offer((*tools, *own), specs)


def _showing(names: Sequence[str], catalogue: Catalogue) -> OfferedTool:
    listed = "; ".join(f"{name}: {brief_of(catalogue[name].brief, WORDS)}" for name in names)
    wanted = {"type": "array", "items": {"enum": [*names]}, "minItems": 1, "maxItems": MOST_SHOWN}
    return OfferedTool(SHOW, f"Shows what more tools take, so that they can be called: {listed}", obj(names=wanted))


def arguments_of(tool: ToolSpec) -> Schema:
    """Return the tool's own schema, read as it is validated: a tool that names no parameters takes none."""
    described = tool.input_schema.get("properties")
    named = {**tool.parameters, **(described if isinstance(described, dict) else {})}
    closed = {} if tool.is_open else {"additionalProperties": False}
    return {**tool.input_schema, "type": "object", "properties": named, **closed}


def persona_of(model: Model, context: RoutingContext) -> str:
    """Return who the model is told that it is."""
    return harmless(context.persona.strip()) or render("turn_persona", model=model.name.removesuffix(".gguf"))


async def turn_messages(  # noqa: PLR0917  what a turn's prompt is made of
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    offer: Offer,
    max_tokens: int,
    pictures: Sequence[Picture] = (),
    *,
    note: str = "",
) -> list[BaseMessage]:
    """Return the turn so far, as far as the model's context takes it.

    Args:
        note: said behind the request, of what did not happen.
    """
    persona = persona_of(model, context)
    ledger = "" if len(offer.specs) == len(catalogue) else f"\nConnected servers:\n{harmless(catalogue.ledger)}"
    personas = dict.fromkeys((persona, persona[:PERSONA_CHARS]))
    systems = [render("turn_system", persona=one, ledger=ledger) for one in personas]
    asked = packet.content.user_words + attached(packet) + note
    return await conversation(
        model, packet, systems, asked, max_tokens, pictures=pictures, tools=offer.tools, after=[*_calls(packet)]
    )


def _calls(packet: CognitionPacket) -> Iterator[BaseMessage]:
    """Yield the turn's calls so far, each with what came of it."""
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    if calls:
        made = [ToolCall(name=one.tool_name, args=one.params, id=one.call_id, type="tool_call") for one in calls]
        yield AIMessage("", tool_calls=made)
        for one in calls:
            yield ToolMessage(result_of(one.call_id, packet) or one.status.replace("_", " "), tool_call_id=one.call_id)
