"""Rank tools for a part of a request: signals, probabilities and arguments."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from packetgate.ranking.bm25 import Lexical, Ranked
from packetgate.ranking.ranking import ranking_of
from packetgate.reflex.follow_ups import current_step
from packetgate.reflex.judge.judge import judge
from packetgate.reflex.meaning.ranker import SemanticIndex, SemanticModel
from packetgate.reflex.reading import asks_for_advice, senses_of
from packetgate.reflex.signals import (
    ReflexCallSignals,
    ToolSignals,
    builtin_log_odds,
    is_known_builtin,
    load_request_classifier,
    serving_log_odds,
    serving_probabilities,
)
from packetgate.reflex.values.filling import PURPOSEFUL, Filling, existing_names, fill_per_path, takes_path
from packetgate.reflex.values.mentions import EDGES, parse_request, unify_synonym
from packetgate.reflex.values.tokens import tokenize
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import log_odds
from packetgate.tools.spec.tool_spec import ToolSpec, types_of
from packetgate.tools.text.reading import access_of, has_question, is_question, mentions_in, parts_in, verbs_in
from packetgate.tools.text.values import leaves
from packetgate.tools.text.words import STOP_WORDS, query_terms, stem_of, words_in, words_of

MIN_TOOL_PROBABILITY = 0.51  # probability from which a tool is called
MAX_JUDGED_GAP = 5.0  # a tool with a larger gap to the best score is not judged: the judge cannot close that gap
MIN_PROBABILITY = 1e-3  # of arguments
QUERIES = frozenset("query question search topic".split())  # words of parameter names that take a query
_CANDIDATES = 12  # best ranked tools that are considered
_NOT_JUDGED = -2.0  # log odds of a tool that is not judged
_MAX_CHARS = 2_000
_MAX_BUILTIN = 3  # built-in tools that are considered regardless of rank
_MAX_FILLED = 6  # best tools whose arguments are read from the request
_MIN_RELATIVE_PROBABILITY = 0.02  # arguments are read only for tools with this share of the best tool's probability
_NO_PARAMETERS = 2  # a tool without parameters counts as if it had this number of arguments
_MAX_COUNT = 3  # largest value of signals that count something
_GENERAL = frozenset(stem_of(word) for word in "path name file folder query text id".split())
"""Stems of parameter names that any request may contain."""
_APPENDS = re.compile(r"\bappend\b|\badd\b.+\b(?:to|onto)\b", re.IGNORECASE)
_VALUES = frozenset({"quoted", "code", "url", "email", "path", "number"})
"""Kinds of mentions that are values, not words of a sentence."""


@dataclass(frozen=True)
class Fit:
    """A tool with its signals, probability and arguments."""

    spec: ToolSpec
    signals: ToolSignals
    fillings: tuple[Filling, ...] = field(default=(), repr=False)
    """The tool's arguments; one filling for each file if the request names several files."""
    probability: float = 0.0  # that this tool serves the request
    unused_count: int = 0  # number of unused mentions; 0 for a question
    unexplained_share: float = 0.0  # share of terms that occur neither in the tool's texts nor in an argument
    omitted_count: float = 0.0  # optional arguments that the request names and the calls omit
    log_word_count: float = 0.0

    @property
    def missing(self) -> tuple[str, ...]:
        """Required parameters whose values the request does not contain."""
        return next((filling.missing for filling in self.fillings if filling.missing), ())

    @property
    def values(self) -> set[str]:
        """The texts and numbers in the tool's arguments."""
        arguments = [(name, value) for filling in self.fillings for name, value in filling.params.items()]
        values = [leaf.value for name, value in arguments for leaf in leaves(value, name)]
        return {str(value) for value in values if not isinstance(value, bool)}

    def call_signals(self, log_probability: float, argument_count: int, unused_count: int) -> ReflexCallSignals:
        """Return the signals of a call of this tool.

        Args:
            log_probability: of all arguments of the call.
            argument_count: number of arguments of the call.
            unused_count: number of values in the request that the call does not use.
        """
        knows = self.spec.path_certainty
        paths = [(name, value) for one in self.fillings for name, value in one.params.items() if isinstance(value, str)]
        return ReflexCallSignals(
            share=log_odds(self.probability),
            arguments=log_probability,
            practised=float(is_known_builtin(self.spec)),
            filled=min(_MAX_FILLED, argument_count) if self.spec.parameters else _NO_PARAMETERS,
            left=min(_MAX_COUNT, unused_count),
            spare=min(_MAX_COUNT, self.unused_count),
            unexplained=self.unexplained_share,
            named=self.omitted_count,
            words=self.log_word_count,
            there=float(knows is not None and any(knows(name, value) == 1 for name, value in paths)),
        )

    @property
    def reason(self) -> str:
        """The signals for this tool as text, for the trace."""
        signals = self.signals
        reasons = {
            "the request names it": signals.outright,
            "its name contains the verb": signals.verb or signals.named > 0.5,
            "it takes the named path": signals.path,
            "its description contains words of the request": signals.known,
            "the judge prefers it": signals.judged > 0,
        }
        return f"{self.spec.name}: {', '.join(why for why, holds in reasons.items() if holds) or 'best ranked'}"


