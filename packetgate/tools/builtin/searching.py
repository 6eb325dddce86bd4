"""The `ai.search` and `ai.count` tools."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
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
    read_in_folder,
)
from packetgate.tools.builtin.paths import PathReader, missing
from packetgate.tools.builtin.reading import MAX_READ_BYTES, read_text
from packetgate.tools.builtin.tool import BuiltinTool, FileOrFolder, ToolAnswer, WhichFiles
from packetgate.tools.builtin.tree import path_matcher, walk

CONTEXT_LINES = 5
"""Lines shown around a single match."""
_MERGED_LINES = 3
"""Matches within this many lines are shown as one passage."""
_MAX_PLACES = 10_000
_MAX_TOTAL_BYTES = 100_000_000
_LINE_CHARS = 200
_PASSAGE_CHARS = 4_000
_MAX_NEAREST = 5
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
    ) -> ToolAnswer:
        """Search inside files for a word or exact text, like grep: which files contain or mention it, on which line.

        Returns: each place with path, line number and line; where there is only one, the passage around it. Where the
        text stands nowhere as it is given, the passages nearest by their words. Hidden and built files are not
        searched.
        """
        wanted, real = _phrase(query, match_case=match_case), root.resolve(path)
        left_out, places, files = Counter[str](), list[_Place](), 0
        for name, content in _texts(root, real, pattern, left_out):
            files += 1
            places += _places(name, content, wanted)
            if len(places) > _MAX_PLACES:
                left_out["files after the first 10,000 places"] += 1
                break
        where = root.label(real)
        searched = f"{counted(files, 'text file')} of {where}" if real.is_dir() else where
        more = [f"[not searched: {_numbers(left_out)}]"] if left_out.total() else []
        if places:
            return _places_answer(query, places, max_results, searched, more)
        nearest = _nearest(corpus, by_words, query, root.name(real), pattern)
        head = f"NO EXACT MATCH for {query!r} in {searched}."
        data = {"found": 0, "places": [], "nearest": [hit._asdict() for hit in nearest]}
        if not nearest:
            return ToolAnswer("\n".join([head, *more]), data)
        passages = [f"{hit.path}, lines {hit.first_line} to {hit.last_line}:\n{hit.text}" for hit in nearest]
        return ToolAnswer("\n\n".join([f"{head} Nearest passages:", *passages, *more]), data)

    def count(
        path: FileOrFolder = ".",
        pattern: WhichFiles = "*",
        text: Annotated[
            str, Field(max_length=2_000, description="A word or text: how often does it occur? Left out: not counted.")
        ] = "",
        match_case: _MatchCase = False,
    ) -> ToolAnswer:
        """Count lines, words, characters and files, or how often a text occurs: how many, how long, how big.

        Returns: of a file the counts of what is in it, of a folder those of the files and all that is in them.
        """
        real = root.resolve(path)
        wanted = _phrase(text, match_case=match_case) if text else None
        counts, matches, left_out = Counter[str](), Counter[str](), Counter[str]()
        for name, content in _texts(root, real, pattern, left_out, counts):
            counts.update(lines=len(lines_of(content)), words=len(content.split()), characters=len(content))
            matches[name] = sum(1 for _ in wanted.finditer(content)) if wanted else 0
        is_folder = real.is_dir()
        nouns = ("file", "folder", "line", "word", "character") if is_folder else ("line", "word", "character")
        where = root.label(real) if pattern == "*" or not is_folder else f"{root.label(real)}, named {pattern}"
        totals = ", ".join(counted(counts[f"{noun}s"], noun) for noun in nouns)
        lines = [f"{where}: {totals}, {byte_size(counts['bytes'])}"]
        if text:
            lines = [f"{text!r} occurs {counted(matches.total(), 'time')} in {lines[0]}"]
            lines += [
                f"{name}: {number:,}" for name, number in matches.most_common(_FILES_SHOWN) if is_folder and number
            ]
        if left_out.total():
            lines.append(f"[left out: {_numbers(left_out)}]")
        names = ("files", "folders", "lines", "words", "characters", "bytes")
        data = {
            **{name: counts[name] for name in names},
            "matches": matches.total() if text else None,
            "matches_by_file": {name: number for name, number in matches.items() if number},
            "left_out": {why: number for why, number in left_out.items() if number},
        }
        return ToolAnswer("\n".join(lines), data)

    readers = (PathReader(root, kind="any"),)
    return (BuiltinTool(search, Risk.READ, paths=readers), BuiltinTool(count, Risk.READ, paths=readers))


def _texts(
    root: Root, real: Path, pattern: str, left_out: Counter[str], counts: Counter[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield name and text of a file, or of the files below a folder; count files, folders and bytes."""
    counts = Counter() if counts is None else counts
    with os_failures(f"read {root.name(real)}"):
        if not real.exists():
            raise missing(root, real, "any")
        if not real.is_dir():
            name, text = read_text(root, str(real), _MAX_TOTAL_BYTES)
            counts.update(files=1, bytes=real.stat().st_size)
            yield name, text
            return
        total = 0
        for entry in walk(root, real, left_out, pattern=pattern):
            if not entry.is_file:
                counts["folders"] += entry.is_folder
                continue
            size = entry.status.st_size
            counts.update(files=1, bytes=size)
            total += min(size, MAX_READ_BYTES)
            if total > _MAX_TOTAL_BYTES:
                left_out["not read: beyond the limits"] += 1
                continue
            try:
                yield entry.path, decode(read_in_folder(entry.name, entry.folder, MAX_READ_BYTES), entry.path)
            except TooLargeError:
                left_out["not read: too large"] += 1
            except (NotTextError, OSError):
                left_out["not read: not text or not readable"] += 1


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
    passage: str
    """`text` with `CONTEXT_LINES` lines before and after it."""
    passage_start: int


