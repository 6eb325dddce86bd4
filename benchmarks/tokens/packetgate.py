"""Record the requests of Packetgate's selection model: run the real graph with a model that records its requests."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from benchmarks.real_models.opening import by_one
from benchmarks.stand_ins import Shelf, needing_a_tool
from benchmarks.tokens.counting import count
from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.models.model import Model, ModelAnswer, OfferedTool
from packetgate.models.openai.compatible import openai_tool
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.packet import TurnInput
from packetgate.state.printing import compact_json
from packetgate.tools.catalogue.catalogue import Catalogue


@dataclass(frozen=True)
class Sent:
    """One selection request to the model."""

    tool_part: str
    """The capabilities ledger, if a message contains it, and the offered tools as JSON."""
    whole: str
    """The offered tools as JSON, and the text of all messages."""


def in_full(catalogue: Catalogue) -> str:
    """Return every tool's name, description and schema."""
    return "\n".join(
        f"- {spec.name}: {spec.full.strip()}\n  arguments (JSON Schema): {compact_json(spec.input_schema)}"
        for spec in catalogue.values()
    )


async def selections(catalogue: Catalogue, requests: Iterable[str], *, runs_here: bool = True) -> AsyncIterator[Sent]:
    """Yield the selection request for each user request, in its own session with default settings.

    Args:
        runs_here: whether the model runs on this machine and therefore receives brief tools.
    """
    model = _Recorder()
    model.runs_here = runs_here
    deciders = replace(by_one(model), intent=needing_a_tool, responder=reflex_deciders().responder)
    graph = build_graph(deciders, Shelf(catalogue)).compile(interrupt_after=["select_tool"])
    for request in requests:
        model.asked.clear()
        await graph.ainvoke(TurnInput(messages=[HumanMessage(request)]), context=RoutingContext())
        messages, offered = model.asked[0]
        sent = "\n".join(message.text for message in messages)
        tools = compact_json([openai_tool(one, plain=False) for one in offered])
        ledger = f"{catalogue.ledger}\n" if catalogue.ledger in sent else ""
        yield Sent(ledger + tools, f"{tools}\n{sent}")


class _Recorder(Model):
    """Records its requests, and calls no tool."""

    uses_tool_calling = True
    token_counter = staticmethod(count)

    def __init__(self) -> None:
        super().__init__(FakeListChatModel(responses=["Hello"]))
        self.asked: list[tuple[Sequence[BaseMessage], Sequence[OfferedTool]]] = []

    async def call(self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], **request: Any) -> ModelAnswer:
        """Return an answer without a call."""
        self.asked.append((messages, tools))
        return ModelAnswer("Hello", TokenUsage())
