"""Make only calls that account for the whole request; otherwise offer the nearest ones."""

import math
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from packetgate.deciders.protocols import Selection
from packetgate.gate.replies import POLITE_WORDS, parse_words
from packetgate.reflex.calls import (
    DOUBTED,
    MIN_ALTERNATIVE,
    argument_probabilities,
    calibrated_selection,
    log_probability,
    select,
    without_verdict,
)
from packetgate.reflex.fit import (
    MIN_TOOL_PROBABILITY,
    QUERIES,
    Fit,
    best_fits,
    fits_by_part,
    probability_of_any,
    unused_values,
)
from packetgate.reflex.follow_ups import read_request
from packetgate.reflex.judge.calls import right_log_odds
from packetgate.reflex.reading import forbids_something, senses_of, steps_in
from packetgate.reflex.signals import reflex_call_probability
from packetgate.reflex.values.filling import PATH_WORDS, Filling, takes_path
from packetgate.reflex.values.mentions import EDGES
from packetgate.reflex.values.tokens import Token, tokenize
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Risk
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import is_question, is_small_talk, mentions_in, parts_in, unquoted_words
from packetgate.tools.text.values import leaves
from packetgate.tools.text.verbs import KNOWN_VERBS, SENSES
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

MIN_ARGUMENTS = {Risk.READ: 0.45, Risk.WRITE: 0.45, Risk.EXECUTE: 0.7}
"""Least probability that all arguments of a call are right, without queries and existing paths."""
MIN_OFFERED = 0.5
"""Least probability of a change that is offered although it leaves out words."""
MAX_NEAREST = 3
"""Maximum offered calls."""
_ALL = frozenset("all any each every everything whole".split())
"""Words that a read satisfies without an argument: it returns everything."""
_LIMITS = _ALL | frozenset(
    "both except first last least less many more most much never next no none not nothing once only previous same twice"
    " until without".split()
)
"""Words that limit or negate."""
_EMPTY = (STOP_WORDS | EDGES | POLITE_WORDS) - _LIMITS
_RETRIEVAL = SENSES["read"] | SENSES["list"] | {"fetch", "give", "retrieve", "return"}
_CLAUSE = re.compile(r"[^,.!?;\n]+")
_ACTION = re.compile(r"(?:^|[:;,] |\b(?:or|and) )(?:or |and )?(\w+)")
"""Words of a description that may say what a tool does: those at the start of a clause, or joined by `or` or `and`."""
_CLAUSE_END = re.compile(r"[,.!?;:]\s+|\n")
_VALUES = frozenset("quoted code url email path number date time".split())


def decide(packet: CognitionPacket, catalogue: Catalogue) -> Selection:
    """Return calls that account for each word of the current step; otherwise none, with the nearest calls. Blocking.

    Before the first step, the other steps are read too, so that no request is carried out only in part.
    """
    selection = select(packet, catalogue)
    if packet.content.clarifications or selection.confidence_source is not ConfidenceSource.CALIBRATED:
        return selection
    fits, now = fits_by_part(packet, catalogue), packet.header.local_time
    for step in steps_in(read_request(packet, catalogue).text)[1:] if not packet.routing.step else ():
        fits |= {part: best_fits(part, catalogue, now) for part in parts_in(step)}
    doubts = dict.fromkeys(doubt for part, one in fits.items() for doubt in _doubts_about(part, one))
    if forbids_something(packet.content.original_prompt) and any(_changes(one[0].spec) for one in fits.values() if one):
        doubts["it also says what not to do"] = None
    if not doubts:
        return selection
    near = [alternative for part, one in fits.items() for alternative in _nearest_calls(part, one)]
    return calibrated_selection(
        action="none",
        confidence=selection.confidence,
        reasoning=f"nothing was done, because this request is not clear enough: {'; '.join(doubts)}",
        alternatives=tuple(near)[:MAX_NEAREST],
    )


def _doubts_about(part: str, fits: Sequence[Fit]) -> Iterator[str]:
    """Yield the reasons why the user may not mean the best call for a part of a request."""
    if not fits or probability_of_any(fits) < MIN_TOOL_PROBABILITY:
        yield "no tool matches it"
        return
    best, filling = fits[0], fits[0].fillings[0]
    if best.probability < MIN_TOOL_PROBABILITY:
        yield f"`{best.spec.name}` and `{fits[1].spec.name}` match it about equally"
    if is_question(part) and _changes(best.spec):
        yield f"it is a question, and `{best.spec.name}` may change something"
    if left_out := words_left_out(part, best.spec, best.fillings):
        words = ", ".join(f'"{word}"' for word in left_out)
        yield f"`{best.spec.name}` leaves out {words}"
    if filling.missing:
        return
    exist = best.spec.paths_exist
    if exist and not exist(filling.params) and not mentions_in(part).paths:
        yield f"`{best.spec.name}` finds no such file or folder"
    if unsure := _unsure_arguments(best.spec, filling):
        yield f"uncertain arguments: {', '.join(f'`{name}`' for name in unsure)}"
    probability = _call_probability(part, best)
    if len(best.fillings) == 1 and probability < DOUBTED:
        yield f"`{best.spec.name}` is meant with a probability of only {probability:.2f}"


def _call_probability(part: str, fit: Fit) -> float:
    """Return the probability that a part of a request means a tool and its first arguments."""
    filling = fit.fillings[0]
    log = log_probability(argument_probabilities(filling.params, filling))
    signals = fit.call_signals(log, len(filling.params), len(unused_values(part, fit.fillings)))
    right = right_log_odds(without_verdict(part), fit.spec, filling.params)
    return reflex_call_probability(signals._replace(right=right))


