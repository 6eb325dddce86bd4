"""Brief descriptions, derived from the full ones."""

import re

BRIEF_WORDS = 100

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n|\n(?=\s*[-*#])")
_PARAMETERS = re.compile(
    r"^[\s#*_-]*(args|arguments|parameters|params|inputs?|returns?|raises|examples?)[*_]*\s*(:|$)"
    r"|^\s*[:@](param|arg|returns?|raises)\b",
    re.IGNORECASE | re.MULTILINE,
)


def brief_of(full: str) -> str:
    """Return whole sentences of `full`, at most 100 words, up to where it turns to its parameters."""
    kept: list[str] = []
    words = 0
    heading = _PARAMETERS.search(full)
    about = full[: heading.start()] if heading else full
    for raw in _SENTENCE_END.split(about.strip()):
        if _PARAMETERS.match(raw):
            break
        sentence = " ".join(raw.split())
        count = len(sentence.split())
        if words + count > BRIEF_WORDS:
            break
        kept.append(sentence)
        words += count
    if kept:
        return " ".join(kept).strip()
    return " ".join(full.split()[:BRIEF_WORDS])
