"""From what a decider wants to what the packet holds: every wanted call checked, none of them run."""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from packetgate.deciders.chains import next_step
from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Correction, ToolCall, ToolRouting
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, checked_call, objected
from packetgate.tools.checks.wrong_kind import wrong_kind
from packetgate.tools.provenance.evidence import Evidence, evidence_of
from packetgate.tools.provenance.judging import origins_of
from packetgate.tools.risk.call import rated
from packetgate.tools.spec.tool_spec import ToolSpec

ALL = "*"
"""A wish for the descriptions of all tools."""
REPEATED = "the same call was already made, asked about or turned down, so it is not made again"
MAX_CLARIFICATIONS = 2
MAX_DESCRIBE_ROUNDS = 2
MAX_SUGGESTIONS = 5


def routing_after(
    selection: Selection, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext
) -> ToolRouting:
    """Return the routing section after a selection."""
    routing = packet.routing.selected(selection.alternatives, selection.corrections)
    match selection.action:
        case "call":
            return _call(routing, selection, packet, catalogue, context.max_parallel_calls)
        case "clarify" if len(packet.content.clarifications) < MAX_CLARIFICATIONS:
            return routing.asked(selection.question, selection.asks_for)
        case "describe" if routing.describe_rounds < MAX_DESCRIBE_ROUNDS:
            return _described(routing, selection.tool_names, packet, catalogue)
        case "clarify" | "describe":
            return routing.ended(f"selection asked to {selection.action} again and again, without a result")
    if not selection.needs_tool:
        return routing.ended("")
    if selection.decided_by == "model" and _may_widen(packet):
        return routing.missed()
    return routing.ended(selection.reasoning or "no tool fits the request")


