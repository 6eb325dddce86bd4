"""Whether a conversation has turned to something else."""

from collections.abc import Collection

from tools.spec.categories import categories_in
from tools.text.stems import stem_of


def subject_shift(earlier: Collection[str], now: Collection[str]) -> str:
    """Return in a few words how the subject changed; empty when it did not, or when either turn had none.

    It did when the turns share neither a word, in whatever form, nor a category.
    """
    if not earlier or not now or categories_in(earlier) & categories_in(now):
        return ""
    if {stem_of(word) for word in earlier} & {stem_of(word) for word in now}:
        return ""
    return f"from {_listed(earlier)} to {_listed(now)}"


def context_shift(earlier: str, now: str) -> str:
    """Return in a few words how the conversation's type changed; empty when it did not."""
    return f"from {earlier} to {now}" if earlier != now else ""


def _listed(words: Collection[str]) -> str:
    return ", ".join(sorted(words)[:5])
