"""Choosing a tool without a model: the words it shares with the request, what the verb may stand for, and whether the
request holds what the tool needs.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from deciders.protocols import Selection, WantedCall
from deciders.reflex.following import request_of
from deciders.reflex.reading import access_of, is_question, mentions_in, parts_in, senses_of, steps_in, verbs_in
from deciders.values.filling import Filling, answer, fill, fill_each, takes_path
from deciders.values.mentions import EDGES
from deciders.values.tokens import tokens_of
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import Alternative, Correction
from state.sections import Access
from tools.catalogue.catalogue import Catalogue
from tools.checks.wrong_kind import wrong_kind
from tools.palette.subject import documents
from tools.ranking.bm25 import Ranked
from tools.spec.tool_spec import ToolSpec
from tools.text.words import words_of

ENOUGH = 0.9
"""Fit below which a tool is not worth calling."""
CLEAR_MARGIN = 0.2
LIKELY = 0.5
QUERIES = frozenset("query question search topic".split())
"""Words of the names of parameters that take what is looked for."""
RANKED = 200
FILLED = 6
"""Tools, of those that fit best, whose arguments are looked for."""
UNFOUND, ASKING = 0.6, 0.8
"""How surely no tool fits, and how surely something must be asked."""


@dataclass(frozen=True)
class _Fit:
    """How well one tool fits one part of a request."""

    spec: ToolSpec
    words: float
    """0 to 1: rank score relative to the best."""
    verb: bool
    path: bool
    named: bool
    implied: bool = False
    """A file is only named, and the tool reads: that is what naming it asks for."""
    documents: bool = False
    """It documents what a question is about."""
    missing: tuple[str, ...] = ()
    penalty: float = 0.0

    @property
    def total(self) -> float:
        return (
            self.words
            + self.verb
            + 0.8 * self.path
            + 0.3 * self.implied
            + 0.5 * self.documents
            + 4 * self.named
            - 0.4 * bool(self.missing)
            - self.penalty
        )


@dataclass(frozen=True)
class _Part:
    """A part of the request, with what the user added since."""

    text: str
    answers: tuple[str, ...]
    corrects: bool
    """Whether they answered a call put to them, so that what they say replaces what it held."""
    now: datetime
    """What "tomorrow" is reckoned from."""

    @property
    def senses(self) -> list[str]:
        """What the verbs may stand for."""
        return senses_of(verbs_in(self.text))

    def without(self, name: str) -> str:
        """The text without the name of the tool, which would read as a path."""
        return self.text.replace(name, " ")


async def select_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Choose from the palette for each part of the step; off it only when nothing on it fits."""
    return await asyncio.to_thread(_select, packet, catalogue)


def _select(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    steps = steps_in(request_of(packet))
    step = steps[min(packet.routing.step, len(steps) - 1)]
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
        confidence=min((choice.confidence for choice in calling), default=UNFOUND),
        reasoning=reasoning,
        decided_by="reflex",
    )


def _choose(part: _Part, palette: frozenset[str], catalogue: Catalogue) -> Selection:
    fits = _fits(part, palette, catalogue)
    if not fits or fits[0].total < ENOUGH:
        elsewhere = _fits(part, frozenset(catalogue) - palette, catalogue)
        fits = elsewhere if elsewhere and elsewhere[0].total >= ENOUGH and elsewhere[0].verb else []
    if not fits:
        return Selection(
            action="none", confidence=UNFOUND, reasoning=f"no tool fits {part.text!r}", decided_by="reflex"
        )
    best, corrections = _of_the_right_kind(fits[0], part, catalogue)
    others = [fit for fit in fits if fit.spec is not best.spec]
    filled = _filled(best.spec, part)
    lacking = next((missing for _, missing in filled if missing), [])
    if lacking:
        return Selection(
            action="clarify",
            question=_question(best.spec, lacking[0]),
            confidence=ASKING,
            reasoning=f"{best.spec.name} needs {lacking[0]}",
            decided_by="reflex",
        )
    return Selection(
        action="call",
        calls=tuple(WantedCall(tool_name=best.spec.name, params=params, reasoning=_why(best)) for params, _ in filled),
        confidence=_confidence(best, others[0] if others else None),
        reasoning=_why(best),
        alternatives=tuple(
            Alternative(tool_name=fit.spec.name, reason=_why(fit)) for fit in others[:3] if fit.total >= ENOUGH
        ),
        corrections=corrections,
        decided_by="reflex",
    )


def _of_the_right_kind(best: _Fit, part: _Part, catalogue: Catalogue) -> tuple[_Fit, tuple[Correction, ...]]:
    """Return the fit, or that of a better kind of tool where the request holds all it needs."""
    most = max(access_of(part.text).risks, key=lambda risk: risk.severity)
    wrong = wrong_kind(best.spec, part.text, most, catalogue)
    if wrong is None:
        return best, ()
    (better,) = _fits(part, frozenset({wrong.better_tool}), catalogue)
    if any(missing for _, missing in _filled(better.spec, part)):
        return best, ()
    return better, (wrong.as_mended(),)


