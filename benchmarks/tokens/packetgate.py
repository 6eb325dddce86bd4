"""What Packetgate's selection model is sent: the real graph, with a model that keeps what it is asked."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from benchmarks.stand_ins import Shelf, needing_a_tool
from benchmarks.tokens.counting import count
from packetgate.deciders.choosing import language_deciders, reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.models.model import Model, ModelAnswer
from packetgate.models.schemas import AnswerForm
from packetgate.ranking.choice import palette_text
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.printing import compact_json
from packetgate.tools.catalogue.catalogue import Catalogue

NOTHING = '{"action": "none", "reasoning": "", "confidence": 1}'


@dataclass(frozen=True)
class Asked:
    """One request for a selection."""

    tool_part: str
    """The capabilities ledger and the palette, as they stand in the messages."""
    messages: str
    """All of the messages' text."""
    form: str
    """The schema of the answer, as an OpenAI-compatible endpoint gets it beside the messages."""


def in_full(catalogue: Catalogue) -> str:
    """Return every tool's name, description and schema."""
    return "\n".join(
        f"- {spec.name}: {spec.full.strip()}\n  arguments (JSON Schema): {compact_json(spec.input_schema)}"
        for spec in catalogue.values()
    )


async def selections(catalogue: Catalogue, requests: Iterable[str]) -> AsyncIterator[Asked]:
    """Yield what is sent for each request, on a session of its own, with every setting at its default.

    Raises:
        RuntimeError: what is counted as the tools' part is not what was sent.
    """
    model = _Recorder()

    async def source() -> Model:
        return model

    reflex = reflex_deciders()
    deciders = replace(language_deciders(source, source), intent=needing_a_tool, responder=reflex.responder)
    graph = build_graph(deciders, Shelf(catalogue)).compile(interrupt_after=["select_tool"])
    for request in requests:
        model.asked.clear()
        state = await graph.ainvoke(TurnInput(messages=[HumanMessage(request)]), context=RoutingContext())
        messages, form = model.asked[0]
        yield asked_for(CognitionPacket.model_validate(state), catalogue, messages, form)


def asked_for(
    packet: CognitionPacket, catalogue: Catalogue, messages: Sequence[BaseMessage], form: AnswerForm
) -> Asked:
    """Return what a request for a selection from the packet's palette holds.

    Raises:
        RuntimeError: the ledger or the palette is not what was sent.
    """
    sent = "\n".join(message.text for message in messages)
    parts = [catalogue.long_ledger, palette_text(packet.context.palette, catalogue)]
    if not all(parts) or any(sent.count(part) != 1 for part in parts):
        raise RuntimeError("the ledger and the palette do not stand once each in the selection prompt")
    # OpenAI refuses a schema of alternatives, and is then asked for any JSON object
    return Asked("\n".join(parts), sent, compact_json({"type": "json_object"}))


class _Recorder(Model):
    """Keeps what it is asked, and wants no tool."""

    def __init__(self) -> None:
        super().__init__(FakeListChatModel(responses=[NOTHING]))
        self.asked: list[tuple[Sequence[BaseMessage], AnswerForm]] = []

    token_counter = staticmethod(count)

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> ModelAnswer:
        """Answer with no tool."""
        self.asked.append((messages, form))
        return ModelAnswer(NOTHING, TokenUsage())
