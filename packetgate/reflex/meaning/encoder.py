"""Compute and store vectors of texts: by the sentence encoder, or by token vectors that were distilled from it.

Texts are encoded one by one, so that a vector does not depend on other texts. Each tool's vector is computed once (in
the background if many are missing) and stored in a file.
"""

import atexit
import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache, cached_property, lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from packetgate.reflex.weights import load_arrays, load_session, load_tokenizer, without_surrogates
from packetgate.state.errors import WeightsError
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]

WEIGHTS = Path(__file__).with_name("weights")
VOCABULARY = "tokenizer.json"
"""Tokenizer file that all models for texts share."""
ENCODER_VERSION = 2
"""Version of the encoder's weights: stored vectors of another version are not used."""
MAX_TEXT_TOKENS = 72
"""Maximum tokens of a text that are encoded."""
CACHED_TEXTS = 4_096
BRIEF_CHARS, ABOUT_CHARS, MAX_PARAMETERS = 300, 120, 12
"""Largest numbers of characters and parameters in a tool's encoded text."""
MAX_STORED = 100_000
"""Maximum vectors in the file; the oldest are deleted first."""
AT_ONCE = 250
"""Maximum missing vectors that are computed while a request waits (about three seconds, once for a
catalogue), and between two writes to the file. Among 200 of MetaTool's tools, the needed tool is among the best six for
65 of 75 requests with these vectors, and for 21 without."""

UNIT_TOLERANCE = 0.01
"""Maximum difference of a stored vector's length from 1."""
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, data BLOB NOT NULL)"
_DELETE_OLDEST = "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?"


class TextEncoder(Protocol):
    """Turns texts into unit vectors, one row per text. Threads can share it."""

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
        """Return the vectors of texts. Raise `WeightsError` if its files are missing or broken."""
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
        """Return the vectors of texts. Raise `WeightsError` if its files are missing or broken."""
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


sentence_encoder, static_encoder = cache(SentenceEncoder), cache(StaticEncoder)
"""Functions that return the shipped encoders; each process has one of each."""


def vector_of(text: str) -> Floats:
    """Return a text's vector by the shipped encoder. May block.

    Raise `WeightsError` if its files are missing or broken.
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
        spec.server_description[:ABOUT_CHARS],
    ]
    return " ".join(part for part in parts if part)


def _spaced(name: str) -> str:
    return " ".join(words_of(name)) if name.isascii() else name


class Vectors:
    """A store of the vectors that an encoder computes. Threads can share it."""

    def __init__(self, encoder: TextEncoder, path: Path | None = None, *, at_once: int = AT_ONCE) -> None:
        """Store vectors in the SQLite file `path`, or only in memory."""
        self.encoder = encoder
        self._path = path
        self._at_once = at_once
        self._known: dict[bytes, Floats] = {}
        self._lock = Lock()
        self._worker: Thread | None = None
        self._is_stopped = False

    def of(self, texts: Sequence[str]) -> Floats | None:
        """Return the vectors of texts, one row per text; None while they are computed in the background. May block.

        Raise `WeightsError` if the encoder's files are missing or broken; a failure in the background is only logged.
        """
        named = (f"{self.encoder.name}\n{text}".encode("utf-8", "surrogatepass") for text in texts)
        keys = [hashlib.sha256(one).digest()[:16] for one in named]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            self._load(missing)
            missing = {key: text for key, text in missing.items() if key not in self._known}
        if len(missing) > self._at_once:
            self._compute_later(missing)
            return None
        self._compute(missing)
        rows = [self._known[key] for key in keys if key in self._known]
        return np.stack(rows) if len(rows) == len(keys) else None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the background computation; return whether it has ended."""
        if self._worker is not None:
            self._worker.join(seconds)
        return self._worker is None or not self._worker.is_alive()

    def _compute_later(self, missing: Mapping[bytes, str]) -> None:
        with self._lock:
            if self._worker is None or not self._worker.is_alive():
                self._worker = Thread(target=self._work, args=[[*missing.items()]], name="tool vectors", daemon=True)
                self._worker.start()

    def _work(self, missing: Sequence[tuple[bytes, str]]) -> None:
        atexit.register(self._stop)
        try:
            for start in range(0, len(missing), AT_ONCE):
                self._compute(dict(missing[start : start + AT_ONCE]))
        except WeightsError as error:  # the next request tries again
            log.warning("tools are ranked without the encoder: %s", error)
        finally:
            atexit.unregister(self._stop)

    def _stop(self) -> None:
        """End the worker before the interpreter exits, because native code must not run then."""
        self._is_stopped = True
        self.wait(2)

    def _compute(self, missing: Mapping[bytes, str]) -> None:
        computed: dict[bytes, Floats] = {}
        for key, text in missing.items():
            if self._is_stopped:
                break
            computed[key] = self.encoder.vectors([text])[0].astype(np.float16)
        self._known.update(computed)

        def store(file: sqlite3.Connection) -> None:
            rows = [(key, row.tobytes()) for key, row in computed.items()]
            file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            file.execute(_DELETE_OLDEST, [MAX_STORED])

        if computed:
            self._use_file(store)

    def _load(self, missing: Mapping[bytes, str]) -> None:
        def load(file: sqlite3.Connection) -> None:
            for key in missing:
                for (data,) in file.execute("SELECT data FROM vectors WHERE key = ?", [key]):
                    vector: Floats = np.frombuffer(data, np.float16)
                    if abs(np.linalg.norm(vector.astype(np.float32)) - 1) > UNIT_TOLERANCE:
                        raise ValueError("a stored vector is damaged")
                    self._known[key] = vector

        self._use_file(load)

    def _use_file(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Open the file, readable only by its owner, and commit at the end. An error of the file is only logged."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self._path, timeout=5)) as file, file:
                file.execute(_TABLE)
                action(file)
        except (sqlite3.Error, OSError, ValueError) as error:
            log.warning("%s: vectors of tools are not stored, and are computed again: %s", self._path, error)
