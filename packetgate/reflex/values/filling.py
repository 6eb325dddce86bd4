"""Read a tool's arguments from a request, with their probabilities and the unused mentions."""

from collections.abc import Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.gate.replies import POLITE_WORDS, tokens_of
from packetgate.reflex.values.candidates import NO_VALUE, Candidate, candidates, key_values
from packetgate.reflex.values.features import FeatureContext, load_filling_trees
from packetgate.reflex.values.mentions import EDGES, ParsedRequest, Span, parse_request
from packetgate.reflex.values.parameters import Parameter, convert, parameters_of, set_value
from packetgate.state.origins import ArgumentRole
from packetgate.tools.learned import DIGITS
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.roles import role_of
from packetgate.tools.text.words import query_terms, stem_of, words_of

PURPOSEFUL = frozenset("quoted code url email path number date time duration identifier name".split())
"""Kinds of mentions that usually are arguments: if a call does not use such a mention, the call is doubtful."""
LIKELY = 0.5  # probability from which an argument is more likely right than wrong
_VALUES = frozenset("quoted code url email path".split())  # kinds of mentions that are values, not words of a sentence
_BARE = _VALUES | {"number", "date", "time", "duration"}
_PATHS = frozenset(
    stem_of(word) for word in "path file filename filepath dir directory folder root source destination uri".split()
)
"""Stems of parameter names that take a path."""
PATH_WORDS = frozenset(stem_of(word) for word in "file folder directory dir path".split())
_PATH_BONUS, _EXISTS_BONUS = 2.0, 3.0
"""Added log odds: of a path for a path parameter, and of a path that exists."""
_MAX_PATH_CHECKS = 4  # likeliest optional paths whose existence is checked
_MIN_OTHER = 1e-3  # lowest probability of another value that is reported

MAX_COMBINED = 6  # candidates of each parameter that are combined with the candidates of other parameters
_BEAM = 48  # combinations that the beam search keeps
_OVERLAP_COST = 6.0  # log odds: two parameters use the same words
_SKIP_COST = 2.5  # log odds: a required parameter has no value, and a later one of the same type has a value


@dataclass(frozen=True)
class Argument:
    """The value of one parameter."""

    path: tuple[str, ...]  # names from the outside in
    state: Literal["filled", "missing", "default"]
    """`missing`: required, and not in the request. `default`: optional, and not in the request."""
    probability: float  # that state and value are right
    value: Any = None
    text: str = ""  # the words that the value was read from
    start: int = 0  # offset of these words
    end: int = 0
    others: tuple[tuple[Any, float], ...] = field(default=(), repr=False)
    """Other values with their probabilities; None means no value."""

    def probability_of(self, value: Any) -> float | None:
        """Return the probability of a value (None means no value); None if the value was not a candidate."""
        pairs = ((self.value, self.probability), *self.others)
        return next((sure for other, sure in pairs if other == value and type(other) is type(value)), None)


@dataclass(frozen=True)
class Filling:
    """The arguments of a tool, read from a request."""

    params: dict[str, Any]
    arguments: tuple[Argument, ...]
    missing: tuple[str, ...]  # required parameters without a value
    unused: tuple[Span, ...]  # mentions that no argument used

    @property
    def probability(self) -> float:
        """The probability that all arguments are right, if they are independent."""
        return float(np.prod([one.probability for one in self.arguments])) if self.arguments else 1.0

    def likely_params(self) -> dict[str, Any]:
        """Return the arguments that are more likely right than wrong."""
        likely = {one.path[0] for one in self.arguments if one.state == "filled" and one.probability >= LIKELY}
        return {name: value for name, value in self.params.items() if name in likely}


class _Ranked(NamedTuple):
    parameter: Parameter
    options: Sequence[Candidate]
    probabilities: NDArray[np.float64]


