"""Select and review calls without a language model, and compute the signals of any call from the request."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from packetgate.deciders.commands import UNDO_TOOL
from packetgate.deciders.protocols import Review, SelectedCall, Selection
from packetgate.gate.confidence import CallReview
from packetgate.gate.provenance.own_words import UserWords
from packetgate.gate.replies import parse_words
from packetgate.reflex.fit import (
    MIN_PROBABILITY,
    MIN_TOOL_PROBABILITY,
    Fit,
    best_fits,
    fill_arguments,
    fits_by_part,
    probability_of_any,
    unused_values,
)
from packetgate.reflex.follow_ups import current_step, read_request
from packetgate.reflex.judge.calls import right_log_odds, with_earlier
from packetgate.reflex.reading import ONLY_UNDO, steps_in, undo_in_words
from packetgate.reflex.signals import CallSignals, ReflexCallSignals, is_known_builtin, reflex_call_probability
from packetgate.reflex.values.filling import PURPOSEFUL, Filling, fill_parameters, value_from_answer
from packetgate.reflex.values.mentions import parse_request
from packetgate.state.base import ConfidenceSource
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Risk, ToolCall
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec, types_of
from packetgate.tools.text.named_paths import words_for_path
from packetgate.tools.text.reading import access_of, condition_in, parts_in
from packetgate.tools.text.values import fold_text, leaves
from packetgate.tools.text.words import words_of

NOT_ASKED_FOR, NOT_GROUNDED, CONDITIONAL = 0.3, 0.4, 0.5  # highest confidence of a call with this objection
DOUBTED = 0.7  # probability below which doubts are listed
_RIVAL = 0.3  # probability from which another tool is listed as a doubt
_NOT_READ = 0.2  # probability of an argument that was not read from the request
_MAX_COUNT = 3  # largest value of signals that count something
_DECLINED = {ApprovalOutcome.DENIED, ApprovalOutcome.SKIPPED}
_LEAD = re.compile(r"([\w' ]{1,30})[,.;:!\u2013\u2014-]+\s+(?=\w)")
MIN_ALTERNATIVE = 0.05  # probability from which another tool is an alternative


def select(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Return calls for each part of the current step. Blocking.

    A tool that is not on the palette is used only if it is likely, or no tool of the palette fits.
    """
    undo = undo_in_words(packet.content.original_prompt) if UNDO_TOOL in catalogue else None
    if certain := undo or _corrected_call(packet, catalogue):
        return certain
    choices = [_select_for_part(part, packet, catalogue) for part in parts_in(current_step(packet, catalogue))]
    reasoning = "; ".join(choice.reasoning for choice in choices)
    question = next((choice for choice in choices if choice.action == "clarify"), None)
    if question:
        return question.changed(reasoning=reasoning)
    calling = [choice for choice in choices if choice.calls]
    return calibrated_selection(
        action="call" if calling else "none",
        calls=tuple(call for choice in calling for call in choice.calls),
        alternatives=tuple(alternative for choice in calling for alternative in choice.alternatives)[:5],
        confidence=min(choice.confidence for choice in calling or choices),
        reasoning=reasoning,
    )


def calibrated_selection(**fields: Any) -> Selection:
    """Return a selection of the rules, whose confidence is fitted to recorded outcomes."""
    return Selection(**fields, confidence_source=ConfidenceSource.CALIBRATED, decided_by="reflex")


def _corrected_call(packet: CognitionPacket, catalogue: Catalogue) -> Selection | None:
    """Return the last call with the arguments that the user's last words change; None if they change nothing."""
    last = next(reversed(packet.governance.approvals), None)
    if last is None or last.call_id not in [call.call_id for call in packet.routing.calls]:
        return None
    changed = read_request(packet, catalogue).changed if last.goes_to_selection else {}
    if not changed:
        return None
    reasoning = f"you changed {', '.join(f'`{name}`' for name in changed)}"
    call = SelectedCall(tool_name=last.tool_name, params={**last.params, **changed}, reasoning=reasoning)
    return calibrated_selection(action="call", calls=(call,), confidence=1.0, reasoning=reasoning)


