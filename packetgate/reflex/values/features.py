"""Compute the numeric features of candidate values. No feature depends on a particular tool or parameter name."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.reflex.meaning.encoder import static_encoder
from packetgate.reflex.meaning.space import Trees
from packetgate.reflex.values.candidates import VALUE_WAYS, Candidate
from packetgate.reflex.values.mentions import EDGES, KINDS, TYPED, ParsedRequest, Span, unify_synonym
from packetgate.reflex.values.parameters import Parameter
from packetgate.reflex.weights import load_arrays
from packetgate.state.errors import WeightsError
from packetgate.tools.learned import DIGITS
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_of

FEATURES_VERSION = 3  # weights for another version of the features are refused

Matrix = NDArray[np.float32]
Indices = NDArray[np.int64]
FAR = 12  # largest distance in tokens
MAX_VECTOR_TOKENS = 400
ABOUT_CHARS = 200
TREES = Path(__file__).with_name("trees.npz")

_TYPES = ("string", "integer", "number", "boolean", "enum", "array", "object", "any")
_CUES = (
    "of in for from to with by at on about called named is as the a my and or using between into titled saying than"
    " per under over id number"
).split()
_AFTER = "of in for from to with and or by at on is that as the into".split()
_CLASSES = {
    name: frozenset(unify_synonym(stem_of(word)) for word in words.split())
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
    *(f"way:{way}" for way in VALUE_WAYS),
    "strength", "negated", "is default", "value in range", "example shape", "example word",
    "name left", "name right", "name inside", "name matched left", "about left", "about right", "about inside",
    "other left", "other right", "other inside", "nearest is own", "nearest right is own", "from", "to",
    "of kind", "order of kind", "order gap", "in tool name", "in tool text",
    "name near", "about near", "other near", "nearer than other", "name below best", "about below best",
]  # fmt: skip
_DISTANCE_NAMES = {"name left", "name right", "about left", "about right", "other left", "other right"}
_WITHOUT_SPAN = np.array([float(FAR) if name in _DISTANCE_NAMES else 0.0 for name in _PAIR_NAMES], dtype=np.float32)
FEATURE_NAMES = tuple(_SPAN_NAMES + _PARAMETER_NAMES + _PAIR_NAMES)
_PERCENT = frozenset({"percent", "percentag", "pct"})
_FROM = frozenset("from between von de desde".split())
_TO = frozenset("to into and until nach bis a à hasta as".split())


class _Distances(NamedTuple):
    """For each token, the distances to the nearest of some words, and their counts."""

    left: Matrix  # distance to the nearest word before the token
    right: Matrix  # distance to the nearest word after the token
    counted: Matrix  # number of these words before the token
    share: Matrix  # share of these words that are among the four tokens before the token

    def inside(self, first: Indices, last: Indices) -> Matrix:
        """Return the share of a span's tokens that are one of the words."""
        return np.asarray((self.counted[last] - self.counted[first]) / np.maximum(1, last - first), dtype=np.float32)


