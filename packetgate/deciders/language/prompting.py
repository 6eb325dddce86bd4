"""Build the prompts of a turn: the offered tools and the messages.

Tool output is only in fences. The prompts of all stages begin with the same text, so that the model's prompt cache
applies: system prompt and tools, history, request, calls.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import accumulate

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages import ToolCall as MessageCall

from packetgate.deciders.advice import NO_ADVISERS, Advisers
from packetgate.deciders.outcome import ALL_TOOLS
from packetgate.models.model import Model, OfferedTool
from packetgate.models.pictures import Picture, with_pictures, without_pictures
from packetgate.models.schemas import ANY_TEXT, Schema, map_schema, object_schema, outline
from packetgate.models.stripping import strip_markup
from packetgate.prompts.rendering import render
from packetgate.ranking.choice import ToolText, cached_token_count, tool_text
from packetgate.state.context import RoutingContext
from packetgate.state.packet import MODEL_TEXT, CognitionPacket
from packetgate.state.printing import compact_json, fenced, shorten
from packetgate.state.routing import ResultAttachment, ToolCall
from packetgate.state.sections import Attachment, DataField, PaletteDetail, PaletteEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.media import picture_problem, stored_picture
from packetgate.tools.attached.parts import MAX_PICTURES
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, ResultStore, read_more_hint
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter

ASK, SHOW = "ask_user", "show_tools"  # Packetgate's own tools: ask the user; show the parameters of more tools
ASK_USER_TOOL = OfferedTool(
    ASK,
    "Asks the user for what a call needs and the request does not say.",
    object_schema(question={**ANY_TEXT, "minLength": 1}),
    acts=False,
)
MIN_FULL_TOOLS = 2  # tools that are offered with their parameters, even if the model is slow
PERSONA_CHARS = 4_000  # beginning of a persona that is used if the whole persona exceeds the model's context
_MAX_FULL_TOOLS = 120  # providers accept 128 tools
_MAX_OFFER_TOKENS = 8_000  # of all offered tools; with more, the offer starts anew
_MAX_LISTED = 24  # largest catalogue whose tools `show_tools` lists
_MAX_NAMED = 12  # tools of a larger catalogue that the end of the prompt names
_BRIEF_WORDS, _BRIEF_CHARS, _MAX_SHOWN = 5, 50, 5
_OUTLINE_WORDS = 10  # of the description of a tool that is offered in brief
_LIKELY = 0.25  # least probability of a tool whose arguments the end of the prompt explains
_LEAST_NOTE_WORDS, _NOTE_WORDS, _NOTE_CHARS = 3, 12, 700  # of each argument, and of all together
_REQUIRED = frozenset({"described", "kept", "preview"})  # reasons of palette entries that the next call needs
_ID_CHARS = 9  # mistral's call ids have exactly nine characters
HISTORY_MESSAGES = 8
"""A longer history is cut by this many messages at a time, so that prompt caches stay valid between cuts."""
HISTORY_CHARS = 1_500  # of each message
ATTACHED_CHARS = 12_000  # of all attachments together
FENCE_DIGITS = 12  # characters of the packet's id in a fence, so that tool output cannot guess the fence
_CONTROL_TOKEN = re.compile(
    r"<\||<(?=/?s>)|<(?=(?:start|end)_of_(?:turn|text)>)|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|AVAILABLE_TOOLS)\])"
    r"|<(?=</?SYS>>)|<(?=\uff5c)"
)
"""Matches the beginning of common models' control tokens."""
_TOOL_RESULT = "tool_execution_result"


@dataclass(frozen=True)
class ToolOffer:
    """The tools that a model is offered."""

    tools: tuple[OfferedTool, ...]
    """Packetgate's own tools, `ask_user` and `show_tools`, and then those of `specs`."""
    specs: tuple[ToolSpec, ...]
    """The tools that are offered with their parameters, in the order of the prompt."""
    names_all: bool
    """Whether Packetgate's own tools name all other tools of the catalogue."""
    hint: str = ""
    """Text for the end of the prompt: the arguments of likely tools, and the palette's other tools."""


