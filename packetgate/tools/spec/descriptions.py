"""Brief descriptions, derived from the full ones."""

import re
from inspect import cleandoc

BRIEF_WORDS = 100
_MARGIN = re.compile(r"[^\S\n]+$", re.MULTILINE)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n|\n(?=\s*[-*#])")
_PARAMETERS = re.compile(
    r"^[\s#*_-]*(args|arguments|parameters|params|inputs?|returns?|raises|examples?)[*_]*\s*(:|$)"
    r"|^\s*[:@](param|arg|returns?|raises)\b",
    re.IGNORECASE | re.MULTILINE,
)


def brief_of(full: str, most: int = BRIEF_WORDS) -> str:
    """Return whole sentences of `full`, at most `most` words, up to where it turns to its parameters."""
    kept: list[str] = []
    words = 0
    heading = _PARAMETERS.search(full)
    about = full[: heading.start()] if heading else full
    for raw in _SENTENCE_END.split(about.strip()):
        if _PARAMETERS.match(raw):
            break
        sentence = " ".join(raw.split())
        count = len(sentence.split())
        if words + count > most:
            break
        kept.append(sentence)
        words += count
    if kept:
        return " ".join(kept).strip()
    return " ".join(full.split()[:most])


def without_margins(text: str) -> str:
    """Return a description without the indentation that all its lines share, and without space at their ends."""
    return _MARGIN.sub("", cleandoc(text)).strip()
