"""Walk the files and folders below a folder, without hidden files, build output and installed packages."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from packetgate.toolsets.builtin.files import MAX_READ_BYTES, Root, ToolFailure, decode, may_hold_secrets, read_bytes

MAX_ENTRIES = 50_000
"""Largest number of entries that a walk visits."""
MAX_TOTAL_BYTES = 64_000_000
"""Largest number of bytes that a search reads."""
_MAX_ALTERNATIVES = 50
_GENERATED_FOLDERS = frozenset(
    "node_modules bower_components venv .venv site-packages __pycache__ .git dist build target vendor htmlcov".split()
)
_SUFFIXES = {
    "archive": "zip tar gz tgz bz2 xz 7z rar",
    "audio music": "mp3 wav flac ogg opus m4a aac aiff",
    "html": "html htm",
    "image picture photo": "png jpg jpeg gif webp svg bmp tif tiff heic avif ico",
    "javascript": "js mjs cjs jsx",
    "jpg jpeg": "jpg jpeg",
    "markdown": "md markdown",
    "presentation": "pptx ppt odp key",
    "python": "py pyi",
    "rust": "rs",
    "shell bash": "sh bash zsh",
    "spreadsheet": "xlsx xls ods csv tsv",
    "text": "txt",
    "typescript": "ts tsx",
    "video film movie": "mp4 mov mkv avi webm mpeg mpg",
    "yaml": "yaml yml",
}
_OTHER_SUFFIXES = (
    "c cpp csv css docx epub go ini ipynb java js json log md odt pdf php png pptx py rb rs rst sh sql svg tex toml ts"
    " tsv txt wav xlsx xml zip"
)
_SUFFIXES_BY_KIND = {kind: tuple(suffixes.split()) for kinds, suffixes in _SUFFIXES.items() for kind in kinds.split()}
_SUFFIXES_BY_KIND |= {suffix: (suffix,) for suffix in _OTHER_SUFFIXES.split()}
_KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}

WITHHELD = "secret or denied"
"""Reason for skipping: the file may hold secrets, or a policy rule asks about reading it or denies it."""
UNREADABLE, BEYOND_LIMITS = "unreadable", "beyond the limits"


class TreeEntry(NamedTuple):
    """A file, a folder or a link."""

    path: str
    """Relative to the working folder."""
    status: os.stat_result
    """Status of the entry itself; links are not followed."""

    @property
    def kind(self) -> str:
        """`folder`, `file`, `link` or `device`."""
        return _KINDS.get(stat.S_IFMT(self.status.st_mode), "device")

    @property
    def is_folder(self) -> bool:
        """Whether the entry is a folder."""
        return self.kind == "folder"

    @property
    def is_file(self) -> bool:
        """Whether the entry is a regular file."""
        return self.kind == "file"

    @property
    def size(self) -> int:
        """Bytes; 0 for a folder."""
        return 0 if self.is_folder else self.status.st_size

    @property
    def changed(self) -> datetime:
        """Local time of the last change."""
        return datetime.fromtimestamp(self.status.st_mtime)


def walk(
    root: Root, start: Path, skipped: Counter[str], *, pattern: str = "*", deep: bool = True, hidden: bool = False
) -> Iterator[TreeEntry]:
    """Yield the entries below a resolved folder that match a pattern; count skipped entries by reason in `skipped`.

    Hidden entries are skipped unless `hidden` is set or the pattern names them. Withheld entries are skipped unless the
    folder or the pattern names them, because then the user was asked.

    Raise `OSError` if the folder cannot be read.
    """
    secret_patterns = list(filter(may_hold_secrets, _alternatives(pattern))) if may_hold_secrets(pattern) else []
    matches, is_named = path_matcher(pattern), path_matcher(*secret_patterns, parts=False)
    start_is_named = root.withholds(root.name(start))
    hidden = hidden or any(part.startswith(".") for part in pattern.replace("{", "/").split("/"))
    visited = 0

    def count_unreadable(_error: OSError) -> None:
        skipped[UNREADABLE] += 1

    with root.folder(start) as top:
        for below, folders, files, descriptor in os.fwalk(".", onerror=count_unreadable, dir_fd=top):
            folder, subfolders = start / below, []
            for name in sorted(one for one in [*folders, *files] if hidden or not one.startswith(".")):
                path = root.name(folder / name)
                withheld = not start_is_named and root.withholds(path)
                visited += 1
                if visited > MAX_ENTRIES:
                    skipped[BEYOND_LIMITS] += 1
                    continue
                if name in folders and (not withheld or secret_patterns):
                    subfolders.append(name)
                if withheld and not is_named(path):
                    skipped[WITHHELD] += 1
                elif matches(path) or matches((folder / name).relative_to(start).as_posix()):
                    try:
                        yield TreeEntry(path, os.stat(name, dir_fd=descriptor, follow_symlinks=False))
                    except OSError as error:
                        count_unreadable(error)
            generated = {name for name in subfolders if name in _GENERATED_FOLDERS or name.endswith(".egg-info")}
            folders[:] = [name for name in subfolders if deep and name not in generated]
            skipped["folders of built or installed files"] += len(generated) * deep


def texts_below(
    root: Root, start: Path, skipped: Counter[str], *, pattern: str = "*", max_bytes: int = MAX_READ_BYTES
) -> Iterator[tuple[TreeEntry, str | None]]:
    """Yield each entry below a resolved folder, with the text of a text file of at most `max_bytes` bytes. Blocking.

    Files that are not read are counted by reason in `skipped`.
    """
    total = 0
    for entry in walk(root, start, skipped, pattern=pattern):
        text = None
        if entry.is_file and entry.size > max_bytes:
            skipped["too large"] += 1
        elif entry.is_file and total + entry.size > MAX_TOTAL_BYTES:
            skipped[BEYOND_LIMITS] += 1
        elif entry.is_file:
            total += entry.size
            try:
                text = decode(read_bytes(root, root.path / entry.path, max_bytes), entry.path)
            except OSError:
                skipped[UNREADABLE] += 1
            except ToolFailure:
                skipped["not text"] += 1
        yield entry, text


def skipped_text(skipped: Counter[str]) -> str:
    """Return the number of skipped entries for each reason, such as `3 too large, 1 not text`."""
    return ", ".join(f"{number:,} {reason}" for reason, number in skipped.items() if number)


def path_matcher(*patterns: str, parts: bool = True) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches one of the patterns, ignoring case.

    A pattern with a slash matches the whole path, with `**` for any number of folders; others match the name.

    Args:
        parts: whether a pattern without wildcards matches a part of the name.
    """
    expanded = [one.casefold().removeprefix("./").strip("/") for pattern in patterns for one in _alternatives(pattern)]
    return lambda path: any(_matches(path.casefold(), one, parts=parts) for one in expanded)


