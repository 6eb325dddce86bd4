"""What speaks for a candidate as the value of a parameter, in numbers that know no tool and no word by name."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.deciders.values.candidates import WAYS, Candidate
from packetgate.deciders.values.mentions import EDGES, KINDS, TYPED, Reading, Span, sense_of
from packetgate.deciders.values.schema import Parameter
from packetgate.state.errors import WeightsError
from packetgate.tools.learned import DIGITS, arrays_of
from packetgate.tools.ranking.encoder import static_encoder
from packetgate.tools.ranking.trees import Trees
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_of

VERSION = 3
"""Of what the features mean: a model of another version is of no use."""

Matrix = NDArray[np.float32]
Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
FAR = 12
"""Tokens beyond which a word does not count as near."""

_TYPES = ("string", "integer", "number", "boolean", "enum", "array", "object", "any")
_CUES = (
    "of in for from to with by at on about called named is as the a my and or using between into titled saying than"
    " per under over id number"
).split()
_AFTER = "of in for from to with and or by at on is that as the into".split()
_CLASSES = {
    name: frozenset(sense_of(stem_of(word)) for word in words.split())
    for name, words in {
        "path": "path file filename filepath dir directory folder root document",
        "address": "url uri link href website webpage endpoint domain",
        "email": "email mail recipient sender cc bcc",
        "date": "date day deadline birthday dob checkin checkout departure arrival due datetime",
        "time": "time hour clock start end when period duration",
        "identifier": "id identifier uuid key code token number isbn sku ref reference ticket username account hash",
        "name": "name title label first last author artist person user player company",
        "place": "location city country place region address state area destination origin town zip venue",
        "count": "count limit top k n num number max min size amount quantity total page rows results lines head tail",
        "query": "query q search pattern keyword term question topic prompt expression regex",
        "content": "content text body data message value note description comment summary caption",
        "command": "command cmd argv args script code sql statement",
        "money": "price cost amount budget salary fee balance payment revenue principal investment",
        "measure": "length width height weight mass distance speed temperature area volume radius angle velocity",
        "share": "rate ratio share probability fraction percent percentage",
        "language": "language lang locale currency unit format type mode style category kind genre",
        "from": "source src from origin start old begin initial first input sender since departure lower",
        "to": "destination dest target to end new final until output recipient receiver arrival upper second",
    }.items()
}
_SHAPE = (re.compile(r"[A-Z]+"), re.compile(r"[a-zß-ÿ]+"), re.compile(r"\d+"))

_SPAN_NAMES = [
    *(f"kind:{kind}" for kind in KINDS),
    *(f"before:{word}" for word in _CUES),
    *(f"after:{word}" for word in _AFTER),
    "tokens", "chars", "capital first", "capitals share", "begins sentence", "begins request", "ends sentence",
    "ends request", "after edge", "before edge", "after comma", "before comma", "after colon", "commas", "edges",
    "joins", "digits", "cuts typed", "cuts name", "holds typed", "position", "verb first", "word follows",
    "order of typed", "after number", "length of request",
]  # fmt: skip
_PARAMETER_NAMES = [
    *(f"type:{kind}" for kind in _TYPES),
    *(f"class:{name}" for name in _CLASSES),
    "required", "default", "optional others", "parameters", "same type", "order", "order of type",
    "name in request", "candidates", "has time format", "short name", "depth", "has examples", "share", "in percent",
    "kin", "order of kin",
]  # fmt: skip
_PAIR_NAMES = [
    *(f"way:{way}" for way in WAYS),
    "strength", "negated", "is default", "value in range", "example shape", "example word",
    "name left", "name right", "name inside", "name matched left", "about left", "about right", "about inside",
    "other left", "other right", "other inside", "nearest is own", "nearest right is own", "from", "to",
    "of kind", "order of kind", "order gap", "in tool name", "in tool text",
    "name near", "about near", "other near", "nearer than other", "name below best", "about below best",
]  # fmt: skip
NAMES = tuple(_SPAN_NAMES + _PARAMETER_NAMES + _PAIR_NAMES)
_FROM = frozenset("from between von de desde".split())
_TO = frozenset("to into and until nach bis a à hasta as".split())


class _Near(NamedTuple):
    """For each token, how far a parameter's words stand to its left and to its right."""

    left: Matrix
    right: Matrix
    held: Matrix
    """How many tokens before hold one of them."""
    share: Matrix
    """Of its words, those in the four tokens to the left."""

    def inside(self, first: Indices, last: Indices) -> Matrix:
        """Return the share of tokens that hold one of its words."""
        return np.asarray((self.held[last] - self.held[first]) / np.maximum(1, last - first), dtype=np.float32)


