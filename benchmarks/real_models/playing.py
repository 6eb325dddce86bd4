"""Play a case with a model in two ways: plain tool calling, and Packetgate's selection and review."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from pydantic import BaseModel, ConfigDict, JsonValue

from benchmarks.plain_calls import plain_answer
from benchmarks.selection.cases import Case, packet_of
from benchmarks.selection.figures import Call
from packetgate.deciders.outcome import routing_after_selection
from packetgate.deciders.protocols import Deciders
from packetgate.models.model import Model
from packetgate.models.thoughts import usage_of
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_and_validate

Way = Literal["plain", "packetgate"]
WAYS: tuple[Way, ...] = ("plain", "packetgate")
RUN = new_id()
TEMPERATURE = 0.15
LONGEST = 200
"""Maximum number of tokens of a plain call."""


class Played(BaseModel):
    """The result of a case."""

    model_config = ConfigDict(frozen=True)

    set: str
    id: str
    way: Way
    action: Literal["call", "none", "clarify", "describe"] = "none"
    calls: tuple[Call, ...] = ()
    passed: tuple[bool, ...] = ()
    """Whether each call runs without a question."""
    confidences: tuple[float, ...] = ()
    evidence: tuple[dict[str, float], ...] = ()
    unknown: int = 0
    """Number of calls to tools that do not exist."""
    refused: int = 0
    """Number of calls with arguments that the tool's schema rejects."""
    evaluated: int = 0
    """Prompt tokens that an earlier prompt did not contain."""
    written: int = 0
    seconds: float = 0.0
    run: str = ""
    """Id of the run that measured the time, because times of different days are not comparable."""


async def played(name: str, case: Case, way: Way, model: Model, deciders: Deciders) -> Played:
    """Play a case with a model, and return its result.

    Raises:
        DecisionError: the model does not answer.
    """
    catalogue = Catalogue(tool.spec for tool in case.tools)
    begun = perf_counter()
    found = await (_plain(case, catalogue, model) if way == "plain" else _routed(case, catalogue, deciders))
    return Played(set=name, id=case.id, way=way, seconds=round(perf_counter() - begun, 3), run=RUN, **found)


async def _plain(case: Case, catalogue: Catalogue, model: Model) -> dict[str, Any]:
    """Return the calls of a model that receives only the request and the tools, by its chat template or its server."""
    options = model.sampling(temperature=TEMPERATURE) | {"max_tokens": LONGEST}
    answer = await plain_answer(model, [HumanMessage(case.query)], catalogue.values(), options)
    calls = [Call(name=one["name"], arguments=one["args"]) for one in answer.tool_calls]
    return {
        "action": "call" if calls else "none",
        "calls": tuple(calls),
        "passed": (True,) * len(calls),
        **_faults(calls, catalogue),
        **_spent(usage_of(answer)),
    }


async def _routed(case: Case, catalogue: Catalogue, deciders: Deciders) -> dict[str, Any]:
    """Return the calls that Packetgate selects, and which of them pass its gate."""
    packet = packet_of(case.query, catalogue)
    context = RoutingContext()
    selection = await deciders.selector(packet, catalogue, context)
    routing = routing_after_selection(selection, packet, catalogue, context)
    calls: Sequence[ToolCall] = routing.calls
    spent, reviews = selection.usage, []
    if calls:
        review = await deciders.reviewer(packet.model_copy(update={"tool_routing": routing}), catalogue, context)
        spent += review.usage
        reviews = [review.for_call(call) for call in calls]
    made = [Call(name=call.tool_name, arguments=call.params) for call in calls]
    return {
        "action": "call" if calls else "none" if selection.action == "call" else selection.action,
        "calls": tuple(made),
        "passed": tuple(one.approved and one.confidence >= context.confidence_threshold for one in reviews),
        "confidences": tuple(one.confidence for one in reviews),
        "evidence": tuple({**call.evidence, **one.evidence} for call, one in zip(calls, reviews, strict=True)),
        **_faults(made, catalogue),
        **_spent(spent),
    }


def _faults(calls: Sequence[Call], catalogue: Catalogue) -> Mapping[str, JsonValue]:
    known = [call for call in calls if call.name in catalogue]
    checked = [
        repair_and_validate(call.name, call.arguments, frozenset(catalogue), catalogue, words="") for call in known
    ]
    refused = sum(bool(one.problems) or bool(one.repairs) for one in checked)
    return {"unknown": len(calls) - len(known), "refused": refused}


def _spent(usage: TokenUsage) -> Mapping[str, int]:
    return {"evaluated": usage.input_tokens - usage.cached_tokens, "written": usage.output_tokens}
