"""How each tool fits one part of a request: what speaks for it, how probably it serves, and its arguments."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from packetgate.deciders.judge.judge import judge
from packetgate.deciders.reflex.practice import built_in, is_practised, practised
from packetgate.deciders.reflex.reading import (
    access_of,
    asks,
    asks_advice,
    is_question,
    mentions_in,
    senses_of,
    verbs_in,
)
from packetgate.deciders.reflex.serving import Signals, Sureness, log_odds, score, shares
from packetgate.deciders.values.filling import LIKELY, TOLD, Filling, fill_each, filled_by, named_there, takes_path
from packetgate.deciders.values.mentions import EDGES, Span, read, sense_of
from packetgate.deciders.values.tokens import tokens_of
from packetgate.state.routing import Risk
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.subject import documents
from packetgate.tools.provenance.values import leaves
from packetgate.tools.ranking.bm25 import Ranked
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import STOP_WORDS, query_terms, stem_of, words_in, words_of

ENOUGH = 0.51
"""Probability that some tool serves from which one is called: likelier than not, with a margin on the careful side."""
CANDIDATES = 12
"""Tools, of those ranked best, that are looked at."""
REACH = 4.0
"""How far below the best, or below none, a tool scores that is not judged: no judgement weighs as much."""
UNLIKELY = -2.0
"""Log odds that it counts as being given."""
READ = 2_000
"""Characters of a request that are compared with a tool."""
PRACTISED = 3
"""Built-in tools that are looked at however they rank: those most likely by how people ask for them."""
TELLING = 0.9
"""How probably the words of a question without those that ask are what to look for."""
FILLED = 6
"""Of those, the ones that fit best, whose arguments are looked for."""
FAR = 0.02
"""Share, beside that of the best, below which they are not looked for."""
TYPICAL = 2
"""Arguments of a call as most are: what a tool that takes none counts as, since nothing of it is left open."""
MOST = 3
"""What is missing or left over beyond this makes nothing worse."""
LEAST = 1e-3
"""Probability of arguments below which nothing gets worse."""
QUERIES = frozenset("query question search topic".split())
"""Words of the names of parameters that take what is looked for."""
FOLDERS, FILES = ({stem_of(word) for word in words.split()} for words in ("dir directory folder tree", "file"))
"""Stems of words in the names of tools that are for folders, and for files."""
_GENERAL = frozenset(stem_of(word) for word in "path name file folder query text id".split())
"""Stems in the names of parameters that any request may have."""
_APPENDS = re.compile(r"\bappend\b|\badd\b.+\b(?:to|onto)\b", re.IGNORECASE)
"""A request to put something after what is there."""
_VALUES = frozenset({"quoted", "code", "url", "email", "path", "number"})
"""Kinds of mentions that stand for nothing else than a value; numbers only in digits."""


@dataclass(frozen=True)
class Fit:
    """How a tool fits."""

    spec: ToolSpec
    signals: Signals
    fillings: tuple[Filling, ...] = field(default=(), repr=False)
    """Its arguments; more than one where it is to be called once for each of several files."""
    share: float = 0.0
    """Probability that it is the one that serves."""
    spare: int = 0
    """Names, dates and the like that no argument takes; none in a question, which is about them."""
    unexplained: float = 0.0
    """Share of the request's telling words that neither the tool knows nor an argument takes, where one might."""
    named: float = 0.0
    """How many optional arguments the request has a word for, and the calls leave out; at most 3."""
    words: float = 0.0
    """Log of how many words the request has."""

    @property
    def missing(self) -> tuple[str, ...]:
        """What it needs and the request does not hold."""
        return next((one.missing for one in self.fillings if one.missing), ())

    def told(self, arguments: float, filled: int, left: int) -> Sureness:
        """Return what tells how probably a call of it is right.

        Args:
            arguments: Log probability of the arguments.
            filled: How many there are.
            left: How many values of the request none of them takes.
        """
        return Sureness(
            share=log_odds(self.share),
            arguments=arguments,
            practised=float(is_practised(self.spec)),
            filled=min(FILLED, filled) if self.spec.parameters else TYPICAL,
            left=min(MOST, left),
            spare=min(MOST, self.spare),
            unexplained=self.unexplained,
            named=self.named,
            words=self.words,
            there=float(any(self._leads(name, value) for one in self.fillings for name, value in one.params.items())),
        )

    def _leads(self, parameter: str, value: Any) -> bool:
        knows = self.spec.knows
        return knows is not None and isinstance(value, str) and knows(parameter, value) == 1

    @property
    def why(self) -> str:
        """What speaks for it, in words."""
        told = self.signals
        reasons = {
            "named outright": told.outright,
            "its name says what is asked": told.verb or told.named > 0.5,
            "it takes the path named": told.path,
            "it documents what is asked about": told.documents,
            "its description shares the request's words": told.known,
            "it reads as what is asked for": told.judged > 0,
        }
        return f"{self.spec.name}: {', '.join(why for why, holds in reasons.items() if holds) or 'it is the nearest'}"