class Scene:
    """A request beside a tool: what is computed once for all candidates of all parameters."""

    def __init__(self, reading: Reading, spec: ToolSpec, parameters: Sequence[Parameter]) -> None:
        self.reading, self.parameters = reading, parameters
        self._seen = _seen_of(reading)
        self._tool_name = _near(reading, frozenset(stem_of(word) for word in words_of(spec.upstream_name)))
        said = (stem_of(word) for word in words_of(spec.full[:1_000]) if word not in STOP_WORDS)
        self._tool_text = _near(reading, frozenset(said))
        self._names = [_near(reading, frozenset(one.words)) for one in parameters]
        self._about = [_near(reading, one.about) for one in parameters]
        self._meaning = Meaning(reading, parameters)
        self._places: dict[str, list[tuple[int, int]]] = {}
        for span in reading.mentions:
            self._places.setdefault(span.kind, []).append((span.first, span.last))

    def rows(self, index: int, found: Sequence[Candidate], of: int = 0) -> Matrix:
        """Return the features of each candidate of a parameter, as `NAMES` has them; those without a span first.

        Args:
            index: The parameter's.
            found: Its candidates.
            of: How many there were before some were left out.
        """
        parameter = self.parameters[index]
        placed = [one for one in found if one.span is not None]
        spans = [one.span for one in placed if one.span is not None]
        rows = np.zeros((len(found), len(NAMES)), dtype=np.float32)
        bare, fixed, pair = len(found) - len(placed), len(_SPAN_NAMES), len(_SPAN_NAMES) + len(_PARAMETER_NAMES)
        rows[:, fixed:pair] = self._of_parameter(index, of or len(found))
        for at, one in enumerate(found):
            rows[at, pair + _WAY_AT[one.way]] = 1
        rows[:bare, pair:] += _UNPLACED
        if spans:
            rows[bare:, :fixed] = [self._seen.row(span) for span in spans]
            rows[bare:, pair + len(WAYS) :] = self._of_pairs(placed, spans, parameter, index)
        return rows

    def _of_parameter(self, index: int, count: int) -> list[float]:
        one, all_of_them = self.parameters[index], self.parameters
        alike = [other for other in all_of_them if other.type == one.type]
        words, kin = {*one.words}, self._kin(one)
        return [
            *(float(one.type == kind) for kind in _TYPES),
            *(float(bool(words & stems)) for stems in _CLASSES.values()),
            float(one.required),
            float("default" in one.schema),
            float(sum(not other.required for other in all_of_them)),
            float(len(all_of_them)),
            float(len(alike)),
            float(index),
            float(alike.index(one)),
            float(self._names[index].share.max()),
            float(min(count, 200)),
            float(bool(one.time_format)),
            float(max(map(len, one.words), default=0) <= 1),
            float(len(one.path)),
            float(bool(one.examples)),
            float(one.is_share),
            float(bool(_PERCENT & (words | one.about))),
            float(len(kin)),
            float(kin.index(one)),
        ]

    def _kin(self, one: Parameter) -> list[Parameter]:
        """Return the parameters that take the same kind of thing: of its type, and sharing a word or a class."""
        mine = _classes_of(one)
        return [
            other
            for other in self.parameters
            if other is one or (other.type == one.type and (mine & _classes_of(other) or {*other.words} & {*one.words}))
        ]

    def _of_pairs(self, found: Sequence[Candidate], spans: Sequence[Span], parameter: Parameter, index: int) -> Matrix:
        first = np.array([span.first for span in spans])
        last = np.array([span.last for span in spans])
        own, about = self._names[index], self._about[index]
        others = [near for at, near in enumerate(self._names) if at != index]
        far = np.full(len(spans), FAR, dtype=np.float32)
        left, right = own.left[first], own.right[last]
        other_left = np.min([near.left[first] for near in others], axis=0) if others else far
        other_right = np.min([near.right[last] for near in others], axis=0) if others else far
        other_inside = np.max([near.inside(first, last) for near in others], axis=0) if others else 0 * far
        before = ["", *self.reading.words]
        places = [self._places.get(span.kind, []) for span in spans]
        place = [
            alike.index((span.first, span.last)) if (span.first, span.last) in alike[:50] else -1
            for span, alike in zip(spans, places, strict=True)
        ]
        rank = self._kin(parameter).index(parameter)
        shapes, words = _examples(parameter.examples)
        default = parameter.schema.get("default", parameter)
        names, abouts = self._meaning.near(first, last)
        near_name, near_about = names[:, index], abouts[:, index]
        near_other = np.delete(abouts, index, axis=1).max(axis=1) if len(self.parameters) > 1 else 0 * far
        return np.array(
            [
                [one.strength for one in found],
                [one.negated for one in found],
                [one.value == default for one in found],
                [isinstance(one.value, int | float) and 0 <= one.value <= 1 for one in found],
                [bool(shapes) and _shape(span.text) in shapes for span in spans],
                [bool(words) and span.text.casefold() in words for span in spans],
                left,
                right,
                own.inside(first, last),
                own.share[first],
                about.left[first],
                about.right[last],
                about.inside(first, last),
                other_left,
                other_right,
                other_inside,
                np.sign(other_left - left),
                np.sign(other_right - right),
                [before[span.first] in _FROM for span in spans],
                [before[span.first] in _TO for span in spans],
                [min(len(alike), 20) for alike in places],
                place,
                [abs(at - rank) if at >= 0 else 9 for at in place],
                self._tool_name.inside(first, last),
                self._tool_text.inside(first, last),
                near_name,
                near_about,
                near_other,
                near_about - near_other,
                near_name - near_name.max(),
                near_about - near_about.max(),
            ],
            dtype=np.float32,
        ).T


