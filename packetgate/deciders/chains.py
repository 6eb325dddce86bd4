"""Queue the steps of a called chain, and turn each into a checked call when it is next."""

from collections.abc import Iterable
from dataclasses import replace

from packetgate.deciders.protocols import CallReview, Review
from packetgate.state.base import ConfidenceSource
from packetgate.state.errors import ToolCallError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ChainStep, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.chains import CHAINS, fill_template, is_constant
from packetgate.tools.checks.checking import checked_call
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.provenance.sources import source_texts
from packetgate.tools.risk.call import with_risk

CHOSEN = "a step of a chain in packetgate.toml"


def steps_after(calls: Iterable[ToolCall], catalogue: Catalogue) -> tuple[ToolCall, ...]:
    """Return the steps of the chains that were just called, not yet filled in."""
    chains = {f"{CHAINS}.{name}": chain for name, chain in catalogue.preferences.chains.items()}
    return tuple(
        ToolCall(tool_name=step.tool, params=step.params, chain=ChainStep(run=call.call_id, number=number))
        for call in calls
        if call.status is ToolExecutionStatus.EXECUTED and call.tool_name in chains
        for number, step in enumerate(chains[call.tool_name].steps, 1)
    )


def next_step(step: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall | str:
    """Fill in, check and trace the next step of a chain, or return why it cannot be called. Blocking."""
    place, past = step.chain, packet.routing.all_calls
    run = next((call for call in past if place and call.call_id == place.run), None)
    if place is None or run is None:
        return f"{step.tool_name} is a step of a chain that was not called"
    earlier = [call for call in past if call.chain and call.chain.run == place.run]
    stopped = f"{run.tool_name} ended before step {place.number}, {step.tool_name}: "
    if failed := [call for call in earlier if call.status is not ToolExecutionStatus.EXECUTED]:
        return f"{stopped}{failed[0].tool_name} is {failed[0].status.replace('_', ' ')}"
    results = {str(call.chain.number): call.result for call in earlier if call.chain and call.result}
    try:
        params = {name: fill_template(value, run.params, results) for name, value in step.params.items()}
    except ToolCallError as error:
        return f"{stopped}{error}"
    checked = checked_call(step.tool_name, params, packet.context.palette_names, catalogue)
    if checked.problems:
        return stopped + " ".join(problem.message for problem in checked.problems)
    spec = catalogue[checked.tool_name]
    # constants come from the owner's configuration, like defaults
    constant = {name for name, value in step.params.items() if is_constant(value)} & checked.params.keys()
    defaults = {name: {**spec.parameters.get(name, {}), "default": checked.params[name]} for name in constant}
    schema = {**spec.input_schema, "properties": {**spec.parameters, **defaults}}
    origins = origins_of(checked.params, replace(spec, input_schema=schema), source_texts(packet))
    filled = step.changed(
        tool_name=checked.tool_name, params=checked.params, provenance=origins, selection_reasoning=CHOSEN
    )
    return with_risk(filled, spec)


def review_of_steps(packet: CognitionPacket) -> Review | None:
    """Return an approving review if all calls are steps of reviewed chains, else None."""
    calls, source = packet.routing.calls, ConfidenceSource.UNJUDGED
    if not calls or not all(call.chain for call in calls):
        return None
    reviews = tuple(
        CallReview(call_id=call.call_id, approved=True, confidence=1.0, confidence_source=source, reasoning=CHOSEN)
        for call in calls
    )
    return Review(reviews=reviews, decided_by="reflex", confidence_source=source)
