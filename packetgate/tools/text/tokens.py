"""Count or estimate the tokens of a text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

_PIECES = re.compile(
    r"[A-Za-z]{1,6}|[\x80-\u07ff]{1,2}|[\u0800-\U0010ffff]|[0-9]|\n+|[^\sA-Za-z0-9\x80-\U0010ffff]{1,2}"
)


@dataclass(frozen=True)
class TokenCounter:
    """Count the tokens of a text. Thread-safe; a count blocks for milliseconds."""

    count: Callable[[str], int]
    is_exact: bool
    """Whether the count comes from the model's own tokenizer."""


@lru_cache(maxsize=4_096)
def estimated_tokens(text: str) -> int:
    """Return an estimate of a text's tokens, which is usually too high.

    One token is six Latin letters, two letters of another alphabet, two punctuation marks, a digit, a run of line
    breaks or any other character. For the tools of LiveMCPBench, the estimate is 22 % above the count of Mistral's
    Tekken tokenizer.
    """
    return sum(1 for _ in _PIECES.finditer(text))


def first_tokens(text: str, count: int) -> str:
    """Return the beginning of a text that has at most this many estimated tokens; the whole text if it has no more."""
    pieces = [*islice(_PIECES.finditer(text), count + 1)]
    return text[: pieces[count - 1].end()] if len(pieces) > count else text


ESTIMATE = TokenCounter(estimated_tokens, is_exact=False)
