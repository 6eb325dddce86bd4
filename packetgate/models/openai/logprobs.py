"""Probabilities of the choices in a JSON answer, from the token probabilities that a server returns."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from packetgate.models.json_text import json_spans
from packetgate.models.schemas import Choice, MeasuredChoice

_AFTER_VALUE = b",}] \t\r\n"


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
        starts = {path: len(written[:start].encode()) for path, start, _ in json_spans(written)}
    except (ValidationError, ValueError, RecursionError):
        return ()
    measured = [_measured(one, tokens, starts[one.path]) for one in choices if one.path in starts]
    return tuple(one for one in measured if one and _value_at(value, one.path) == json.loads(one.value))


def _measured(choice: Choice, tokens: Sequence[_Token], start: int) -> MeasuredChoice | None:
    """Return the choice whose value begins at byte `start` of the answer, by the token in which the options differ."""
    at, known = 0, b""
    for token in tokens:
        begin, at = at, at + len(token.written)
        if at <= start:
            continue
        before = token.written[: max(0, start - begin)]
        rests = {option: before + option.encode().removeprefix(known) for option in choice.options}
        weights = token.weights([*rests.values()])
        fitting = {one: [option for option, rest in rests.items() if _continues(one, rest)] for one in weights}
        possible = fitting.get(token.written, [])
        if len(possible) != 1:
            if not possible:
                return None
            known += token.written[len(before) :]
            continue
        earned = dict.fromkeys(choice.options, 0.0)
        for one, options in fitting.items():
            if len(options) == 1 and len(one) > len(before):
                earned[options[0]] += weights[one]
        total = sum(earned.values())
        if not earned[possible[0]]:
            return None
        by_option = {option: weight / total for option, weight in earned.items()}
        return MeasuredChoice(choice.path, possible[0], by_option[possible[0]], by_option)
    return None


def _continues(token: bytes, text: bytes) -> bool:
    """Whether a token is a prefix of `text`, or `text` and the character after the value."""
    return text.startswith(token) or (token.startswith(text) and token[len(text) : len(text) + 1] in _AFTER_VALUE)


def _value_at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
