"""The messages of a turn in a model's own language: one beginning for all stages, so that it is evaluated once.

System prompt and tools come first, then what was said before, the request, and the turn's calls with their results.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from packetgate.deciders.language.prompting import attached, conversation, harmless, outcome_of, result_of
from packetgate.deciders.outcome import ALL
from packetgate.deciders.reflex.fit import fits_of
from packetgate.deciders.reflex.following import step_of
from packetgate.deciders.reflex.reading import parts_in
from packetgate.models.calling import OfferedTool
from packetgate.models.model import Model
from packetgate.models.pictures import Picture
from packetgate.models.schemas import ANY_TEXT, Schema, map_schema, obj
from packetgate.prompts.rendering import render
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import ToolCall as RoutedCall
from packetgate.state.sections import PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec

ASK, SHOW = "ask_user", "show_tools"
"""Names of the tools that are ours."""
ASKING = OfferedTool(
    ASK, "Asks the user for what a call needs and the request does not say.", obj(question={**ANY_TEXT, "minLength": 1})
)
MOST_SHOWN = 5
FEW, MOST = 2, 120
"""Tools that are offered in full at the least, and at most: providers take 128."""
ROOM: Sequence[tuple[float, int]] = ((250, 600), (1_000, 2_000))
"""For models in this process: below so many prompt tokens a second, tools of at most so many tokens are offered."""
NAMED, LIKELY = 24, 12
"""Most tools that are only named: for a model in this process, and for one elsewhere, which may also ask for others."""
WORDS, CHARS = 5, 100
"""Most words that describe each of those; for a model elsewhere, most characters, its name included."""
_HELD = frozenset({"described", "kept"})
"""Why a tool stands on the palette that the next call needs: it was asked for, or a result is read on with it."""
ID_CHARS = 9
"""Of a call's id: Mistral's takes ids of exactly nine letters and digits."""
PERSONA_CHARS = 4_000
"""Of a longer persona, what is kept where the model's context is too small for all of it."""


@dataclass(frozen=True)
class Offer:
    """The tools that a turn's model is offered: those of the palette that are shown in full, and ours."""

    tools: tuple[OfferedTool, ...]
    specs: tuple[ToolSpec, ...]
    named: int = 0
    """How many more are named."""

    def spec(self, name: str) -> ToolSpec | None:
        """Return the tool that a name on offer stands for; None for one of ours."""
        return next((one for one in self.specs if one.name == name), None)


def offer_of(model: Model, packet: CognitionPacket, catalogue: Catalogue) -> Offer:
    """Return what this turn's palette offers. Blocking.

    A slow model in this process is offered few in full: it takes seconds to read more, and small ones choose what
    stands first. They are those that a call must be able to name, and then those that fit best as the request is read
    without a model, as far as they have room. A model elsewhere can ask for tools that are not on the palette, too.
    """
    entries = {one.tool_name: one for one in packet.context.palette if one.tool_name in catalogue}
    full = _in_full(model, packet, catalogue, entries)
    names = [*dict.fromkeys([*full, *sorted(entries)])]
    always = [name for name in names if entries[name].reason == "permanent"]
    names = [*dict.fromkeys([*always, *names])]
    specs = tuple(catalogue[name] for name in names if name in full)
    rest = [name for name in names if name not in full]
    if model.local_info:
        rest = rest[:NAMED]
        more = _showing(rest, catalogue) if rest else None
    else:
        rest = sorted(rest, key=lambda name: -entries[name].score)[:LIKELY]
        more = _telling(rest, catalogue) if len(specs) < len(catalogue) else None
    tools = [offered(one, offered_name(model, one)) for one in specs]
    return Offer((*tools, ASKING, *([more] if more else [])), specs, named=len(rest))


def _in_full(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, entries: Mapping[str, PaletteEntry]
) -> list[str]:
    """Return the names of the tools that are offered in full: all that may be, by name, or the likeliest first."""
    full = sorted(name for name, one in entries.items() if one.shown == "full")
    room, count = _room(model), model.token_counter
    if len(full) <= (FEW if room and count else MOST):
        return full
    now = packet.header.created_at.astimezone()
    fitting = [fit.spec.name for part in parts_in(step_of(packet)) for fit in fits_of(part, catalogue, now)]
    held = [name for name in full if entries[name].reason in _HELD]
    by_rank = sorted(full, key=lambda name: (-entries[name].score, name))
    full = list(dict.fromkeys([*held, *(name for name in fitting if name in full), *by_rank]))
    most = MOST
    if room and count:
        listed = (compact_json(offered(catalogue[name]).for_prompt) for name in full)
        most = sum(size <= room for size in accumulate(map(count, listed)))
    return full[: max(FEW, len(held), most)]


