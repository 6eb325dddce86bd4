"""From the packet to messages: stable text first, changing text last, tool output only as fenced data."""

import asyncio
import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.models.calling import OfferedTool
from packetgate.models.markup.stripping import strip_markup
from packetgate.models.model import Model
from packetgate.models.pictures import Picture, with_pictures, without_pictures
from packetgate.prompts.rendering import render
from packetgate.state.packet import MODEL_TEXT, CognitionPacket, is_user_message
from packetgate.state.printing import fenced
from packetgate.state.routing import ResultAttachment, ToolCall
from packetgate.state.sections import Attachment, DataField
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.parts import MAX_PICTURES
from packetgate.tools.attached.pictures import kept_picture, problem_of
from packetgate.tools.servers.results import reading_on
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, ResultStore

HISTORY_MESSAGES = 8
"""The least that is shown of a longer history. It is cut by as many at a time: a prompt that begins like the last one
is evaluated, or billed, only from where it differs.
"""
HISTORY_CHARS = 1_500
ATTACHED_CHARS = 12_000
"""Of all attachments together."""

FENCE_DIGITS = 12
"""Of the packet's id: few for a prompt, too many to guess."""

EARLIER_REQUESTS = 4
EARLIER_CHARS = 500

_CONTROL = re.compile(
    r"<\||<(?=/?s>)|<(?=(?:start|end)_of_(?:turn|text)>)|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|AVAILABLE_TOOLS)\])"
    r"|<(?=</?SYS>>)|<(?=\uff5c)"
)
"""Where control tokens of common models begin: one character, which a space after it makes harmless."""

TOOL_RESULT = "tool_execution_result"


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
    """Return the messages of a model call: system prompt, recent history without markup, this turn.

    What is said `after` the user's words comes last; `tools` are those that the model is offered beside it all.

    Where the model's context is too small for all of it, history goes first, the oldest before the newest, and then
    the system prompt gives way to the next of `systems`. What fits no way is sent in its shortest form: the model's
    error then says how much too long it is.
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


def results(packet: CognitionPacket) -> str:
    """Return the texts that the user attached and this turn's tool results, as fenced data.

    The fence carries what the packet's id begins with, which no tool and no file can know.
    """
    fields = [one for one in packet.content.data_fields if one.type == TOOL_RESULT]
    return attached(packet) + "".join(_fenced(field, _fence(packet)) for field in fields)


def attached(packet: CognitionPacket) -> str:
    """Return the texts that the user attached, as fenced data."""
    fence, attachments = _fence(packet), packet.content.attachments
    each = ATTACHED_CHARS // max(1, len(attachments))
    texts = [
        "\n" + render("attachment", fence=fence, file=harmless(one.name), text=_shown(one.text, each, fence))
        for one in attachments
        if not one.is_picture
    ]
    return "".join(texts)


def result_of(call_id: str, packet: CognitionPacket) -> str:
    """Return what came of a call, as fenced data; empty where nothing did yet."""
    key = f"tool_result:{call_id}"
    found = [_fenced(field, _fence(packet)) for field in packet.content.data_fields if field.key == key]
    return found[-1].strip() if found else ""


def outcome_of(call: ToolCall, packet: CognitionPacket) -> str:
    """Return what did not happen of a call, and what to tell the user of it; empty where it ran."""
    if call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}:
        return ""
    why = call.review_reasoning and f" ({call.review_reasoning})"
    told = f"{call.tool_name} did not run to an end: it is {call.status.replace('_', ' ')}.{why}"
    if call.result and call.result.dry_run:
        way_out = packet.header.way_out.of(call.risk)
        told += f" {call.risk} tools are switched off; tell the user that {way_out}."
    return told


def corrections_of(packet: CognitionPacket) -> str:
    """Return what was wrong with this pass's earlier selections, and what is near to them; empty where nothing was."""
    routing = packet.tool_routing
    if routing is None:
        return ""
    notes = [correction.message for correction in routing.corrections if not correction.mended]
    if routing.describe_rounds and routing.suggestions:
        notes.append("Nearest tools: " + ", ".join(routing.suggestions))
    return "\n\nCorrections:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def _fence(packet: CognitionPacket) -> str:
    return packet.header.packet_id[:FENCE_DIGITS]