def fits_of(text: str, catalogue: Catalogue, now: datetime, also: str = "") -> list[Fit]:
    """Return how the likeliest tools fit a part of a request, best first. Blocking.

    Args:
        text: The part.
        catalogue: What there is.
        now: What "tomorrow" is reckoned from.
        also: A tool that is looked at, however unlikely it is.
    """
    ranked = catalogue.ranking.rank(text, limit=CANDIDATES)
    hits = {hit.name: (place, hit) for place, hit in enumerate(ranked)}
    known = [name for name in dict.fromkeys([*hits, *_beside(text, catalogue), also]) if name in catalogue]
    asked, appends = is_question(text), _APPENDS.search(text) is not None
    names = [
        name for name in known
        if name == also
        or not (
            _replaced(name, catalogue)
            or (asked and _says_change(catalogue[name]))
            or (appends and _overwrites(catalogue[name]))
        )
    ]  # fmt: skip
    near = catalogue.ranking.nearness(text[:READ], names)
    outright = catalogue.named_in(text)
    seen = [
        Fit(spec, _seen(spec, text, hits.get(spec.name), near[spec.name], outright=spec.name in outright))
        for spec in map(catalogue.__getitem__, names)
    ]
    ordered = sorted(_shared(_judged(seen, text)), key=_first)
    far = FAR * ordered[0].share if ordered else 0.0
    first = [one for place, one in enumerate(ordered) if one.spec.name == also or (place < FILLED and one.share >= far)]
    return sorted(_known_read_first(_shared([_with_arguments(one, text, now) for one in first]), text), key=_first)


def _known_read_first(fits: Sequence[Fit], text: str) -> list[Fit]:
    """Return the fits with the shares of others that add nothing to a built-in tool's call given to that tool.

    Where a request to read is as people ask for a built-in tool, and the file is there, that tool is known to be a read
    and to return what was asked for, as text; of the others, whose arguments are the same, neither is known.
    """
    asked = [one for one in fits if one.signals.practised > 0 and not one.missing and _is_there(one)]
    own = max(asked, key=lambda one: one.share, default=None)
    if own is None or access_of(text) is not Access.READ or own.spec.risk is not Risk.READ:
        return [*fits]
    alike = [one for one in fits if one.spec.server != own.spec.server and values_of(one) <= values_of(own)]
    shares = {one.spec: 0.0 for one in alike} | {own.spec: own.share + sum(one.share for one in alike)}
    return [replace(one, share=shares.get(one.spec, one.share)) for one in fits]


def _is_there(fit: Fit) -> bool:
    """Whether the paths of a built-in tool's calls lead to something."""
    finds = fit.spec.finds
    return finds is None or all(finds(one.params) for one in fit.fillings)


def values_of(fit: Fit) -> set[str]:
    """Return the texts and numbers in a fit's arguments, without switches."""
    given = [leaf.value for one in fit.fillings for name, value in one.params.items() for leaf in leaves(value, name)]
    return {str(value) for value in given if not isinstance(value, bool)}


def _judged(fits: Sequence[Fit], text: str) -> list[Fit]:
    """Return the fits with what the judge says of each that it may bring to the front, or have none serve instead."""
    scores = {fit.spec: score(fit.signals) for fit in fits}
    least = max([0.0, *scores.values()]) - REACH
    within = [spec for spec, one in scores.items() if one >= least]
    odds = dict(zip(within, map(log_odds, judge(text, within)), strict=True))
    return [replace(fit, signals=fit.signals._replace(judged=odds.get(fit.spec, UNLIKELY))) for fit in fits]


def _says_change(spec: ToolSpec) -> bool:
    """Whether a tool's name says that it changes something: no question asks for that."""
    return access_of(" ".join(words_of(spec.upstream_name))) is Access.WRITE