def _room(model: Model) -> int | None:
    """Return how many tokens of tools are read in good time; None: all that there are. Nothing is known at first."""
    return (
        next((most for speed, most in ROOM if (model.reading_speed or 0.0) < speed), None) if model.local_info else None
    )


def is_slow(model: Model) -> bool:
    """Whether a model in this process takes seconds to read what tools there are; of a new one that is not known."""
    return _room(model) is not None


@lru_cache(maxsize=4_096)
def offered(tool: ToolSpec, name: str = "") -> OfferedTool:
    """Return a tool as it is offered in full, under its own name or another."""
    told: Schema = map_schema(arguments_of(tool), _harmless)
    return OfferedTool(name or tool.name, harmless(tool.full), told)


def _harmless(schema: Schema) -> Schema:
    """Return a schema in whose texts no server reads a model's control tokens."""
    return {
        key: harmless(value) if key in {"description", "title"} and isinstance(value, str) else value
        for key, value in schema.items()
    }


def offered_name(model: Model, tool: ToolSpec) -> str:
    """Return the name under which a model is offered a tool: providers take no dots."""
    return tool.name if model.local_info else tool.listed_name


def _showing(names: Sequence[str], catalogue: Catalogue) -> OfferedTool:
    listed = "; ".join(_about(name, catalogue) for name in names)
    wanted = {"type": "array", "items": {"enum": [*names]}, "minItems": 1, "maxItems": MOST_SHOWN}
    about = f"Shows what more tools take, so that they can be called: {listed}"
    return OfferedTool(SHOW, about, obj(names=wanted), obj(names={"type": "array", "items": {"type": "string"}}))


def _telling(names: Sequence[str], catalogue: Catalogue) -> OfferedTool:
    """Return the same for a model that no grammar holds to the names, and that may ask for any other tool."""
    others = f"all tools of a server or a kind, by its name; {ALL} for all there are"
    told = "; ".join([*(shorten(_about(name, catalogue), CHARS) for name in names), others])
    wanted = {"type": "array", "items": ANY_TEXT, "description": told}
    return OfferedTool(SHOW, "Shows what more tools take, so that they can be called.", obj(names=wanted))


def _about(name: str, catalogue: Catalogue) -> str:
    return f"{name}: {harmless(brief_of(catalogue[name].brief, WORDS))}"


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
    ledger = (
        ""
        if len(offer.specs) + offer.named == len(catalogue)
        else f"\nConnected servers:\n{harmless(catalogue.ledger)}"
    )
    personas = dict.fromkeys((persona, persona[:PERSONA_CHARS]))
    systems = [render("turn_system", persona=one, ledger=ledger) for one in personas]
    asked = packet.content.user_words + attached(packet) + note
    after = [*_calls(model, packet, catalogue)]
    return await conversation(
        model, packet, systems, asked, max_tokens, pictures=pictures, tools=offer.tools, after=after
    )


def _calls(model: Model, packet: CognitionPacket, catalogue: Catalogue) -> Iterator[BaseMessage]:
    """Yield the turn's calls so far, each with what came of it."""
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    if calls:
        yield AIMessage("", tool_calls=[_made(one, model, catalogue) for one in calls])
        for one in calls:
            told = "\n".join(filter(None, (result_of(one.call_id, packet), outcome_of(one, packet))))
            yield ToolMessage(told or one.status.replace("_", " "), tool_call_id=one.call_id[:ID_CHARS])


def _made(call: RoutedCall, model: Model, catalogue: Catalogue) -> ToolCall:
    spec = catalogue.get(call.tool_name)
    name = offered_name(model, spec) if spec else call.tool_name
    return ToolCall(name=name, args=call.params, id=call.call_id[:ID_CHARS], type="tool_call")