def _unsure_arguments(spec: ToolSpec, filling: Filling) -> list[str]:
    unsure = {
        name: probability
        for name, probability in argument_probabilities(filling.params, filling).items()
        if not _is_query(name, spec) and not _exists(name, filling.params, spec)
    }
    if math.prod(unsure.values()) >= MIN_ARGUMENTS[spec.apparent_risk]:
        return []
    return [name for name, probability in unsure.items() if probability < DOUBTED] or [*filling.params]


def _changes(spec: ToolSpec) -> bool:
    return spec.apparent_risk is not Risk.READ


def _is_query(name: str, spec: ToolSpec) -> bool:
    return spec.apparent_risk is Risk.READ and bool(QUERIES & {*words_of(name)})


def _exists(name: str, params: Mapping[str, Any], spec: ToolSpec) -> bool:
    """Return whether an argument names one existing file or folder, by its path or by other words."""
    return (
        name in params
        and spec.path_certainty is not None
        and spec.path_certainty(name, spec.resolved(params)[name]) == 1
    )


def _nearest_calls(part: str, fits: Sequence[Fit]) -> Iterator[Alternative]:
    """Yield the calls that may be meant: complete ones first, then those that leave out fewer words.

    A change that leaves out words is included only if it is likelier than not, and no clause of these words contains
    an argument.
    """
    left_out = {fit.spec.name: _left_out(part, fit.spec, fit.fillings) for fit in fits}
    for fit in sorted(fits, key=lambda fit: (bool(fit.missing), len(left_out[fit.spec.name]))):
        if fit.probability >= MIN_ALTERNATIVE and _may_be_offered(part, fit, left_out[fit.spec.name]):
            for filling in fit.fillings if fit.values or not fit.missing else ():
                params = fit.spec.resolved(filling.params)
                yield Alternative(tool_name=fit.spec.name, params=params, reason=fit.reason)


def _may_be_offered(part: str, fit: Fit, left_out: Sequence[Token]) -> bool:
    if not left_out or not _changes(fit.spec):
        return True
    if _call_probability(part, fit) < MIN_OFFERED or any(_unsure_arguments(fit.spec, one) for one in fit.fillings):
        return False
    starts = [end.end() for end in _CLAUSE_END.finditer(part)]
    filled = [one for filling in fit.fillings for one in filling.arguments if one.state == "filled"]
    clauses = {bisect(starts, place) for one in filled for place in (one.start, one.end - 1)}
    return bool(clauses) and not any(bisect(starts, token.start) in clauses for token in left_out)


def words_left_out(text: str, spec: ToolSpec, fillings: Sequence[Filling]) -> list[str]:
    """Return, in order, the meaningful words of a part of a request that none of these calls accounts for."""
    return [token.text for token in _left_out(text, spec, fillings)]


def _left_out(text: str, spec: ToolSpec, fillings: Sequence[Filling]) -> list[Token]:
    filled = {name: value for filling in fillings for name, value in filling.params.items()}
    spans = [
        (one.start, one.end)
        for filling in fillings
        for one in filling.arguments
        if one.state == "filled" and one.text.lower() not in _LIMITS
    ]
    filled = spec.resolved(filled)
    spans += _asides(text)
    reads = spec.apparent_risk is Risk.READ
    about = spec.full.partition(". ")[0]
    of_tool = _stems([spec.name, about])
    of_values = (PATH_WORDS if takes_path(spec) else frozenset()) | _stems(
        [*filled]
        + [str(spec.parameters.get(name, {}).get("description", "")) for name in filled]
        + [str(leaf.value) for name, value in filled.items() for leaf in leaves(value, name)]
    )
    senses = {*senses_of(words_of(spec.upstream_name)), *words_of(spec.upstream_name)}
    asks_for_text = is_question(text) or not _RETRIEVAL.isdisjoint(unquoted_words(text))
    shows_file = asks_for_text and "read" in senses and len(filled) == 1
    shows_file = shows_file and spec.paths_exist is not None and spec.paths_exist(filled)
    actions = senses | {action.lower() for action in _ACTION.findall(about)}
    outside = [
        token
        for token in tokenize(text)
        if any(map(str.isalnum, token.text)) and not any(start <= token.start < end for start, end in spans)
    ]
    content = [token for token in outside if token.text.lower() not in _EMPTY]
    verb = next((token for token in outside if token.text.lower() not in _EMPTY - KNOWN_VERBS), None)

    def is_left_out(token: Token) -> bool:
        word = token.text.lower()
        stems = {*map(stem_of, words_in(word))}
        is_action = bool(senses & {word, *senses_of([word])})
        if not reads and token is verb and not (is_action or stems & {*map(stem_of, actions)}):
            return True
        if stems & of_values or (reads and word in _ALL | _RETRIEVAL):
            return False
        if word == "many":
            return "count" not in senses
        if stems <= of_tool or is_action:
            return word in _LIMITS
        return not shows_file or word in _LIMITS or word in KNOWN_VERBS or token.kind in _VALUES

    return [token for token in content if is_left_out(token)]


def _asides(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of greetings and verdicts, such as `never mind`."""
    for clause in _CLAUSE.finditer(text):
        if is_small_talk(clause[0]) or parse_words(clause[0]).outcome is not ApprovalOutcome.ANSWERED:
            yield clause.span()


def _stems(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(stem_of(word) for text in texts for word in words_in(text))
