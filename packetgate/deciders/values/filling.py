"""Filling a tool's parameters from a request: values, where each was read, how probably, and what was left over."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from packetgate.deciders.values.assignment import Chosen, Ranked, assign, softmax
from packetgate.deciders.values.candidates import NONE, Candidate, candidates, keyed_in, whole
from packetgate.deciders.values.features import Scene, model
from packetgate.deciders.values.mentions import EDGES, Reading, Span, read
from packetgate.deciders.values.schema import Parameter, parameters_of, put
from packetgate.state.origins import ArgumentRole
from packetgate.tools.approval.verdicts import AROUND, tokens_of
from packetgate.tools.learned import DIGITS
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import query_terms, stem_of, words_of

State = Literal["filled", "missing", "default"]
TOLD = frozenset("quoted code url email path number date time duration identifier name".split())
"""Kinds of mentions that a request names for a purpose: one that no argument used is a doubt."""

VALUES = frozenset("quoted code url email path".split())
"""Those that stand for nothing but a value."""
_BARE = VALUES | {"number", "date", "time", "duration"}
MOST_VALUES = 20

PATHS = frozenset(
    stem_of(word) for word in "path file filename filepath dir directory folder root source destination uri".split()
)
"""Stems of the names of parameters that take a path."""

KINDS = frozenset(stem_of(word) for word in "file folder directory dir path".split())
FILES = 2.0
"""Log odds of a file's name for a path, and against it for what is none."""
THERE = 3.0
"""Log odds, beside those, of a name for a path where just such a file or folder is there; and against it where an
optional path leads to nothing."""
LOOKED_UP = 4
"""Of the likeliest optional paths, how many are looked up."""
TELLABLE = 1e-3
"""Probability from which another value is told of."""
LIKELY = 0.5
"""Probability from which an argument is likelier right than wrong."""
OUTRIGHT = 2.0
"""Log odds of a choice that the request names."""


@dataclass(frozen=True)
class Argument:
    """What one parameter gets."""

    path: tuple[str, ...]
    """Names from the outside in."""
    state: State
    """`missing`: required, and the request does not say it. `default`: left out, as it may be."""
    probability: float
    """That this is so, and this the value."""
    value: Any = None
    text: str = ""
    """The words that it was read from."""
    start: int = 0
    end: int = 0
    others: tuple[tuple[Any, float], ...] = field(default=(), repr=False)
    """What else it could get, each value with its probability; None: nothing."""

    def probability_of(self, value: Any) -> float | None:
        """Return how probable a value is, None standing for nothing; None where the request was not read so."""
        if self.value == value and type(self.value) is type(value):
            return self.probability
        return next((sure for other, sure in self.others if other == value and type(other) is type(value)), None)


@dataclass(frozen=True)
class Filling:
    """A tool's arguments out of a request."""

    params: dict[str, Any]
    arguments: tuple[Argument, ...]
    missing: tuple[str, ...]
    """Names of required parameters that the request does not fill."""
    unused: tuple[Span, ...]
    """Mentions of the request that no argument used."""

    @property
    def probability(self) -> float:
        """That all of it is right, as if each argument were right or wrong by itself."""
        return float(np.prod([one.probability for one in self.arguments])) if self.arguments else 1.0


