"""What a model is sent: the offered tools, and messages with stable text first and tool output only as fenced data.

All stages share one beginning, so that it is evaluated once: system prompt and tools, history, request, calls.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages import ToolCall as MessageCall

from packetgate.deciders.outcome import ALL_TOOLS
from packetgate.deciders.reflex.fit import fits_by_part
from packetgate.models.calling import OfferedTool
from packetgate.models.model import Model
from packetgate.models.pictures import Picture, with_pictures, without_pictures
from packetgate.models.schemas import ANY_TEXT, Schema, map_schema, object_schema
from packetgate.models.stripping import strip_markup
from packetgate.prompts.rendering import render
from packetgate.state.context import RoutingContext
from packetgate.state.packet import MODEL_TEXT, CognitionPacket, is_user_message
from packetgate.state.printing import compact_json, fenced, shorten
from packetgate.state.routing import ResultAttachment, ToolCall
from packetgate.state.sections import Attachment, DataField, PaletteEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.media import picture_problem, stored_picture
from packetgate.tools.attached.parts import MAX_PICTURES
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.servers.results import read_more_hint
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, ResultStore

ASK, SHOW = "ask_user", "show_tools"  # names of our own tools: ask the user; show the parameters of more tools
ASK_USER_TOOL = OfferedTool(
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
HISTORY_MESSAGES = 8
"""A longer history is cut by this many messages at a time, so that prompt caches stay valid between cuts."""
HISTORY_CHARS = 1_500
ATTACHED_CHARS = 12_000  # most characters of all attachments together
FENCE_DIGITS = 12  # characters of the packet's id in fences: too many to guess
EARLIER_REQUESTS, EARLIER_CHARS = 4, 500
_CONTROL = re.compile(
    r"<\||<(?=/?s>)|<(?=(?:start|end)_of_(?:turn|text)>)|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|AVAILABLE_TOOLS)\])"
    r"|<(?=</?SYS>>)|<(?=\uff5c)"
)
"""First character of common models' control tokens."""
_TOOL_RESULT = "tool_execution_result"


@dataclass(frozen=True)
class ToolOffer:
    """The tools that a model is offered: those in full, and our own."""

    tools: tuple[OfferedTool, ...]
    specs: tuple[ToolSpec, ...]
    named: int = 0  # number of tools that are only named

    def spec(self, name: str) -> ToolSpec | None:
        """Return the spec of an offered tool; None for our own tools."""
        return next((spec for spec in self.specs if spec.name == name), None)


def tool_offer(model: Model, packet: CognitionPacket, catalogue: Catalogue) -> ToolOffer:
    """Return the tools to offer from the palette: few in full to a slow model in this process. Blocking."""
    entries = {entry.tool_name: entry for entry in packet.context.palette if entry.tool_name in catalogue}
    full = _in_full(model, packet, catalogue, entries)
    names = [*dict.fromkeys([*full, *sorted(entries)])]
    names.sort(key=lambda name: entries[name].reason != "permanent")
    specs = tuple(catalogue[name] for name in names if name in full)
    rest = [name for name in names if name not in full]
    if model.is_local:
        rest = rest[:_NAMED]
        show = [_show_listed(rest, catalogue)] if rest else []
    else:
        rest = sorted(rest, key=lambda name: -entries[name].score)[:_LIKELY]
        show = [_show_any(rest, catalogue)] if len(specs) < len(catalogue) else []
    tools = [offered_tool(spec, _offered_name(model, spec)) for spec in specs]
    return ToolOffer((*tools, ASK_USER_TOOL, *show), specs, named=len(rest))


def _in_full(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, entries: Mapping[str, PaletteEntry]
) -> list[str]:
    full = sorted(name for name, entry in entries.items() if entry.shown == "full")
    room, count = _room(model), model.token_counter
    if len(full) <= (FEW if room and count else _MOST):
        return full
    fitting = [fit.spec.name for fits in fits_by_part(packet, catalogue).values() for fit in fits]
    required = [name for name in full if entries[name].reason in _REQUIRED]
    by_rank = sorted(full, key=lambda name: (-entries[name].score, name))
    ordered = list(dict.fromkeys([*required, *(name for name in fitting if name in full), *by_rank]))
    most = _MOST
    if room and count:
        sizes = (count(compact_json(offered_tool(catalogue[name]).for_prompt)) for name in ordered)
        most = sum(size <= room for size in accumulate(sizes))
    return ordered[: max(FEW, len(required), most)]


