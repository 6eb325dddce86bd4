"""Walk the files and folders below a folder, without hidden and built ones."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from packetgate.tools.builtin.files import Root, TooLargeError, ToolFailure, decode, holds_secrets, read_in_folder

MAX_ENTRIES = 50_000
"""Most entries that one walk visits."""
_MAX_ALTERNATIVES = 50
_BUILT = frozenset(
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
    **{one: one for one in "c cpp csv css docx epub go ini ipynb java js json log md odt pdf php".split()},
    **{one: one for one in "png pptx py rb rs rst sh sql svg tex toml ts tsv txt wav xlsx xml zip".split()},
}
_SYNONYMS = {"picture": "image", "photo": "image", "music": "audio", "film": "video", "movie": "video", "bash": "shell"}

WITHHELD = "secret or denied"
"""Reason: the file may hold secrets, or a policy rule asks about reading it or denies it."""
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
    def is_folder(self) -> bool:
        """Whether the entry is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether the entry is a regular file."""
        return stat.S_ISREG(self.status.st_mode)


def walk(
    root: Root, start: Path, left_out: Counter[str], *, pattern: str = "*", deep: bool = True, hidden: bool = False
) -> Iterator[TreeEntry]:
    """Yield the entries below a resolved folder that match a pattern; count in `left_out` what is skipped, by reason.

    Hidden entries are skipped unless `hidden` is set or the pattern names them. Withheld entries are skipped unless the
    folder or the pattern names them: then the user was asked.

    Raise `OSError` if the folder cannot be read.
    """
    named = [one for one in alternatives(pattern) if holds_secrets(one)] if holds_secrets(pattern) else []
    matches, names_it = path_matcher(pattern), path_matcher(*named, parts=False)
    start_is_named = root.withholds(root.name(start))
    looks_in_hidden = hidden or any(part.startswith(".") for part in pattern.replace("{", "/").split("/"))
    seen = 0

    def count_unreadable(_error: OSError) -> None:
        left_out[UNREADABLE] += 1

    with root.folder(start) as top:
        for below, folders, files, descriptor in os.fwalk(".", onerror=count_unreadable, dir_fd=top):
            place = start / below
            entered = []
            for name in sorted([*folders, *files]):
                if name.startswith(".") and not looks_in_hidden:
                    continue
                path = root.name(place / name)
                withheld = not start_is_named and root.withholds(path)
                seen += 1
                if seen > MAX_ENTRIES:
                    left_out[BEYOND_LIMITS] += 1
                    continue
                if name in folders and (not withheld or named):
                    entered.append(name)
                if withheld and not names_it(path):
                    left_out[WITHHELD] += 1
                elif matches(path) or matches((place / name).relative_to(start).as_posix()):
                    try:
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    except OSError as error:
                        count_unreadable(error)
                    else:
                        yield TreeEntry(path, name, descriptor, status)
            folders[:] = [name for name in entered if deep and not _is_built(name)]
            left_out[NOT_ENTERED] += sum(_is_built(name) for name in entered) if deep else 0


def _is_built(folder: str) -> bool:
    return folder in _BUILT or folder.endswith(".egg-info")


def text_of(entry: TreeEntry, limit: int, left_out: Counter[str]) -> str | None:
    """Return the text of a file; count it in `left_out` and return None if it has none. Blocking."""
    try:
        return decode(read_in_folder(entry.name, entry.folder, limit), entry.path)
    except TooLargeError:
        left_out[TOO_LARGE] += 1
    except (ToolFailure, OSError):
        left_out[NOT_TEXT] += 1
    return None


def numbers_of(left_out: Counter[str]) -> str:
    """Return the numbers of what was left out, by reason."""
    return ", ".join(f"{number:,} {why}" for why, number in left_out.items() if number)


def path_matcher(*patterns: str, parts: bool = True) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches one of the patterns, ignoring case.

    A pattern with a slash matches the whole path, with `**` for any number of folders; others match the name.

    Args:
        parts: whether a pattern without wildcards matches a part of the name.
    """
    plain = [one.casefold().removeprefix("./").strip("/") for pattern in patterns for one in alternatives(pattern)]
    tests = [_test(one, parts=parts) for one in plain]
    return lambda path: any(test(path.casefold()) for test in tests)


def alternatives(pattern: str) -> list[str]:
    """Expand the braces in a pattern: `*.{md,txt}` to `*.md` and `*.txt`."""
    start, end = pattern.find("{"), pattern.find("}")
    if not 0 <= start < end:
        return [pattern]
    parts = pattern[start + 1 : end].split(",")[:_MAX_ALTERNATIVES]
    return [pattern[:start] + part.strip() + pattern[end + 1 :] for part in parts]


def _test(pattern: str, *, parts: bool) -> Callable[[str], bool]:
    if "/" in pattern:
        return lambda path: _folders_match(path.split("/"), pattern.split("/"))
    if parts and not any(sign in pattern for sign in "*?["):
        return lambda path: pattern in path.rpartition("/")[2]
    return lambda path: fnmatchcase(path.rpartition("/")[2], pattern)


def _folders_match(parts: list[str], patterns: list[str]) -> bool:
    reached = {0}
    for pattern in patterns:
        if pattern == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], pattern)}
    return len(parts) in reached


def suffixes_of(kind: str) -> tuple[str, ...]:
    """Return the suffixes of a kind of files, without the dot; none if the word names no kind."""
    word = kind.casefold().lstrip("*.")
    kinds = (_SYNONYMS.get(one, one) for one in (word, word.removesuffix("s")))
    return next((tuple(_SUFFIXES[kind].split()) for kind in kinds if kind in _SUFFIXES), ())


def pattern_of(name: str) -> str:
    """Return a pattern for file names that contain `name`, or have a suffix of the kind that `name` means."""
    suffixes = suffixes_of(name) if name.isalpha() else ()
    return name if {*suffixes} <= {name.casefold()} else f"{{*{name}*,{','.join(f'*.{one}' for one in suffixes)}}}"
