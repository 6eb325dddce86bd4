"""Estimate the probability that a tool serves a request, with a small encoder that reads both together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tokenizers import Encoding, Tokenizer

from packetgate.reflex.meaning import encoder as ranking
from packetgate.reflex.weights import load_session, load_tokenizer, without_surrogates
from packetgate.tools.learned import DIGITS
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

JUDGE_WEIGHTS = Path(__file__).parent / "weights"
_THREADS = 2
CLS, SEP, MARKER = 101, 102, 103  # BERT's [CLS], [SEP] and [MASK]; [MASK] precedes each parameter
REQUEST_TOKENS = 160
TOOL_TOKENS = 36
PARAMETER_TOKENS = 26
MAX_TOOL_TOKENS = 200
MAX_PARAMETERS, _MAX_CHOICES = 12, 6


@dataclass(frozen=True)
class JudgeEncoder:
    """The judge's weights and vocabulary. Threads can share an encoder."""

    session: "InferenceSession"
    tokenizer: Tokenizer
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)  # concurrent runs would compete for cores

    def judge(self, request: str, specs: Sequence[ToolSpec]) -> list[float]:
        """Return the probability of each tool, judged one by one. Blocking."""
        encoded = encode_request(request, self.tokenizer)
        tokens = (joined_tokens(encoded, encode_tool(spec, self.tokenizer)[0]) for spec in specs)
        return [1 / (1 + math.exp(-self.log_odds("serves", ids, segments))) for ids, segments in tokens]

    def log_odds(self, output: Literal["serves", "right"], ids: list[int], segments: list[int]) -> float:
        """Return the log odds that a tool serves a request, or that a call is right, by its tokens. Blocking."""
        rows = {"ids": ids, "mask": [1] * len(ids), "segments": segments}
        with self._lock:
            (scores,) = self.session.run([output], {name: np.array([row], np.int64) for name, row in rows.items()})
        return round(float(scores[0]), DIGITS)


def judge(request: str, specs: Sequence[ToolSpec]) -> list[float]:
    """Return the probability that each tool serves the request, or a part of it. Cached; otherwise blocking."""
    cached = _judgements(request)
    new = [spec for spec in specs if spec not in cached]
    if new:
        cached |= zip(new, load_encoder(JUDGE_WEIGHTS).judge(request, new), strict=True)
    return [cached[spec] for spec in specs]


@lru_cache(maxsize=64)
def _judgements(request: str) -> dict[ToolSpec, float]:
    """Return the cached probabilities of a request, which intent, selection and review share."""
    return {}


@lru_cache(maxsize=2)
def load_encoder(folder: Path) -> JudgeEncoder:
    """Return the encoder in a folder. Raise WeightsError if the weights are missing or broken."""
    return JudgeEncoder(
        load_session(folder / "judge.onnx", _THREADS), load_tokenizer(ranking.WEIGHTS / ranking.VOCABULARY)
    )


def encode_request(text: str, tokenizer: Tokenizer) -> Encoding:
    """Return the tokens of a request, at most 160."""
    encoding = tokenizer.encode(without_surrogates(text), add_special_tokens=False)
    encoding.truncate(REQUEST_TOKENS)
    return encoding


def encode_tool(spec: ToolSpec, tokenizer: Tokenizer) -> tuple[list[int], list[str]]:
    """Return the tokens of a tool, and the parameters among them.

    The tokens are those of server, name and description, then of the parameters, required parameters first.
    """
    ids, names = [*_ids(tool_headline(spec), tokenizer)[:TOOL_TOKENS]], []
    for name in sorted(spec.parameters, key=lambda name: name not in spec.required)[:MAX_PARAMETERS]:
        parameter = parameter_text(name, spec.parameters[name], required=name in spec.required)
        tokens = _ids(parameter, tokenizer)[:PARAMETER_TOKENS]
        if len(ids) + len(tokens) + 2 > MAX_TOOL_TOKENS:
            break
        names.append(name)
        ids += [MARKER, *tokens]
    return [*ids, SEP], names


def joined_tokens(request: Encoding, tool: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return (tokens, segments) of a request with a tool."""
    before = [CLS, *request.ids, SEP]
    return [*before, *tool], [0] * len(before) + [1] * len(tool)


def tool_headline(spec: ToolSpec) -> str:
    """Return the text of a tool without its parameters."""
    headline = f"{' '.join(words_of(spec.upstream_name))}. {spec.full}"
    return f"{spec.server}: {headline}" if spec.server else headline


def parameter_text(name: str, schema: Mapping[str, Any], *, required: bool) -> str:
    """Return the text of a parameter."""
    values, kind = schema.get("enum"), schema.get("type", "any")
    kind = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    if isinstance(values, list):
        kind = "one of " + ", ".join(map(str, values[:_MAX_CHOICES]))
    words = " ".join(words_of(name)) or name
    return f"{words} ({kind}{', required' if required else ''}): {schema.get('description', '')}"


@lru_cache(maxsize=65_536)
def _ids(text: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    return tuple(tokenizer.encode(without_surrogates(text[:600]), add_special_tokens=False).ids)