def _room(model: Model) -> int | None:
    # the tokens of tools that a model in this process reads fast enough; None: any number
    speed = model.reading_speed or 0.0
    return next((most for below, most in _ROOM if speed < below), None) if model.is_local else None


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


def _offered_name(model: Model, tool: ToolSpec) -> str:
    return tool.name if model.is_local else tool.listed_name  # providers take no dots


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


def persona_versions(model: Model, context: RoutingContext) -> list[str]:
    """Return the persona of the settings, or the default, and its beginning for a small context."""
    persona = without_control_tokens(context.persona.strip())
    persona = persona or render("turn_persona", model=model.name.removesuffix(".gguf"))
    return list(dict.fromkeys((persona, persona[:PERSONA_CHARS])))


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
    shows_all = len(offer.specs) + offer.named == len(catalogue)
    ledger = "" if shows_all else f"\nConnected servers:\n{without_control_tokens(catalogue.ledger)}"
    systems = [render("turn_system", persona=persona, ledger=ledger) for persona in persona_versions(model, context)]
    user = packet.content.user_words + fenced_attachments(packet) + note
    after: list[BaseMessage] = []
    if calls := packet.tool_routing.all_calls if packet.tool_routing else ():
        after = [AIMessage("", tool_calls=[_message_call(call, model, catalogue) for call in calls])]
        after += [ToolMessage(_text_of(call, packet), tool_call_id=call.call_id[:_ID_CHARS]) for call in calls]
    return await conversation(
        model, packet, systems, user, max_tokens, pictures=pictures, tools=offer.tools, after=after
    )


def _message_call(call: ToolCall, model: Model, catalogue: Catalogue) -> MessageCall:
    spec = catalogue.get(call.tool_name)
    name = _offered_name(model, spec) if spec else call.tool_name
    return MessageCall(name=name, args=call.params, id=call.call_id[:_ID_CHARS], type="tool_call")


def _text_of(call: ToolCall, packet: CognitionPacket) -> str:
    results = [field for field in packet.content.data_fields if field.key == f"tool_result:{call.call_id}"]
    result = _result(results[-1], packet).strip() if results else ""
    return "\n".join(filter(None, (result, not_run_reason(call, packet)))) or call.status.replace("_", " ")


async def conversation(
    model: Model,
    packet: CognitionPacket,
    systems: Sequence[str],
    user: str,
    max_tokens: int,
    *,
    pictures: Sequence[Picture] = (),
    tools: Sequence[OfferedTool] = (),
    after: Sequence[BaseMessage] = (),
) -> list[BaseMessage]:
    """Return the messages of a model call; for a small context without the oldest history, or with a later system.

    Messages that still do not fit are sent anyway: the model's error states the size.
    """
    history = _history(packet.history)
    for system in systems:
        while True:
            messages = [SystemMessage(system), *history, with_pictures(user, pictures), *after]
            if await model.fits(without_pictures(messages), max_tokens, tools):
                return messages
            if not history:
                break
            del history[:2]
    return messages


def fenced_results(packet: CognitionPacket) -> str:
    """Return the attached texts and this turn's tool results, as fenced data."""
    fields = [field for field in packet.content.data_fields if field.type == _TOOL_RESULT]
    return fenced_attachments(packet) + "".join(_result(field, packet) for field in fields)


def fenced_attachments(packet: CognitionPacket) -> str:
    """Return the attached texts, as fenced data."""
    attachments, fence = packet.content.attachments, _fence(packet)
    each = ATTACHED_CHARS // max(1, len(attachments))
    return "".join(
        "\n"
        + render("attachment", fence=fence, file=without_control_tokens(one.name), text=_cut(one.text, each, fence))
        for one in attachments
        if not one.is_picture
    )


def not_run_reason(call: ToolCall, packet: CognitionPacket) -> str:
    """Return why a call did not run, and what to tell the user; empty if it ran."""
    if call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}:
        return ""
    why = call.review_reasoning and f" ({call.review_reasoning})"
    problem = f"{call.tool_name} did not run to an end: it is {call.status.replace('_', ' ')}.{why}"
    if call.result and call.result.dry_run:
        switch_hints = packet.header.switch_hints.for_risk(call.risk)
        problem += f" {call.risk} tools are switched off; tell the user that {switch_hints}."
    return problem


