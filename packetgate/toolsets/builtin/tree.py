"""Walk the files and folders below a folder, without hidden files, build output and installed packages."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from packetgate.toolsets.builtin.files import (
    MAX_READ_BYTES,
    Root,
    ToolFailure,
    decode,
    may_hold_secrets,
    read_in_folder,
)

MAX_ENTRIES = 50_000
"""Largest number of entries that a walk visits."""
MAX_TOTAL_BYTES = 100_000_000
"""Largest number of bytes that a search reads."""
_MAX_ALTERNATIVES = 50
_GENERATED_FOLDERS = frozenset(
    {"node_modules", "bower_components", "venv", ".venv", "site-packages", "__pycache__", ".git"}
    | {"dist", "build", "target", "vendor", "htmlcov"}
)
_SUFFIXES = {
    "archive": "zip tar gz tgz bz2 xz 7z rar",
    "audio": "mp3 wav flac ogg opus m4a aac aiff",
    "html": "html htm",
    "image": "png jpg jpeg gif webp svg bmp tif tiff heic avif ico",
    "javascript": "js mjs cjs jsx",
    "jpeg": "jpg jpeg",
    "jpg": "jpg jpeg",
    "markdown": "md markdown",
    "presentation": "pptx ppt odp key",
    "python": "py pyi",
    "rust": "rs",
    "shell": "sh bash zsh",
    "spreadsheet": "xlsx xls ods csv tsv",
    "text": "txt",
    "typescript": "ts tsx",
    "video": "mp4 mov mkv avi webm mpeg mpg",
    "yaml": "yaml yml",
    **{suffix: suffix for suffix in "c cpp csv css docx epub go ini ipynb java js json log md odt pdf php".split()},
    **{suffix: suffix for suffix in "png pptx py rb rs rst sh sql svg tex toml ts tsv txt wav xlsx xml zip".split()},
}
_SYNONYMS = {"picture": "image", "photo": "image", "music": "audio", "film": "video", "movie": "video", "bash": "shell"}

_KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}

WITHHELD = "secret or denied"
"""Reason for skipping: the file may hold secrets, or a policy rule asks about reading it or denies it."""
NOT_ENTERED = "folders of built or installed files"
BEYOND_LIMITS, TOO_LARGE, NOT_TEXT, UNREADABLE = "beyond the limits", "too large", "not text", "unreadable"


class TreeEntry(NamedTuple):
    """A file, a folder or a link."""

    path: str
    """Relative to the working folder."""
    name: str
    folder: int
    """File descriptor of its folder, valid until the next entry is requested."""
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


def entry_at(root: Root, path: Path) -> TreeEntry:
    """Return the entry at a resolved path, without an open folder. Raise `OSError` if there is none."""
    return TreeEntry(root.name(path), path.name, -1, path.lstat())


def walk(
    root: Root, start: Path, skipped: Counter[str], *, pattern: str = "*", deep: bool = True, hidden: bool = False
) -> Iterator[TreeEntry]:
    """Yield the entries below a resolved folder that match a pattern; count skipped entries by reason in `skipped`.

    Hidden entries are skipped unless `hidden` is set or the pattern names them. Withheld entries are skipped unless the
    folder or the pattern names them, because then the user was asked.

    Raise `OSError` if the folder cannot be read.
    """
    secret_patterns = list(filter(may_hold_secrets, expand_braces(pattern))) if may_hold_secrets(pattern) else []
    matches, is_named = path_matcher(pattern), path_matcher(*secret_patterns, parts=False)
    start_is_named = root.withholds(root.name(start))
    includes_hidden = hidden or any(part.startswith(".") for part in pattern.replace("{", "/").split("/"))
    visited = 0

    def count_unreadable(_error: OSError) -> None:
        skipped[UNREADABLE] += 1

    with root.folder(start) as top:
        for below, folders, files, descriptor in os.fwalk(".", onerror=count_unreadable, dir_fd=top):
            folder = start / below
            subfolders = []
            for name in sorted([*folders, *files]):
                if name.startswith(".") and not includes_hidden:
                    continue
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
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    except OSError as error:
                        count_unreadable(error)
                    else:
                        yield TreeEntry(path, name, descriptor, status)
            folders[:] = [name for name in subfolders if deep and not _is_generated(name)]
            skipped[NOT_ENTERED] += sum(_is_generated(name) for name in subfolders) if deep else 0


def _is_generated(folder: str) -> bool:
    return folder in _GENERATED_FOLDERS or folder.endswith(".egg-info")


def texts_below(
    root: Root,
    start: Path,
    skipped: Counter[str],
    *,
    pattern: str = "*",
    file_bytes: int = MAX_READ_BYTES,
    total_bytes: int = MAX_TOTAL_BYTES,
    files: int = MAX_ENTRIES,
    counts: Counter[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each text file below a resolved folder. Blocking.

    Files that are not read are counted by reason in `skipped`; all files and folders, and the bytes, in `counts`.
    """
    total, read = 0, 0
    counts = Counter[str]() if counts is None else counts
    for entry in walk(root, start, skipped, pattern=pattern):
        size = entry.size
        counts.update(folders=entry.is_folder, files=entry.is_file, bytes=size * entry.is_file)
        if not entry.is_file:
            continue
        if size > file_bytes:
            skipped[TOO_LARGE] += 1
        elif read >= files or total + size > total_bytes:
            skipped[BEYOND_LIMITS] += 1
        else:
            read, total = read + 1, total + size
            try:
                text = decode(read_in_folder(entry.name, entry.folder, file_bytes), entry.path)
            except OSError:
                skipped[UNREADABLE] += 1
            except ToolFailure:
                skipped[NOT_TEXT] += 1
            else:
                yield entry.path, text


