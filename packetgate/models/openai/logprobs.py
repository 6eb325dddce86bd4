"""Measuring choices by the token probabilities that an OpenAI-compatible server returns."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from packetgate.models.choices import ChoiceMeter, MeasuredChoice, TokenWeights, continues
from packetgate.models.schemas import Choice

Byte = Annotated[int, Field(ge=0, le=255)]


class _Listed(BaseModel):
    token: str
    raw: list[Byte] | None = Field(default=None, alias="bytes")
    logprob: float

    @property
    def written(self) -> bytes:
        return bytes(self.raw) if self.raw is not None else self.token.encode("utf-8", "replace")

    @property
    def weight(self) -> float:
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class _Token(_Listed):
    top_logprobs: list[_Listed] = []


_TOKENS = TypeAdapter(list[_Token])


def measure(answer: AIMessage, text: str, choices: Sequence[Choice]) -> tuple[MeasuredChoice, ...]:
    """Return the measured choices of an answer that is one JSON object.

    Measurements that contradict the text are dropped: a server may send other tokens than the answer's.
    """
    value = whole_object(text)
    sent = answer.response_metadata.get("logprobs")
    if not choices or value is None or not isinstance(sent, Mapping):
        return ()
    try:
        tokens = _TOKENS.validate_python(sent.get("content"))
    except ValidationError:
        return ()
    if not b"".join(token.written for token in tokens).lstrip().startswith(b"{"):
        return ()  # thoughts are no part of the text, and may contain drafts
    meter = ChoiceMeter(choices)
    for token in tokens:
        meter.feed(token.written, _weights(token))
    return tuple(one for one in meter.measured if _at(value, one.path) == [json.loads(one.value)])


def whole_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that the text consists of, with numbers in the range of a float; otherwise None."""
    try:
        value = json.loads(text, strict=False, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(digits: str) -> float:
    return max(-sys.float_info.max, min(sys.float_info.max, float(digits)))


def _weights(token: _Token) -> TokenWeights:
    listed: dict[bytes, float] = {}
    for one in token.top_logprobs:
        listed[one.written] = listed.get(one.written, 0.0) + one.weight
    listed.setdefault(token.written, token.weight)

    def weights(texts: Sequence[bytes]) -> dict[bytes, float]:
        found = {one: weight for one, weight in listed.items() if any(continues(one, text) for text in texts)}
        unlisted = [text for text in texts if not any(continues(one, text) for one in found)]
        if unlisted:  # each has at most the least listed probability, and all together the remaining one
            highest = min(*listed.values(), max(0.0, 1 - sum(listed.values())) / len(unlisted))
            found |= dict.fromkeys(unlisted, highest)
        return found

    return weights


def _at(value: Any, path: Sequence[str | int]) -> list[Any]:
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return []
    return [value]
