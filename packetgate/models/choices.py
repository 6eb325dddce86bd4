"""Probabilities of the choices in a JSON answer, from the token probabilities that a server returns."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from packetgate.models.schemas import Choice

Path = tuple[str | int, ...]

_AFTER_VALUE = b",}] \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class MeasuredChoice:
    """The option that an answer has at one place, with its probability."""

    path: Path
    value: str
    probability: float
    """Probability of this option, given that the answer has one of the options."""
    probabilities: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    """The probability of every option."""


class _Alternative(BaseModel):
    token: str
    raw: list[Annotated[int, Field(ge=0, le=255)]] | None = Field(default=None, alias="bytes")
    logprob: float

    @property
    def written(self) -> bytes:
        return bytes(self.raw) if self.raw is not None else self.token.encode("utf-8", "replace")

    @property
    def weight(self) -> float:
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class _Token(_Alternative):
    top_logprobs: list[_Alternative] = []

    def weights(self, texts: Sequence[bytes]) -> dict[bytes, float]:
        """Return the weights of listed tokens that continue a text, and of texts that no listed token continues."""
        listed: dict[bytes, float] = {}
        for one in self.top_logprobs:
            listed[one.written] = listed.get(one.written, 0.0) + one.weight
        listed.setdefault(self.written, self.weight)
        weights = {one: weight for one, weight in listed.items() if any(_continues(one, text) for text in texts)}
        unlisted = [text for text in texts if not any(_continues(one, text) for one in weights)]
        if unlisted:  # an unlisted token has at most the lowest listed probability; all share the rest
            highest = min(*listed.values(), max(0.0, 1 - sum(listed.values())) / len(unlisted))
            weights |= dict.fromkeys(unlisted, highest)
        return weights


_TOKENS = TypeAdapter(list[_Token])


def measured_choices(answer: AIMessage, text: str, choices: Sequence[Choice]) -> tuple[MeasuredChoice, ...]:
    """Return the choices of an answer with their probabilities; the answer must be one JSON object.

    A choice whose tokens differ from the text is dropped: a server may send wrong tokens.
    """
    sent = answer.response_metadata.get("logprobs")
    if not choices or not isinstance(sent, Mapping):
        return ()
    try:
        value = json.loads(text, strict=False)
        tokens = _TOKENS.validate_python(sent.get("content"))
        written = b"".join(token.written for token in tokens).decode()
        if not isinstance(value, dict) or not written.lstrip().startswith("{"):
            return ()  # the tokens begin with a thought, which may contain drafts of the answer
        spans = list(json_spans(written))
    except (ValidationError, ValueError, RecursionError):
        return ()
    measured = []
    for path, start, _ in spans:
        choice = next((one for one in choices if one.matches(path)), None)
        found = _measured(path, choice, tokens, len(written[:start].encode())) if choice else None
        if found and _value_at(value, path) == json.loads(found.value):
            measured.append(found)
    return tuple(measured)


def json_spans(text: str, at: int = 0, path: Path = ()) -> Iterator[tuple[Path, int, int]]:
    """Yield the path, the start and the end of each value of a JSON text, outer values first.

    Raise ValueError if the text is not JSON.
    """
    start = _after_space(text, at)
    value, end = _DECODER.raw_decode(text, start)
    yield path, start, end
    if not isinstance(value, dict | list):
        return
    at, number = _after_space(text, start + 1), 0
    while text[at] not in "}]":
        key: str | int = number
        if isinstance(value, dict):
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, at) + 1  # the colon
        spans = list(json_spans(text, at, (*path, key)))
        yield from spans
        at = _after_space(text, spans[0][2])
        at = _after_space(text, at + 1) if text[at] == "," else at
        number += 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _measured(path: Path, choice: Choice, tokens: Sequence[_Token], start: int) -> MeasuredChoice | None:
    """Return the choice whose value begins at byte `start` of the answer; None if the value is not an option."""
    texts = {option: option.encode() for option in choice.options}
    earned = dict.fromkeys(choice.options, 0.0)
    undecided, at, written = 1.0, 0, b""
    for token in tokens:
        begin, at = at, at + len(token.written)
        if at <= start:
            continue
        before = token.written[: max(0, start - begin)]
        rests = {option: before + text[len(written) :] for option, text in texts.items()}
        weights = {one: weight for one, weight in token.weights([*rests.values()]).items() if len(one) > len(before)}
        followed, total = 0.0, sum(weights.values()) or 1.0
        for one, weight in weights.items():
            possible = [option for option, rest in rests.items() if _continues(one, rest)]
            if len(possible) == 1:
                earned[possible[0]] += undecided * weight / total
            elif one == token.written:
                followed = weight / total
        undecided *= followed
        written += token.written[len(before) :]
        texts = {option: text for option, text in texts.items() if text.startswith(written) or written.startswith(text)}
        if all(len(written) >= len(text) for text in texts.values()):
            break
    for option, text in texts.items():
        probability = min(1.0, earned[option] + undecided)
        if len(written) >= len(text) and probability > 0:
            return MeasuredChoice(path, option, probability, {**earned, option: probability})
    return None


def _continues(token: bytes, text: bytes) -> bool:
    """Whether a token is a prefix of `text`, or `text` and the character after the value."""
    return text.startswith(token) or (token.startswith(text) and token[len(text) : len(text) + 1] in _AFTER_VALUE)


def _value_at(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return None
    return value