_PERCENT = frozenset({"percent", "percentag", "pct"})


def _classes_of(one: Parameter) -> set[str]:
    return {name for name, stems in _CLASSES.items() if name not in {"from", "to"} and stems & {*one.words}}


_WAY_AT = {way: at for at, way in enumerate(WAYS)}
_DISTANCES = {"name left", "name right", "about left", "about right", "other left", "other right"}
_UNPLACED = np.array([float(FAR) if name in _DISTANCES else 0.0 for name in _PAIR_NAMES], dtype=np.float32)


class _Seen:
    """What is seen of the spans of a request, whatever the tool."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._typed = [span for span in reading.mentions if span.kind in TYPED]
        self._proper = [span for span in reading.mentions if span.kind == "name"]
        self._rows: dict[tuple[int, int], list[float]] = {}

    def row(self, span: Span) -> list[float]:
        """Return what is seen of a span."""
        key = (span.first, span.last)
        if key not in self._rows:
            self._rows[key] = self._see(span)
        return self._rows[key]

    def _see(self, span: Span) -> list[float]:
        reading, first, last = self._reading, span.first, span.last
        tokens, words = reading.tokens, reading.words
        count = len(tokens)
        inside = tokens[first:last][:60]
        before = words[first - 1] if first else ""
        after = words[last] if last < count else ""
        gap_before, gap_after = tokens[first].before, tokens[last].before if last < count else "."
        overlapping = [one for one in self._typed if one.first < last and first < one.last]
        within = sum(first <= one.first and one.last <= last for one in overlapping)
        kinds, befores, afters = [0.0] * len(KINDS), [0.0] * len(_CUES), [0.0] * len(_AFTER)
        kinds[_KIND_AT[span.kind]] = 1.0
        if before in _CUE_AT:
            befores[_CUE_AT[before]] = 1.0
        if after in _AFTER_AT:
            afters[_AFTER_AT[after]] = 1.0
        return [
            *kinds,
            *befores,
            *afters,
            float(last - first),
            float(min(len(span.text), 200)),
            float(span.text[:1].isupper()),
            sum(token.text[:1].isupper() for token in inside) / len(inside),
            float(reading.breaks[first]),
            float(first == 0),
            float(reading.breaks[last]),
            float(last == count),
            float(before in EDGES),
            float(after in EDGES),
            float("," in gap_before),
            float("," in gap_after),
            float(":" in gap_before),
            float(sum("," in token.before for token in inside[1:])),
            float(sum(word in EDGES for word in words[first:last][:60])),
            float("and" in words[first:last]),
            float(any(character.isdigit() for character in span.text[:60])),
            float(_cuts(span, overlapping)),
            float(_cuts(span, self._proper)),
            float(within),
            first / count,
            float(first == 0 or (first == 1 and words[0] == "please")),
            float(bool(gap_after == "" and after and after not in EDGES)),
            float(self._typed.index(span)) if span.kind in TYPED and span in self._typed[:50] else -1.0,
            float(first > 0 and tokens[first - 1].kind == "number"),
            float(min(count, 100)),
        ]


_KIND_AT = {kind: at for at, kind in enumerate(KINDS)}
_CUE_AT = {word: at for at, word in enumerate(_CUES)}
_AFTER_AT = {word: at for at, word in enumerate(_AFTER)}


@lru_cache(maxsize=64)
def _seen_of(reading: Reading) -> _Seen:
    return _Seen(reading)


def _near(reading: Reading, words: frozenset[str]) -> _Near:
    """Return the distances to a parameter's words, within the same sentence."""
    count = len(reading.tokens)
    holds = [not words.isdisjoint(stems) for stems in reading.stems]
    left, right = [FAR] * (count + 1), [FAR] * (count + 1)
    share, held = [0.0] * (count + 1), [0] * (count + 1)
    for at in range(1, count + 1):
        apart = at < count and reading.sentences[at]
        nearest = 1 if holds[at - 1] else left[at - 1] + 1
        left[at] = FAR if apart else min(nearest, FAR)
        held[at] = held[at - 1] + holds[at - 1]
        if words and any(holds[max(0, at - 4) : at]):
            near = frozenset().union(*reading.stems[max(0, at - 4) : at])
            share[at] = len(words & near) / len(words)
    for at in range(count - 1, -1, -1):
        right[at] = FAR if reading.sentences[at] else 1 if holds[at] else min(right[at + 1] + 1, FAR)
    return _Near(*(np.array(one, dtype=np.float32) for one in (left, right, held, share)))