def fill_parameters(spec: ToolSpec, text: str, *, now: datetime | None = None) -> Filling:
    """Return a tool's arguments, read from a request. Without `now`, relative dates remain as written."""
    parameters, reading = parameters_of(spec), parse_request(text)
    pairs_by_key = key_values(text) if "=" in text else {}
    features, mistaken = FeatureContext(reading, spec, parameters), _mistaken_paths(reading, parameters, spec)
    ranked = []
    for index, parameter in enumerate(parameters):
        value = convert(pairs_by_key[parameter.name], parameter, now) if parameter.name in pairs_by_key else None
        if value is not None:
            span = next((one for one in reading.spans if one.text.strip("\"'") == pairs_by_key[parameter.name]), None)
            ranked.append(_Ranked(parameter, [NO_VALUE, Candidate(value, "keyed", span)], np.array([0.01, 0.99])))
            continue
        options = candidates(reading, parameter, now)
        scores = load_filling_trees().scores(features.rows(index, options)).round(DIGITS).astype(np.float64)
        if takes_path(spec):
            is_path = bool({*parameter.words} & _PATHS)
            scores = scores + _path_scores(options, mistaken, is_path=is_path)
            named = existing_names(spec, parameter.name, reading)
            scores = scores + _existence_scores(options, parameter, spec, named, scores)
        ranked.append(_Ranked(parameter, options, softmax(scores)))
    chosen = _assign(ranked)
    params: dict[str, Any] = {}
    for one, (candidate, _) in zip(ranked, chosen, strict=True):
        if candidate is not NO_VALUE:
            set_value(params, one.parameter.path, candidate.value)
    return Filling(
        params=params,
        arguments=tuple(_argument(one, *choice) for one, choice in zip(ranked, chosen, strict=True)),
        missing=tuple(name for name in spec.required if name not in params),
        unused=_unused_mentions(reading, [one.span for one, _ in chosen if one.span is not None], spec),
    )


def _path_scores(options: Sequence[Candidate], mistaken: frozenset[str], *, is_path: bool) -> NDArray[np.float64]:
    spans = [one.span for one in options]
    lost = np.array([span is not None and span.text in mistaken for span in spans])
    files = np.array([span is not None and span.kind == "path" for span in spans]) & ~lost
    words = np.array([span is not None and _is_path_word(span.text) for span in spans]) | lost
    scores: NDArray[np.float64] = files * (_PATH_BONUS if is_path else -_PATH_BONUS) - words * (_PATH_BONUS * is_path)
    return scores


def _mistaken_paths(reading: ParsedRequest, parameters: Sequence[Parameter], spec: ToolSpec) -> frozenset[str]:
    """Return mentions that look like paths but are not: patterns, and missing files if the tool's path is optional."""
    exists, paths = spec.paths_exist, [one for one in parameters if {*one.words} & _PATHS and len(one.path) == 1]
    mentioned = {span.text for span in reading.mentions if span.kind == "path"}
    lost = {text for text in mentioned if "*" in text}
    if exists and paths and not any(one.required for one in paths):
        lost |= {text for text in mentioned if not any(exists({one.name: text}) for one in paths)}
    return frozenset(lost)


def existing_names(spec: ToolSpec, parameter: str, reading: ParsedRequest) -> dict[str, float]:
    """Return the words of a request that name existing files, each with its certainty. Blocking.

    Only built-in tools know files; for other tools, the result is empty.
    """
    if spec.path_certainty is None:
        return {}
    words = {token.text for token in reading.tokens if token.text.lower() not in EDGES}
    named = sorted(word for word in words if not _is_path_word(word))
    return {word: certainty for word in named if (certainty := spec.path_certainty(parameter, word))}


def _existence_scores(
    options: Sequence[Candidate],
    parameter: Parameter,
    spec: ToolSpec,
    named: Mapping[str, float],
    scores: NDArray[np.float64],
) -> NDArray[np.float64]:
    added = np.array([_EXISTS_BONUS * named.get(str(one.value), 0.0) for one in options])
    exists = None if parameter.required or len(parameter.path) > 1 else spec.paths_exist
    for _ in range(_MAX_PATH_CHECKS if exists else 0):
        best = int((scores + added).argmax())
        value = options[best].value
        if added[best] or not isinstance(value, str) or not exists or exists({parameter.name: value}):
            break
        added[best] = -_EXISTS_BONUS
    return added


def _is_path_word(text: str) -> bool:
    return stem_of(text.lower()) in PATH_WORDS


