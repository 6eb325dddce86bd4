"""Vectors of requests and of tools: by the sentence encoder, or by vectors of words that were distilled from it.

One text at a time goes through the encoder: its activations are quantised by what is in the batch, and a text's vector
must not depend on its neighbours.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from state.errors import WeightsError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

Floats = NDArray[np.float32]

WEIGHTS = Path(__file__).with_name("weights")
TOKENS = 72
"""Of a text, that are read."""
THREADS = 2


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
    """The fine-tuned encoder, in ONNX Runtime. It is loaded when it is first used."""

    floor = 0.22

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder
        self._lock = Lock()
        self._loaded: Any = None
        self.name = f"sentence-encoder-{VERSION}"

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the texts' vectors.

        Raises:
            WeightsError: its files are missing or broken.
        """
        session, tokenizer = self._parts()
        rows = [self._vector(session, tokenizer, text) for text in texts]
        return np.concatenate(rows) if rows else np.zeros((0, 1), np.float32)

    def _vector(self, session: Any, tokenizer: Any, text: str) -> Floats:
        read = tokenizer.encode(text)
        inputs = {
            "input_ids": np.array([read.ids], np.int64),
            "attention_mask": np.ones((1, len(read.ids)), np.int64),
        }
        row: Floats = session.run(None, inputs)[0]
        return row

    def _parts(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _session(self._folder / "encoder.onnx"), _tokenizer(self._folder)
        loaded: tuple[Any, Any] = self._loaded
        return loaded


VERSION = 1
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
        read = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        rows = np.zeros((len(texts), words.shape[1]), np.float32)
        for place, one in enumerate(read):
            if one.ids:
                rows[place] = (words[one.ids].astype(np.float32) * scale[one.ids, None]).mean(0)
        return _of_length_one(rows)

    def _parts(self) -> tuple[Any, Any, Any]:
        with self._lock:
            if self._loaded is None:
                arrays = arrays_of(self._folder / "static.npz")
                self._loaded = arrays["words"], arrays["scale"].astype(np.float32), _tokenizer(self._folder)
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


@cache
def sentence_encoder(folder: Path = WEIGHTS) -> SentenceEncoder:
    """Return the encoder of a folder, one a process."""
    return SentenceEncoder(folder)


@cache
def static_encoder(folder: Path = WEIGHTS) -> StaticEncoder:
    """Return the vectors of words of a folder, one a process."""
    return StaticEncoder(folder)


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file.

    Raises:
        WeightsError: it is missing or broken.
    """
    try:
        with np.load(path, allow_pickle=False) as read:
            return dict(read)
    except Exception as error:  # whatever numpy and zipfile make of a broken file
        raise _broken(path, error) from error


def _of_length_one(rows: Floats) -> Floats:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    unit: Floats = (rows / lengths).astype(np.float32)
    return unit


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no other class
        raise _broken(path, error) from error


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # it raises nothing more specific
        raise _broken(path, error) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tokenizer


def _broken(path: Path, error: Exception) -> WeightsError:
    return WeightsError(f"{path}: these weights are missing or broken; install Packetgate anew: {error}")