def _overwrites(spec: ToolSpec) -> bool:
    """Whether a tool's name says that it writes a file, and not that it appends: what is there would be lost."""
    senses = senses_of(words_of(spec.upstream_name))
    return takes_path(spec) and "write" in senses and "append" not in senses


def _replaced(name: str, catalogue: Catalogue) -> bool:
    """Whether a tool says that it is deprecated, and names another that there is."""
    said = catalogue[name].full
    return "deprecated" in said.lower() and any(other != name for other in catalogue.named_in(said))


def needed(fits: Sequence[Fit]) -> float:
    """Return the probability that one of them serves."""
    return sum(fit.share for fit in fits)


def left_over(text: str, fillings: Sequence[Filling]) -> list[str]:
    """Return what a request names that must be a value, and no argument of any of the calls takes."""
    unused = [{span.text: None for span in one.unused if _is_value(span, text)} for one in fillings]
    return [said for said in unused[0] if all(said in one for one in unused)] if unused else []


def without_name(text: str, spec: ToolSpec) -> str:
    """Return the text without the name of the tool, which would read as a path."""
    return text.replace(spec.name, " ")


def _first(fit: Fit) -> tuple[float, str]:
    return -fit.share, fit.spec.name


def _shared(fits: Sequence[Fit]) -> list[Fit]:
    found = shares([fit.signals for fit in fits])
    return [replace(fit, share=share) for fit, share in zip(fits, found, strict=True)]