def _filled(spec: ToolSpec, part: _Part) -> list[tuple[dict[str, Any], list[str]]]:
    text = part.without(spec.name)
    return [_answered(spec, one.params, [*one.missing], part) for one in fill_each(spec, text, now=part.now)]


def _fits(part: _Part, names: frozenset[str], catalogue: Catalogue) -> list[_Fit]:
    """Return how every named tool fits, best first."""
    ranked = catalogue.ranking.by_words(f"{part.text} {' '.join(part.senses)}", limit=RANKED)
    hits = {hit.name: hit for hit in ranked}
    top = max((hit.score for hit in ranked if hit.name in names), default=1.0)
    fits = [_fit(catalogue[name], part, hits.get(name), top) for name in names if name in catalogue]
    best = sorted(fits, key=_first)
    filled = [replace(fit, missing=_missing(fit.spec, part)) for fit in best[:FILLED]]
    return [*sorted(filled, key=_first), *best[FILLED:]]


def _first(fit: _Fit) -> tuple[float, str]:
    return -fit.total, fit.spec.name


def _missing(spec: ToolSpec, part: _Part) -> tuple[str, ...]:
    """Return what the request does not say of what the tool needs."""
    found = fill(spec, part.without(spec.name), now=part.now)
    return tuple(_answered(spec, found.params, [*found.missing], part)[1])


def _fit(spec: ToolSpec, part: _Part, hit: Ranked | None, top: float) -> _Fit:
    text = part.without(spec.name)
    names_path = bool(mentions_in(text).paths)
    path_taken = takes_path(spec)
    tool_words = words_of(spec.upstream_name)
    above = spec.risk.severity > max(risk.severity for risk in access_of(part.text).risks)
    verb = bool(set(part.senses) & {*tool_words, *senses_of(tool_words)} or set(verbs_in(part.text)) & set(tool_words))
    does_otherwise = access_of(part.text) is not Access.READ and not verb
    return _Fit(
        spec=spec,
        words=hit.score / top if hit else 0.0,
        verb=verb,
        path=names_path and path_taken,
        named=spec.name in part.text,
        implied=names_path and not part.senses and "read" in tool_words,
        documents=is_question(text) and hit is not None and documents(spec, hit, text),
        penalty=0.8 * above
        + 1.0 * does_otherwise
        + 0.3 * (names_path and not path_taken)
        + 0.2 * ("deprecated" in spec.full.lower()),
    )


def _answered(
    spec: ToolSpec, params: dict[str, Any], missing: list[str], part: _Part
) -> tuple[dict[str, Any], list[str]]:
    """Fill what is missing: with what a question asks, and from the user's answers.

    Those fill by their mentions, or whole, the one thing that was asked for.
    """
    if len(missing) == 1 and not part.answers and _is_query(spec, missing[0]) and is_question(part.text):
        params, missing = {**params, missing[0]: _telling(part.text)}, []
    for said in part.answers:
        given = answer(spec, missing[0], said, part.now) if missing else None
        found = {missing[0]: given} if given is not None else _sure_of(fill(spec, said, now=part.now))
        if part.corrects:
            params = {**params, **found}
        params = {**{name: value for name, value in found.items() if name in missing}, **params}
        missing = [name for name in missing if name not in params]
    return params, missing


def _sure_of(filling: Filling) -> dict[str, Any]:
    """Return the arguments that words such as "no, to b.txt" name, and that are likelier right than not."""
    sure = {one.path[0] for one in filling.arguments if one.state == "filled" and one.probability >= LIKELY}
    return {name: value for name, value in filling.params.items() if name in sure}


def _is_query(spec: ToolSpec, name: str) -> bool:
    return bool(QUERIES & {*words_of(name)}) and spec.parameters[name].get("type") == "string"


def _telling(text: str) -> str:
    """Return a request's words without those that ask."""
    return " ".join(token.text for token in tokens_of(text) if token.text.lower() not in EDGES)


def _confidence(best: _Fit, second: _Fit | None) -> float:
    clear = second is None or best.total - second.total >= CLEAR_MARGIN
    return round(0.5 + 0.2 * best.verb + 0.15 * (best.path or best.words > 0) + 0.1 * clear + 0.05 * best.named, 2)


def _why(fit: _Fit) -> str:
    reasons = [
        reason
        for reason, holds in (
            ("named outright", fit.named),
            ("its name says what is asked", fit.verb),
            ("it takes the path named", fit.path),
            ("it documents what is asked about", fit.documents),
            ("its description shares the request's words", fit.words > 0),
        )
        if holds
    ]
    return f"{fit.spec.name}: {', '.join(reasons) or 'nothing speaks for it'}"


def _question(spec: ToolSpec, parameter: str) -> str:
    about = str(spec.parameters.get(parameter, {}).get("description", "")).strip().rstrip(".")
    return f"To use {spec.name} I need `{parameter}`{f' ({about})' if about else ''}. What should it be?"