def _select_for_part(part: str, packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    now, answers = packet.header.local_time, packet.content.clarifications
    fits = best_fits(part, catalogue, now)
    likely = probability_of_any(fits)
    if likely < MIN_TOOL_PROBABILITY:
        return calibrated_selection(action="none", confidence=1 - likely, reasoning=f"no tool fits {part!r}")
    best = fits[0]
    if best.probability < MIN_TOOL_PROBABILITY:
        best = next((fit for fit in fits if fit.spec.name in packet.context.palette_names), best)
    filled = [
        _with_answers(best.spec, filling.params, [*filling.missing], packet)
        for filling in fill_arguments(best.spec, part, now)
    ]
    name, missing_name = best.spec.name, next((missing[0] for _, missing in filled if missing), "")
    if missing_name and answers and parse_words(answers[-1]).outcome in _DECLINED:
        reasoning = f"{name} needs a value for {missing_name}, and the request does not contain it"
        return calibrated_selection(action="none", confidence=1.0, reasoning=reasoning)
    if missing_name:
        about = str(best.spec.parameters.get(missing_name, {}).get("description", "")).strip().rstrip(".")
        return calibrated_selection(
            action="clarify",
            question=f"To use {name} I need `{missing_name}`{f' ({about})' if about else ''}. What should it be?",
            asked_argument=(name, missing_name),
            confidence=likely,
            reasoning=f"{name} needs a value for {missing_name}",
        )
    others = [fit for fit in fits if fit.spec is not best.spec and fit.probability >= MIN_ALTERNATIVE]
    return calibrated_selection(
        action="call",
        calls=tuple(SelectedCall(tool_name=name, params=params, reasoning=best.reason) for params, _ in filled),
        confidence=best.probability,
        reasoning=best.reason,
        alternatives=tuple(Alternative(tool_name=fit.spec.name, reason=fit.reason) for fit in others[:3]),
    )


def _with_answers(
    spec: ToolSpec, params: dict[str, Any], missing: list[str], packet: CognitionPacket
) -> tuple[dict[str, Any], list[str]]:
    now = packet.header.local_time
    for text in packet.content.clarifications:
        decides = parse_words(text).outcome is not ApprovalOutcome.ANSWERED
        value = value_from_answer(spec, missing[0], text, now, decides=decides) if missing else None
        answered = {missing[0]: value} if value is not None else fill_parameters(spec, text, now=now).likely_params()
        params = {**{name: value for name, value in answered.items() if name in missing}, **params}
        missing = [name for name in missing if name not in params]
    return params, missing


def review(packet: CognitionPacket, catalogue: Catalogue) -> Review:
    """Return a review that approves the calls without objections. Blocking."""
    reviews = tuple(_review(call, packet, catalogue) for call in packet.routing.calls)
    is_calibrated = all(judgement.confidence_source is ConfidenceSource.CALIBRATED for judgement in reviews)
    source = ConfidenceSource.CALIBRATED if is_calibrated else ConfidenceSource.RULE
    return Review(reviews=reviews, decided_by="reflex", confidence_source=source)


def _review(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> CallReview:
    if call.tool_name not in catalogue:
        return CallReview.failed(call, "the tool no longer exists")
    if call.tool_name == UNDO_TOOL and undo_in_words(packet.content.original_prompt):
        return CallReview.unjudged(call, ONLY_UNDO)
    objections = objections_to(call, packet)
    signals, doubts = reflex_call_signals(call, packet, catalogue)
    probability = reflex_call_probability(signals)
    reasons = [why for _, why in objections] + (doubts if probability < DOUBTED else [])
    return CallReview(
        call_id=call.call_id,
        approved=not objections,
        confidence=min([probability, *(most for most, _ in objections)]),
        confidence_source=ConfidenceSource.RULE if objections else ConfidenceSource.CALIBRATED,
        reasoning="; ".join(reasons) or "valid, requested, and with arguments from your own words",
    )


def objections_to(call: ToolCall, packet: CognitionPacket) -> list[tuple[float, str]]:
    """Return (highest confidence, reason) of each objection to a call."""
    objections, words = [], packet.content.user_words
    if not any(call.apparent_risk in access_of(step).risks for step in steps_in(words)):
        objections.append((NOT_ASKED_FOR, f"the request does not ask for {call.apparent_risk} access"))
    condition = condition_in(words) if call.apparent_risk is not Risk.READ else ""
    if condition:
        objections.append((CONDITIONAL, f"the condition after `{condition}` was not checked"))
    if call.unstated_origins:
        origins = ", ".join(f"`{name}` (from {origin.source})" for name, origin in call.unstated_origins.items())
        objections.append((NOT_GROUNDED, f"arguments that are not from your words: {origins}"))
    return objections


def reflex_call_signals(
    call: ToolCall, packet: CognitionPacket, catalogue: Catalogue
) -> tuple[ReflexCallSignals, list[str]]:
    """Return the signals of a call as if `reflex` had selected it, and the doubts about it in words. Blocking.

    Both are for the part of the request that fits the call best.
    """
    all_fits = fits_by_part(packet, catalogue, also=call.tool_name)
    fits = {text: _with_resolved_arguments(_fit_of(call, fits)) for text, fits in all_fits.items()}

    def rank(text: str) -> tuple[bool, float]:
        return any(call.params == filling.params for filling in fits[text].fillings), fits[text].probability

    text = max(fits, key=rank)
    fit = fits[text]
    same = [other for other in all_fits[text] if other.spec is fit.spec or _does_the_same(other, fit)]
    same_tools = {other.spec.name for other in same}
    rival = next((other for other in all_fits[text] if other.spec.name not in same_tools), None)
    filling = max(fit.fillings, key=lambda one: sum(call.params.get(name) == one.params[name] for name in one.params))
    arguments = argument_probabilities(call.params, filling, answered=bool(read_request(packet, catalogue).answers))
    step_calls = (*packet.routing.step_calls, *packet.routing.queued_calls)
    used = " ".join(json.dumps(other.params, ensure_ascii=False) for other in step_calls).casefold()
    unused = [value for value in unused_values(text, fit.fillings) if value.casefold() not in used]
    fit = replace(fit, probability=min(1.0, sum(other.probability for other in same)))
    signals = fit.call_signals(log_probability(arguments), len(call.params), len(unused))
    words = request_to_judge(call, packet, catalogue)
    signals = signals._replace(right=right_log_odds(words, fit.spec, call.params))
    return signals, _doubts(fit, rival, arguments, unused)


def _fit_of(call: ToolCall, fits: Sequence[Fit]) -> Fit:
    return next(fit for fit in fits if fit.spec.name == call.tool_name)


def _with_resolved_arguments(fit: Fit) -> Fit:
    """Resolve the arguments of a built-in tool, as those of the call are already resolved."""
    fillings = tuple(replace(filling, params=fit.spec.resolved(filling.params)) for filling in fit.fillings)
    return replace(fit, fillings=fillings)


def _does_the_same(one: Fit, other: Fit) -> bool:
    """Return whether both tools read the same values, and one is built in or their names have the same verb."""
    if (
        {one.spec.apparent_risk, other.spec.apparent_risk} != {Risk.READ}
        or not one.values
        or one.values != other.values
    ):
        return False
    if one.spec.server != other.spec.server:
        return is_known_builtin(one.spec)
    return words_of(one.spec.upstream_name)[:1] == words_of(other.spec.upstream_name)[:1]


def _doubts(fit: Fit, rival: Fit | None, arguments: Mapping[str, float], unused: Sequence[str]) -> list[str]:
    guessed = ", ".join(f"`{name}`" for name, probability in arguments.items() if probability < DOUBTED)
    doubts = []
    if rival and rival.probability >= _RIVAL:
        doubts.append(f"`{rival.spec.name}` fits nearly as well")
    elif fit.probability < DOUBTED:
        doubts.append(f"`{fit.spec.name}` may not be what you asked for")
    if guessed:
        doubts.append(f"uncertain arguments: {guessed}")
    if unused:
        doubts.append("unused words: " + ", ".join(f"`{value}`" for value in unused))
    return doubts or ["few similar calls were right"]


def argument_probabilities(params: Mapping[str, Any], filling: Filling, *, answered: bool = False) -> dict[str, float]:
    """Return the probability that the value of each parameter is right.

    Args:
        params: the arguments of the call.
        filling: the arguments as read from the request.
        answered: whether other values come from the user's answers, and so are certain.
    """
    names = dict.fromkeys([*params, *(argument.path[0] for argument in filling.arguments)])
    not_read = 1.0 if answered else _NOT_READ
    read = {name for name in names if params.get(name) == filling.params.get(name)}
    return {
        name: math.prod(argument.probability for argument in filling.arguments if argument.path[0] == name)
        if name in read
        else not_read
        for name in names
    }


def log_probability(arguments: Mapping[str, float]) -> float:
    """Return the log probability that all arguments are right."""
    return max(math.log(MIN_PROBABILITY), sum(map(math.log, arguments.values())))


def request_to_judge(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> str:
    """Return the words that a call must follow, and its values that the user or a result named before.

    The words are those of the current step, without a reply at its beginning, and of the answers.
    """
    words = "\n".join([without_verdict(current_step(packet, catalogue)), *read_request(packet, catalogue).answers])
    if not (packet.history or packet.routing.past_calls):
        return words
    now, named = UserWords(words), {OriginKind.USER, OriginKind.STRUCTURED, OriginKind.TEXT}
    texts = [
        str(leaf.value)
        for name, origin in call.provenance.items()
        if origin.kind in named and name in call.params
        for leaf in leaves(call.params[name], name)
        if not isinstance(leaf.value, bool)
    ]
    return with_earlier(
        words, [text for text in texts if not (now.state(fold_text(text)) or words_for_path(text, words))]
    )


def without_verdict(step: str) -> str:
    """Return a step without a reply at its beginning, such as `never mind,`."""
    lead = _LEAD.match(step)
    is_verdict = lead and parse_words(lead[1]).outcome is not ApprovalOutcome.ANSWERED
    return step[lead.end() :] if lead and is_verdict else step


def call_signals(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> CallSignals:
    """Return the signals of any call, for the part of the request that fits it best. Blocking."""
    parts = fits_by_part(packet, catalogue, also=call.tool_name).items()
    signals = max(_signals(call, text, _fit_of(call, fits), fits) for text, fits in parts)[1]
    return signals._replace(
        right=right_log_odds(request_to_judge(call, packet, catalogue), catalogue[call.tool_name], call.params)
    )


def _signals(call: ToolCall, text: str, fit: Fit, fits: list[Fit]) -> tuple[float, CallSignals]:
    known = dict(_read_parameters(call.params, fit))
    logs = {name: math.log(max(MIN_PROBABILITY, probability)) for name, probability in known.items()}
    values = [log for name, log in logs.items() if name in call.params]
    counted = dict.fromkeys(("unread", "invented", "added", "switched"), 0)
    for name in call.params.keys() - known.keys():
        counted[_kind_of_unread(name, call, fit.spec)] += 1
    share = math.log(max(MIN_PROBABILITY, fit.probability))
    signals = CallSignals(
        share=share,
        rival=max((one.probability for one in fits if one.spec is not fit.spec), default=0.0),
        worst=min(values, default=0.0),
        omitted=max(math.log(MIN_PROBABILITY), sum(log for name, log in logs.items() if name not in call.params)),
        **{name: float(min(_MAX_COUNT, count)) for name, count in counted.items()},
        left=float(min(_MAX_COUNT, _unused_mentions(text, call.params))),
        unexplained=fit.unexplained_share,
        words=fit.log_word_count,
    )
    return share + max(math.log(MIN_PROBABILITY), sum(values)), signals


def _read_parameters(params: Mapping[str, Any], fit: Fit) -> Iterator[tuple[str, float]]:
    """Yield each parameter whose value in the call was a candidate, with the highest probability of that value."""
    arguments = [one for filling in fit.fillings for one in filling.arguments]
    for name in {one.path[0]: None for one in arguments}:
        probabilities = [one.probability_of(params.get(name)) for one in arguments if one.path == (name,)]
        found = [probability for probability in probabilities if probability is not None]
        if found:
            yield name, max(found)


def _kind_of_unread(name: str, call: ToolCall, spec: ToolSpec) -> str:
    origin, needed = call.provenance.get(name), name in spec.required
    if needed and call.params[name] in ("", [], {}):
        return "invented"
    if origin is None or origin.kind is not OriginKind.NOBODY:
        return "unread"
    if needed:
        return "invented"
    schema = spec.parameters.get(name, {})
    return "switched" if "enum" in schema or "boolean" in types_of(schema) else "added"


def _unused_mentions(text: str, params: Mapping[str, Any]) -> int:
    values = fold_text(json.dumps([str(leaf.value) for name, value in params.items() for leaf in leaves(value, name)]))
    spans = [span for span in parse_request(text).mentions if span.kind in PURPOSEFUL]
    used = [
        span
        for span in spans
        if fold_text(span.text) in values or (span.number is not None and f"{span.number:g}" in values)
    ]
    return sum(not any(one.overlaps(span) for one in used) for span in spans)