def fits_by_part(packet: CognitionPacket, catalogue: Catalogue, also: str = "") -> dict[str, list[Fit]]:
    """Return `best_fits` for each part of the current step. Blocking."""
    now = packet.header.local_time
    return {part: best_fits(part, catalogue, now, also) for part in parts_in(current_step(packet, catalogue))}


def best_fits(text: str, catalogue: Catalogue, now: datetime, also: str = "") -> list[Fit]:
    """Return the likeliest tools for a part of a request, best first. Blocking.

    Args:
        also: the name of a tool that is always included.
    """
    ranked = ranking_of(catalogue).rank(text, limit=_CANDIDATES)
    hits = {hit.name: (place, hit) for place, hit in enumerate(ranked)}
    known = [
        name for name in dict.fromkeys([*hits, *_tools_regardless_of_rank(text, catalogue), also]) if name in catalogue
    ]
    names = [name for name in known if name == also or not _is_excluded(catalogue[name], text)]
    near = _nearness(text[:_MAX_CHARS], names, catalogue)
    outright = catalogue.tools_named_in(text)
    fits = [
        Fit(spec, _signals(spec, text, hits.get(spec.name), near[spec.name], outright=spec.name in outright))
        for spec in map(catalogue.__getitem__, names)
    ]
    ordered = _with_probabilities(_judged(fits, text))
    least = _MIN_RELATIVE_PROBABILITY * ordered[0].probability if ordered else 0.0
    best = [
        one
        for place, one in enumerate(ordered)
        if one.spec.name == also or (place < _MAX_FILLED and one.probability >= least)
    ]
    return _with_probabilities([_with_arguments(one, text, now) for one in best])


def _nearness(text: str, names: Sequence[str], catalogue: Catalogue) -> dict[str, float]:
    index = ranking_of(catalogue).index
    if not isinstance(index, SemanticIndex):  # another plug-in ranks
        index = SemanticIndex(SemanticModel(), catalogue, Lexical(()))
    return index.nearness(text, names)


def _is_excluded(spec: ToolSpec, text: str) -> bool:
    """Return whether a tool changes something for a question, or overwrites instead of appending."""
    words = words_of(spec.upstream_name)
    if is_question(text) and access_of(" ".join(words)) is Access.WRITE:
        return True
    senses = senses_of(words)
    overwrites = takes_path(spec) and "write" in senses and "append" not in senses
    return overwrites and _APPENDS.search(text) is not None


def _judged(fits: Sequence[Fit], text: str) -> list[Fit]:
    scores = {fit.spec: serving_log_odds(fit.signals) for fit in fits}
    least = max([0.0, *scores.values()]) - MAX_JUDGED_GAP
    within = [spec for spec, one in scores.items() if one >= least]
    odds = dict(zip(within, map(log_odds, judge(text, within)), strict=True))
    return [replace(fit, signals=fit.signals._replace(judged=odds.get(fit.spec, _NOT_JUDGED))) for fit in fits]


def probability_of_any(fits: Sequence[Fit]) -> float:
    """Return the probability that one of the tools serves the request."""
    return sum(fit.probability for fit in fits)


def unused_values(text: str, fillings: Sequence[Filling]) -> list[str]:
    """Return the values of a request that no argument of any of the calls uses."""
    may_be_number = not is_question(text)  # a question may be about a number
    unused = [
        {
            span.text: None
            for span in one.unused
            if span.kind in _VALUES and (span.kind != "number" or (span.text[:1].isdigit() and may_be_number))
        }
        for one in fillings
    ]
    return [value for value in unused[0] if all(value in one for one in unused)] if unused else []


def _with_probabilities(fits: Sequence[Fit]) -> list[Fit]:
    probabilities = serving_probabilities([fit.signals for fit in fits])
    rated = [replace(fit, probability=probability) for fit, probability in zip(fits, probabilities, strict=True)]
    return sorted(rated, key=lambda fit: (-fit.probability, fit.spec.name))


def _tools_regardless_of_rank(text: str, catalogue: Catalogue) -> Iterator[str]:
    yield from catalogue.tools_named_in(text)
    built_in = [
        name for name in load_request_classifier().tools if name in catalogue and is_known_builtin(catalogue[name])
    ]
    yield from sorted(built_in, key=lambda name: -builtin_log_odds(text, catalogue[name]))[:_MAX_BUILTIN]
    if mentions_in(text).paths:
        yield from [name for name in catalogue.interleaved_names if takes_path(catalogue[name])][:_MAX_FILLED]