def fill(spec: ToolSpec, text: str, *, now: datetime | None = None) -> Filling:
    """Fill a tool's parameters from `text`.

    Args:
        spec: The tool.
        text: The request.
        now: What "tomorrow" is reckoned from; without it such a date stays as it is written.
    """
    parameters = parameters_of(spec)
    reading = read(text)
    keyed = keyed_in(text) if "=" in text else {}
    ranked = []
    scene = Scene(reading, spec, parameters)
    nowhere = _nowhere(reading, parameters, spec)
    for index, parameter in enumerate(parameters):
        told = whole(keyed[parameter.name], parameter, now) if parameter.name in keyed else None
        if told is not None:
            span = _span_of(reading, keyed[parameter.name])
            ranked.append(Ranked(parameter, [NONE, replace(told, way="keyed", span=span)], np.array([0.01, 0.99])))
            continue
        found = candidates(reading, parameter, now)
        scores = model().scores(scene.rows(index, found)).round(DIGITS) + _outright(found)
        if takes_path(spec):
            is_path = bool({*parameter.words} & PATHS)
            scores = scores + _of_paths(found, nowhere, is_path=is_path)
            scores = scores + _of_there(found, parameter, spec, named_there(spec, parameter.name, reading), scores)
            found = [_without_kind(one) for one in found] if is_path else found
        ranked.append(Ranked(parameter, found, softmax(scores)))
    values = [span for span in reading.mentions if span.kind in VALUES][:MOST_VALUES]
    return _filling(spec, reading, [*zip(ranked, assign(ranked, values), strict=True)])


