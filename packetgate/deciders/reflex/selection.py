"""Choosing a tool without a model: the likeliest that serves, if one is likely to, and arguments from the request."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.deciders.reflex.fit import ENOUGH, Fit, fillings_of, fits_of, needed, sure_of
from packetgate.deciders.reflex.following import step_of
from packetgate.deciders.reflex.reading import access_of, parts_in
from packetgate.deciders.values.filling import answer, fill
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Correction
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.approval.verdicts import read_words
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.wrong_kind import wrong_kind
from packetgate.tools.spec.tool_spec import ToolSpec

_LEFT = {ApprovalOutcome.DENIED, ApprovalOutcome.SKIPPED}

TOLD = 0.05
"""Share from which a tool that was not chosen is told of."""


@dataclass(frozen=True)
class _Part:
    """A part of the request, with what the user added since."""

    text: str
    answers: tuple[str, ...]
    corrects: bool
    """Whether they answered a call put to them, so that what they say replaces what it held."""
    now: datetime
    """What "tomorrow" is reckoned from."""


def select(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Choose from the palette for each part of the step; off it only when nothing on it fits. Blocking."""
    step = step_of(packet)
    corrects = any(one.says_instead for one in packet.governance.approvals)
    now = packet.header.created_at.astimezone()
    parts = [_Part(text, packet.content.clarifications, corrects, now) for text in parts_in(step)]
    choices = [_choose(part, packet.context.palette_names, catalogue) for part in parts]
    reasoning = "; ".join(choice.reasoning for choice in choices)
    asks = next((choice for choice in choices if choice.action == "clarify"), None)
    if asks:
        return asks.explained(reasoning)
    calling = [choice for choice in choices if choice.calls]
    return Selection(
        action="call" if calling else "none",
        calls=tuple(call for choice in calling for call in choice.calls),
        alternatives=tuple(alternative for choice in calling for alternative in choice.alternatives)[:5],
        corrections=tuple(correction for choice in calling for correction in choice.corrections),
        confidence=min(choice.confidence for choice in calling or choices),
        reasoning=reasoning,
        confidence_source=ConfidenceSource.CALIBRATED,
        decided_by="reflex",
    )


def _choose(part: _Part, palette: frozenset[str], catalogue: Catalogue) -> Selection:
    fits = fits_of(part.text, catalogue, part.now)
    likely = needed(fits)
    if likely < ENOUGH:
        return Selection(
            action="none",
            confidence=1 - likely,
            reasoning=f"no tool fits {part.text!r}",
            confidence_source=ConfidenceSource.CALIBRATED,
            decided_by="reflex",
        )
    best, corrections = _of_the_right_kind(_best(fits, palette), part, catalogue)
    filled = _filled(best.spec, part)
    lacking = next((missing for _, missing in filled if missing), [])
    if lacking and part.answers and read_words(part.answers[-1]).outcome in _LEFT:
        return Selection(
            action="none",
            confidence=1.0,
            reasoning=f"nobody said {lacking[0]!r}, which {best.spec.name} needs",
            confidence_source=ConfidenceSource.CALIBRATED,
            decided_by="reflex",
        )
    if lacking:
        return Selection(
            action="clarify",
            question=_question(best.spec, lacking[0]),
            asks_for=(best.spec.name, lacking[0]),
            confidence=likely,
            reasoning=f"{best.spec.name} needs {lacking[0]}",
            confidence_source=ConfidenceSource.CALIBRATED,
            decided_by="reflex",
        )
    others = [fit for fit in fits if fit.spec is not best.spec and fit.share >= TOLD]
    return Selection(
        action="call",
        calls=tuple(WantedCall(tool_name=best.spec.name, params=params, reasoning=best.why) for params, _ in filled),
        confidence=best.share,
        reasoning=best.why,
        alternatives=tuple(Alternative(tool_name=fit.spec.name, reason=fit.why) for fit in others[:3]),
        corrections=corrections,
        confidence_source=ConfidenceSource.CALIBRATED,
        decided_by="reflex",
    )


def _best(fits: list[Fit], palette: frozenset[str]) -> Fit:
    """Return the likeliest tool that was shown; another only where that one is likelier than not to serve."""
    shown = next((fit for fit in fits if fit.spec.name in palette), fits[0])
    return fits[0] if fits[0].share >= ENOUGH else shown


def _of_the_right_kind(best: Fit, part: _Part, catalogue: Catalogue) -> tuple[Fit, tuple[Correction, ...]]:
    """Return the fit, or that of a better kind of tool where the request holds all it needs."""
    most = max(access_of(part.text).risks, key=lambda risk: risk.severity)
    wrong = wrong_kind(best.spec, part.text, most, catalogue)
    if wrong is None:
        return best, ()
    fits = fits_of(part.text, catalogue, part.now, also=wrong.better_tool)
    better = next(fit for fit in fits if fit.spec.name == wrong.better_tool)
    return (best, ()) if better.missing else (better, (wrong.changed(mended=True),))


def _filled(spec: ToolSpec, part: _Part) -> list[tuple[dict[str, Any], list[str]]]:
    fillings = fillings_of(spec, part.text, part.now)
    return [_answered(spec, one.params, [*one.missing], part) for one in fillings]


def _answered(
    spec: ToolSpec, params: dict[str, Any], missing: list[str], part: _Part
) -> tuple[dict[str, Any], list[str]]:
    """Fill what is missing from the user's answers: by their mentions, or whole, the one thing that was asked for."""
    for said in part.answers:
        decides = read_words(said).outcome is not ApprovalOutcome.ANSWERED
        given = answer(spec, missing[0], said, part.now, decides=decides) if missing else None
        found = {missing[0]: given} if given is not None else sure_of(fill(spec, said, now=part.now))
        if part.corrects:
            params = {**params, **found}
        params = {**{name: value for name, value in found.items() if name in missing}, **params}
        missing = [name for name in missing if name not in params]
    return params, missing


def _question(spec: ToolSpec, parameter: str) -> str:
    about = str(spec.parameters.get(parameter, {}).get("description", "")).strip().rstrip(".")
    return f"To use {spec.name} I need `{parameter}`{f' ({about})' if about else ''}. What should it be?"
