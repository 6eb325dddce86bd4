"""Turn a selection, or the next step of a chain, into validated calls with the origins of their arguments."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.gate.facts import Facts
from packetgate.gate.requests import traced_call
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ToolCallError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ChainStep, Correction, ToolCall, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.chains import CHAINS, fill_template, is_constant
from packetgate.tools.checks.checking import CheckedCall, repair_and_validate, validate_call
from packetgate.tools.checks.wrong_category import wrong_category
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.risk.call import with_risk

CHAIN_STEP = "a step of a chain in packetgate.toml"
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


def routing_from_queue(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> ToolRouting:
    """Return the routing of a pass that makes queued calls. The next step of a chain is made alone."""
    routing, queued = packet.routing, packet.routing.queued_calls
    selected, note = routing.for_new_selection(), ""
    while queued and queued[0].chain:
        step = _filled_step(queued[0], packet, catalogue)
        if isinstance(step, ToolCall):
            return selected.with_calls((step, *queued[1:]), 1, note, complete=routing.complete)
        run, note = queued[0].chain.run, step
        queued = tuple(call for call in queued if call.chain is None or call.chain.run != run)
    if not queued:
        return selected.ended_without_call(note)
    before_chain = next((at for at, call in enumerate(queued) if call.chain), len(queued))
    return selected.with_calls(queued, min(before_chain, context.max_parallel_calls), note, complete=routing.complete)


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
    return traced_call(facts.catalogue[call.tool_name], call.params, facts).changed(
        selection_reasoning=selected.reasoning or selection.reasoning,
        selection_confidence=confidence,
        selection_confidence_source=source,
        evidence=dict(selected.evidence),
    )


def chain_steps_after(calls: Iterable[ToolCall], catalogue: Catalogue) -> tuple[ToolCall, ...]:
    """Return the steps of the chains that were just called, with templates in place of values."""
    chains = {f"{CHAINS}.{name}": chain for name, chain in catalogue.preferences.chains.items()}
    return tuple(
        ToolCall(tool_name=step.tool, params=step.params, chain=ChainStep(run=call.call_id, number=number))
        for call in calls
        if call.status is ToolExecutionStatus.EXECUTED and call.tool_name in chains
        for number, step in enumerate(chains[call.tool_name].steps, 1)
    )


def _filled_step(step: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall | str:
    """Return a chain's step as a validated call; or the reason why the step cannot be called."""
    place, past = step.chain, packet.routing.all_calls
    run = next((call for call in past if place and call.call_id == place.run), None)
    if place is None or run is None:
        return f"{step.tool_name} is a step of a chain that was not called"
    earlier = [call for call in past if call.chain and call.chain.run == place.run]
    stopped = f"{run.tool_name} stopped before step {place.number} ({step.tool_name}): "
    if failed := [call for call in earlier if call.status is not ToolExecutionStatus.EXECUTED]:
        return f"{stopped}{failed[0].tool_name} is {failed[0].status.replace('_', ' ')}"
    results = {str(call.chain.number): call.result for call in earlier if call.chain and call.result}
    try:
        params = {name: fill_template(value, run.params, results) for name, value in step.params.items()}
    except ToolCallError as error:
        return f"{stopped}{error}"
    checked = repair_and_validate(step.tool_name, params, packet.context.palette_names, catalogue)
    if checked.problems:
        return stopped + " ".join(problem.message for problem in checked.problems)
    spec = catalogue[checked.tool_name]
    # constants count as defaults, because they come from the user's configuration
    constant = {name for name, value in step.params.items() if is_constant(value)} & checked.params.keys()
    defaults = {name: {**spec.parameters.get(name, {}), "default": checked.params[name]} for name in constant}
    schema = {**spec.input_schema, "properties": {**spec.parameters, **defaults}}
    origins = origins_of(checked.params, replace(spec, input_schema=schema), facts_of(packet, catalogue).sources)
    filled = step.changed(
        tool_name=checked.tool_name, params=checked.params, provenance=origins, selection_reasoning=CHAIN_STEP
    )
    return with_risk(filled, spec)