def _outright(found: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return what it counts that a choice is named letter by letter."""
    return np.array(
        [OUTRIGHT * (one.way == "choice" and one.strength >= 0.9 and len(str(one.value)) > 3) for one in found]
    )


def _of_paths(found: Sequence[Candidate], nowhere: frozenset[str], *, is_path: bool) -> NDArray[np.float64]:
    """Return what it counts that a file is named, and that the tool has a parameter for just that.

    A word for any file or folder, such as "folder", is no part of a name, and what leads nowhere is no path.
    """
    spans = [one.span for one in found]
    lost = np.array([span is not None and span.text in nowhere for span in spans])
    files = np.array([span is not None and span.kind == "path" for span in spans]) & ~lost
    kinds = np.array([span is not None and _names_kind(span.text) for span in spans]) | lost
    counted: NDArray[np.float64] = files * (FILES if is_path else -FILES) - kinds * (FILES * is_path)
    return counted


def _nowhere(reading: Reading, parameters: Sequence[Parameter], spec: ToolSpec) -> frozenset[str]:
    """Return what reads like a path, and is a pattern, or leads nowhere where the tool needs no path. Blocking."""
    finds, paths = spec.finds, [one for one in parameters if {*one.words} & PATHS and len(one.path) == 1]
    said = {span.text for span in reading.mentions if span.kind == "path"}
    lost = {text for text in said if "*" in text}
    if finds and paths and not any(one.required for one in paths):
        lost |= {text for text in said if not any(finds({one.name: text}) for one in paths)}
    return frozenset(lost)


def named_there(spec: ToolSpec, parameter: str, reading: Reading) -> dict[str, float]:
    """Return the words of a request that name what is there for a built-in tool, and how surely. Blocking."""
    if spec.knows is None:
        return {}
    words = {token.text for token in reading.tokens if token.text.lower() not in EDGES and not _names_kind(token.text)}
    return {word: sure for word in sorted(words) if (sure := spec.knows(parameter, word))}


def _of_there(
    found: Sequence[Candidate],
    parameter: Parameter,
    spec: ToolSpec,
    named: Mapping[str, float],
    scores: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what it counts that a word names what is there, and against the best that an optional path leads nowhere.

    Blocking.
    """
    added = np.array([THERE * named.get(str(one.value), 0.0) for one in found])
    finds = None if parameter.required or len(parameter.path) > 1 else spec.finds
    for _ in range(LOOKED_UP if finds else 0):
        best = int((scores + added).argmax())
        value = found[best].value
        if added[best] or not isinstance(value, str) or not finds or finds({parameter.name: value}):
            break
        added[best] = -THERE
    return added


def _names_kind(text: str) -> bool:
    """Whether a text is no more than a word for any file or folder."""
    return stem_of(text.lower()) in KINDS


def _without_kind(candidate: Candidate) -> Candidate:
    """Return `drafts` for `folder drafts`."""
    first, _, name = candidate.value.partition(" ") if isinstance(candidate.value, str) else ("", "", "")
    return replace(candidate, value=name) if name and _names_kind(first) else candidate


def _filling(spec: ToolSpec, reading: Reading, chosen: Sequence[tuple[Ranked, Chosen]]) -> Filling:
    params: dict[str, Any] = {}
    for ranked, (candidate, _) in chosen:
        if candidate is not NONE:
            put(params, ranked.parameter.path, candidate.value)
    used = [candidate.span for _, (candidate, _) in chosen if candidate.span is not None]
    return Filling(
        params=params,
        arguments=tuple(_argument(ranked, *one) for ranked, one in chosen),
        missing=tuple(name for name in spec.required if name not in params),
        unused=tuple(_left_over(reading, used, spec)),
    )


def _argument(ranked: Ranked, candidate: Candidate, probability: float) -> Argument:
    parameter, span = ranked.parameter, candidate.span
    told = [
        (ranked.found[at], ranked.probabilities[at]) for at in np.flatnonzero(ranked.probabilities >= TELLABLE).tolist()
    ]
    others = tuple((None if one is NONE else one.value, float(sure)) for one, sure in told if one is not candidate)
    if candidate is NONE:
        return Argument(parameter.path, "missing" if parameter.required else "default", probability, others=others)
    said = (span.text, span.start, span.end) if span else ("", 0, 0)
    return Argument(parameter.path, "filled", probability, candidate.value, *said, others)


def _left_over(reading: Reading, used: Sequence[Span], spec: ToolSpec) -> list[Span]:
    names = {spec.name.casefold(), spec.upstream_name.casefold(), spec.server.casefold()}
    found: list[Span] = []
    for span in reading.mentions:
        taken = any(one.first < span.last and span.first < one.last for one in [*used, *found])
        if span.kind in TOLD and not taken and span.text.casefold() not in names:
            found.append(span)
    return found


def _span_of(reading: Reading, said: str) -> Span | None:
    return next((span for span in reading.spans if span.text.strip("\"'") == said), None)


def fill_each(spec: ToolSpec, text: str, *, now: datetime | None = None) -> list[Filling]:
    """Like `fill`, once for each path when several are named and the tool takes one at a time."""
    filling = fill(spec, text, now=now)
    places = [one for one in filling.arguments if one.state == "filled"]
    reading = read(text)
    paths = [span for span in reading.mentions if span.kind == "path"]
    taken = [one for one in places if any((one.start, one.end) == (span.start, span.end) for span in paths)]
    spare = [span for span in filling.unused if span.kind == "path"]
    if len(taken) != 1 or not spare or isinstance(taken[0].value, list):
        return [filling]
    mine = next(span for span in paths if (span.start, span.end) == (taken[0].start, taken[0].end))
    every = sorted({(span.first, span): span for span in [mine, *spare]}.values(), key=lambda span: span.first)
    sure = replace(taken[0], probability=1 - (1 - taken[0].probability) / len(every))  # what doubted was the others
    filling = replace(filling, arguments=tuple(sure if one is taken[0] else one for one in filling.arguments))
    return [_instead(filling, sure, span, tuple(one for one in every if one is not span)) for span in every]


def _instead(filling: Filling, argument: Argument, span: Span, others: tuple[Span, ...]) -> Filling:
    """Return the filling with another path in the place of one."""
    new = replace(argument, value=span.text, text=span.text, start=span.start, end=span.end)
    params: dict[str, Any] = {}
    arguments = tuple(new if one is argument else one for one in filling.arguments)
    for one in arguments:
        if one.state == "filled":
            put(params, one.path, one.value)
    unused = tuple(one for one in filling.unused if one not in others and one != span)
    return replace(filling, params=params, arguments=arguments, unused=unused)


def filled_by(filling: Filling, name: str, value: str, probability: float) -> Filling:
    """Return a filling in which a parameter has a value, if what it has so far is likelier wrong than right."""
    at = next((one for one in filling.arguments if one.path == (name,)), None)
    if at is None or not value or (at.state == "filled" and at.probability >= LIKELY):
        return filling
    new = Argument((name,), "filled", probability, value, value)
    return replace(
        filling,
        params={**filling.params, name: value},
        arguments=tuple(new if one is at else one for one in filling.arguments),
        missing=tuple(one for one in filling.missing if one != name),
        unused=tuple(one for one in filling.unused if one.text not in value),
    )


def answer(spec: ToolSpec, name: str, said: str, now: datetime | None = None, *, decides: bool = False) -> Any:
    """Return what an answer to the question for one parameter comes to: a value in it, or all of it, or None.

    Args:
        decides: it is a mere yes, no or skip, which is no text.
    """
    parameter = next((one for one in parameters_of(spec) if one.path == (name,)), None)
    if parameter is None or (decides and parameter.type in {"string", "any"}):
        return None
    bare = said.strip().rstrip(".!") if parameter.type != "string" else said.strip()
    if parameter.type == "boolean":
        if {*words_of(said)} == {*parameter.words}:
            return True
        said = " ".join(word for word in tokens_of(said) if word not in AROUND | {","}) or said
    reading = read(said)
    quoted = [span for span in reading.mentions if span.kind in {"quoted", "code"}]
    if len(reading.tokens) == 1:
        number = next((f"{span.number:g}" for span in reading.mentions if span.number is not None), "")
        return _value(whole(reading.tokens[0].text, parameter, now) or whole(number, parameter, now))
    role = role_of((name,), parameter.schema, None)
    only = (
        _only_value(reading, "" if role is ArgumentRole.DESTINATION else said)
        if role is not ArgumentRole.PAYLOAD
        else None
    )
    if only is not None and parameter.type in {"string", "any"}:
        return _value(whole(only.text, parameter, now))
    full = _value(whole(bare, parameter, now))
    if full is not None and (parameter.type != "string" or not _is_narrow(parameter)):
        return full
    if len(quoted) == 1:
        return _value(whole(quoted[0].text, parameter, now))
    best = fill(_asking(spec, name), said, now=now).params.get(name)
    return full if best is None else best


def is_bare(said: str) -> bool:
    """Whether words are one value, and say nothing beside it: `b.txt`, `on 3 January`."""
    reading = read(said)
    return len(reading.tokens) == 1 or _only_value(reading, said, _BARE) is not None


def _only_value(reading: Reading, said: str, kinds: Set[str] = VALUES - {"quoted", "code"}) -> Span | None:
    """Return the one address or path that words name, where they say nothing beside it: `to ann@example.com please`.

    Beside a destination, for which `said` is empty, they may say anything.
    """
    values = [span for span in reading.mentions if span.kind in kinds]
    if len(values) != 1 or not said:
        return values[0] if len(values) == 1 else None
    rest = query_terms(f"{said[: values[0].start]} {said[values[0].end :]}")
    return None if rest else values[0]


def takes_path(spec: ToolSpec) -> bool:
    """Whether one of a tool's parameters is the name of a file or a folder."""
    return any({*one.words} & PATHS for one in parameters_of(spec))


def _value(candidate: Candidate | None) -> Any:
    return None if candidate is None else candidate.value


def _is_narrow(parameter: Parameter) -> bool:
    """Whether the value is a path, an address or of a pattern, which an answer may wrap in words."""
    words = {*parameter.words}
    return bool(words & (PATHS | {"url", "link", "email"})) or (
        "pattern" in parameter.schema or "format" in parameter.schema
    )


def is_narrow(spec: ToolSpec, name: str) -> bool:
    """Whether a parameter takes a path, an address or what fits a pattern."""
    return any(_is_narrow(one) for one in parameters_of(spec) if one.path == (name,))


def _asking(spec: ToolSpec, name: str) -> ToolSpec:
    """Return the tool with no parameter but one, which is required."""
    properties = {name: spec.parameters.get(name, {})}
    return replace(spec, input_schema={**spec.input_schema, "properties": properties, "required": [name]})