def tool_offer(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, advisers: Advisers = NO_ADVISERS
) -> ToolOffer:
    """Return the tools to offer: those that the session has offered, and then new ones of the palette. Blocking.

    Thus the beginning of the prompt stays the same from turn to turn, and prompt caches apply. New tools are added only
    if one of the best is not offered yet; if the list is too long, a new list begins. A slow model in this process
    gets few tools for each request.
    """
    entries = {entry.tool_name: entry for entry in packet.context.palette if entry.tool_name in catalogue}
    kept = [name for name in packet.context.offered_tools if name in entries]
    wanted = sorted(_full_tools(model, packet, catalogue, entries, advisers))
    required = [name for name in wanted if entries[name].reason in _REQUIRED]
    best = sorted(wanted, key=lambda name: (name not in required, -entries[name].score))[:MIN_FULL_TOOLS]
    names = kept
    if not {*best, *required} <= {*kept}:
        names = [*dict.fromkeys([*kept, *wanted])]
        most = min(_MAX_OFFER_TOKENS, (model.context_size or 2 * _MAX_OFFER_TOKENS) // 2)
        if kept and (len(names) > _MAX_FULL_TOOLS or _tokens(model, catalogue, names) > most):
            names = wanted
    specs = tuple(catalogue[name] for name in names)
    tools = [ASK_USER_TOOL, *(_offered_tool(model, spec) for spec in specs)]
    rest = sorted(entries.keys() - {*names}, key=lambda name: (-entries[name].score, name))
    hint = _tool_notes(model, packet, catalogue, specs, advisers) if model.runs_here else ""
    names_all = len(specs) == len(catalogue)
    if not names_all and (rest or not model.is_local):
        tools.insert(0, _show_tool(catalogue, rest[:_MAX_LISTED] if model.is_local else None))
        names_all = len(catalogue) <= _MAX_LISTED
        fitting = [name for name in rest if entries[name].score and not names_all][:_MAX_NAMED]
        hint += f"\n\n(More tools that may fit, for {SHOW}: {_named(catalogue, fitting)})" if fitting else ""
    return ToolOffer(tuple(tools), specs, names_all, hint)


def _tool_notes(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, specs: Sequence[ToolSpec], advisers: Advisers
) -> str:
    """Return the texts that brief tools omit: the arguments of likely tools, and the full text of requested tools."""
    described = {entry.tool_name for entry in packet.context.palette if entry.reason == "described"}
    full = "\n".join(spec.full_text for spec in specs if spec.name in described)
    offered = {spec.name: spec for spec in specs}
    likely = advisers.likely_tools(packet, catalogue, least=_LIKELY) if packet.tool_routing else ()
    notes = [
        f"{key} of {_offered_name(model, spec)}: {text}"
        for spec in (offered[name] for name in likely if name in offered and name not in described)
        for key, schema in spec.parameters.items()
        if (text := _first_clause(str(schema.get("description", ""))))
    ]
    shown = f"\n\n(Arguments of tools that may fit: {shorten('; '.join(notes), _NOTE_CHARS)})" if notes else ""
    return without_control_tokens(shown + (f"\n\n(In full:\n{full})" if full else ""))


def _first_clause(text: str) -> str:
    """Return the beginning of a description, without its examples: a small model copies examples into its calls."""
    words = text.split()[:_NOTE_WORDS]
    end = next((at for at, word in enumerate(words, 1) if at >= _LEAST_NOTE_WORDS and word[-1] in ",;:."), len(words))
    return " ".join(words[:end]).rstrip(",;:.")


def _show_tool(catalogue: Catalogue, allowed: Sequence[str] | None) -> OfferedTool:
    """Return the tool that shows more tools. Its text depends only on the catalogue; a grammar enforces `allowed`."""
    listed = f"a tool, or all tools of a server or a kind, by its name; {ALL_TOOLS} for all there are"
    if len(catalogue) <= _MAX_LISTED:
        listed = _named(catalogue, [*catalogue])
    names = {"type": "array", "items": ANY_TEXT}
    allowed_names = {**names, "items": {"enum": allowed}, "minItems": 1, "maxItems": _MAX_SHOWN} if allowed else names
    text = f"Shows what more tools take, so that they can be called: {listed}"
    return OfferedTool(SHOW, text, object_schema(names=allowed_names), object_schema(names=names), acts=False)


def _named(catalogue: Catalogue, names: Sequence[str]) -> str:
    briefs = {name: shorten(brief_of(catalogue[name].brief, _BRIEF_WORDS), _BRIEF_CHARS) for name in names}
    return without_control_tokens("; ".join(f"{name}: {brief}" for name, brief in briefs.items()))


def _full_tools(
    model: Model, packet: CognitionPacket, catalogue: Catalogue, entries: Mapping[str, PaletteEntry], advisers: Advisers
) -> list[str]:
    full = sorted(name for name, entry in entries.items() if entry.detail == "full")
    limit = model.tool_token_limit
    is_whole = all(entry.reason == "whole" for entry in entries.values())
    if len(full) <= (MIN_FULL_TOOLS if limit and not is_whole else _MAX_FULL_TOOLS):
        return full
    fitting = advisers.likely_tools(packet, catalogue)
    required = [name for name in full if entries[name].reason in _REQUIRED]
    by_rank = sorted(full, key=lambda name: (-entries[name].score, name))
    ordered = list(dict.fromkeys([*required, *(name for name in fitting if name in full), *by_rank]))
    max_tools = _MAX_FULL_TOOLS
    if limit:
        sizes = (_tokens(model, catalogue, [name]) for name in ordered)
        max_tools = sum(size <= limit for size in accumulate(sizes))
    return ordered[: max(MIN_FULL_TOOLS, len(required), max_tools)]


def _tokens(model: Model, catalogue: Catalogue, names: Sequence[str]) -> int:
    count = token_counter(model).count
    return sum(cached_token_count(count, compact_json(_offered_tool(model, catalogue[n]).prompt_format)) for n in names)


@lru_cache(maxsize=4_096)
def offered_tool(tool: ToolSpec, name: str = "", *, in_brief: bool = False) -> OfferedTool:
    """Return a tool with its parameters, without control tokens in its texts.

    Args:
        name: the name that the model sees, if it is not the tool's name.
        in_brief: show the beginning of the description, and of the parameters only names, types and choices.
    """

    def clean(schema: Schema) -> Schema:
        texts = {key: schema[key] for key in ("description", "title") if isinstance(schema.get(key), str)}
        return schema | {key: without_control_tokens(text) for key, text in texts.items()}

    schema = map_schema(arguments_schema(tool), clean)
    text = brief_of(tool.brief, _OUTLINE_WORDS) if in_brief else tool.full
    shown = outline(schema) if in_brief else None
    return OfferedTool(name or tool.name, without_control_tokens(text), schema, shown)


def _offered_tool(model: Model, tool: ToolSpec) -> OfferedTool:
    return offered_tool(tool, _offered_name(model, tool), in_brief=model.runs_here)


def _offered_name(model: Model, tool: ToolSpec) -> str:
    return tool.name if model.is_local else tool.listed_name  # providers refuse dots in names


def token_counter(model: Model) -> TokenCounter:
    """Return the model's token counter, or an estimate."""
    return TokenCounter(model.token_counter, is_exact=True) if model.token_counter else ESTIMATE


def tool_text_for(model: Model) -> ToolText:
    """Return the texts by which the tokens of a palette's tools are counted: as the model is offered them."""

    def text(spec: ToolSpec, shown: PaletteDetail) -> str:
        is_offered = shown == "full" and model.runs_here
        return compact_json(_offered_tool(model, spec).prompt_format) if is_offered else tool_text(spec, shown)

    return text


def arguments_schema(tool: ToolSpec) -> Schema:
    """Return the schema by which calls are validated: undeclared arguments are refused unless the tool allows them."""
    declared = tool.input_schema.get("properties")
    properties = {**tool.parameters, **(declared if isinstance(declared, dict) else {})}
    closed = {} if tool.is_open else {"additionalProperties": False}
    return {**tool.input_schema, "type": "object", "properties": properties, **closed}


def persona_versions(model: Model, context: RoutingContext) -> list[str]:
    """Return the persona of the settings, or the default persona; second, its beginning for a small context."""
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
    """Return the messages of the turn so far, within the model's context.

    Args:
        note: text that follows the request.
    """
    ledger = "" if offer.names_all else f"\nConnected servers:\n{without_control_tokens(catalogue.ledger)}"
    systems = [render("turn_system", persona=persona, ledger=ledger) for persona in persona_versions(model, context)]
    user = packet.content.user_words + fenced_attachments(packet) + offer.hint + note
    after: list[BaseMessage] = []
    fields = {field.key: field for field in packet.content.data_fields}
    made: list[MessageCall] = []
    for call in packet.calls:
        spec, id_ = catalogue.get(call.tool_name), call.call_id[:_ID_CHARS]
        name = _offered_name(model, spec) if spec else call.tool_name
        made.append(MessageCall(name=name, args=call.params, id=id_, type="tool_call"))
        field = fields.get(f"tool_result:{call.call_id}")
        texts = (_fenced_result(field, packet).strip() if field else "", not_run_reason(call, packet))
        text = "\n".join(filter(None, texts)) or call.status.replace("_", " ")
        after.append(ToolMessage(text, tool_call_id=id_))
    after = [AIMessage("", tool_calls=made), *after] if made else []
    return await conversation(
        model, packet, systems, user, max_tokens, pictures=pictures, tools=offer.tools, after=after
    )


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
    """Return the messages of a model call, shortened to the model's context.

    First the oldest messages are left out, then the next of `systems` is used. If nothing fits, the shortest version is
    returned, and the model's error states the size.

    Args:
        systems: versions of the system prompt, longest first.
        after: messages after the user's message.
    """
    history, user = _history(packet.history), f"{user.rstrip()}\n\n({_time_line(packet.header.local_time)})"
    for system in systems:
        while True:
            messages = [SystemMessage(system), *history, with_pictures(user, pictures), *after]
            if await model.fits(without_pictures(messages), max_tokens, tools):
                return messages
            if not history:
                break
            del history[:2]
    return messages


def _time_line(local: datetime) -> str:
    offset = f"{local:%z}"
    return f"It is {local:%A %Y-%m-%d %H:%M} {local.tzname()}, UTC{offset[:3]}:{offset[3:]}."


def fenced_results(packet: CognitionPacket) -> str:
    """Return the attached texts and this turn's tool results, as fenced data."""
    fields = [field for field in packet.content.data_fields if field.type == _TOOL_RESULT]
    return fenced_attachments(packet) + "".join(_fenced_result(field, packet) for field in fields)


def fenced_attachments(packet: CognitionPacket) -> str:
    """Return the attached texts, as fenced data."""
    attachments, fence = packet.content.attachments, packet.header.packet_id[:FENCE_DIGITS]
    max_chars = ATTACHED_CHARS // max(1, len(attachments))
    texts = [attachment for attachment in attachments if not attachment.is_picture]
    return "".join(
        "\n"
        + render(
            "attachment",
            fence=fence,
            file=without_control_tokens(attachment.name),
            text=_cut(attachment.text, max_chars, fence),
        )
        for attachment in texts
    )


def not_run_reason(call: ToolCall, packet: CognitionPacket) -> str:
    """Return why a call did not complete, with a note for the user; empty if it ran."""
    if call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}:
        return ""
    why = call.review_reasoning and f" ({call.review_reasoning})"
    if call.status is ToolExecutionStatus.SKIPPED and call.result is None:
        return f"{call.tool_name} was not called{why}. Nothing was done or looked up for this."
    if call.status is ToolExecutionStatus.USER_DENIED:
        return f"{call.tool_name} was not called: the user said no to it{why}."
    problem = f"{call.tool_name} did not run to an end: it is {call.status.replace('_', ' ')}.{why}"
    if call.result and call.result.dry_run:
        switch_hints = packet.header.switch_hints.for_risk(call.risk)
        problem += f" {call.risk} tools are switched off; tell the user that {switch_hints}."
    return problem


