"""The tools' vectors: made once for a text, in the background, and kept in a file of the user's own."""

import atexit
import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread

import numpy as np

from packetgate.state.errors import WeightsError
from packetgate.tools.ranking.encoder import Encoder, Floats

log = logging.getLogger(__name__)

MOST_KEPT = 100_000
"""Vectors in the file; those used longest ago go first."""
IN_MEMORY = 200_000
AT_ONCE = 64
"""As many missing vectors are made while the request waits; more of them in the background."""
KEPT_REQUESTS = 256
STEP = 64
"""Vectors that are made before they are written down."""

_TABLE = "CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, used REAL NOT NULL, data BLOB NOT NULL)"
_OLDEST = "DELETE FROM vector WHERE key IN (SELECT key FROM vector ORDER BY used LIMIT ?)"


class Vectors:
    """The vectors of texts by one encoder. Threads may share it."""

    def __init__(self, encoder: Encoder, path: Path | None = None, *, at_once: int = AT_ONCE) -> None:
        """Keep vectors in the SQLite file `path`, or in memory alone."""
        self.encoder = encoder
        self._path = path
        self._at_once = at_once
        self._known: dict[bytes, Floats] = {}
        self._waiting: dict[bytes, str] = {}
        self._lock = Lock()
        self._jobs: SimpleQueue[Event | None] = SimpleQueue()
        self._worker: Thread | None = None
        self._stopped = Event()
        self._key = lru_cache(IN_MEMORY)(partial(_key, encoder.name))
        self.of_request = lru_cache(KEPT_REQUESTS)(lambda text: encoder.vectors([text])[0].astype(np.float32))
        """Returns a request's vector."""
        self.failure: WeightsError | None = None
        """Why no more vectors can be made in the background."""

    def of(self, texts: Sequence[str]) -> Floats | None:
        """Return the texts' vectors, a row each; None, where they are still being made. Blocking.

        Raises:
            WeightsError: the encoder's files are missing or broken.
        """
        keys = [self._key(text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if not missing.keys().isdisjoint(self._waiting):
            return None
        if missing:
            missing = self._not_kept(missing)
        if self.failure is not None:
            failure, self.failure = self.failure, None  # whoever asks next has it tried again
            raise failure
        if len(missing) > self._at_once:
            self._make_later(missing)
            return None
        self._make(missing)
        with self._lock:
            rows = [self._known.get(key) for key in keys]
        return None if any(row is None for row in rows) else np.stack([row for row in rows if row is not None])

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until everything that was asked for is made; return whether it is."""
        done = Event()
        self._start()
        self._jobs.put(done)
        return done.wait(seconds)

    def _not_kept(self, missing: dict[bytes, str]) -> dict[bytes, str]:
        """Read what is in the file, and return the rest."""
        found = self._read(missing)
        with self._lock:
            if len(self._known) + len(found) > IN_MEMORY:
                self._known = {}
            self._known.update(found)
        return {key: text for key, text in missing.items() if key not in found}

    def _make_later(self, missing: dict[bytes, str]) -> None:
        with self._lock:
            self._waiting.update(missing)
        self._start()
        self._jobs.put(Event())

    def _start(self) -> None:
        with self._lock:
            if self._worker is None or not self._worker.is_alive():
                self._stopped = Event()
                self._worker = Thread(target=self._work, args=(self._stopped,), name="tool vectors", daemon=True)
                self._worker.start()
                atexit.register(_stop, self._stopped, self._jobs, self._worker)

    def _work(self, stopped: Event) -> None:
        while not stopped.is_set():
            done = self._jobs.get()
            if done is None:
                return
            while not stopped.is_set():
                with self._lock:
                    step = dict(list(self._waiting.items())[:STEP])
                if not step:
                    break
                try:
                    self._make(step, stopped)
                except WeightsError as error:
                    self.failure = error
                    log.warning("tools are ranked without the encoder: %s", error)
                    with self._lock:
                        self._waiting.clear()
                with self._lock:
                    for key in step:
                        self._waiting.pop(key, None)
            done.set()

    def _make(self, missing: dict[bytes, str], stopped: Event | None = None) -> None:
        made: dict[bytes, Floats] = {}
        for key, text in missing.items():
            if stopped is not None and stopped.is_set():
                break
            made[key] = self.encoder.vectors([text])[0].astype(np.float16)
        with self._lock:
            self._known.update(made)
        self._write(made)

    def _read(self, keys: Iterable[bytes]) -> dict[bytes, Floats]:
        if self._path is None or not self._path.exists():
            return {}
        found: dict[bytes, Floats] = {}
        wanted = list(keys)
        now = time.time()
        try:
            with self._file(self._path) as file:
                for key in wanted:
                    row = file.execute("SELECT data FROM vector WHERE key = ?", [key]).fetchone()
                    if row is not None:
                        found[key] = np.frombuffer(row[0], np.float16)
                file.executemany("UPDATE vector SET used = ? WHERE key = ?", [(now, key) for key in found])
        except (sqlite3.Error, OSError) as error:
            log.warning("%s: the tools' vectors cannot be read, and are made anew: %s", self._path, error)
        return found

    def _write(self, made: dict[bytes, Floats]) -> None:
        if self._path is None or not made:
            return
        now = time.time()
        try:
            with self._file(self._path) as file:
                rows = [(key, now, row.tobytes()) for key, row in made.items()]
                file.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?)", rows)
                (many,) = file.execute("SELECT count(*) FROM vector").fetchone()
                if many > MOST_KEPT:
                    file.execute(_OLDEST, [many - MOST_KEPT])
        except (sqlite3.Error, OSError) as error:
            log.warning("%s: the tools' vectors cannot be kept: %s", self._path, error)

    @contextmanager
    def _file(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Open the file, for its owner alone, and commit at the end."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(path, timeout=5)) as file, file:
            file.execute(_TABLE)
            yield file


def _key(encoder: str, text: str) -> bytes:
    return hashlib.sha256(f"{encoder}\n{text}".encode("utf-8", "surrogatepass")).digest()[:16]


def _stop(stopped: Event, jobs: SimpleQueue[Event | None], worker: Thread) -> None:
    """End the work before the interpreter does: native code must not run on beside its end."""
    stopped.set()
    jobs.put(None)
    worker.join(timeout=2)
