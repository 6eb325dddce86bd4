"""Select calls without a model: the likeliest tool for each part of the step, with arguments from the request."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.deciders.reflex.fit import ENOUGH, Fit, fillings_of, fits_of, probability_of_any
from packetgate.deciders.reflex.follow_ups import step_of
from packetgate.deciders.reflex.reading import access_of, parts_in
from packetgate.deciders.values.filling import answer_value, fill_parameters
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Correction
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.approval.replies import read_words
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.wrong_category import wrong_category
from packetgate.tools.spec.tool_spec import ToolSpec

_DECLINED = {ApprovalOutcome.DENIED, ApprovalOutcome.SKIPPED}
_LEAST_SHARE = 0.05  # least probability of an alternative


@dataclass(frozen=True)
class _Part:
    text: str
    answers: tuple[str, ...]
    corrects: bool  # whether the answers replace values of a proposed call
    now: datetime


def select(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Return calls for each part of the step; tools off the palette are used only if none on it fits. Blocking."""
    corrects = any(one.goes_to_selection for one in packet.governance.approvals)
    now = packet.header.created_at.astimezone()
    parts = [_Part(text, packet.content.clarifications, corrects, now) for text in parts_in(step_of(packet))]
    choices = [_choose(part, packet.context.palette_names, catalogue) for part in parts]
    reasoning = "; ".join(choice.reasoning for choice in choices)
    question = next((choice for choice in choices if choice.action == "clarify"), None)
    if question:
        return question.changed(reasoning=reasoning)
    calling = [choice for choice in choices if choice.calls]
    return _selection(
        action="call" if calling else "none",
        calls=tuple(call for choice in calling for call in choice.calls),
        alternatives=tuple(alternative for choice in calling for alternative in choice.alternatives)[:5],
        corrections=tuple(correction for choice in calling for correction in choice.corrections),
        confidence=min(choice.confidence for choice in calling or choices),
        reasoning=reasoning,
    )


def _selection(**fields: Any) -> Selection:
    return Selection(**fields, confidence_source=ConfidenceSource.CALIBRATED, decided_by="reflex")


def _choose(part: _Part, palette: frozenset[str], catalogue: Catalogue) -> Selection:
    fits = fits_of(part.text, catalogue, part.now)
    likely = probability_of_any(fits)
    if likely < ENOUGH:
        return _selection(action="none", confidence=1 - likely, reasoning=f"no tool fits {part.text!r}")
    best, corrections = _of_the_right_kind(_best(fits, palette), part, catalogue)
    filled = [
        _answered(best.spec, one.params, [*one.missing], part) for one in fillings_of(best.spec, part.text, part.now)
    ]
    name, lacking = best.spec.name, next((missing[0] for _, missing in filled if missing), "")
    if lacking and part.answers and read_words(part.answers[-1]).outcome in _DECLINED:
        return _selection(
            action="none", confidence=1.0, reasoning=f"{name} needs {lacking!r}, which the request does not give"
        )
    if lacking:
        return _selection(
            action="clarify",
            question=_question(best.spec, lacking),
            asks_for=(name, lacking),
            confidence=likely,
            reasoning=f"{name} needs {lacking}",
        )
    others = [fit for fit in fits if fit.spec is not best.spec and fit.share >= _LEAST_SHARE]
    return _selection(
        action="call",
        calls=tuple(WantedCall(tool_name=name, params=params, reasoning=best.reason) for params, _ in filled),
        confidence=best.share,
        reasoning=best.reason,
        alternatives=tuple(Alternative(tool_name=fit.spec.name, reason=fit.reason) for fit in others[:3]),
        corrections=corrections,
    )


def _best(fits: list[Fit], palette: frozenset[str]) -> Fit:
    if fits[0].share >= ENOUGH:
        return fits[0]
    return next((fit for fit in fits if fit.spec.name in palette), fits[0])


def _of_the_right_kind(best: Fit, part: _Part, catalogue: Catalogue) -> tuple[Fit, tuple[Correction, ...]]:
    most = max(access_of(part.text).risks, key=lambda risk: risk.severity)
    wrong = wrong_category(best.spec, part.text, most, catalogue)
    if wrong is None:
        return best, ()
    fits = fits_of(part.text, catalogue, part.now, also=wrong.better_tool)
    better = next(fit for fit in fits if fit.spec.name == wrong.better_tool)
    return (best, ()) if better.missing else (better, (wrong.changed(mended=True),))


def _answered(
    spec: ToolSpec, params: dict[str, Any], missing: list[str], part: _Part
) -> tuple[dict[str, Any], list[str]]:
    for text in part.answers:
        decides = read_words(text).outcome is not ApprovalOutcome.ANSWERED
        value = answer_value(spec, missing[0], text, part.now, decides=decides) if missing else None
        found = {missing[0]: value} if value is not None else fill_parameters(spec, text, now=part.now).likely_params()
        if part.corrects:
            params = {**params, **found}
        params = {**{name: value for name, value in found.items() if name in missing}, **params}
        missing = [name for name in missing if name not in params]
    return params, missing


def _question(spec: ToolSpec, parameter: str) -> str:
    about = str(spec.parameters.get(parameter, {}).get("description", "")).strip().rstrip(".")
    return f"To use {spec.name} I need `{parameter}`{f' ({about})' if about else ''}. What should it be?"