def _beside(text: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield tools to be looked at however they rank: those called by name, and for a file what takes one."""
    yield from catalogue.named_in(text)
    practise = {name: practised(text, spec) for name, spec in built_in(catalogue).items()}
    yield from sorted(practise, key=lambda name: -practise[name])[:PRACTISED]
    if mentions_in(text).paths:
        yield from [name for name in catalogue.samples if takes_path(catalogue[name])][:FILLED]


def _seen(spec: ToolSpec, text: str, ranked: tuple[int, Ranked] | None, near: float, *, outright: bool) -> Signals:
    """Return what is seen of a tool before it is judged and its arguments are looked for."""
    bare = without_name(text, spec)
    place, hit = ranked or (CANDIDATES, None)
    paths, asked = [one for one in mentions_in(bare).paths if "*" not in one], access_of(text)
    names_path = bool(paths) and not (_of_folders(spec) and all(map(_is_file, paths)))
    there = {word: sure for one in spec.parameters for word, sure in named_there(spec, one, read(bare)).items()}
    names_path = max(there.values(), default=0) > 0 or (names_path and any(there.get(one, 0) >= 0 for one in paths))
    verbs, senses, words = verbs_in(text), senses_of(verbs_in(text)), words_of(spec.upstream_name)
    verb = bool({*senses} & {*words, *senses_of(words)} or {*verbs} & {*words})
    terms = query_terms(bare)
    return Signals(
        near=near,
        known=len(hit.terms) / len(terms) if hit and terms else 0.0,
        named=min(1.0, len(hit.name_terms) / len(words)) if hit and words else 0.0,
        place=1 / (1 + place),
        verb=float(verb),
        outright=float(outright),
        path=float(names_path and takes_path(spec)),
        implied=float(names_path and asked is Access.READ and (not senses or "read" in senses) and "read" in words),
        documents=float(is_question(bare) and hit is not None and documents(spec, hit, bare)),
        answers=float(asks(bare) and takes_query(spec)),
        practised=practised(text, spec),
        below=float(asked is Access.WRITE and spec.looks is Risk.READ and not verb),
        otherwise=float(asked is not Access.READ and not verb),
        deprecated=float("deprecated" in spec.full.lower()),
        advice=float(asks_advice(bare) and not any(_is_told(one) for one in read(bare).mentions)),
    )


def _with_arguments(fit: Fit, text: str, now: datetime) -> Fit:
    """Return the fit with its arguments, and what they say of it."""
    fillings = fillings_of(fit.spec, text, now)
    signals = fit.signals._replace(
        lacking=min(MOST, max(len(one.missing) for one in fillings)),
        certain=min(map(certain, fillings)),
        left=min(MOST, len(left_over(text, fillings))),
    )
    spare = 0 if is_question(text) else max(len(one.unused) for one in fillings)
    return replace(
        fit,
        fillings=fillings,
        signals=signals,
        spare=spare,
        unexplained=_unexplained(fit.spec, text, fillings),
        named=min(MOST, _left_out(fit.spec, text, fillings)),
        words=math.log(1 + len(tokens_of(text))),
    )


def _left_out(spec: ToolSpec, text: str, fillings: Sequence[Filling]) -> int:
    """Return how many optional arguments the request has a word for, and none of the calls has."""
    said = frozenset().union(*read(without_name(text, spec)).stems)
    left = {*spec.parameters} - {name for one in fillings for name in one.params}
    return sum(bool(said & {sense_of(stem_of(word)) for word in words_of(name)} - _GENERAL) for name in left)


def _unexplained(spec: ToolSpec, text: str, fillings: Sequence[Filling]) -> float:
    filled = {name for filling in fillings for name in filling.params}
    if not any(_takes_words(schema) for name, schema in spec.parameters.items() if name not in filled):
        return 0.0
    bare, known = without_name(text, spec), _known(spec)
    taken = [(one.start, one.end) for filling in fillings for one in filling.arguments if one.state == "filled"]
    telling = [token for token in tokens_of(bare) if token.text.lower() not in EDGES | STOP_WORDS]
    named = {*senses_of(words_of(spec.upstream_name)), *words_of(spec.upstream_name)}
    strange = [
        token
        for token in telling
        if stem_of(token.text.lower()) not in known
        and not named & {*senses_of([token.text.lower()])}
        and not any(start <= token.start < end for start, end in taken)
    ]
    return len(strange) / max(1, len(telling))


def _takes_words(schema: Mapping[str, Any]) -> bool:
    return "enum" not in schema and schema.get("type", "string") in ("string", "array")


@lru_cache(maxsize=1_024)
def _known(spec: ToolSpec) -> frozenset[str]:
    """Return the stems of all that a tool says of itself."""
    said = [spec.name, spec.full, *spec.parameters, *(str(one.get("description")) for one in spec.parameters.values())]
    return frozenset(stem_of(word) for text in said for word in words_in(text))


@lru_cache(maxsize=256)
def fillings_of(spec: ToolSpec, text: str, now: datetime) -> tuple[Filling, ...]:
    """Return a tool's arguments for a part of a request, once for each file where several are named. Blocking.

    What a question asks is what a tool that searches looks for, unless its words say more surely what else.
    """
    bare = without_name(text, spec)
    found = fill_each(spec, bare, now=now)
    if asks(bare) and takes_query(spec):
        found = [filled_by(one, spec.required[0], telling(bare), TELLING) for one in found]
    return tuple(found)


def certain(filling: Filling) -> float:
    """Return the log probability of a filling's arguments, a mean where there are several."""
    return math.log(max(LEAST, filling.probability)) / max(1, len(filling.arguments))


def telling(text: str) -> str:
    """Return a request's words without those that ask."""
    return " ".join(token.text for token in tokens_of(text) if token.text.lower() not in EDGES)


def takes_query(spec: ToolSpec) -> bool:
    """Whether it looks like one that only reads, and all that it needs is what to look for."""
    return spec.looks is Risk.READ and len(spec.required) == 1 and is_query(spec, spec.required[0])


def is_query(spec: ToolSpec, parameter: str) -> bool:
    """Whether a parameter takes what is looked for."""
    return bool(QUERIES & {*words_of(parameter)}) and spec.parameters[parameter].get("type") == "string"


def _of_folders(spec: ToolSpec) -> bool:
    """Whether its name says that it is for folders, not for files."""
    words = {stem_of(word) for word in words_of(spec.upstream_name)}
    return bool(words & FOLDERS) and not words & FILES


def _is_file(path: str) -> bool:
    """Whether a path is a file's, by its suffix."""
    return bool(PurePath(path).suffix) and not path.endswith("/")


def _is_told(span: Span) -> bool:
    return span.kind in TOLD and span.text.lower() not in EDGES


def _is_value(span: Span, text: str) -> bool:
    """Whether a mention must be a value; a number in a question may be what is asked about."""
    return span.kind in _VALUES and (span.kind != "number" or (span.text[:1].isdigit() and not is_question(text)))


def sure_of(filling: Filling) -> dict[str, Any]:
    """Return the arguments that words such as "no, to b.txt" name, and that are likelier right than not."""
    sure = {one.path[0] for one in filling.arguments if one.state == "filled" and one.probability >= LIKELY}
    return {name: value for name, value in filling.params.items() if name in sure}
