"""Turn a selection into validated calls with the origins of their arguments."""

from collections.abc import Sequence

from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import Selection
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.origins import USER, OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_and_validate, validate_call

ALL_TOOLS = "*"  # a name that stands for all tools in a `describe` selection
REPEATED = "the same call already ran, waits for approval or was denied, so it is not repeated"
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
    ended = routing.ended_without_call(selection.reasoning or "no tool fits the request")
    return ended.changed(offered_calls=selection.alternatives) if selection.decided_by == "reflex" else ended


def routing_from_queue(packet: CognitionPacket, context: RoutingContext) -> ToolRouting:
    """Return the routing of a pass that makes queued calls."""
    routing, limit = packet.routing, context.max_parallel_calls
    return routing.for_new_selection().with_calls(routing.queued_calls, limit, complete=routing.complete)


def _routing_with_descriptions(
    routing: ToolRouting, names: Sequence[str], packet: CognitionPacket, catalogue: Catalogue
) -> ToolRouting:
    described: list[str] = []
    nearest: list[str] = []
    for name in names:
        tool = catalogue.canonical(name)
        if name.strip() == ALL_TOOLS:
            described += dict.fromkeys([*(entry.tool_name for entry in packet.context.palette), *catalogue])
        elif tools := [tool] if tool else [*catalogue.group(name)]:
            described += tools
        else:
            nearest += catalogue.similar_names(name, MAX_SUGGESTIONS)
    return routing.with_described_tools(tuple(described), tuple(dict.fromkeys(nearest))[:MAX_SUGGESTIONS])


def _routing_with_calls(
    routing: ToolRouting, selection: Selection, packet: CognitionPacket, catalogue: Catalogue, max_calls: int
) -> ToolRouting:
    palette = packet.context.palette_names
    checked = [  # the repairs of a decider are kept, and validity and palette are checked again
        repair_and_validate(call.tool_name, call.params, palette, catalogue, words=packet.session_words)
        if call.checked is None
        else validate_call(call.checked, palette, catalogue)
        for call in selection.calls
    ]
    problems = tuple(problem for call in checked for problem in call.problems)
    repairs = tuple(repair for call in checked for repair in call.repairs)
    routing = routing.changed(corrections=routing.corrections + repairs + problems)
    missed = tuple(call.tool_name for call in checked if call.is_tool_miss)
    if missed:
        nearest = dict.fromkeys(name for tool in missed for name in catalogue.similar_names(tool))
        return routing.after_miss(missed, tuple(nearest)[:MAX_SUGGESTIONS])
    valid = [(selected, call) for selected, call in zip(selection.calls, checked, strict=True) if not call.problems]
    facts, traced = facts_of(packet, catalogue), list[ToolCall]()
    for selected, call in valid:
        confidence, source = selected.confidence, ConfidenceSource.MEASURED
        if confidence is None:
            confidence, source = selection.confidence, selection.confidence_source
        made = facts.traced_call(catalogue[call.tool_name], call.params).changed(
            selection_reasoning=selected.reasoning or selection.reasoning,
            selection_confidence=confidence,
            selection_confidence_source=source,
            evidence=dict(selected.evidence),
        )
        typed = packet.content.command.params if packet.content.command else {}
        hidden = [name for name in typed if name in made.provenance and made.provenance[name].kind is OriginKind.NOBODY]
        if hidden:  # by the escapes of a quoted text
            made = made.changed(provenance={**made.provenance, **dict.fromkeys(hidden, USER)})
        traced.append(made)
    unique = [call for at, call in enumerate(traced) if not any(call.is_same_call(earlier) for earlier in traced[:at])]
    new = tuple(call for call in unique if not any(call.is_same_call(earlier) for earlier in routing.past_calls))
    messages = " ".join(problem.message for problem in problems)
    if new:
        note = f"a call was left out: {messages}" if messages else ""
        return routing.with_calls(new, max_calls, note, complete=None if note else selection.complete)
    return routing.ended_without_call(REPEATED if traced else messages or "the selection contains no call")