def routing_from_queue(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> ToolRouting:
    """Return the routing of a pass that makes the calls for which there was no room in the last one.

    Or the next step of a chain, by itself; where that cannot be made, the chain ends, and what else is queued follows.
    """
    routing, queued = packet.routing, packet.routing.queued_calls
    selected, note = routing.selected(), ""
    while queued and queued[0].chain:
        step = next_step(queued[0], packet, catalogue)
        if isinstance(step, ToolCall):
            return selected.called((step, *queued[1:]), 1, note, complete=routing.complete)
        run, note = queued[0].chain.run, step
        queued = tuple(one for one in queued if one.chain is None or one.chain.run != run)
    if not queued:
        return selected.ended(note)
    alone = next((at for at, one in enumerate(queued) if one.chain), len(queued))
    return selected.called(queued, min(alone, context.max_parallel_calls), note, complete=routing.complete)


def _may_widen(packet: CognitionPacket) -> bool:
    """Whether tools that could serve had no room, once a turn, and only before a tool's output has been read."""
    routing = packet.routing
    return bool(packet.context.palette_left_out) and not routing.widened and not routing.reinjection_count


def _described(
    routing: ToolRouting, wishes: Sequence[str], packet: CognitionPacket, catalogue: Catalogue
) -> ToolRouting:
    """Return the routing section with the tools that the wishes stand for: the next palette has them in full.

    A wish is a tool's name, a category or a server, or `*` for all, those on the palette first. A name that nothing
    has gets the nearest five as suggestions.
    """
    shown = [entry.tool_name for entry in packet.context.palette]
    found = [_meant(wish, shown, catalogue) for wish in wishes]
    unknown = [wish for wish, names in zip(wishes, found, strict=True) if not names]
    nearest = [name for wish in unknown for name in catalogue.nearest(wish, MAX_SUGGESTIONS)]
    return routing.described(
        tuple(name for names in found for name in names), tuple(dict.fromkeys(nearest))[:MAX_SUGGESTIONS]
    )


def _meant(wish: str, shown: Sequence[str], catalogue: Catalogue) -> Iterable[str]:
    if wish.strip() == ALL:
        return dict.fromkeys([*shown, *catalogue])
    name = catalogue.canonical(wish)
    return [name] if name else catalogue.group(wish)


def _call(
    routing: ToolRouting, selection: Selection, packet: CognitionPacket, catalogue: Catalogue, most: int
) -> ToolRouting:
    better = tuple(one for one in selection.corrections if one.better_tool not in {"", *packet.context.palette_names})
    if any(one.better_tool not in routing.objections for one in better):
        return routing.objected(better)
    checked = [_checked(call, packet, catalogue) for call in selection.calls]
    problems = tuple(problem for call in checked for problem in call.problems)
    routing = routing.corrected(*(repair for call in checked for repair in call.repairs), *problems)
    missed = tuple(call.tool_name for call in checked if call.misses)
    if missed:
        nearest = dict.fromkeys(name for wanted in missed for name in catalogue.nearest(wanted))
        return routing.missed(missed, tuple(nearest)[:MAX_SUGGESTIONS])
    sound = [(wanted, call) for wanted, call in zip(selection.calls, checked, strict=True) if not call.problems]
    against = _objections_to(routing, [call for _, call in sound], packet, catalogue)
    if against:
        return routing.objected(tuple(against))
    valid = _tool_calls(sound, selection, packet, catalogue)
    new = [call for i, call in enumerate(valid) if not any(call.same_call(earlier) for earlier in valid[:i])]
    fresh = tuple(call for call in new if not any(call.same_call(earlier) for earlier in routing.past_calls))
    told = " ".join(problem.message for problem in problems)
    if fresh:
        left_out = f"a call was left out: {told}" if told else ""
        return routing.called(fresh, most, left_out, complete=None if left_out else selection.complete)
    if valid:
        return routing.ended(REPEATED)
    return routing.ended(told or "selection named no call")


def _objections_to(
    routing: ToolRouting, calls: Sequence[CheckedCall], packet: CognitionPacket, catalogue: Catalogue
) -> list[Correction]:
    """Return what is to be said against these calls, once a turn: if the decider insists, the review decides."""
    words, most = packet.content.user_words, max(packet.intent.access.risks, key=lambda risk: risk.severity)
    names = [call.tool_name for call in calls]
    made = [call.tool_name for call in routing.past_calls if call.tool_name in catalogue]
    served = {catalogue[name].category for name in names + made}
    found = [wrong_kind(catalogue[name], words, most, catalogue) for name in names]
    open_ = [one for one in found if one and catalogue[one.better_tool].category not in served]
    return [one for one in open_ if one.better_tool not in routing.objections]


def _checked(wanted: WantedCall, packet: CognitionPacket, catalogue: Catalogue) -> CheckedCall:
    if wanted.checked is not None:  # what was mended stands; whether it can be made is not the decider's to say
        return objected(wanted.checked, packet.context.palette_names, catalogue)
    return checked_call(wanted.tool_name, wanted.params, packet.context.palette_names, catalogue)


def _tool_calls(
    sound: Sequence[tuple[WantedCall, CheckedCall]],
    selection: Selection,
    packet: CognitionPacket,
    catalogue: Catalogue,
) -> list[ToolCall]:
    """Return the calls, each traced to its origins in the light of what those before it send."""
    evidence, made = evidence_of(packet), []
    for wanted, call in sound:
        made.append(_tool_call(wanted, call, selection, catalogue[call.tool_name], evidence))
        evidence = evidence.having_sent(call.params)
    return made


def _tool_call(
    wanted: WantedCall, call: CheckedCall, selection: Selection, spec: ToolSpec, evidence: Evidence
) -> ToolCall:
    confidence, source = wanted.confidence, ConfidenceSource.MEASURED
    if confidence is None:
        confidence, source = selection.confidence, selection.confidence_source
    made = traced(call.tool_name, call.params, spec, evidence)
    return made.selected(wanted.reasoning or selection.reasoning, confidence, source, wanted.evidence)


def traced(name: str, params: dict[str, JsonValue], spec: ToolSpec, evidence: Evidence) -> ToolCall:
    """Return a call with where each argument is from, and what it may do."""
    return rated(ToolCall(tool_name=name, params=params, provenance=origins_of(params, spec, evidence)), spec)