class FeatureContext:
    """The data about a request and a tool that the features of all candidates share."""

    def __init__(self, reading: ParsedRequest, spec: ToolSpec, parameters: Sequence[Parameter]) -> None:
        self.reading, self.parameters = reading, parameters
        self._span_rows = _span_rows_of(reading)
        self._tool_name = _distances(reading, frozenset(stem_of(word) for word in words_of(spec.upstream_name)))
        text = (stem_of(word) for word in words_of(spec.full[:1_000]) if word not in STOP_WORDS)
        self._tool_text = _distances(reading, frozenset(text))
        self._names = [_distances(reading, frozenset(one.words)) for one in parameters]
        self._about = [_distances(reading, one.about) for one in parameters]
        self._similarity = _Similarity(reading, parameters)
        self._places: dict[str, list[tuple[int, int]]] = {}
        for span in reading.mentions:
            self._places.setdefault(span.kind, []).append((span.first, span.last))

    def rows(self, index: int, candidates: Sequence[Candidate], total: int = 0) -> Matrix:
        """Return a row of features for each candidate of a parameter; columns: `FEATURE_NAMES`.

        Args:
            index: of the parameter.
            total: number of all candidates, if `candidates` are only some of them.
        """
        placed = [candidate for candidate in candidates if candidate.span is not None]
        spans = [candidate.span for candidate in placed if candidate.span is not None]
        rows = np.zeros((len(candidates), len(FEATURE_NAMES)), dtype=np.float32)
        bare, fixed, pair = len(candidates) - len(placed), len(_SPAN_NAMES), len(_SPAN_NAMES) + len(_PARAMETER_NAMES)
        rows[:, fixed:pair] = self._parameter_row(index, total or len(candidates))
        for at, candidate in enumerate(candidates):
            rows[at, pair + VALUE_WAYS.index(candidate.way)] = 1
        rows[:bare, pair:] += _WITHOUT_SPAN
        if spans:
            rows[bare:, :fixed] = [self._span_rows.row(span) for span in spans]
            rows[bare:, pair + len(VALUE_WAYS) :] = self._pair_rows(placed, spans, index)
        return rows

    def _parameter_row(self, index: int, count: int) -> list[float]:
        one, parameters = self.parameters[index], self.parameters
        same_type = [other for other in parameters if other.type == one.type]
        words, kin = {*one.words}, self._related_parameters(one)
        row = [
            *(one.type == kind for kind in _TYPES),
            *(bool(words & stems) for stems in _CLASSES.values()),
            one.required,
            "default" in one.schema,
            sum(not other.required for other in parameters),
            len(parameters),
            len(same_type),
            index,
            same_type.index(one),
            self._names[index].share.max(),
            min(count, 200),
            bool(one.time_format),
            max(map(len, one.words), default=0) <= 1,
            len(one.path),
            bool(one.examples),
            one.is_share,
            bool(_PERCENT & (words | one.about)),
            len(kin),
            kin.index(one),
        ]
        return [float(value) for value in row]

    def _related_parameters(self, one: Parameter) -> list[Parameter]:
        """Return the parameters of the same type that share a word or a class with this one."""
        mine, words = _classes_of(one), {*one.words}
        return [
            other
            for other in self.parameters
            if other is one or (other.type == one.type and (mine & _classes_of(other) or {*other.words} & words))
        ]

    def _pair_rows(self, candidates: Sequence[Candidate], spans: Sequence[Span], index: int) -> Matrix:
        parameter = self.parameters[index]
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
        same_kind = [self._places.get(span.kind, []) for span in spans]
        place = [
            places.index((span.first, span.last)) if (span.first, span.last) in places[:50] else -1
            for span, places in zip(spans, same_kind, strict=True)
        ]
        rank = self._related_parameters(parameter).index(parameter)
        shapes, words = _examples(parameter.examples)
        default = parameter.schema.get("default", parameter)
        names, abouts = self._similarity.near(first, last)
        near_name, near_about = names[:, index], abouts[:, index]
        near_other = np.delete(abouts, index, axis=1).max(axis=1) if len(self.parameters) > 1 else 0 * far
        return np.array(
            [
                [one.strength for one in candidates],
                [one.negated for one in candidates],
                [one.value == default for one in candidates],
                [isinstance(one.value, int | float) and 0 <= one.value <= 1 for one in candidates],
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
                [min(len(places), 20) for places in same_kind],
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


def _classes_of(one: Parameter) -> set[str]:
    return {name for name, stems in _CLASSES.items() if name not in {"from", "to"} and stems & {*one.words}}


class _SpanRows:
    def __init__(self, reading: ParsedRequest) -> None:
        self._reading = reading
        self._typed = [span for span in reading.mentions if span.kind in TYPED]
        self._names = [span for span in reading.mentions if span.kind == "name"]
        self._rows: dict[tuple[int, int], list[float]] = {}

    def row(self, span: Span) -> list[float]:
        """Return the features of a span."""
        key = (span.first, span.last)
        if key not in self._rows:
            self._rows[key] = self._row(span)
        return self._rows[key]

    def _row(self, span: Span) -> list[float]:
        reading, first, last = self._reading, span.first, span.last
        tokens, words = reading.tokens, reading.words
        count = len(tokens)
        inside = tokens[first:last][:60]
        before = words[first - 1] if first else ""
        after = words[last] if last < count else ""
        gap_before, gap_after = tokens[first].before, tokens[last].before if last < count else "."
        overlapping = [one for one in self._typed if one.overlaps(span)]
        row = [
            *(kind == span.kind for kind in KINDS),
            *(cue == before for cue in _CUES),
            *(word == after for word in _AFTER),
            last - first,
            min(len(span.text), 200),
            span.text[:1].isupper(),
            sum(token.text[:1].isupper() for token in inside) / len(inside),
            reading.breaks[first],
            first == 0,
            reading.breaks[last],
            last == count,
            before in EDGES,
            after in EDGES,
            "," in gap_before,
            "," in gap_after,
            ":" in gap_before,
            sum("," in token.before for token in inside[1:]),
            sum(word in EDGES for word in words[first:last][:60]),
            "and" in words[first:last],
            any(character.isdigit() for character in span.text[:60]),
            _cuts(span, overlapping),
            _cuts(span, self._names),
            sum(first <= one.first and one.last <= last for one in overlapping),
            first / count,
            first == 0 or (first == 1 and words[0] == "please"),
            bool(gap_after == "" and after and after not in EDGES),
            self._typed.index(span) if span.kind in TYPED and span in self._typed[:50] else -1,
            first > 0 and tokens[first - 1].kind == "number",
            min(count, 100),
        ]
        return [float(value) for value in row]


@lru_cache(maxsize=64)
def _span_rows_of(reading: ParsedRequest) -> _SpanRows:
    return _SpanRows(reading)


def _distances(reading: ParsedRequest, words: frozenset[str]) -> _Distances:
    """Return the distances to words within the same sentence."""
    count = len(reading.tokens)
    matches = [not words.isdisjoint(stems) for stems in reading.stems]
    left, right = [FAR] * (count + 1), [FAR] * (count + 1)
    share, counted = [0.0] * (count + 1), [0] * (count + 1)
    for at in range(1, count + 1):
        begins_sentence = at < count and reading.sentences[at]
        nearest = 1 if matches[at - 1] else left[at - 1] + 1
        left[at] = FAR if begins_sentence else min(nearest, FAR)
        counted[at] = counted[at - 1] + matches[at - 1]
        if words and any(matches[max(0, at - 4) : at]):
            near = frozenset().union(*reading.stems[max(0, at - 4) : at])
            share[at] = len(words & near) / len(words)
    for at in range(count - 1, -1, -1):
        right[at] = FAR if reading.sentences[at] else 1 if matches[at] else min(right[at + 1] + 1, FAR)
    return _Distances(*(np.array(one, dtype=np.float32) for one in (left, right, counted, share)))


def _cuts(span: Span, others: Sequence[Span]) -> bool:
    return any(one.overlaps(span) and (span.first > one.first or span.last < one.last) for one in others)


@lru_cache(maxsize=5_000)
def _examples(examples: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(map(_shape, examples)), frozenset(one.casefold() for one in examples)


@lru_cache(maxsize=50_000)
def _shape(text: str) -> str:
    """Return the shape of a text: `A` for capitals, `a` for small letters, `0` for digits; empty for a long text."""
    if len(text) > 60:
        return ""
    for pattern, mark in zip(_SHAPE, ("A", "a", "0"), strict=True):
        text = pattern.sub(mark, text)
    return text


@cache
def load_filling_trees() -> Trees:
    """Return the shipped trees. Raise WeightsError if the file is missing or broken, or has other features."""
    arrays = load_arrays(TREES)
    if arrays["version"] != FEATURES_VERSION or tuple(arrays["features"]) != FEATURE_NAMES:
        raise WeightsError(f"{TREES}: these weights are for another version of Packetgate; reinstall Packetgate")
    return Trees.from_arrays(arrays, "values")


class _Similarity:
    def __init__(self, reading: ParsedRequest, parameters: Sequence[Parameter]) -> None:
        words = _vectors(tuple(token.text.lower() for token in reading.tokens[:MAX_VECTOR_TOKENS]))
        padded = np.zeros((len(reading.tokens) + 1, words.shape[1]), np.float32)
        padded[1 : len(words) + 1] = words
        self._sums = np.cumsum(padded, axis=0)
        names = [" ".join(words_of(one.name)) for one in parameters]
        abouts = [str(one.schema.get("description") or "")[:ABOUT_CHARS] for one in parameters]
        self._names = _vectors(tuple(names))
        self._about = _vectors(tuple(f"{name} {about}" for name, about in zip(names, abouts, strict=True)))

    def near(self, first: Indices, last: Indices) -> tuple[Matrix, Matrix]:
        """Return the cosines of spans (rows) with parameters' names, and with their descriptions (columns)."""
        rows = self._sums[last] - self._sums[first]
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        names, about = rows @ self._names.T, rows @ self._about.T
        return np.asarray(names.round(DIGITS), np.float32), np.asarray(about.round(DIGITS), np.float32)


@lru_cache(maxsize=2_000)
def _vectors(texts: tuple[str, ...]) -> Matrix:
    return static_encoder().vectors(texts)
