"""From the packet to messages: stable text first, changing text last, tool output only as fenced data."""

from collections.abc import Awaitable, Callable, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from models.markup.stripping import strip_markup
from models.model import Model
from prompts.rendering import render
from state.packet import CognitionPacket
from state.sections import DataField
from tools.catalogue import Catalogue
from tools.palette import capabilities_ledger

ModelSource = Callable[[], Awaitable[Model]]
"""Loads the model on first use."""

HISTORY_MESSAGES = 8
HISTORY_CHARS = 1_500
RESULT_CHARS = 12_000

TOOL_RESULT = "tool_execution_result"


def conversation(packet: CognitionPacket, system: str, user: str) -> list[BaseMessage]:
    """Return the messages of a model call: system prompt, recent history without markup, this turn."""
    return [SystemMessage(system), *_history(packet.messages[:-1]), HumanMessage(user)]


def ledger(catalogue: Catalogue) -> str:
    """Return the capabilities ledger that stands in every prompt."""
    return capabilities_ledger(catalogue)


def results(packet: CognitionPacket) -> str:
    """Return this turn's tool results as fenced data. The fence carries the packet id, which no tool can know."""
    fields = [one for one in packet.content.data_fields if one.type == TOOL_RESULT]
    return "".join(_fenced(field, packet.header.packet_id) for field in fields)


def repair(problem: str) -> str:
    """Return the message that asks for another try."""
    return render("repair", problem=problem)


def _fenced(field: DataField, fence: str) -> str:
    value = field.value if isinstance(field.value, dict) else {"output": field.value}
    succeeded = value.get("success") is True
    output = str(value.get("output") if succeeded else value.get("error") or value.get("status"))
    shown = output if len(output) <= RESULT_CHARS else f"{output[:RESULT_CHARS]}\n[cut: {len(output):,} characters]"
    shown = shown.replace("<|", "< |")  # llama.cpp would read a model's control tokens out of a tool's text
    status = "succeeded" if succeeded else f"did not succeed ({value.get('status', 'failed')})"
    return "\n" + render("tool_result", fence=fence, tool=str(value.get("tool", "")), status=status, output=shown)


def _history(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    spoken = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    cleaned = [
        (type(message), strip_markup(message.text).text[:HISTORY_CHARS]) for message in spoken[-HISTORY_MESSAGES:]
    ]
    return [kind(text) for kind, text in cleaned if text]
