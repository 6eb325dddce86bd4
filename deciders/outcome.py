"""From what a decider wants to what the packet holds: every wanted call checked, none of them run."""

from langchain_core.messages import HumanMessage

from deciders.describing import described
from deciders.objections import objections_to, with_objections
from deciders.protocols import Selection, WantedCall
from state.base import ConfidenceSource
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import Correction, ToolCall, ToolExecutionStatus, ToolRouting
from tools.catalogue.catalogue import Catalogue
from tools.checks.provenance import trace_params
from tools.checks.repair import Mended, mend
from tools.checks.validation import check_call

MAX_CLARIFICATIONS = 2
MAX_DESCRIBE_ROUNDS = 2

_MISSES = frozenset({"off_palette", "unknown_tool"})


def routing_after(
    selection: Selection, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext
) -> ToolRouting:
    """Return the routing section after a selection."""
    selection = selection.model_copy(update={"calls": selection.calls[: context.max_parallel_calls]})
    routing = packet.routing.model_copy(
        update={
            "past_calls": packet.routing.all_calls,
            "calls": (),
            "alternative_tools": selection.alternatives,
            "corrections": selection.corrections,
            "question": None,
        }
    )
    match selection.action:
        case "call":
            return _call(routing, selection, packet, catalogue)
        case "clarify" if len(packet.content.clarifications) < MAX_CLARIFICATIONS:
            return routing.model_copy(update={"outcome": "clarify", "question": selection.question})
        case "describe" if routing.describe_rounds < MAX_DESCRIBE_ROUNDS:
            return described(routing, selection.tool_names, packet, catalogue)
        case "clarify" | "describe":
            return _none(routing, f"selection asked to {selection.action} again and again, without a result")
    if selection.decided_by == "model" and _may_widen(packet):
        return routing.model_copy(update={"outcome": "miss", "widened": True})
    return _none(routing, selection.reasoning or "no tool fits the request")


def _may_widen(packet: CognitionPacket) -> bool:
    """Whether tools were left out that could serve, once a turn, and only before a tool's output has been read."""
    routing = packet.routing
    return bool(packet.context.palette_left_out) and not routing.widened and not routing.reinjection_count


def _call(routing: ToolRouting, selection: Selection, packet: CognitionPacket, catalogue: Catalogue) -> ToolRouting:
    palette = packet.context.palette_names
    better = [one for one in selection.corrections if one.better_tool and one.better_tool not in palette]
    if any(one.better_tool not in routing.objections for one in better):
        return with_objections(routing, better)
    mended = [mend(call.tool_name, call.params, catalogue) for call in selection.calls]
    selection = selection.model_copy(update={"calls": tuple(map(_as_mended, selection.calls, mended))})
    found = [check_call(call.tool_name, call.params, palette, catalogue) for call in selection.calls]
    corrections = tuple(correction for corrections in found for correction in corrections)
    mendings = tuple(correction for call in mended for correction in call.corrections)
    routing = routing.model_copy(update={"corrections": routing.corrections + mendings + corrections})
    missed = tuple(correction.tool_name for correction in corrections if correction.problem in _MISSES)
    if missed:
        return _missed(routing, missed, catalogue)
    sound = [call for call, problems in zip(selection.calls, found, strict=True) if not problems]
    against = objections_to(routing, sound, packet, catalogue)
    if against:
        return with_objections(routing, against)
    valid = [_tool_call(selection, index, packet, catalogue) for index, problems in enumerate(found) if not problems]
    new = [call for i, call in enumerate(valid) if not any(call.same_call(earlier) for earlier in valid[:i])]
    fresh = tuple(call for call in new if not any(call.same_call(earlier) for earlier in routing.past_calls))
    if fresh:
        left_out = f"a call was left out: {_problems(corrections)}" if corrections else ""
        return routing.model_copy(update={"outcome": "call", "calls": fresh, "note": left_out})
    if valid:
        return _none(routing, "the same call was already made, or turned down, this turn, so it is not made again")
    return _none(routing, _problems(corrections) or "selection named no call")


def _missed(routing: ToolRouting, missed: tuple[str, ...], catalogue: Catalogue) -> ToolRouting:
    """The first miss widens the palette; the second ends the pass, with suggestions."""
    nearest = tuple(dict.fromkeys(name for wanted in missed for name in catalogue.nearest(wanted)))[:5]
    routing = routing.model_copy(update={"missed_tools": routing.missed_tools + missed, "suggestions": nearest})
    if routing.widened:
        return _none(
            routing, f"there is no tool {' or '.join(repr(name) for name in dict.fromkeys(missed))} to use here"
        )
    return routing.model_copy(update={"outcome": "miss", "widened": True})


def _none(routing: ToolRouting, note: str) -> ToolRouting:
    return routing.model_copy(
        update={"outcome": "none", "calls": (), "pass_status": ToolExecutionStatus.SKIPPED, "note": note}
    )


def _as_mended(wanted: WantedCall, mended: Mended) -> WantedCall:
    return wanted.model_copy(update={"tool_name": mended.tool_name, "params": mended.params})


def _tool_call(selection: Selection, index: int, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall:
    wanted = selection.calls[index]
    spec = catalogue[wanted.tool_name]
    confidence, source = wanted.confidence, ConfidenceSource.MEASURED
    if confidence is None:
        confidence, source = selection.confidence, selection.confidence_source
    return ToolCall(
        tool_name=wanted.tool_name,
        params=wanted.params,
        risk=spec.risk,
        provenance=trace_params(wanted.params, spec, _user_words(packet), _tool_outputs(packet)),
        selection_reasoning=wanted.reasoning or selection.reasoning,
        selection_confidence=confidence,
        selection_confidence_source=source,
    )


def _user_words(packet: CognitionPacket) -> str:
    """All the user said in this session."""
    spoken = [message.text for message in packet.messages if isinstance(message, HumanMessage)]
    return "\n".join([*spoken, packet.content.user_words])


def _tool_outputs(packet: CognitionPacket) -> list[tuple[str, str]]:
    """What tools returned, newest first: this turn in full, earlier turns as far as the ledger remembers."""
    this_turn = [
        (call.tool_name, call.result.output) for call in reversed(packet.routing.past_calls) if call.result is not None
    ]
    return this_turn + [(entry.tool_name, entry.summary) for entry in reversed(packet.context.result_ledger)]


def _problems(corrections: tuple[Correction, ...]) -> str:
    return " ".join(correction.message for correction in corrections)
