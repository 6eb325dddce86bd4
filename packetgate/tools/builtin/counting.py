"""What `ai.count` does."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packetgate.state.printing import byte_size, counted
from packetgate.tools.builtin.failures import NotTextError, TooLargeError, ToolFailure, os_failures
from packetgate.tools.builtin.listing import where_of
from packetgate.tools.builtin.paths import missing
from packetgate.tools.builtin.reading import MAX_READ_BYTES
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.text import decode, lines_of, read_bytes, read_entry
from packetgate.tools.builtin.tool import Answer
from packetgate.tools.builtin.tree import Entry, walk

MAX_TOTAL_BYTES = 100_000_000
_ENDINGS_SHOWN = 8
_FILES_SHOWN = 20


@dataclass
class Counts:
    """What was counted of one text or of several."""

    files: int = 0
    folders: int = 0
    size: int = 0
    """In bytes."""
    lines: int = 0
    words: int = 0
    characters: int = 0
    matches: int = 0
    by_file: dict[str, int] = field(default_factory=dict)
    """Matches, where there are any."""
    endings: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, text: str, wanted: re.Pattern[str] | None) -> None:
        """Count a text in."""
        self.lines += len(lines_of(text))
        self.words += len(text.split())
        self.characters += len(text)
        matches = sum(1 for _ in wanted.finditer(text)) if wanted else 0
        self.matches += matches
        if matches:
            self.by_file[name] = matches


def count(root: Root, path: str, pattern: str, text: str, *, match_case: bool) -> Answer:
    """Count what a file, or a folder with all below it, holds. Blocking.

    Raises:
        ToolFailure: it does not exist, is outside the root, or is a single file without text.
    """
    real = root.resolve(path)
    name, wanted = root.name(real), phrase(text, match_case=match_case) if text else None
    counts, left_out = Counts(), Counter[str]()
    with os_failures(f"count {name}"):
        if not real.exists():
            raise missing(root, real, "any")
        if not real.is_dir():
            data = read_bytes(root, real, MAX_TOTAL_BYTES)
            counts.files, counts.size = 1, len(data)
            counts.add(name, decode(data, name), wanted)
            return _answer(counts, name, text, left_out)
        for entry, content in texts_below(root, real, pattern, left_out, counts):
            counts.add(entry.path, content, wanted)
    told = f"{where_of(root, real)}{'' if pattern == '*' else f', named {pattern}'}"
    return _answer(counts, told, text, left_out)


def texts_below(
    root: Root, real: Path, pattern: str, left_out: Counter[str], counts: Counts | None = None
) -> Iterator[tuple[Entry, str]]:
    """Yield the text files below a resolved folder with their texts; `counts` counts the others as well."""
    total, counts = 0, counts or Counts()
    for entry in walk(root, real, left_out, pattern=pattern):
        if entry.is_folder:
            counts.folders += 1
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


def phrase(text: str, *, match_case: bool) -> re.Pattern[str]:
    """Return what finds a text word for word, whatever the spaces and ends of lines between its words.

    Raises:
        ToolFailure: it is blank.
    """
    words = text.split()
    if not words:
        raise ToolFailure("the text is blank: say what to look for")
    return re.compile(r"\s+".join(map(re.escape, words)), re.NOFLAG if match_case else re.IGNORECASE)


def _answer(counts: Counts, where: str, text: str, left_out: Counter[str]) -> Answer:
    told = [counted(counts.lines, "line"), counted(counts.words, "word"), counted(counts.characters, "character")]
    if counts.endings or counts.files != 1:
        told = [counted(counts.files, "file"), counted(counts.folders, "folder"), *told]
    lines = [f"{where}: {', '.join(told)}, {byte_size(counts.size)}"]
    if text:
        lines = [f"{text!r} occurs {counted(counts.matches, 'time')} in {lines[0]}"]
        best = Counter(counts.by_file).most_common(_FILES_SHOWN)
        lines += [f"{name}: {number:,}" for name, number in best if counts.endings]
    elif len(counts.endings) > 1:
        of = ", ".join(f"{number:,} {ending}" for ending, number in counts.endings.most_common(_ENDINGS_SHOWN))
        lines.append(f"By ending: {of}")
    passed = {why: number for why, number in left_out.items() if number}
    if passed:
        lines.append(f"[left out: {', '.join(f'{number:,} {why}' for why, number in passed.items())}]")
    data: dict[str, Any] = {
        "files": counts.files,
        "folders": counts.folders,
        "bytes": counts.size,
        "lines": counts.lines,
        "words": counts.words,
        "characters": counts.characters,
        "matches": counts.matches if text else None,
        "matches_by_file": counts.by_file,
        "left_out": passed,
    }
    return Answer("\n".join(lines), data)