def _cuts(span: Span, whole: Sequence[Span]) -> bool:
    """Whether a span takes a part of one of those and leaves another."""
    return any(
        one.first < span.last and span.first < one.last and (span.first > one.first or span.last < one.last)
        for one in whole
    )


@lru_cache(maxsize=5_000)
def _examples(given: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(map(_shape, given)), frozenset(one.casefold() for one in given)


@lru_cache(maxsize=50_000)
def _shape(text: str) -> str:
    """Return how a text is built: `Aa` for a capitalised word, `0` for digits."""
    if len(text) > 60:
        return ""
    for pattern, mark in zip(_SHAPE, ("A", "a", "0"), strict=True):
        text = pattern.sub(mark, text)
    return text


TREES = Path(__file__).with_name("trees.npz")


@cache
def model() -> Trees:
    """Return the trees that are shipped.

    Raises:
        WeightsError: their file is missing or broken, or of other features than this version sees.
    """
    arrays = arrays_of(TREES)
    if arrays["version"] != VERSION or tuple(arrays["features"]) != NAMES:
        raise WeightsError(f"{TREES}: these weights are of other features than these; train them anew")
    return Trees.from_arrays(arrays, "values")


MOST_TOKENS = 400
"""Of a request; later ones are near to nothing."""
ABOUT_CHARS = 200


class Meaning:
    """The vectors of a request's words, beside those of a tool's parameters."""

    def __init__(self, reading: Reading, parameters: Sequence[Parameter]) -> None:
        words = _vectors(tuple(token.text.lower() for token in reading.tokens[:MOST_TOKENS]))
        padded = np.zeros((len(reading.tokens) + 1, words.shape[1]), np.float32)
        padded[1 : len(words) + 1] = words
        self._sums = np.cumsum(padded, axis=0)
        self._names = _vectors(tuple(" ".join(words_of(one.name)) for one in parameters))
        self._about = _vectors(tuple(_told(one) for one in parameters))

    def near(self, first: Indices, last: Indices) -> tuple[Floats, Floats]:
        """Return how near stretches of tokens are to each parameter's name, and to all that is said of it.

        Both have a row a stretch and a column a parameter: cosines, rounded.
        """
        rows = self._sums[last] - self._sums[first]
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        names, about = rows @ self._names.T, rows @ self._about.T
        return np.asarray(names.round(DIGITS), np.float32), np.asarray(about.round(DIGITS), np.float32)


def _told(one: Parameter) -> str:
    return f"{' '.join(words_of(one.name))} {str(one.schema.get('description') or '')[:ABOUT_CHARS]}"


@lru_cache(maxsize=2_000)
def _vectors(texts: tuple[str, ...]) -> Floats:
    return static_encoder().vectors(texts)
