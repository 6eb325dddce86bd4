"""Build messages from the packet: stable text first, changing text last, tool output only as fenced data."""

import asyncio
import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.models.calling import OfferedTool
from packetgate.models.model import Model
from packetgate.models.pictures import Picture, with_pictures, without_pictures
from packetgate.models.stripping import strip_markup
from packetgate.prompts.rendering import render
from packetgate.state.packet import MODEL_TEXT, CognitionPacket, is_user_message
from packetgate.state.printing import fenced
from packetgate.state.routing import ResultAttachment, ToolCall
from packetgate.state.sections import Attachment, DataField
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.media import picture_problem, stored_picture
from packetgate.tools.attached.parts import MAX_PICTURES
from packetgate.tools.servers.results import read_more_hint
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, ResultStore

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
    """Return the messages of a model call: system prompt, history without markup, this turn, `after`.

    If the model's context is too small, the oldest history is dropped, then the next of `systems` is used.
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


def result_of(call_id: str, packet: CognitionPacket) -> str:
    """Return a call's result as fenced data, or an empty text."""
    found = [field for field in packet.content.data_fields if field.key == f"tool_result:{call_id}"]
    return _result(found[-1], packet).strip() if found else ""


def why_not_run(call: ToolCall, packet: CognitionPacket) -> str:
    """Return why a call did not run, and what to tell the user; empty if it ran."""
    if call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}:
        return ""
    why = call.review_reasoning and f" ({call.review_reasoning})"
    problem = f"{call.tool_name} did not run to an end: it is {call.status.replace('_', ' ')}.{why}"
    if call.result and call.result.dry_run:
        way_out = packet.header.way_out.for_risk(call.risk)
        problem += f" {call.risk} tools are switched off; tell the user that {way_out}."
    return problem


def corrections_of(packet: CognitionPacket) -> str:
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


def earlier_words(packet: CognitionPacket) -> str:
    """Return the user's last requests, to which `it` and `there` may refer."""
    requests = [message.text[:EARLIER_CHARS] for message in packet.history if is_user_message(message)]
    return "\n".join(requests[-EARLIER_REQUESTS:])


def _history(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """Return earlier messages; answers keep only the model's words, so that it does not learn to invent results."""
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
