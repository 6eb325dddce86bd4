"""What `ai.search` does."""

import re
from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from typing import NamedTuple

from packetgate.state.printing import counted, shorten
from packetgate.tools.builtin.corpus import Corpus, Hit
from packetgate.tools.builtin.counting import MAX_TOTAL_BYTES, phrase, texts_below
from packetgate.tools.builtin.failures import ToolFailure, os_failures
from packetgate.tools.builtin.lexical import LexicalIndex
from packetgate.tools.builtin.listing import where_of
from packetgate.tools.builtin.paths import missing
from packetgate.tools.builtin.reading import whole_text
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.text import lines_of
from packetgate.tools.builtin.tool import Answer
from packetgate.tools.builtin.tree import glob

AROUND = 5
"""Lines shown before and after the only place."""
TOGETHER = 3
"""Places so many lines apart are one passage."""
MOST_PLACES = 10_000
_LINE_CHARS = 200
_PASSAGE_CHARS = 4_000
_BY_WORDS = 5


class Place(NamedTuple):
    """Where a text stands: the lines that it begins and ends on, counted from 1."""

    path: str
    first_line: int
    last_line: int
    text: str
    """These lines."""
    around: str
    """These lines and those beside them."""
    around_from: int

    @property
    def line(self) -> str:
        """One line of a list of places."""
        return f"{self.path}:{self.first_line}: {shorten(self.text, _LINE_CHARS)}"


class Searcher:
    """Searches the texts below a root: word for word, and where that finds nothing, by their words."""

    def __init__(self, root: Root, corpus: Corpus, by_words: LexicalIndex) -> None:
        self._root = root
        self._corpus = corpus
        self._by_words = by_words

    def search(self, text: str, path: str, pattern: str, most: int, *, match_case: bool) -> Answer:
        """Return where a text stands; of a single place, the passage around it. Blocking.

        Raises:
            ToolFailure: the text is blank, or the file or folder to look in is not there, or outside the root.
        """
        wanted = phrase(text, match_case=match_case)
        real = self._root.resolve(path)
        where, left_out, places, files = where_of(self._root, real), Counter[str](), list[Place](), 0
        with os_failures(f"search {where}"):
            if not real.exists():
                raise missing(self._root, real, "any")
            if real.is_dir():
                for entry, content in texts_below(self._root, real, pattern, left_out):
                    files += 1
                    places += _places(entry.path, content, wanted)
                    if len(places) > MOST_PLACES:
                        left_out["files after the first 10,000 places"] += 1
                        break
            else:
                name, content = whole_text(self._root, path, MAX_TOTAL_BYTES)
                files, places = 1, _places(name, content, wanted)
        searched = f"{counted(files, 'text file')} of {where}" if real.is_dir() else where
        more = [f"[not searched: {_counts(left_out)}]"] * any(left_out.values())
        if not places:
            return self._nearest(text, self._root.name(real), pattern, searched, more)
        return _answer(text, places, most, searched, more)

    def _nearest(self, text: str, folder: str, pattern: str, searched: str, more: list[str]) -> Answer:
        told = f"NO PLACE in {searched} says {text!r} word for word."
        try:
            found = self._by_words.search(self._corpus.scan().files, text, 40 * _BY_WORDS)
        except ToolFailure:  # there is no word in it
            found = []
        fits, prefix = glob(pattern), "" if folder == "." else f"{folder}/"
        hits = [hit for hit in found if fits(hit.path) and f"{hit.path}/".startswith(prefix)][:_BY_WORDS]
        if not hits:
            return Answer("\n".join([told, *more]), {"found": 0, "places": [], "nearest": []})
        lines = [f"{told} Nearest by its words:", *map(_told, hits), *more]
        return Answer("\n\n".join(lines), {"found": 0, "places": [], "nearest": [hit._asdict() for hit in hits]})


def _places(path: str, content: str, wanted: re.Pattern[str]) -> list[Place]:
    matches = [match.span() for match in wanted.finditer(content)]
    if not matches:
        return []
    lines = lines_of(content)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spans = [(bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1) for start, end in matches]
    places = []
    for first, last in dict.fromkeys(spans):
        before = max(0, first - AROUND)
        around = "\n".join(lines[before : last + AROUND + 1])
        places.append(Place(path, first + 1, last + 1, "\n".join(lines[first : last + 1]), around, before + 1))
    return places


def _answer(text: str, places: list[Place], most: int, searched: str, more: list[str]) -> Answer:
    files = len({place.path for place in places})
    first, last = places[0], places[-1]
    shown = places[:most]
    data = {
        "found": len(places),
        "places": [
            {"path": one.path, "first_line": one.first_line, "last_line": one.last_line, "text": one.text[:_LINE_CHARS]}
            for one in shown
        ],
    }
    if files == 1 and last.last_line - first.first_line <= TOGETHER and len(first.around) <= _PASSAGE_CHARS:
        end = first.around_from + first.around.count("\n")
        head = f"{text!r} stands in {first.path}, line {first.first_line}. Lines {first.around_from} to {end}:"
        return Answer("\n".join([head, first.around, *more]), data)
    cut = f", the first {most:,}" if len(shown) < len(places) else ""
    head = f"{text!r} stands in {counted(len(places), 'place')} in {counted(files, 'file')}, searching {searched}{cut}:"
    return Answer("\n".join([head, *(one.line for one in shown), *more]), data)


def _told(hit: Hit) -> str:
    return f"{hit.path}, lines {hit.first_line} to {hit.last_line}:\n{hit.text}"


def _counts(left_out: Counter[str]) -> str:
    return ", ".join(f"{number:,} {why}" for why, number in left_out.items() if number)