def correction_notes(packet: CognitionPacket) -> str:
    """Return the problems of this pass's earlier selections, as text for the model; may be empty."""
    routing = packet.tool_routing
    if routing is None:
        return ""
    notes = [correction.message for correction in routing.corrections if not correction.is_repaired]
    if routing.describe_rounds and routing.suggestions:
        notes.append("Nearest tools: " + ", ".join(routing.suggestions))
    return "\n\nCorrections:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def _fenced_result(field: DataField, packet: CognitionPacket) -> str:
    value = field.value if isinstance(field.value, dict) else {"output": field.value}
    succeeded, fence = value.get("success") is True, packet.header.packet_id[:FENCE_DIGITS]
    output = str(value.get("output") if succeeded else value.get("error") or value.get("status"))
    output = _cut(output, MAX_SHOWN_CHARS, fence, read_more_hint(str(value.get("handle") or "")))
    status = "succeeded" if succeeded else f"did not succeed ({value.get('status', 'failed')})"
    return "\n" + render("tool_result", fence=fence, tool=str(value.get("tool", "")), status=status, output=output)


def _cut(text: str, max_chars: int, fence: str, hint: str = "") -> str:
    cut = text if len(text) <= max_chars else f"{text[:max_chars]}\n[cut: {len(text):,} characters{hint}]"
    return without_control_tokens(cut).replace(fence, "…")


