"""Find the arguments of a call that a message changes, as in `no, to b.txt`, `I meant 99, not 95` or `and in Berlin?`.

A value changes the argument that has a value of the same kind. If several arguments have such a value, the message must
say which: by the argument's name, by its old value, or by the word before the value. Otherwise the change is unclear.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from packetgate.deciders.replies import Change, after_verdict
from packetgate.gate.replies import (
    ALL_WORDS,
    CORRECTING_WORDS,
    LIMITING_WORDS,
    POLITE_WORDS,
    THANKS,
    tokens_of,
    verdict_of,
)
from packetgate.reflex.values.candidates import candidates, key_values
from packetgate.reflex.values.filling import fill_parameters
from packetgate.reflex.values.mentions import EDGES, TYPED, Span, parse_request
from packetgate.reflex.values.parameters import Parameter, convert, parameters_of
from packetgate.state.origins import ArgumentRole
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import SMALL_TALK
from packetgate.tools.text.roles import role_of
from packetgate.tools.text.values import find_words, fold_text
from packetgate.tools.text.verbs import KNOWN_VERBS
from packetgate.tools.text.words import STOP_WORDS

_NAMED, _SAME_CUE, _SAME_EXISTENCE = 4, 2, 1
"""Points of an argument: the message names it or its old value; the same word stands before the old and the new value;
both values are existing paths, or both are not."""
_CUES = frozenset("to with from in into on onto at for as by of about near under after before until".split())
_COPULAS = frozenset("is be are was to as".split())
_BESIDE = ALL_WORDS | POLITE_WORDS | LIMITING_WORDS | CORRECTING_WORDS
_NO_VALUES = STOP_WORDS | EDGES | SMALL_TALK | KNOWN_VERBS | _BESIDE | {"one", "ones", "never", "mind"}
"""Words that alone are not a value."""
_QUOTES: list[set[str]] = [{'"'}, {"'"}, {"`"}]
_OPENING_QUOTES = "\"'`“„«»「『"
_SURE_CHOICE = 0.9  # agreement of a text with a choice of an enum
_TEXTS = frozenset({"word", "identifier", "text"})
"""Kinds of values that may replace each other."""


class _Place(NamedTuple):
    """The position of an argument's value in a request."""

    start: int
    end: int
    cue: str  # the word before the value, in lower case
    is_quoted: bool


class _Option(NamedTuple):
    name: str
    value: Any
    span: Span
    points: int


def read_change(message: str, spec: ToolSpec, params: Mapping[str, Any], request: str, now: datetime) -> Change:
    """Return the change that a message makes to a call of a tool. Blocking.

    Args:
        params: the arguments of the call.
        request: the request that the call was made for.
    """
    parameters = {one.name: one for one in parameters_of(spec) if len(one.path) == 1}
    if pairs := {name: value for name, value in key_values(message).items() if name in parameters}:
        values = {name: convert(value, parameters[name], now) for name, value in pairs.items()}
        return Change({name: value for name, value in values.items() if value is not None}, names_argument=True)
    call = _Call(spec, params, request, now, message)
    by_span = [[*call.options(span)] for span in call.new_values()]
    used = dict[str, _Option]()
    for options in sorted(by_span, key=lambda options: -max((one.points for one in options), default=0)):
        free = [one for one in options if one.name not in used]
        best = [one for one in free if one.points == max(other.points for other in free)]
        if len(best) > 1 or (options and not free):
            return Change(unclear=tuple(one.name for one in best or options))
        used |= {one.name: one for one in best}
    names_argument = any(one.points >= _NAMED for one in used.values())
    return Change(
        {name: one.value for name, one in used.items()},
        names_argument=names_argument,
        request=call.request_with(used.values()),
        is_all=not call.other_words(one.span for one in used.values()),
    )


