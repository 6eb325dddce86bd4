"""Vectors of requests and of tools: by the sentence encoder, or by vectors of words that were distilled from it.

One text at a time goes through the encoder: nothing is padded, and a text's vector does not depend on its neighbours.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from packetgate.state.errors import WeightsError
from packetgate.tools.learned import arrays_of, readable, session_of, tokenizer_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

Floats = NDArray[np.float32]

WEIGHTS = Path(__file__).with_name("weights")
VOCABULARY = "tokenizer.json"
"""Of all that reads texts without a language model."""
TOKENS = 72
"""Of a text, that are read."""
REMEMBERED = 4_096
"""Texts whose vectors are kept at hand."""


class Encoder(Protocol):
    """From texts to vectors of length one, a row a text."""

    name: str
    """Tells encoders apart whose vectors do not compare."""
    floor: float
    """The least cosine by which a tool is found that shares no word with the request."""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the texts' vectors. Blocking; threads may share it."""
        ...


class SentenceEncoder:
    """The fine-tuned encoder, in ONNX Runtime. It is loaded when it is first used; vectors made lately are kept."""

    floor = 0.22

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder
        self._lock = Lock()
        self._loaded: Any = None
        self.name = f"sentence-encoder-{VERSION}"
        self._row = lru_cache(REMEMBERED)(self._encoded)

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the texts' vectors.

        Raises:
            WeightsError: its files are missing or broken.
        """
        return np.concatenate([self._row(text) for text in texts]) if texts else np.zeros((0, 1), np.float32)

    def _encoded(self, text: str) -> Floats:
        session, tokenizer = self._parts()
        read = tokenizer.encode(readable(text)).ids
        ids = read if len(read) <= TOKENS else [*read[: TOKENS - 1], read[-1]]
        inputs = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
        row: Floats = session.run(None, inputs)[0]
        return row

    def _parts(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = session_of(self._folder / "encoder.onnx"), tokenizer_of(self._folder / VOCABULARY)
        loaded: tuple[Any, Any] = self._loaded
        return loaded


VERSION = 2
"""Of the encoder's weights: vectors that an earlier one made are not used."""


class StaticEncoder:
    """A vector a token, averaged: a fraction of the encoder's time, and much of what it says."""

    floor = 0.45

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder
        self._lock = Lock()
        self._loaded: Any = None
        self.name = f"static-{VERSION}"

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the texts' vectors.

        Raises:
            WeightsError: its files are missing or broken.
        """
        words, scale, tokenizer = self._parts()
        read = tokenizer.encode_batch([*map(readable, texts)], add_special_tokens=False)
        rows = np.zeros((len(texts), words.shape[1]), np.float32)
        for place, one in enumerate(read):
            if ids := one.ids[:TOKENS]:
                rows[place] = (words[ids].astype(np.float32) * scale[ids, None]).mean(0)
        return _of_length_one(rows)

    def _parts(self) -> tuple[Any, Any, Any]:
        with self._lock:
            if self._loaded is None:
                arrays = arrays_of(self._folder / "static.npz")
                vocabulary = tokenizer_of(self._folder / VOCABULARY)
                self._loaded = arrays["words"], arrays["scale"].astype(np.float32), vocabulary
        loaded: tuple[Any, Any, Any] = self._loaded
        return loaded


class GivenEmbeddings:
    """Any LangChain embeddings in the encoder's place."""

    floor = SentenceEncoder.floor

    def __init__(self, embeddings: "Embeddings", name: str) -> None:
        self._embeddings = embeddings
        self.name = name

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the texts' vectors, as documents.

        Raises:
            WeightsError: the embeddings cannot be had.
        """
        try:
            rows = np.array(self._embeddings.embed_documents(list(texts)), np.float32)
        except Exception as error:  # whatever its client raises
            raise WeightsError(f"{self.name}: these embeddings of tools cannot be had: {error}") from error
        return _of_length_one(rows)


def sentence_encoder(folder: Path = WEIGHTS) -> SentenceEncoder:
    """Return the encoder of a folder, one a process."""
    encoder: SentenceEncoder = _shared(SentenceEncoder, folder)
    return encoder


def static_encoder(folder: Path = WEIGHTS) -> StaticEncoder:
    """Return the vectors of words of a folder, one a process."""
    encoder: StaticEncoder = _shared(StaticEncoder, folder)
    return encoder


@cache
def _shared(kind: Callable[[Path], Any], folder: Path) -> Any:
    return kind(folder)


def _of_length_one(rows: Floats) -> Floats:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    unit: Floats = (rows / lengths).astype(np.float32)
    return unit


def vector_of(text: str) -> Floats:
    """Return a text's vector by the encoder that is shipped. Blocking.

    Raises:
        WeightsError: its files are missing or broken.
    """
    vector: Floats = sentence_encoder().vectors([text])[0]
    return vector
