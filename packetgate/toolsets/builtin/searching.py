"""The tools that search and count text: `ai.search`, `ai.count` and `embedding.query`."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from packetgate.state.printing import byte_size, counted, shorten
from packetgate.state.routing import Risk
from packetgate.toolsets.builtin.corpus import Corpus, EmbeddingIndex, Passage
from packetgate.toolsets.builtin.files import Root, ToolFailure, lines_of
from packetgate.toolsets.builtin.paths import PathParameter, existing_path
from packetgate.toolsets.builtin.reading import LineRange, read_text
from packetgate.toolsets.builtin.tool import BuiltinTool, FileOrFolder, MaxResults, ToolAnswer, WhichFiles
from packetgate.toolsets.builtin.tree import MAX_TOTAL_BYTES, TreeEntry, path_matcher, skipped_text, texts_below

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_CONTEXT_LINES = 5
"""Lines shown around a single match."""
_MAX_PLACES = 10_000
_LINE_CHARS = 200
_PASSAGE_CHARS = 4_000
_MAX_NEAREST = 5
_FILES_SHOWN = 20
_MatchCase = Annotated[bool, Field(description="Whether capital and small letters must be the same.")]


def searching_tools(root: Root, corpus: Corpus) -> tuple[BuiltinTool, ...]:
    """Return the tools that search and count text below `root`.

    If the exact text occurs nowhere, the search returns passages with words of it from `corpus`.
    """

    def search(
        query: Annotated[
            str, Field(min_length=1, max_length=2_000, description="The word or text that the files should contain.")
        ],
        path: FileOrFolder = ".",
        pattern: WhichFiles = "*",
        match_case: _MatchCase = False,
        max_results: MaxResults = 50,
    ) -> ToolAnswer:
        """Search inside files for a word or exact text, like grep: which files contain or mention it, on which line.

        Returns: each place with path, line number and line; where there is only one, the passage around it. Where the
        text stands nowhere as it is given, the passages nearest by their words. Hidden and built files are not
        searched.
        """
        phrase, real_path = _phrase_pattern(query, match_case=match_case), existing_path(root, path)
        skipped, places, files = Counter[str](), list[Passage](), 0
        for entry, text in _texts(root, real_path, pattern, skipped):
            files += text is not None
            places += _places_of(entry.path, text or "", phrase)
            if len(places) > _MAX_PLACES:
                skipped["files after the first 10,000 places"] += 1
                break
        where = root.label(real_path)
        searched = f"{counted(files, 'text file')} of {where}" if real_path.is_dir() else where
        more = [f"[not searched: {skipped_text(skipped)}]"] if skipped.total() else []
        if places:
            shown = [one._replace(text=one.text[:_LINE_CHARS])._asdict() for one in places[:max_results]]
            cut = f", the first {max_results:,}" if max_results < len(places) else ""
            in_files = counted(len({place.path for place in places}), "file")
            lines = [f"{query!r} is in {counted(len(places), 'place')} in {in_files}, searching {searched}{cut}:"]
            lines += [f"{one.path}:{one.first_line}: {shorten(one.text, _LINE_CHARS)}" for one in places[:max_results]]
            if len(places) == 1 and len(passage := _around(root, places[0])) <= _PASSAGE_CHARS:
                lines = [f"{query!r} is in {places[0].path}, line {places[0].first_line}:", passage]
            return ToolAnswer("\n".join([*lines, *more]), {"found": len(places), "places": shown})
        nearest = _nearest_passages(corpus, query, root.name(real_path), pattern)
        head = f"No {'exact ' if nearest else ''}match for {query!r} in {searched}"
        head += ". Nearest passages:" if nearest else "."
        data = {"found": 0, "places": [], "nearest": [hit._asdict() for hit in nearest]}
        return ToolAnswer("\n\n".join([head, *(f"{hit.place}:\n{hit.text}" for hit in nearest), *more]), data)

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
        real_path = existing_path(root, path)
        phrase = _phrase_pattern(text, match_case=match_case) if text else None
        counts, matches, skipped = Counter[str](), Counter[str](), Counter[str]()
        for entry, content in _texts(root, real_path, pattern, skipped):
            counts.update(folders=entry.is_folder, files=entry.is_file, bytes=entry.size * entry.is_file)
            if content is not None:
                counts.update(lines=len(lines_of(content)), words=len(content.split()), characters=len(content))
                matches[entry.path] = sum(1 for _ in phrase.finditer(content)) if phrase else 0
        is_folder, where = real_path.is_dir(), root.label(real_path)
        nouns = (*(("file", "folder") if is_folder else ()), "line", "word", "character")
        totals = ", ".join(counted(counts[f"{noun}s"], noun) for noun in nouns)
        named = f", named {pattern}" if is_folder and pattern != "*" else ""
        lines = [f"{where}{named}: {totals}, {byte_size(counts['bytes'])}"]
        if text:
            lines = [f"{text!r} occurs {counted(matches.total(), 'time')} in {lines[0]}"]
            lines += [f"{name}: {number:,}" for name, number in (+matches).most_common(_FILES_SHOWN) if is_folder]
        if skipped.total():
            lines.append(f"[left out: {skipped_text(skipped)}]")
        data = {
            **{name: counts[name] for name in ("files", "folders", "lines", "words", "characters", "bytes")},
            "matches": matches.total() if text else None,
            "matches_by_file": dict(+matches),
            "left_out": dict(+skipped),
        }
        return ToolAnswer("\n".join(lines), data)

    path_parameters = (PathParameter(root, kind="any"),)
    return (BuiltinTool(search, Risk.READ, paths=path_parameters), BuiltinTool(count, Risk.READ, paths=path_parameters))


def embedding_tools(corpus: Corpus, embeddings: "Embeddings | None") -> tuple[BuiltinTool, ...]:
    """Return the tool that searches the corpus by meaning, or by words without embeddings."""
    by_meaning = EmbeddingIndex(embeddings) if embeddings is not None else None

    async def query(
        query: Annotated[str, Field(min_length=1, max_length=10_000, description="What to look for, in plain words.")],
        top_k: Annotated[int, Field(ge=1, le=50, description="Most hits to return.")] = 5,
    ) -> ToolAnswer:
        """Search the text files of the working folder by topic or meaning: the passages that answer a question best.

        Returns: these places with path, lines, score and text, how they were found (by words, or by meaning when
        embeddings are configured), and how many files were left out and why. Hidden, build and dependency folders are
        not searched, links are not followed.
        """
        scan = await asyncio.to_thread(corpus.scan)
        search, note = "lexical", ""
        hits: list[Passage] | None = None
        if by_meaning is not None:
            try:
                search, hits = "embeddings", await by_meaning.search(scan.passages, query, top_k)
            except Exception as error:  # noqa: BLE001  a wrong endpoint raises anything
                reason = shorten(f"{type(error).__name__}: {error}", 200)
                note = f"The embeddings failed ({reason}), so the search used words instead."
        if hits is None:
            hits = await asyncio.to_thread(corpus.search_words, query, top_k)
        kind = "by words" if search == "lexical" else "by meaning, with embeddings"
        searched = counted(scan.files, "file")
        head = f"{counted(len(hits), 'hit')} for {query!r} in {searched}, {kind}."
        if not hits:
            head = f"NO HITS: nothing in {searched} matches {query!r}, searched {kind}. Try other words."
        not_searched = f"Not searched: {skipped_text(scan.skipped)}." if scan.skipped.total() else ""
        data = {
            "search": search,
            "note": note,
            "files_searched": scan.files,
            "left_out": dict(+scan.skipped),
            "hits": [hit._asdict() for hit in hits],
        }
        places = [f"{hit.place} (score {hit.score:g}):\n{hit.text}" for hit in hits]
        return ToolAnswer("\n\n".join([" ".join(filter(None, [head, note, not_searched])), *places]), data)

    # with embeddings, the endpoint receives the text of the files
    return (BuiltinTool(query, Risk.READ, reaches_outside=embeddings is not None),)


def _texts(root: Root, real_path: Path, pattern: str, skipped: Counter[str]) -> Iterator[tuple[TreeEntry, str | None]]:
    """Yield a file with its text, or the entries below a folder with their texts. Raise errors only for a file."""
    if real_path.is_dir():
        yield from texts_below(root, real_path, skipped, pattern=pattern)
    else:
        name, text = read_text(root, str(real_path), MAX_TOTAL_BYTES)
        yield TreeEntry(name, real_path.stat()), text


def _phrase_pattern(text: str, *, match_case: bool) -> re.Pattern[str]:
    words = text.split()
    if not words:
        raise ToolFailure("the text to search for is blank: give a word or a phrase")
    return re.compile(r"\s+".join(map(re.escape, words)), re.NOFLAG if match_case else re.IGNORECASE)


def _places_of(path: str, text: str, phrase: re.Pattern[str]) -> list[Passage]:
    places: dict[tuple[int, int], Passage] = {}
    line, counted_to = 1, 0
    for match in phrase.finditer(text):
        start, end = match.span()
        line, counted_to = line + text.count("\n", counted_to, start), start
        lines = (line, line + match[0].count("\n"))
        begin, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        places.setdefault(lines, Passage(path, *lines, text[begin : stop if stop >= 0 else None]))
    return [*places.values()]


def _around(root: Root, place: Passage) -> str:
    """Return the lines around a place."""
    lines = LineRange(max(1, place.first_line - _CONTEXT_LINES), place.first_line + _CONTEXT_LINES)
    return lines.excerpt(*read_text(root, place.path, MAX_TOTAL_BYTES))


def _nearest_passages(corpus: Corpus, text: str, folder: str, pattern: str) -> list[Passage]:
    corpus.scan()
    try:
        hits = corpus.search_words(text, 40 * _MAX_NEAREST)
    except ToolFailure:  # the query contains no word
        return []
    matches, prefix = path_matcher(pattern), "" if folder == "." else f"{folder}/"
    return [hit for hit in hits if matches(hit.path) and f"{hit.path}/".startswith(prefix)][:_MAX_NEAREST]