class _Call:
    """A call, with the places of its values in the request, and the message that may change it."""

    def __init__(self, spec: ToolSpec, params: Mapping[str, Any], request: str, now: datetime, message: str) -> None:
        self.spec, self.params, self.request, self.now, self.said = spec, params, request, now, message
        self.message = parse_request(after_verdict(message))
        self.parameters = [one for one in parameters_of(spec) if len(one.path) == 1 and one.name in params]
        self.old_texts = {one.name: fold_text(_text_of(params[one.name])) for one in self.parameters}
        self.names = frozenset().union(*(one.words for one in self.parameters))
        self.places = dict(self._places())

    def _places(self) -> Iterator[tuple[str, _Place]]:
        filling, request = fill_parameters(self.spec, self.request, now=self.now), self.request
        read = {one.path: (one.start, one.end) for one in filling.arguments if one.text}
        for name in self.old_texts:
            text = _text_of(self.params[name])
            start = find_words(request, text) if text else -1
            if filling.params.get(name) == self.params[name] and (name,) in read:
                start, end = read[(name,)]
            else:
                end = start + len(text)
            if start < 0:
                continue
            if {*request[start - 1 : start], *request[end : end + 1]} in _QUOTES:
                start, end = start - 1, end + 1
            before = request[:start].lower().rsplit(maxsplit=1)
            yield name, _Place(start, end, before[-1] if before else "", request[start] in _OPENING_QUOTES)

    def new_values(self) -> Sequence[Span]:
        """Return the values in the message: typed ones; without one, the text after a cue, or the only name or word."""
        reading, old = self.message, {*self.old_texts.values()}
        typed = [span for span in reading.mentions if span.kind in TYPED]
        if typed:
            return [span for span in typed if fold_text(span.text) not in old]
        if phrase := next(self._phrases(), None):
            return [phrase]
        words = self.other_words(())
        names = [
            span for span in reading.mentions if span.kind == "name" and {*range(span.first, span.last)} >= {*words}
        ]
        is_bare = len(reading.words) == 1 and reading.text == self.said.strip()
        if is_bare or not THANKS.isdisjoint(tokens_of(self.said)):
            return []
        if words and names:
            return names[:1]
        return [reading.span(words[0], words[0] + 1, "word")] if len(words) == 1 else []

    def other_words(self, values: Iterable[Span]) -> Sequence[int]:
        """Return the places of words that are in no value, old value or name, and might be a value themselves."""
        reading, old = self.message, {*self.old_texts.values()}
        known = [*values, *(span for span in reading.mentions if fold_text(span.text) in old)]
        return [
            at
            for at, word in enumerate(reading.words)
            if word not in _NO_VALUES | old and verdict_of(word) is None and not reading.stems[at] & self.names
            if not any(span.first <= at < span.last for span in known)
        ]

    def _phrases(self) -> Iterator[Span]:
        """Yield the texts after the word that stood before an old value, and after `NAME is`."""
        reading, cues = self.message, {place.cue for place in self.places.values()} & _CUES
        last = len(reading.words)
        while last and reading.words[last - 1] in _BESIDE:
            last -= 1
        for at, word in enumerate(reading.words[:last]):
            is_named = word in _COPULAS and any(self.names & stems for stems in reading.stems[:at])
            first = at + 1
            if (word in cues or is_named) and first < last and not any(reading.breaks[first + 1 : last]):
                yield reading.span(first, last, "rest")

    def options(self, span: Span) -> Iterator[_Option]:
        """Yield each argument that a value of the message may change: its own value is of the same kind."""
        reading, cue = self.message, self.message.words[span.first - 1] if span.first else ""
        outside = frozenset().union(*reading.stems[: span.first], *reading.stems[span.last :])
        old = {fold_text(other.text) for other in reading.mentions}
        for parameter in self.parameters:
            name, place = parameter.name, self.places.get(parameter.name)
            value, named = self._value(span, parameter), {*parameter.words} & outside
            says_it = named or (place and cue in _CUES and cue == place.cue)
            is_quoted = place.is_quoted if place else role_of((name,), parameter.schema, None) is ArgumentRole.PAYLOAD
            is_loose = span.kind == "rest" or (span.kind not in TYPED and is_quoted)
            if value is None or not _are_alike(value, self.params[name]) or (is_loose and not says_it):
                continue
            points = _NAMED * (self.old_texts[name] in old) + (_NAMED + len(named) if named else 0)
            points += _SAME_CUE * bool(place and cue in _CUES and cue == place.cue)
            points += _SAME_EXISTENCE * (self._exists(value) == self._exists(self.params[name]))
            yield _Option(name, value, span, points)

    def _value(self, span: Span, parameter: Parameter) -> Any:
        read = (
            one.value
            for one in candidates(self.message, parameter, self.now)
            if one.span and (one.span.first, one.span.last) == (span.first, span.last)
            if one.way != "choice" or one.strength >= _SURE_CHOICE
        )
        return next(read, None) or convert(span.text, parameter, self.now)

    def _exists(self, value: Any) -> bool:
        certainty = self.spec.path_certainty
        return bool(certainty and any(certainty(name, str(value)) == 1 for name in self.spec.parameters))

    def request_with(self, used: Iterable[_Option]) -> str:
        """Return the request with new values in place of the old ones; empty if it does not contain the old ones."""
        changed = [(self.places.get(one.name), self.message.text[one.span.start : one.span.end]) for one in used]
        request = self.request if changed else ""
        for place, text in sorted(changed, key=lambda one: one[0].start if one[0] else 0, reverse=True):
            if place is None:
                return ""
            request = f"{request[: place.start]}{text}{request[place.end :]}"
        return request


def _text_of(value: Any) -> str:
    return _text_of(value[0]) if isinstance(value, list) and len(value) == 1 else str(value)


def _are_alike(one: Any, other: Any) -> bool:
    kinds = {_kind_of(one), _kind_of(other)}
    return len(kinds) == 1 or kinds <= _TEXTS


def _kind_of(value: Any) -> str:
    if isinstance(value, list):
        return _kind_of(value[0]) if len(value) == 1 else "list"
    if not isinstance(value, str):
        return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    tokens = parse_request(value).tokens
    return tokens[0].kind if len(tokens) == 1 else "text"