def _signals(
    spec: ToolSpec, text: str, ranked: tuple[int, Ranked] | None, near: float, *, outright: bool
) -> ToolSignals:
    bare = _without_name(text, spec)
    place, hit = ranked or (_CANDIDATES, None)
    paths, access = [path for path in mentions_in(bare).paths if "*" not in path], access_of(text)
    verbs, words = verbs_in(text), words_of(spec.upstream_name)
    senses, terms = senses_of(verbs), query_terms(bare)
    exists = {
        word: sure for name in spec.parameters for word, sure in existing_names(spec, name, parse_request(bare)).items()
    }
    names_path = max(exists.values(), default=0) > 0 or any(exists.get(path, 0) >= 0 for path in paths)
    has_verb = bool({*senses} & {*words, *senses_of(words)} or {*verbs} & {*words})
    only_reads = access is Access.READ and (not senses or "read" in senses)
    purposeful = (span for span in parse_request(bare).mentions if span.kind in PURPOSEFUL)
    return ToolSignals(
        near=near,
        known=len(hit.terms) / len(terms) if hit and terms else 0.0,
        named=min(1.0, len(hit.name_terms) / len(words)) if hit and words else 0.0,
        place=1 / (1 + place),
        verb=float(has_verb),
        outright=float(outright),
        path=float(names_path and takes_path(spec)),
        implied=float(names_path and only_reads and "read" in words),
        answers=float(has_question(bare) and _only_needs_query(spec)),
        practised=builtin_log_odds(text, spec),
        below=float(access is Access.WRITE and spec.apparent_risk is Risk.READ and not has_verb),
        otherwise=float(access is not Access.READ and not has_verb),
        advice=float(asks_for_advice(bare) and all(span.text.lower() in EDGES for span in purposeful)),
    )


def _with_arguments(fit: Fit, text: str, now: datetime) -> Fit:
    spec, fillings = fit.spec, fill_arguments(fit.spec, text, now)
    signals = fit.signals._replace(
        lacking=min(_MAX_COUNT, max(len(one.missing) for one in fillings)),
        certain=min(math.log(max(MIN_PROBABILITY, one.probability)) / max(1, len(one.arguments)) for one in fillings),
        left=min(_MAX_COUNT, len(unused_values(text, fillings))),
    )
    stems = frozenset().union(*parse_request(_without_name(text, spec)).stems)
    left_out = {*spec.parameters} - {name for one in fillings for name in one.params}
    named = [bool(stems & {unify_synonym(stem_of(word)) for word in words_of(name)} - _GENERAL) for name in left_out]
    return replace(
        fit,
        fillings=fillings,
        signals=signals,
        unused_count=0 if is_question(text) else max(len(one.unused) for one in fillings),
        unexplained_share=_unexplained_share(spec, text, fillings),
        omitted_count=min(_MAX_COUNT, sum(named)),
        log_word_count=math.log(1 + len(tokenize(text))),
    )


def _unexplained_share(spec: ToolSpec, text: str, fillings: Sequence[Filling]) -> float:
    filled = {name for filling in fillings for name in filling.params}
    unfilled = [schema for name, schema in spec.parameters.items() if name not in filled and "enum" not in schema]
    if not any({"string", "array"} & {*(types_of(schema) or ["string"])} for schema in unfilled):
        return 0.0
    known = _known_stems(spec)
    used = [(one.start, one.end) for filling in fillings for one in filling.arguments if one.state == "filled"]
    terms = [token for token in tokenize(_without_name(text, spec)) if token.text.lower() not in EDGES | STOP_WORDS]
    name = {*senses_of(words_of(spec.upstream_name)), *words_of(spec.upstream_name)}
    unknown = [
        token
        for token in terms
        if stem_of(token.text.lower()) not in known
        and not name & {*senses_of([token.text.lower()])}
        and not any(start <= token.start < end for start, end in used)
    ]
    return len(unknown) / max(1, len(terms))


@lru_cache(maxsize=1_024)
def _known_stems(spec: ToolSpec) -> frozenset[str]:
    texts = [spec.name, spec.full, *spec.parameters, *(str(one.get("description")) for one in spec.parameters.values())]
    return frozenset(stem_of(word) for text in texts for word in words_in(text))


@lru_cache(maxsize=256)
def fill_arguments(spec: ToolSpec, text: str, now: datetime) -> tuple[Filling, ...]:
    """Return a tool's arguments for a part of a request; one filling for each of several named files. Blocking."""
    return tuple(fill_per_path(spec, _without_name(text, spec), now=now))


def _without_name(text: str, spec: ToolSpec) -> str:
    """Return a text with blanks in place of the tool's name, which looks like a path, and of `in SERVER`."""
    return _naming(spec.name, spec.server).sub(lambda named: " " * len(named[0]), text)


@lru_cache(maxsize=1_024)
def _naming(name: str, server: str) -> re.Pattern[str]:
    server_words = rf"\b(?:in|on|from|with|using|via) {re.escape(server)}(?![\w./-])" if server else "(?!)"
    return re.compile(rf"{re.escape(name)}|{server_words}", re.IGNORECASE)


def _only_needs_query(spec: ToolSpec) -> bool:
    if spec.apparent_risk is not Risk.READ or len(spec.required) != 1:
        return False
    name = spec.required[0]
    return bool(QUERIES & {*words_of(name)}) and "string" in types_of(spec.parameters[name])
