"""Run cases with Packetgate's own deciders, as in a turn without a language model."""

from collections.abc import Sequence

from benchmarks.selection.cases import Case, packet_of
from benchmarks.selection.figures import Call, Outcome
from packetgate.deciders.protocols import Deciders, SelectedCall, Selection
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.risk.call import with_risk


async def outcomes(cases: Sequence[Case], deciders: Deciders) -> list[Outcome]:
    """Return the selection for each case, with the review's confidence."""
    return [await _outcome(case, deciders) for case in cases]


async def _outcome(case: Case, deciders: Deciders) -> Outcome:
    catalogue = Catalogue(tool.spec for tool in case.tools)
    packet = packet_of(case.query, catalogue)
    selection = await deciders.selector(packet, catalogue, RoutingContext())
    outcome = Outcome(
        id=case.id,
        action=selection.action,
        calls=tuple(Call(name=call.tool_name, arguments=call.params) for call in selection.calls),
        relevance=_relevance(selection),
    )
    if not selection.calls:
        return outcome
    calls = tuple(with_risk(_call(call, selection), catalogue[call.tool_name]) for call in selection.calls)
    chosen = packet.model_copy(update={"tool_routing": ToolRouting(calls=calls)})
    review = await deciders.reviewer(chosen, catalogue, RoutingContext())
    judged = [review.for_call(call) for call in calls]
    sure = min(one.confidence if one.approved else min(one.confidence, 0.5) for one in judged)
    return outcome.model_copy(update={"confidence": sure})


def _call(wanted: SelectedCall, selection: Selection) -> ToolCall:
    sure = wanted.confidence or selection.confidence
    return ToolCall(tool_name=wanted.tool_name, params=wanted.params, selection_confidence=sure)


def _relevance(selection: Selection) -> float:
    """Return the confidence that a tool fits; a selection without a call states the opposite confidence."""
    return 1 - selection.confidence if selection.action == "none" else selection.confidence
