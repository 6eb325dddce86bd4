"""Whether a conversation has turned to something else."""

from collections.abc import Collection
from functools import cache

from tools.spec.categories import categories_in
from tools.text.stems import Stemmer


def subject_shift(earlier: Collection[str], now: Collection[str]) -> str:
    """Return in a few words how the subject changed; empty when it did not, or when either turn had none.

    It did when the turns share neither a word, in whatever form, nor a category.
    """
    if not earlier or not now or categories_in(earlier) & categories_in(now):
        return ""
    stems = _stemmer().stems([*earlier, *now])
    if {stems[word] for word in earlier} & {stems[word] for word in now}:
        return ""
    return f"from {_listed(earlier)} to {_listed(now)}"


def context_shift(earlier: str, now: str) -> str:
    """Return in a few words how the conversation's type changed; empty when it did not."""
    return f"from {earlier} to {now}" if earlier != now else ""


@cache
def _stemmer() -> Stemmer:
    return Stemmer()


def _listed(words: Collection[str]) -> str:
    return ", ".join(sorted(words)[:5])