def correction_notes(packet: CognitionPacket) -> str:
    """Return the problems of this pass's earlier selections, or an empty text."""
    routing = packet.tool_routing
    if routing is None:
        return ""
    notes = [correction.message for correction in routing.corrections if not correction.mended]
    if routing.describe_rounds and routing.suggestions:
        notes.append("Nearest tools: " + ", ".join(routing.suggestions))
    return "\n\nCorrections:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def _fence(packet: CognitionPacket) -> str:
    return packet.header.packet_id[:FENCE_DIGITS]


def _result(field: DataField, packet: CognitionPacket) -> str:
    value = field.value if isinstance(field.value, dict) else {"output": field.value}
    succeeded, fence = value.get("success") is True, _fence(packet)
    output = str(value.get("output") if succeeded else value.get("error") or value.get("status"))
    output = _cut(output, MAX_SHOWN_CHARS, fence, read_more_hint(str(value.get("handle") or "")))
    status = "succeeded" if succeeded else f"did not succeed ({value.get('status', 'failed')})"
    return "\n" + render("tool_result", fence=fence, tool=str(value.get("tool", "")), status=status, output=output)


def _cut(text: str, most: int, fence: str, way_on: str = "") -> str:
    cut = text if len(text) <= most else f"{text[:most]}\n[cut: {len(text):,} characters{way_on}]"
    return without_control_tokens(cut).replace(fence, "…")


def fenced_text(text: str) -> str:
    """Return untrusted text in a fence that it cannot close, without control tokens."""
    return fenced(without_control_tokens(text))


def without_control_tokens(text: str) -> str:
    """Return a text with all models' control tokens broken by a space."""
    return _CONTROL.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def earlier_requests(packet: CognitionPacket) -> str:
    """Return the user's last requests, to which `it` and `there` may refer."""
    requests = [message.text[:EARLIER_CHARS] for message in packet.history if is_user_message(message)]
    return "\n".join(requests[-EARLIER_REQUESTS:])


def _history(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    # answers keep only the model's words, so that it does not learn to invent results
    spoken = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    cut = max(0, len(spoken) // HISTORY_MESSAGES - 1) * HISTORY_MESSAGES
    history: list[BaseMessage] = []
    for message in spoken[cut:]:
        words = message.additional_kwargs.get(MODEL_TEXT) if isinstance(message, AIMessage) else None
        text = strip_markup(str(words or message.text)).text[:HISTORY_CHARS]
        history += [type(message)(text)] if text else []
    return history


async def attached_pictures(packet: CognitionPacket, store: ResultStore | None) -> list[Picture]:
    """Return the pictures attached to the request."""
    return [
        await _picture(one, f"attached: {one.description}, {one.handle}", packet, store, one.name)
        for one in packet.content.attachments
        if one.is_picture
    ]


async def answer_pictures(packet: CognitionPacket, store: ResultStore | None, *, sees: bool | None) -> list[Picture]:
    """Return the pictures of recent turns, the request and tools; without `sees`, only their descriptions."""
    earlier, returned = None if sees is False else store, store if sees else None
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    images = [
        await _picture(one, f"returned by {call.tool_name}, untrusted: {one.description}", packet, returned)
        for call in calls
        if call.result
        for one in call.result.attachments
        if one.kind == "image"
    ]
    return [
        *[
            await _picture(one, f"attached earlier: {one.description}, {one.handle}", packet, earlier)
            for one in packet.context.earlier_pictures
        ],
        *await attached_pictures(packet, store),
        *images[-MAX_PICTURES:],
    ]


async def _picture(
    one: Attachment | ResultAttachment, about: str, packet: CognitionPacket, store: ResultStore | None, name: str = ""
) -> Picture:
    def load() -> bytes | None:
        data = stored_picture(one, store, packet.header.session_id) if store else None
        return None if data is None or picture_problem(one.mime_type, data) else data

    return Picture(without_control_tokens(about), one.mime_type, await asyncio.to_thread(load), name)
