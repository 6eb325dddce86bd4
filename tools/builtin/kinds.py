"""Kinds of files by the words that people have for them: `python` for names that end in `.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
_SAME = {"picture": "image", "photo": "image", "music": "audio", "film": "video", "movie": "video", "bash": "shell"}


def suffixes_of(kind: str) -> tuple[str, ...]:
    """Return how the names of files of a kind end, without the dot; none where the word is for no kind."""
    word = kind.casefold().lstrip("*.")
    for one in (word, word.removesuffix("s")):
        if found := _SUFFIXES.get(_SAME.get(one, one)):
            return tuple(found.split())
    return ()


def pattern_of(name: str) -> str:
    """Return the pattern for names that hold a word, or that end as names of that kind do."""
    suffixes = suffixes_of(name) if name.isalpha() else ()
    return name if {*suffixes} <= {name.casefold()} else f"{{*{name}*,{','.join(f'*.{one}' for one in suffixes)}}}"


@dataclass(frozen=True)
class KindReader:
    """Reads a kind of files in one parameter of a tool, which takes names or parts of them."""

    parameter: str

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as they are: a kind is read by the tool."""
        return dict(params)

    def finds(self, params: Mapping[str, Any]) -> bool:
        """Whether something may be found: any name can."""
        return True

    def knows(self, word: str) -> float:
        """Return 1 for a word that is for a kind of files."""
        return float(bool(suffixes_of(word)))