def _places(path: str, content: str, wanted: re.Pattern[str]) -> list[_Place]:
    matches = [match.span() for match in wanted.finditer(content)]
    if not matches:
        return []
    lines = lines_of(content)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spans = [(bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1) for start, end in matches]
    places = []
    for first, last in dict.fromkeys(spans):
        before = max(0, first - CONTEXT_LINES)
        passage = "\n".join(lines[before : last + CONTEXT_LINES + 1])
        places.append(_Place(path, first + 1, last + 1, "\n".join(lines[first : last + 1]), passage, before + 1))
    return places


def _places_answer(query: str, places: list[_Place], limit: int, searched: str, more: list[str]) -> ToolAnswer:
    files = len({place.path for place in places})
    first, last, shown = places[0], places[-1], places[:limit]
    rows = [
        {"path": one.path, "first_line": one.first_line, "last_line": one.last_line, "text": one.text[:_LINE_CHARS]}
        for one in shown
    ]
    data = {"found": len(places), "places": rows}
    if files == 1 and last.last_line - first.first_line <= _MERGED_LINES and len(first.passage) <= _PASSAGE_CHARS:
        end = first.passage_start + first.passage.count("\n")
        head = f"{query!r} is in {first.path}, line {first.first_line}. Lines {first.passage_start} to {end}:"
        return ToolAnswer("\n".join([head, first.passage, *more]), data)
    cut = f", the first {limit:,}" if len(shown) < len(places) else ""
    where = f"{counted(len(places), 'place')} in {counted(files, 'file')}"
    lines = [f"{one.path}:{one.first_line}: {shorten(one.text, _LINE_CHARS)}" for one in shown]
    return ToolAnswer("\n".join([f"{query!r} is in {where}, searching {searched}{cut}:", *lines, *more]), data)


def _nearest(corpus: Corpus, by_words: LexicalIndex, text: str, folder: str, pattern: str) -> list[Hit]:
    try:
        hits = by_words.search(corpus.scan().files, text, 40 * _MAX_NEAREST)
    except ToolFailure:  # the query has no word
        return []
    matches, prefix = path_matcher(pattern), "" if folder == "." else f"{folder}/"
    return [hit for hit in hits if matches(hit.path) and f"{hit.path}/".startswith(prefix)][:_MAX_NEAREST]


def _numbers(left_out: Counter[str]) -> str:
    return ", ".join(f"{number:,} {why}" for why, number in left_out.items() if number)
