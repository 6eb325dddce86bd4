"""The probabilities of an answer's words and calls, from the token probabilities that a server or engine returns."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from operator import getitem
from typing import Annotated, Any, NamedTuple

from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from packetgate.models.decoding import WrittenCall, begins_call
from packetgate.models.json_text import THOUGHT_END, json_spans, read_json_at

TOP_LOGPROBS = 20
"""Number of alternative tokens to request: OpenAI's limit."""
_MAX_CHARS = 50_000
_QUOTES = "\"'`*_("


class _Alternative(BaseModel):
    token: str
    raw: list[Annotated[int, Field(ge=0, le=255)]] | None = Field(default=None, alias="bytes")
    logprob: float

    @property
    def written(self) -> bytes:
        return bytes(self.raw) if self.raw is not None else self.token.encode("utf-8", "replace")

    @property
    def text(self) -> str:
        return self.written.decode(errors="replace").strip()

    @property
    def probability(self) -> float:
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class _Token(_Alternative):
    top_logprobs: list[_Alternative] = []

    def listed(self) -> list[tuple[str, float]]:
        """Return (text, probability) of the listed tokens, including this one."""
        listed = [(one.text, one.probability) for one in self.top_logprobs]
        return listed if self.text in dict(listed) else [*listed, (self.text, self.probability)]


_TOKENS = TypeAdapter(list[_Token])


class TokenSpans(NamedTuple):
    """A text with the size in bytes and the probability of each of its tokens."""

    text: str
    sizes: Sequence[int]
    probabilities: Sequence[float]

    def probability(self, begin: int, end: int) -> float:
        """Return the product of the probabilities of the tokens that begin between two positions of the text."""
        first, last = (len(self.text[:at].encode()) for at in (begin, end))
        begins = accumulate(self.sizes, initial=0)
        return math.prod(one for one, at in zip(self.probabilities, begins, strict=False) if first <= at < last)

    def value_probabilities(self, begin: int, end: int) -> dict[str, float]:
        """Return the probability of each value of the JSON object between two positions, by its key."""
        values = [(str(path[0]), at) for path, at, _ in json_spans(self.text, begin) if len(path) == 1]
        ends = [*(at for _, at in values[1:]), end]
        # an empty object has an end but no values
        return {name: self.probability(at, until) for (name, at), until in zip(values, ends, strict=False)}


def word_probabilities(answer: AIMessage, words: Sequence[str]) -> dict[str, float]:
    """Return the probability that an answer begins with each word; empty if it was not measured."""
    token = _first_token(_tokens_of(answer))
    listed = token.listed() if token else []
    found = {word: sum(p for text, p in listed if begun_word(text, words) == word) for word in words}
    unlisted = [word for word, probability in found.items() if not probability]
    if len(unlisted) == len(words):
        return {}
    # an unlisted token has at most the lowest listed probability, and all of them share the rest
    rest = max(0.0, 1 - sum(p for _, p in listed)) / max(1, len(unlisted))
    found |= dict.fromkeys(unlisted, min(rest, *(p for _, p in listed)))
    total = sum(found.values())
    return {word: probability / total for word, probability in found.items()}


def begun_word(text: str, words: Sequence[str]) -> str | None:
    """Return the only word that a text begins with, or that begins with the text; ignore case if none is exact."""
    text = text.strip().lstrip(_QUOTES)
    for fold in (str, str.casefold):
        begun = [word for word in words if _is_begun(fold(word), fold(text))]
        if begun:
            return begun[0] if len(begun) == 1 else None
    return None


def _is_begun(word: str, text: str) -> bool:
    return bool(text) and (word.startswith(text) or re.match(rf"{re.escape(word)}(?!\w)", text) is not None)


def call_probability(answer: AIMessage) -> float | None:
    """Return the probability that an answer is a call and not text, by its first token; None: not measured."""
    token = _first_token(_tokens_of(answer))
    if token is None:
        return None
    listed = [(text, probability) for text, probability in token.listed() if text]
    total = sum(probability for _, probability in listed)
    return sum(p for text, p in listed if begins_call(text) is not False) / total if total else None


def with_probabilities(calls: Sequence[WrittenCall], answer: AIMessage) -> tuple[WrittenCall, ...]:
    """Return calls with the probabilities of their names and arguments, where the tokens contain them as JSON."""
    tokens = _tokens_of(answer) if calls else []
    text = _text_of(tokens)
    if not text or len(text) > _MAX_CHARS:
        return tuple(calls)
    spans = TokenSpans(text, [len(one.written) for one in tokens], [one.probability for one in tokens])
    measured, at = [], _answer_begin(text)
    for call in calls:
        found = (span for *span, value in _objects_in(text, at) if value == call.arguments)
        begin, end = next(found, (-1, -1))
        name_at = text.rfind(call.name, at, begin) if begin >= 0 else -1
        if name_at < 0:
            measured.append(call)
            continue
        name_probability = spans.probability(name_at, name_at + len(call.name))
        values = spans.value_probabilities(begin, end)
        measured.append(replace(call, name_probability=name_probability, probabilities=values))
        at = end
    return tuple(measured)


def _objects_in(text: str, at: int) -> Iterator[tuple[int, int, Any]]:
    """Yield (begin, end, value) of the JSON objects from a position on, and of the objects in them."""
    while (begin := text.find("{", at)) >= 0:
        reading = read_json_at(text, begin)
        if reading.value is not None:
            for path, start, end in json_spans(text, begin):
                value = reduce(getitem, path, reading.value)
                if isinstance(value, dict):
                    yield start, end, value
        at = max(reading.end, begin + 1)


def _tokens_of(answer: AIMessage) -> list[_Token]:
    sent = answer.response_metadata.get("logprobs")
    try:
        return _TOKENS.validate_python(sent.get("content") or []) if isinstance(sent, Mapping) else []
    except ValidationError:
        return []


def _text_of(tokens: Sequence[_Token]) -> str:
    try:
        return b"".join(token.written for token in tokens).decode()
    except UnicodeDecodeError:
        return ""


def _answer_begin(text: str) -> int:
    return max((mark.end() for mark in re.finditer(THOUGHT_END, text, re.IGNORECASE)), default=0)


def _first_token(tokens: Sequence[_Token]) -> _Token | None:
    """Return the first token of the answer's text that is not only white space."""
    text = _text_of(tokens)
    begin, end = len(text[: _answer_begin(text)].encode()), 0
    for token in tokens:
        end += len(token.written)
        if end > begin and token.text:
            return token
    return None
