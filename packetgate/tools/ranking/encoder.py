"""Vectors of texts: by the sentence encoder, or by token vectors that were distilled from it.

Texts are encoded one by one, so that a vector does not depend on other texts.
"""

from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from packetgate.tools.learned import load_arrays, load_session, load_tokenizer, without_surrogates
from packetgate.tools.ranking.trees import Floats
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

WEIGHTS = Path(__file__).with_name("weights")
VOCABULARY = "tokenizer.json"
"""Tokenizer file that all models for texts share."""
ENCODER_VERSION = 2
"""Version of the encoder's weights: stored vectors of another version are not used."""
MAX_TEXT_TOKENS = 72
"""Most tokens of a text that are encoded."""
CACHED_TEXTS = 4_096
BRIEF_CHARS, ABOUT_CHARS, MAX_PARAMETERS = 300, 120, 12
"""Limits of a tool's text."""


class TextEncoder(Protocol):
    """Turns texts into unit vectors, one row per text. Threads share it."""

    name: str
    """Vectors of encoders with other names are not comparable."""
    floor: float
    """Least cosine of a candidate that shares no word with the request."""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts. May block."""
        ...


class SentenceEncoder:
    """The fine-tuned encoder in ONNX Runtime. It is loaded at first use, and caches vectors."""

    floor = 0.22
    name = f"sentence-encoder-{ENCODER_VERSION}"

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder
        self._row = lru_cache(CACHED_TEXTS)(self._encode)

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts.

        Raises:
            WeightsError: its files are missing or broken.
        """
        return np.concatenate([self._row(text) for text in texts]) if texts else np.zeros((0, 1), np.float32)

    def _encode(self, text: str) -> Floats:
        session, tokenizer = self._model
        ids = tokenizer.encode(without_surrogates(text)).ids
        ids = ids if len(ids) <= MAX_TEXT_TOKENS else [*ids[: MAX_TEXT_TOKENS - 1], ids[-1]]
        inputs = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
        row: Floats = session.run(None, inputs)[0]
        return row

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        return load_session(self._folder / "encoder.onnx"), load_tokenizer(self._folder / VOCABULARY)


class StaticEncoder:
    """The mean of a text's token vectors: much faster than the encoder, and less precise."""

    floor = 0.45
    name = f"static-{ENCODER_VERSION}"

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts.

        Raises:
            WeightsError: its files are missing or broken.
        """
        words, scale, tokenizer = self._model
        encoded = tokenizer.encode_batch([*map(without_surrogates, texts)], add_special_tokens=False)
        rows = np.zeros((len(texts), words.shape[1]), np.float32)
        for place, one in enumerate(encoded):
            if ids := one.ids[:MAX_TEXT_TOKENS]:
                rows[place] = (words[ids].astype(np.float32) * scale[ids, None]).mean(0)
        lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        unit: Floats = (rows / lengths).astype(np.float32)
        return unit

    @cached_property
    def _model(self) -> tuple[Any, Any, Any]:
        arrays = load_arrays(self._folder / "static.npz")
        return arrays["words"], arrays["scale"].astype(np.float32), load_tokenizer(self._folder / VOCABULARY)


@cache
def sentence_encoder() -> SentenceEncoder:
    """Return the shipped encoder; each process has one instance."""
    return SentenceEncoder()


@cache
def static_encoder() -> StaticEncoder:
    """Return the shipped token vectors; each process has one instance."""
    return StaticEncoder()


def vector_of(text: str) -> Floats:
    """Return a text's vector by the shipped encoder. May block.

    Raises:
        WeightsError: its files are missing or broken.
    """
    vector: Floats = sentence_encoder().vectors([text])[0]
    return vector


def encoded_text(spec: ToolSpec) -> str:
    """Return the encoded text of a tool: server, name, brief description, parameters, the server's description."""
    parameters = ", ".join(_spaced(name) for name in list(spec.parameters)[:MAX_PARAMETERS])
    parts = [
        f"{_spaced(spec.server)} {_spaced(spec.upstream_name)}:".lstrip(),
        spec.brief[:BRIEF_CHARS],
        f"({parameters})" if parameters else "",
        spec.server_about[:ABOUT_CHARS],
    ]
    return " ".join(part for part in parts if part)


def _spaced(name: str) -> str:
    return " ".join(words_of(name)) if name.isascii() else name