def fenced_text(text: str) -> str:
    """Return untrusted text in a fence that it cannot close, without control tokens."""
    return fenced(without_control_tokens(text))


def without_control_tokens(text: str) -> str:
    """Return a text with a space inside each control token of common models."""
    return _CONTROL_TOKEN.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def _history(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    # answers contain only the model's own text, without appended results, so that it does not learn to invent results
    dialogue = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    start = max(0, len(dialogue) // HISTORY_MESSAGES - 1) * HISTORY_MESSAGES
    history: list[BaseMessage] = []
    for message in dialogue[start:]:
        words = message.additional_kwargs.get(MODEL_TEXT) if isinstance(message, AIMessage) else None
        text = strip_markup(str(words or message.text)).text[:HISTORY_CHARS]
        history += [type(message)(text)] if text else []
    return history


async def attached_pictures(packet: CognitionPacket, store: ResultStore | None) -> list[Picture]:
    """Return the images attached to the request."""
    return [
        await _picture(
            attachment, f"attached: {attachment.description}, {attachment.handle}", packet, store, attachment.name
        )
        for attachment in packet.content.attachments
        if attachment.is_picture
    ]


async def answer_pictures(
    packet: CognitionPacket, store: ResultStore | None, *, reads_pictures: bool | None
) -> list[Picture]:
    """Return the images of recent turns, of the request and of tool results.

    Args:
        reads_pictures: whether the model reads images; None if unknown. If not True, an image of a tool result is
        only described; if False, so is an image of a recent turn.
    """
    earlier_store, result_store = None if reads_pictures is False else store, store if reads_pictures else None
    images = [
        await _picture(image, f"returned by {call.tool_name}, untrusted: {image.description}", packet, result_store)
        for call in packet.calls
        if call.result
        for image in call.result.attachments
        if image.kind == "image"
    ]
    return [
        *[
            await _picture(picture, f"attached earlier: {picture.description}, {picture.handle}", packet, earlier_store)
            for picture in packet.context.earlier_pictures
        ],
        *await attached_pictures(packet, store),
        *images[-MAX_PICTURES:],
    ]


async def _picture(
    image: Attachment | ResultAttachment,
    description: str,
    packet: CognitionPacket,
    store: ResultStore | None,
    attachment_name: str = "",
) -> Picture:
    """Return an image; without a `store`, only its description."""

    def load() -> bytes | None:
        data = stored_picture(image, store, packet.header.session_id) if store else None
        return None if data is None or picture_problem(data) else data

    return Picture(without_control_tokens(description), image.mime_type, await asyncio.to_thread(load), attachment_name)
