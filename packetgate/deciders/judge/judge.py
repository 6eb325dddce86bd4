"""How probably each of some tools serves a request: all through the encoder, each after the request."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tokenizers import Tokenizer

from packetgate.tools.learned import DIGITS, readable, session_of, tokenizer_of
from packetgate.tools.ranking import encoder as ranking
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

WEIGHTS = Path(__file__).parent / "weights"
THREADS = 2
REMEMBERED = 64
"""Requests whose judgements are kept at hand."""


@dataclass(frozen=True)
class Encoder:
    """The weights and the vocabulary; safe to share between threads."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False, compare=False)
    """A tool takes all cores, and the memory of the longest is kept: one more beside it would only keep more."""

    def judge(self, request: str, specs: Sequence[ToolSpec]) -> list[float]:
        """Return the probability that each tool serves the request, in their order. Blocking.

        Tools are read one by one: nothing is padded, and none is judged by what stands beside it.
        """
        asked = encode_request(request, self.tokenizer)
        return [self._judged(*joined(asked, encode_tool(spec, self.tokenizer))) for spec in specs]

    def _judged(self, ids: list[int], segments: list[int], markers: list[int]) -> float:
        rows = {"ids": ids, "mask": [1] * len(ids), "segments": segments, "markers": markers or [0]}
        with self._one_at_a_time:
            (scores,) = self.session.run(["serves"], {name: np.array([row], np.int64) for name, row in rows.items()})
        return 1 / (1 + math.exp(-round(float(scores[0]), DIGITS)))


def judge(request: str, specs: Sequence[ToolSpec]) -> list[float]:
    """Return the probability that each tool serves the request, or part of it, in their order. Blocking when new."""
    known = _known(request)
    new = [spec for spec in specs if spec not in known]
    if new:
        known |= zip(new, load_encoder(WEIGHTS).judge(request, new), strict=True)
    return [known[spec] for spec in specs]


@lru_cache(maxsize=REMEMBERED)
def _known(request: str) -> dict[ToolSpec, float]:
    """Return what was judged for a request so far: intent, selection and review ask the same."""
    return {}


@lru_cache(maxsize=2)
def load_encoder(folder: Path) -> Encoder:
    """Return the encoder whose weights are in a folder, read once; its vocabulary is that of the ranking.

    Raises:
        WeightsError: they are missing or broken.
    """
    return Encoder(session_of(folder / "judge.onnx", THREADS), tokenizer_of(ranking.WEIGHTS / ranking.VOCABULARY))


CLS, SEP, MARKER = 101, 102, 103
"""BERT's [CLS], [SEP] and, before each parameter, [MASK]."""
REQUEST_TOKENS = 160
TOOL_TOKENS = 36
PARAMETER_TOKENS = 26
ENUM_SHOWN = 6
MAX_PARAMETERS = 12
MAX_TOOL = 200
"""Tokens of a tool with its parameters: what goes beyond is not read."""


class Described(Protocol):
    """A tool, as far as it is read."""

    @property
    def server(self) -> str: ...  # noqa: D102
    @property
    def upstream_name(self) -> str: ...  # noqa: D102
    @property
    def full(self) -> str: ...  # noqa: D102
    @property
    def parameters(self) -> Mapping[str, dict[str, Any]]: ...  # noqa: D102
    @property
    def required(self) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True)
class EncodedRequest:
    """A request's tokens, and where each stands in it."""

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class EncodedTool:
    """A tool's tokens, and where the markers of its parameters stand among them."""

    ids: tuple[int, ...]
    parameters: tuple[str, ...]
    markers: tuple[int, ...]


def encode_request(text: str, tokenizer: "Tokenizer") -> EncodedRequest:
    """Read the first words of a request."""
    encoding = tokenizer.encode(readable(text), add_special_tokens=False)
    return EncodedRequest(tuple(encoding.ids[:REQUEST_TOKENS]), tuple(encoding.offsets[:REQUEST_TOKENS]))


def encode_tool(spec: Described, tokenizer: "Tokenizer") -> EncodedTool:
    """Read a tool: its server, name and description, then its parameters, the required ones first."""
    ids = list(_ids(_headline(spec.server, spec.upstream_name, spec.full), tokenizer)[:TOOL_TOKENS])
    names, markers = [], []
    for name in sorted(spec.parameters, key=lambda name: name not in spec.required)[:MAX_PARAMETERS]:
        said = _ids(_parameter(name, spec.parameters[name], required=name in spec.required), tokenizer)
        said = said[:PARAMETER_TOKENS]
        if len(ids) + len(said) + 2 > MAX_TOOL:
            break
        names.append(name)
        markers.append(len(ids))
        ids += [MARKER, *said]
    return EncodedTool((*ids, SEP), tuple(names), tuple(markers))


def joined(request: EncodedRequest, tool: EncodedTool) -> tuple[list[int], list[int], list[int]]:
    """Return (tokens, segments, positions of the markers) of a request with a tool. Token 0 stands for "no words"."""
    ids = [CLS, *request.ids, SEP, *tool.ids]
    before = len(request.ids) + 2
    return ids, [0] * before + [1] * len(tool.ids), [before + at for at in tool.markers]


def _headline(server: str, name: str, description: str) -> str:
    said = f"{' '.join(words_of(name))}. {description}"
    return f"{server}: {said}" if server else said


def _parameter(name: str, schema: Mapping[str, Any], *, required: bool) -> str:
    values = schema.get("enum")
    kind = schema.get("type", "any")
    kind = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    if isinstance(values, list):
        kind = "one of " + ", ".join(map(str, values[:ENUM_SHOWN]))
    said = " ".join(words_of(name)) or name
    return f"{said} ({kind}{', required' if required else ''}): {schema.get('description', '')}"


@lru_cache(maxsize=65_536)
def _ids(text: str, tokenizer: "Tokenizer") -> tuple[int, ...]:
    return tuple(tokenizer.encode(readable(text[:600]), add_special_tokens=False).ids)