def _matches(path: str, pattern: str, *, parts: bool) -> bool:
    name = path.rpartition("/")[2]
    if "/" in pattern:
        return _folders_match(path.split("/"), pattern.split("/"))
    return pattern in name if parts and not {*"*?["} & {*pattern} else fnmatchcase(name, pattern)


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns without braces: `*.md` and `*.txt` for `*.{md,txt}`."""
    start, end = pattern.find("{"), pattern.find("}")
    if not 0 <= start < end:
        return [pattern]
    parts = pattern[start + 1 : end].split(",")[:_MAX_ALTERNATIVES]
    return [pattern[:start] + part.strip() + pattern[end + 1 :] for part in parts]


def _folders_match(parts: list[str], patterns: list[str]) -> bool:
    reached = {0}  # numbers of leading parts that the patterns so far can match
    for pattern in patterns:
        if pattern == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], pattern)}
    return len(parts) in reached


def suffixes_by_kind(kind: str) -> tuple[str, ...]:
    """Return the suffixes of a kind of files, such as `images`, without the dot; empty if the word names no kind."""
    word = kind.casefold().lstrip("*.")
    return _SUFFIXES_BY_KIND.get(word) or _SUFFIXES_BY_KIND.get(word.removesuffix("s"), ())


def name_pattern(name: str) -> str:
    """Return a pattern for file names that contain `name`, or have a suffix of the kind that `name` means."""
    suffixes = suffixes_by_kind(name) if name.isalpha() else ()
    others = "".join(f",*.{suffix}" for suffix in suffixes)
    return name if {*suffixes} <= {name.casefold()} else f"{{*{name}*{others}}}"
