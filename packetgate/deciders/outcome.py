"""Turn a selection into validated calls with the origins of their arguments."""

from collections.abc import Iterable, Sequence

from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.deciders.wrong_category import wrong_category
from packetgate.gate.facts import Facts
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Correction, ToolCall, ToolRouting
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, repair_and_validate, validate_call

ALL_TOOLS = "*"  # a name that stands for all tools in a `describe` selection
REPEATED = "the same call was already made, asked about or denied, so it is not repeated"
MAX_CLARIFICATIONS = 2
MAX_DESCRIBE_ROUNDS = 2
MAX_SUGGESTIONS = 5


def routing_after_selection(
    selection: Selection, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext
) -> ToolRouting:
    """Return the routing after a selection."""
    routing = packet.routing.for_new_selection(selection.alternatives, selection.corrections)
    match selection.action:
        case "call":
            return _routing_with_calls(routing, selection, packet, catalogue, context.max_parallel_calls)
        case "clarify" if len(packet.content.clarifications) < MAX_CLARIFICATIONS:
            return routing.with_question(selection.question, selection.asked_argument)
        case "describe" if routing.describe_rounds < MAX_DESCRIBE_ROUNDS:
            return _routing_with_descriptions(routing, selection.tool_names, packet, catalogue)
        case "clarify":
            return routing.ended_without_call(f"the selection asked more than {MAX_CLARIFICATIONS} questions")
        case "describe":
            return routing.ended_without_call(
                f"the selection asked for tool descriptions more than {MAX_DESCRIBE_ROUNDS} times"
            )
    if not selection.needs_tool:
        return routing.ended_without_call("")
    # the palette is widened once in a turn, and only before the model has read a tool's output
    can_widen = packet.context.palette_left_out and not routing.palette_widened and not routing.reinjection_count
    if selection.decided_by == "model" and can_widen:
        return routing.after_miss()
    return routing.ended_without_call(selection.reasoning or "no tool fits the request")


def routing_from_queue(packet: CognitionPacket, context: RoutingContext) -> ToolRouting:
    """Return the routing of a pass that makes queued calls."""
    routing, limit = packet.routing, context.max_parallel_calls
    return routing.for_new_selection().with_calls(routing.queued_calls, limit, complete=routing.complete)


def _routing_with_descriptions(
    routing: ToolRouting, names: Sequence[str], packet: CognitionPacket, catalogue: Catalogue
) -> ToolRouting:
    palette = [entry.tool_name for entry in packet.context.palette]
    tools_by_name = {name: [*_tools_named(name, palette, catalogue)] for name in names}
    unknown = [name for name, tools in tools_by_name.items() if not tools]
    nearest = dict.fromkeys(tool for name in unknown for tool in catalogue.similar_names(name, MAX_SUGGESTIONS))
    described = tuple(tool for tools in tools_by_name.values() for tool in tools)
    return routing.with_described_tools(described, tuple(nearest)[:MAX_SUGGESTIONS])


def _tools_named(name: str, palette: Sequence[str], catalogue: Catalogue) -> Iterable[str]:
    if name.strip() == ALL_TOOLS:
        return dict.fromkeys([*palette, *catalogue])
    tool = catalogue.canonical(name)
    return [tool] if tool else catalogue.group(name)


def _routing_with_calls(
    routing: ToolRouting, selection: Selection, packet: CognitionPacket, catalogue: Catalogue, max_calls: int
) -> ToolRouting:
    palette = packet.context.palette_names
    better = tuple(correction for correction in selection.corrections if correction.better_tool not in {"", *palette})
    if any(correction.better_tool not in routing.objections for correction in better):
        return routing.with_objections(better)
    checked = [_checked_call(call, packet, catalogue) for call in selection.calls]
    problems = tuple(problem for call in checked for problem in call.problems)
    routing = routing.with_corrections(*(repair for call in checked for repair in call.repairs), *problems)
    missed = tuple(call.tool_name for call in checked if call.is_tool_miss)
    if missed:
        nearest = dict.fromkeys(name for tool in missed for name in catalogue.similar_names(tool))
        return routing.after_miss(missed, tuple(nearest)[:MAX_SUGGESTIONS])
    valid = [(selected, call) for selected, call in zip(selection.calls, checked, strict=True) if not call.problems]
    objections = _category_objections(routing, [call.tool_name for _, call in valid], packet, catalogue)
    if objections:
        return routing.with_objections(objections)
    facts = facts_of(packet, catalogue)
    traced = [_with_selection(selected, call, selection, facts) for selected, call in valid]
    unique = [call for at, call in enumerate(traced) if not any(call.is_same_call(earlier) for earlier in traced[:at])]
    new = tuple(call for call in unique if not any(call.is_same_call(earlier) for earlier in routing.past_calls))
    messages = " ".join(problem.message for problem in problems)
    if new:
        note = f"a call was left out: {messages}" if messages else ""
        return routing.with_calls(new, max_calls, note, complete=None if note else selection.complete)
    return routing.ended_without_call(REPEATED if traced else messages or "the selection contains no call")


def _category_objections(
    routing: ToolRouting, names: Sequence[str], packet: CognitionPacket, catalogue: Catalogue
) -> tuple[Correction, ...]:
    """Return objections to tools of the wrong category; each objection is made once in a turn."""
    words, most = packet.content.user_words, max(packet.intent.access.risks, key=lambda risk: risk.severity)
    past = [call.tool_name for call in routing.past_calls if call.tool_name in catalogue]
    used = {catalogue[name].category for name in (*names, *past)}
    objections = [wrong for name in names if (wrong := wrong_category(catalogue[name], words, most, catalogue))]
    return tuple(
        wrong
        for wrong in objections
        if catalogue[wrong.better_tool].category not in used and wrong.better_tool not in routing.objections
    )


def _checked_call(selected: SelectedCall, packet: CognitionPacket, catalogue: Catalogue) -> CheckedCall:
    if selected.checked is not None:  # the decider's repairs are kept, and validity and palette are checked again
        return validate_call(selected.checked, packet.context.palette_names, catalogue)
    return repair_and_validate(selected.tool_name, selected.params, packet.context.palette_names, catalogue)


def _with_selection(selected: SelectedCall, call: CheckedCall, selection: Selection, facts: Facts) -> ToolCall:
    confidence, source = selected.confidence, ConfidenceSource.MEASURED
    if confidence is None:
        confidence, source = selection.confidence, selection.confidence_source
    return facts.traced_call(facts.catalogue[call.tool_name], call.params).changed(
        selection_reasoning=selected.reasoning or selection.reasoning,
        selection_confidence=confidence,
        selection_confidence_source=source,
        evidence=dict(selected.evidence),
    )
