"""Kinds of files by the words that people have for them: `python` for names that end in `.py`."""

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
