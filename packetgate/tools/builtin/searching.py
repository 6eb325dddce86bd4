"""The `ai.search` and `ai.count` tools."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from packetgate.state.printing import byte_size, counted, shorten
from packetgate.state.routing import Risk
from packetgate.tools.builtin.corpus import Corpus, Hit, LexicalIndex
from packetgate.tools.builtin.files import (
    NotTextError,
    Root,
    TooLargeError,
    ToolFailure,
    decode,
    lines_of,
    os_failures,
    read_bytes,
    read_entry,
)
from packetgate.tools.builtin.listing import folder_label
from packetgate.tools.builtin.paths import PathReader, missing
from packetgate.tools.builtin.reading import MAX_READ_BYTES, whole_text
from packetgate.tools.builtin.tool import Answer, BuiltinTool, FileOrFolder, WhichFiles
from packetgate.tools.builtin.tree import Entry, glob, walk

AROUND = 5
"""Lines shown around a single match."""
TOGETHER = 3
"""Matches within this many lines are shown as one passage."""
MOST_PLACES = 10_000
MAX_TOTAL_BYTES = 100_000_000
_LINE_CHARS = 200
_PASSAGE_CHARS = 4_000
_BY_WORDS = 5
_ENDINGS_SHOWN = 8
_FILES_SHOWN = 20
_MatchCase = Annotated[bool, Field(description="Whether capital and small letters must be the same.")]


def searching_tools(root: Root, corpus: Corpus, by_words: LexicalIndex) -> tuple[BuiltinTool, ...]:
    """Return the tools that search below `root`: exact text first, then the index of words."""

    def search(
        query: Annotated[
            str, Field(min_length=1, max_length=2_000, description="The word or text that the files should contain.")
        ],
        path: FileOrFolder = ".",
        pattern: WhichFiles = "*",
        match_case: _MatchCase = False,
        max_results: Annotated[
            int, Field(ge=1, le=1_000, description="Most results to return, for example 3 for the top 3.")
        ] = 50,
    ) -> Answer:
        """Search inside files for a word or exact text, like grep: which files contain or mention it, on which line.

        Returns: each place with path, line number and line; where there is only one, the passage around it. Where the
        text stands nowhere as it is given, the passages nearest by their words. Hidden and built files are not
        searched.
        """
        wanted, real = _phrase(query, match_case=match_case), root.resolve(path)
        where, left_out, places, files = folder_label(root, real), Counter[str](), list[_Place](), 0
        with os_failures(f"search {where}"):
            if not real.exists():
                raise missing(root, real, "any")
            if real.is_dir():
                for entry, content in _texts_below(root, real, pattern, left_out):
                    files += 1
                    places += _places(entry.path, content, wanted)
                    if len(places) > MOST_PLACES:
                        left_out["files after the first 10,000 places"] += 1
                        break
            else:
                name, content = whole_text(root, path, MAX_TOTAL_BYTES)
                files, places = 1, _places(name, content, wanted)
        searched = f"{counted(files, 'text file')} of {where}" if real.is_dir() else where
        more = [f"[not searched: {_numbers(left_out)}]"] * any(left_out.values())
        if places:
            return _places_answer(query, places, max_results, searched, more)
        nearest = _nearest(corpus, by_words, query, root.name(real), pattern)
        head = f"NO PLACE in {searched} says {query!r} word for word."
        data = {"found": 0, "places": [], "nearest": [hit._asdict() for hit in nearest]}
        if not nearest:
            return Answer("\n".join([head, *more]), data)
        passages = [f"{hit.path}, lines {hit.first_line} to {hit.last_line}:\n{hit.text}" for hit in nearest]
        return Answer("\n\n".join([f"{head} Nearest by its words:", *passages, *more]), data)

    def count(
        path: FileOrFolder = ".",
        pattern: WhichFiles = "*",
        text: Annotated[
            str, Field(max_length=2_000, description="A word or text: how often does it occur? Left out: not counted.")
        ] = "",
        match_case: _MatchCase = False,
    ) -> Answer:
        """Count lines, words, characters and files, or how often a text occurs: how many, how long, how big.

        Returns: of a file the counts of what is in it, of a folder those of the files and all that is in them.
        """
        real = root.resolve(path)
        name, wanted = root.name(real), _phrase(text, match_case=match_case) if text else None
        counts, left_out = _Counts(), Counter[str]()
        with os_failures(f"count {name}"):
            if not real.exists():
                raise missing(root, real, "any")
            if not real.is_dir():
                data = read_bytes(root, real, MAX_TOTAL_BYTES)
                counts.files, counts.size = 1, len(data)
                counts.add(name, decode(data, name), wanted)
                return _counts_answer(counts, name, text, left_out)
            for entry, content in _texts_below(root, real, pattern, left_out, counts):
                counts.add(entry.path, content, wanted)
        where = f"{folder_label(root, real)}{'' if pattern == '*' else f', named {pattern}'}"
        return _counts_answer(counts, where, text, left_out)

    readers = (PathReader(root, kind="any"),)
    return (BuiltinTool(search, Risk.READ, paths=readers), BuiltinTool(count, Risk.READ, paths=readers))


@dataclass
class _Counts:
    files: int = 0
    folders: int = 0
    size: int = 0
    """Bytes."""
    lines: int = 0
    words: int = 0
    characters: int = 0
    matches: Counter[str] = field(default_factory=Counter)
    """By file."""
    endings: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, text: str, wanted: re.Pattern[str] | None) -> None:
        self.lines += len(lines_of(text))
        self.words += len(text.split())
        self.characters += len(text)
        if matches := sum(1 for _ in wanted.finditer(text)) if wanted else 0:
            self.matches[name] = matches


def _texts_below(
    root: Root, real: Path, pattern: str, left_out: Counter[str], counts: _Counts | None = None
) -> Iterator[tuple[Entry, str]]:
    total, counts = 0, counts or _Counts()
    for entry in walk(root, real, left_out, pattern=pattern):
        counts.folders += entry.is_folder
        if not entry.is_file:
            continue
        size = entry.about.st_size
        counts.files += 1
        counts.size += size
        counts.endings[Path(entry.name).suffix or "without ending"] += 1
        total += min(size, MAX_READ_BYTES)
        if total > MAX_TOTAL_BYTES:
            left_out["not read, being beyond the limits"] += 1
            continue
        try:
            yield entry, decode(read_entry(entry.name, entry.folder, MAX_READ_BYTES), entry.path)
        except TooLargeError:
            left_out["not read, being too large"] += 1
        except (NotTextError, OSError):
            left_out["not read, being no text or not readable"] += 1


def _phrase(text: str, *, match_case: bool) -> re.Pattern[str]:
    words = text.split()
    if not words:
        raise ToolFailure("the text is blank: say what to look for")
    return re.compile(r"\s+".join(map(re.escape, words)), re.NOFLAG if match_case else re.IGNORECASE)


class _Place(NamedTuple):
    path: str
    first_line: int
    """Counted from 1, like `last_line`."""
    last_line: int
    text: str
    """From first to last line."""
    around: str
    """The same with `AROUND` lines on both sides."""
    around_from: int


def _places(path: str, content: str, wanted: re.Pattern[str]) -> list[_Place]:
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
        places.append(_Place(path, first + 1, last + 1, "\n".join(lines[first : last + 1]), around, before + 1))
    return places


def _places_answer(query: str, places: list[_Place], most: int, searched: str, more: list[str]) -> Answer:
    files = len({place.path for place in places})
    first, last, shown = places[0], places[-1], places[:most]
    kept = [(one.path, one.first_line, one.last_line, one.text[:_LINE_CHARS]) for one in shown]
    names = ("path", "first_line", "last_line", "text")
    data = {"found": len(places), "places": [dict(zip(names, one, strict=True)) for one in kept]}
    if files == 1 and last.last_line - first.first_line <= TOGETHER and len(first.around) <= _PASSAGE_CHARS:
        end = first.around_from + first.around.count("\n")
        head = f"{query!r} stands in {first.path}, line {first.first_line}. Lines {first.around_from} to {end}:"
        return Answer("\n".join([head, first.around, *more]), data)
    cut = f", the first {most:,}" if len(shown) < len(places) else ""
    where = f"{counted(len(places), 'place')} in {counted(files, 'file')}"
    lines = [f"{one.path}:{one.first_line}: {shorten(one.text, _LINE_CHARS)}" for one in shown]
    return Answer("\n".join([f"{query!r} stands in {where}, searching {searched}{cut}:", *lines, *more]), data)


def _nearest(corpus: Corpus, by_words: LexicalIndex, text: str, folder: str, pattern: str) -> list[Hit]:
    try:
        hits = by_words.search(corpus.scan().files, text, 40 * _BY_WORDS)
    except ToolFailure:  # there is no word in it
        return []
    fits, prefix = glob(pattern), "" if folder == "." else f"{folder}/"
    return [hit for hit in hits if fits(hit.path) and f"{hit.path}/".startswith(prefix)][:_BY_WORDS]


def _counts_answer(counts: _Counts, where: str, text: str, left_out: Counter[str]) -> Answer:
    totals = [counted(counts.lines, "line"), counted(counts.words, "word"), counted(counts.characters, "character")]
    if counts.endings or counts.files != 1:
        totals = [counted(counts.files, "file"), counted(counts.folders, "folder"), *totals]
    matches = counts.matches.total()
    lines = [f"{where}: {', '.join(totals)}, {byte_size(counts.size)}"]
    if text:
        lines = [f"{text!r} occurs {counted(matches, 'time')} in {lines[0]}"]
        best = counts.matches.most_common(_FILES_SHOWN)
        lines += [f"{name}: {number:,}" for name, number in best if counts.endings]
    elif len(counts.endings) > 1:
        endings = counts.endings.most_common(_ENDINGS_SHOWN)
        lines.append(f"By ending: {', '.join(f'{number:,} {ending}' for ending, number in endings)}")
    if any(left_out.values()):
        lines.append(f"[left out: {_numbers(left_out)}]")
    data = {
        **{name: getattr(counts, name) for name in ("files", "folders", "lines", "words", "characters")},
        "bytes": counts.size,
        "matches": matches if text else None,
        "matches_by_file": dict(counts.matches),
        "left_out": {why: number for why, number in left_out.items() if number},
    }
    return Answer("\n".join(lines), data)


def _numbers(left_out: Counter[str]) -> str:
    return ", ".join(f"{number:,} {why}" for why, number in left_out.items() if number)
