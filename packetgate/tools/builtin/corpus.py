"""The text files below the working folder, cut into chunks, and kept up to date."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from packetgate.tools.builtin.failures import ToolFailure, os_failures
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.text import decode, lines_of, read_entry
from packetgate.tools.builtin.tree import BEYOND, UNREADABLE, WITHHELD, Entry, walk

MAX_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 64_000_000
_CHUNK_LINES = 40
_OVERLAP_LINES = 10
_PIECE_CHARS = 500


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
            passed, too_large, beyond, total = Counter[str](), 0, 0, 0
            for entry in walk(self._root, self._root.path, passed):
                size = entry.about.st_size
                if not entry.is_file:
                    continue
                if size > MAX_FILE_BYTES:
                    too_large += 1
                elif len(known) >= MAX_FILES or total + size > MAX_TOTAL_BYTES:
                    beyond += 1
                else:
                    try:
                        known[entry.path] = self._file(entry)
                        total += size
                    except OSError:
                        passed[UNREADABLE] += 1
            self._known = known
            files = {path: file for path, file in known.items() if file.is_text}
            left_out = {
                "too_large": too_large,
                "not_text": len(known) - len(files),
                "beyond_limits": beyond + passed[BEYOND],
                "unreadable": passed[UNREADABLE],
                "secret_or_denied": passed[WITHHELD],
            }
            return Scan(files, left_out)

    def _file(self, entry: Entry) -> TextFile:
        stamp = entry.about.st_mtime_ns, entry.about.st_size
        known = self._known.get(entry.path)
        if known is not None and known.stamp == stamp:
            return known
        try:
            text = decode(read_entry(entry.name, entry.folder, MAX_FILE_BYTES), entry.path)
            return TextFile(stamp, tuple(chunks_of(entry.path, text)), is_text=True)
        except ToolFailure:  # no text, or grown or turned into something else just now
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