def _fenced(field: DataField, fence: str) -> str:
    value = field.value if isinstance(field.value, dict) else {"output": field.value}
    succeeded = value.get("success") is True
    output = str(value.get("output") if succeeded else value.get("error") or value.get("status"))
    shown = _shown(output, MAX_SHOWN_CHARS, fence, reading_on(str(value.get("handle") or "")))
    status = "succeeded" if succeeded else f"did not succeed ({value.get('status', 'failed')})"
    return "\n" + render("tool_result", fence=fence, tool=str(value.get("tool", "")), status=status, output=shown)


def _shown(text: str, most: int, fence: str, reading_on: str = "") -> str:
    cut = text if len(text) <= most else f"{text[:most]}\n[cut: {len(text):,} characters{reading_on}]"
    return harmless(cut).replace(fence, "…")


def data(text: str) -> str:
    """Return a text that others wrote in a fence that nothing in it closes, and without tokens that end a turn."""
    return fenced(harmless(text))


def harmless(text: str) -> str:
    """Return a text out of which no server reads a model's control tokens, as many do in what a message says."""
    return _CONTROL.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def earlier_words(packet: CognitionPacket) -> str:
    """Return what the user asked before, the last few, each cut: what `it` and `there` may stand for."""
    said = [message.text[:EARLIER_CHARS] for message in packet.history if is_user_message(message)]
    return "\n".join(said[-EARLIER_REQUESTS:])


def _history(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """Return what was said, of answers the model's own words: from results below them it would learn to invent some."""
    spoken = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    cut = max(0, len(spoken) // HISTORY_MESSAGES - 1) * HISTORY_MESSAGES
    cleaned = [(type(message), strip_markup(_words(message)).text[:HISTORY_CHARS]) for message in spoken[cut:]]
    return [kind(text) for kind, text in cleaned if text]


def _words(message: BaseMessage) -> str:
    own = message.additional_kwargs.get(MODEL_TEXT) if isinstance(message, AIMessage) else None
    return str(own or message.text)


async def attached_pictures(packet: CognitionPacket, kept: ResultStore | None) -> list[Picture]:
    """Return the pictures that the user attached to the request."""
    attached = [one for one in packet.content.attachments if one.is_picture]
    return [await _read(one, f"attached: {one.description}, {one.handle}", packet, kept, one.name) for one in attached]


async def earlier_pictures(packet: CognitionPacket, kept: ResultStore | None, *, sees: bool | None) -> list[Picture]:
    """Return the pictures that the user attached a few turns ago, which the request may still be about."""
    known = None if sees is False else kept
    return [
        await _read(one, f"attached earlier: {one.description}, {one.handle}", packet, known)
        for one in packet.context.earlier_pictures
    ]


async def returned_pictures(packet: CognitionPacket, kept: ResultStore | None, *, sees: bool | None) -> list[Picture]:
    """Return the pictures that tools returned, the last few; to a model that is not known to see in words alone."""
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    known = kept if sees else None
    return [
        await _read(one, f"returned by {call.tool_name}, untrusted: {one.description}", packet, known)
        for call in calls
        if call.result
        for one in call.result.attachments
        if one.kind == "image"
    ][-MAX_PICTURES:]


async def _read(
    one: Attachment | ResultAttachment, told: str, packet: CognitionPacket, kept: ResultStore | None, name: str = ""
) -> Picture:
    def read() -> bytes | None:
        data = kept_picture(one, kept, packet.header.session_id) if kept else None
        return None if data is None or problem_of(one.mime_type, data) else data

    return Picture(harmless(told), one.mime_type, await asyncio.to_thread(read), name)