def skipped_text(skipped: Counter[str]) -> str:
    """Return the number of skipped entries for each reason, such as `3 too large, 1 not text`."""
    return ", ".join(f"{number:,} {reason}" for reason, number in skipped.items() if number)


def path_matcher(*patterns: str, parts: bool = True) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches one of the patterns, ignoring case.

    A pattern with a slash matches the whole path, with `**` for any number of folders; others match the name.

    Args:
        parts: whether a pattern without wildcards matches a part of the name.
    """
    expanded = [one for pattern in patterns for one in expand_braces(pattern)]
    tests = [_pattern_test(one.casefold().removeprefix("./").strip("/"), parts=parts) for one in expanded]
    return lambda path: any(test(path.casefold()) for test in tests)


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns without braces: `*.md` and `*.txt` for `*.{md,txt}`."""
    start, end = pattern.find("{"), pattern.find("}")
    if not 0 <= start < end:
        return [pattern]
    parts = pattern[start + 1 : end].split(",")[:_MAX_ALTERNATIVES]
    return [pattern[:start] + part.strip() + pattern[end + 1 :] for part in parts]


def _pattern_test(pattern: str, *, parts: bool) -> Callable[[str], bool]:
    if "/" in pattern:
        return lambda path: _folders_match(path.split("/"), pattern.split("/"))
    if parts and not any(wildcard in pattern for wildcard in "*?["):
        return lambda path: pattern in path.rpartition("/")[2]
    return lambda path: fnmatchcase(path.rpartition("/")[2], pattern)


def _folders_match(parts: list[str], patterns: list[str]) -> bool:
    reached = {0}  # numbers of leading parts that the patterns so far can match
    for pattern in patterns:
        if pattern == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], pattern)}
    return len(parts) in reached


def suffixes_by_kind(kind: str) -> tuple[str, ...]:
    """Return the suffixes of a kind of files, without the dot; empty if the word names no kind."""
    word = kind.casefold().lstrip("*.")
    kinds = (_SYNONYMS.get(name, name) for name in (word, word.removesuffix("s")))
    return next((tuple(_SUFFIXES[kind].split()) for kind in kinds if kind in _SUFFIXES), ())


def name_pattern(name: str) -> str:
    """Return a pattern for file names that contain `name`, or have a suffix of the kind that `name` means."""
    suffixes = suffixes_by_kind(name) if name.isalpha() else ()
    return (
        name if {*suffixes} <= {name.casefold()} else f"{{*{name}*,{','.join(f'*.{suffix}' for suffix in suffixes)}}}"
    )