def _argument(ranked: _Ranked, candidate: Candidate, probability: float) -> Argument:
    parameter, span = ranked.parameter, candidate.span
    pairs = zip(ranked.options, ranked.probabilities.tolist(), strict=True)
    others = tuple((one.value, sure) for one, sure in pairs if sure >= _MIN_OTHER and one is not candidate)
    if candidate is NO_VALUE:
        return Argument(parameter.path, "missing" if parameter.required else "default", probability, others=others)
    place = (span.text, span.start, span.end) if span else ("", 0, 0)
    return Argument(parameter.path, "filled", probability, candidate.value, *place, others)


def _unused_mentions(reading: ParsedRequest, used: Sequence[Span], spec: ToolSpec) -> tuple[Span, ...]:
    names = {spec.name.casefold(), spec.upstream_name.casefold(), spec.server.casefold()}
    unused: list[Span] = []
    for span in reading.mentions:
        taken = any(one.overlaps(span) for one in [*used, *unused])
        if span.kind in PURPOSEFUL and not taken and span.text.casefold() not in names:
            unused.append(span)
    return tuple(unused)


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of alternatives by their scores."""
    exponents = np.exp(scores - scores.max())
    return np.asarray(exponents / exponents.sum(), dtype=np.float64)


def _assign(ranked: Sequence[_Ranked]) -> list[tuple[Candidate, float]]:
    """Return (candidate, probability) for each parameter in the likeliest combination, found by beam search."""
    order = sorted(range(len(ranked)), key=lambda at: -float(ranked[at].probabilities.max()))
    beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for depth, at in enumerate(order):
        best = np.argsort(-ranked[at].probabilities, kind="stable")[:MAX_COMBINED]
        if 0 not in best:
            best = np.append(best, 0)
        grown = [
            (
                score
                + float(np.log(ranked[at].probabilities[one] + 1e-9))
                - _conflict_cost(ranked, order[:depth], taken, ranked[at].parameter, ranked[at].options[one]),
                (*taken, int(one)),
            )
            for score, taken in beam
            for one in best
        ]
        beam = sorted(grown, key=lambda state: -round(state[0], DIGITS))[:_BEAM]
    ways = [taken for _, taken in beam]
    shares = softmax(np.array([score for score, _ in beam]))
    chosen = ways[int(shares.round(DIGITS).argmax())]
    assigned = {}
    for place, at in enumerate(order):
        share = float(sum(share for way, share in zip(ways, shares, strict=True) if way[place] == chosen[place]))
        assigned[at] = (ranked[at].options[chosen[place]], min(1.0, round(share, DIGITS)))
    return [assigned[at] for at in range(len(ranked))]


def _conflict_cost(
    ranked: Sequence[_Ranked], before: Sequence[int], taken: Sequence[int], parameter: Parameter, new: Candidate
) -> float:
    cost = 0.0
    for at, index in zip(before, taken, strict=True):
        earlier, old = ranked[at].parameter, ranked[at].options[index]
        if old.span is None or new.span is None:
            cost += _SKIP_COST * _skips_required(earlier, parameter, old, new)
        elif old.way == new.way == "part" and old.value != new.value:
            continue
        elif old.span.overlaps(new.span):  # a cue of a choice may be part of a value
            cost += _OVERLAP_COST / 6 if {old.way, new.way} & {"yes", "no", "choice", "hinted"} else _OVERLAP_COST
    return cost


def _skips_required(one: Parameter, other: Parameter, old: Candidate, new: Candidate) -> bool:
    if one.type != other.type or not (one.required and other.required):
        return False
    first, second = (old, new) if one.order < other.order else (new, old)
    return first.way == "none" and second.way != "none"


def fill_per_path(spec: ToolSpec, text: str, *, now: datetime | None = None) -> list[Filling]:
    """Return one filling, or one for each path if the request names several and the tool takes one at a time."""
    filling = fill_parameters(spec, text, now=now)
    paths = {(span.start, span.end): span for span in parse_request(text).mentions if span.kind == "path"}
    taken = [one for one in filling.arguments if one.state == "filled" and (one.start, one.end) in paths]
    spare = [span for span in filling.unused if span.kind == "path"]
    if len(taken) != 1 or not spare or isinstance(taken[0].value, list):
        return [filling]
    all_paths = sorted({paths[taken[0].start, taken[0].end], *spare}, key=lambda span: span.first)
    # the other paths are the reason for a lower probability, and each of them gets its own filling
    certain = replace(taken[0], probability=1 - (1 - taken[0].probability) / len(all_paths))
    fillings = []
    for span in all_paths:
        new = replace(certain, value=span.text, text=span.text, start=span.start, end=span.end)
        arguments = tuple(new if one is taken[0] else one for one in filling.arguments)
        params = deepcopy(filling.params)
        set_value(params, new.path, new.value)
        unused = tuple(one for one in filling.unused if one not in all_paths)
        fillings.append(replace(filling, params=params, arguments=arguments, unused=unused))
    return fillings


def value_from_answer(
    spec: ToolSpec, name: str, text: str, now: datetime | None = None, *, decides: bool = False
) -> Any:
    """Return the value of a parameter in the user's answer; None if the answer contains none.

    Args:
        decides: whether the answer reads as a decision: yes, no or skip.
    """
    parameter = next((one for one in parameters_of(spec) if one.path == (name,)), None)
    if parameter is None or (decides and parameter.type in {"string", "any"}):
        return None
    is_string = parameter.type == "string"
    bare = text if is_string else text.strip().rstrip(".!")
    if parameter.type == "boolean":
        if {*words_of(text)} == {*parameter.words}:
            return True
        text = " ".join(word for word in tokens_of(text) if word not in POLITE_WORDS | {","}) or text
    reading = parse_request(text)
    if len(reading.tokens) == 1:
        number = next((f"{span.number:g}" for span in reading.mentions if span.number is not None), "")
        value = convert(reading.tokens[0].text, parameter, now)
        return convert(number, parameter, now) if value is None else value
    role = role_of((name,), parameter.schema, None)
    beside = "" if role is ArgumentRole.DESTINATION else text  # a destination may have other words around it
    only = _only_value(reading, beside) if role is not ArgumentRole.PAYLOAD else None
    if only is not None and (is_string or parameter.type == "any"):
        return convert(only.text, parameter, now)
    full = convert(bare, parameter, now)
    if full is not None and not (is_string and _is_narrow(parameter)):
        return full
    quoted = [span for span in reading.mentions if span.kind in {"quoted", "code"}]
    if len(quoted) == 1:
        return convert(quoted[0].text, parameter, now)
    schema = {**spec.input_schema, "properties": {name: spec.parameters.get(name, {})}, "required": [name]}
    best = fill_parameters(replace(spec, input_schema=schema), text, now=now).params.get(name)
    return full if best is None else best


def is_bare(text: str) -> bool:
    """Return whether a text is one value without other words, such as `b.txt` or `on 3 January`."""
    reading = parse_request(text)
    return len(reading.tokens) == 1 or _only_value(reading, text, _BARE) is not None


def _only_value(reading: ParsedRequest, text: str, kinds: Set[str] = _VALUES - {"quoted", "code"}) -> Span | None:
    """Return the only value of these kinds, or None. If `text` is given, it must contain nothing else."""
    values = [span for span in reading.mentions if span.kind in kinds]
    if len(values) != 1 or not text:
        return values[0] if len(values) == 1 else None
    rest = query_terms(f"{text[: values[0].start]} {text[values[0].end :]}")
    return None if rest else values[0]


def takes_path(spec: ToolSpec) -> bool:
    """Return whether any parameter of a tool takes a path."""
    return any({*one.words} & _PATHS for one in parameters_of(spec))


def is_narrow(spec: ToolSpec, name: str) -> bool:
    """Return whether a parameter takes a path, an address, or a text that its schema limits by pattern or format."""
    return any(_is_narrow(one) for one in parameters_of(spec) if one.path == (name,))


def _is_narrow(parameter: Parameter) -> bool:
    names_address = bool({*parameter.words} & (_PATHS | {"url", "link", "email"}))
    return names_address or "pattern" in parameter.schema or "format" in parameter.schema
