"""The text files below the working folder, cut into chunks, and kept up to date."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from tools.builtin.failures import NotTextError, os_failures
from tools.builtin.root import Root
from tools.builtin.text import decode, lines_of

MAX_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 64_000_000
_CHUNK_LINES = 40
_OVERLAP_LINES = 10
_PIECE_CHARS = 500
_SKIPPED = frozenset(
    {"node_modules", "bower_components", "venv", "site-packages", "__pycache__"}
    | {"dist", "build", "target", "vendor", "htmlcov"}
)


class Chunk(NamedTuple):
    """Some lines of a file, counted from 1."""

    path: str
    first_line: int
    last_line: int
    text: str


class Hit(NamedTuple):
    """A chunk that fits a query."""

    path: str
    first_line: int
    last_line: int
    score: float
    """Higher is better; comparable only within one search."""
    text: str


@dataclass(frozen=True)
class TextFile:
    """A file as it was at its stamp: its time of change in nanoseconds, and its size in bytes."""

    stamp: tuple[int, int]
    chunks: tuple[Chunk, ...]
    is_text: bool


@dataclass(frozen=True)
class Scan:
    """What a search looks through. A file that has not changed is the same object in every scan."""

    files: Mapping[str, TextFile]
    left_out: Mapping[str, int]
    """How many files are not in `files`, by reason."""


class Corpus:
    """The text files of a root; safe to scan from several threads."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, TextFile] = {}
        self._lock = Lock()

    def scan(self) -> Scan:
        """Look at every file and read those that are new or changed; blocks.

        Raises:
            ToolFailure: the root cannot be read.
        """
        with self._lock, os_failures(f"search {self._root.path}"):
            known: dict[str, TextFile] = {}
            left_out = dict.fromkeys(("too_large", "not_text", "beyond_limits", "unreadable"), 0)
            total = 0
            for path, name, folder in self._walk(left_out):
                try:
                    about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if not stat.S_ISREG(about.st_mode):
                        continue
                    if about.st_size > MAX_FILE_BYTES:
                        left_out["too_large"] += 1
                    elif len(known) >= MAX_FILES or total + about.st_size > MAX_TOTAL_BYTES:
                        left_out["beyond_limits"] += 1
                    else:
                        known[path] = self._file(path, name, folder, (about.st_mtime_ns, about.st_size))
                        total += about.st_size
                except OSError:
                    left_out["unreadable"] += 1
            self._known = known
            files = {path: file for path, file in known.items() if file.is_text}
            return Scan(files, {**left_out, "not_text": len(known) - len(files)})

    def _walk(self, left_out: dict[str, int]) -> Iterator[tuple[str, str, int]]:
        """Yield (path, name, descriptor of its folder) of all files but hidden and built ones."""

        def unreadable(_error: OSError) -> None:
            left_out["unreadable"] += 1

        for folder, folders, names, descriptor in os.fwalk(self._root.path, onerror=unreadable):
            folders[:] = sorted(name for name in folders if not _is_skipped(name))
            for name in sorted(names):
                if not name.startswith("."):
                    yield self._root.name(Path(folder, name)), name, descriptor

    def _file(self, path: str, name: str, folder: int, stamp: tuple[int, int]) -> TextFile:
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            return known
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_FILE_BYTES)
        try:
            return TextFile(stamp, tuple(chunks_of(path, decode(data, path))), is_text=True)
        except NotTextError:
            return TextFile(stamp, (), is_text=False)


def chunks_of(path: str, text: str) -> Iterator[Chunk]:
    """Cut a text into overlapping chunks; a line as long as a whole file counts as many."""
    pieces = [
        (number, line[start : start + _PIECE_CHARS])
        for number, line in enumerate(lines_of(text), 1)
        for start in range(0, max(len(line), 1), _PIECE_CHARS)
    ]
    for start in range(0, max(len(pieces) - _OVERLAP_LINES, 1), _CHUNK_LINES - _OVERLAP_LINES):
        part = pieces[start : start + _CHUNK_LINES]
        body = "\n".join(piece for _, piece in part)
        if body.strip():
            yield Chunk(path, part[0][0], part[-1][0], body)


def best(scored: Iterable[tuple[Chunk, float]], top_k: int) -> list[Hit]:
    """Return the best hits, best first, leaving out chunks that overlap a better one."""
    hits: list[Hit] = []
    for (path, first, last, text), score in scored:
        if not any(hit.path == path and hit.first_line <= last and first <= hit.last_line for hit in hits):
            hits.append(Hit(path, first, last, float(f"{score:.4g}"), text))
    return hits[:top_k]


def _is_skipped(folder: str) -> bool:
    return folder.startswith(".") or folder in _SKIPPED or folder.endswith(".egg-info")
