"""What a request is about, and whether a conversation has turned to something else."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import filterfalse

from packetgate.tools.ranking.bm25 import Ranked
from packetgate.tools.spec.categories import DOCUMENTATION, EXTERNAL, MARKS, CategoryWords, categories_in
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.verbs import EXECUTE_VERBS, READ_VERBS, WRITE_VERBS
from packetgate.tools.text.words import query_terms, stem_of, words_in

VAGUE = frozenset(
    "available current detail details existing first full help info information last latest lot name new next old other"
    " overview recent specific summary thing things today tomorrow use way work works yesterday anything everything"
    " something".split()
)
"""Words that say how or which, not what about."""

VERBS = (READ_VERBS | WRITE_VERBS | EXECUTE_VERBS) - MARKS
_NONE: CategoryWords = {}
_ADDRESS = re.compile(r"\bhttps?://|\bwww\.", re.IGNORECASE)


@dataclass(frozen=True)
class Subject:
    """What a request is about."""

    terms: frozenset[str]
    """Its telling words: neither what is to be done, nor how or when."""
    verbs: frozenset[str]
    """What is to be done."""
    categories: frozenset[str]
    outside: bool
    """Whether it calls for what lies beyond the user's own servers."""

    @property
    def is_client_supplied(self) -> bool:
        """Whether a request says what it is about, or what is to be done."""
        return bool(self.terms or self.verbs)


def subject_of(request: str, own: CategoryWords = _NONE) -> Subject:
    """Read the subject off a request's words; `own` are the user's words for categories."""
    words = words_in(request)
    categories, telling = categories_in(words, own), frozenset(query_terms(request))
    return Subject(
        terms=frozenset(filterfalse(str.isdigit, telling - VERBS - VAGUE)),
        verbs=telling & VERBS,
        categories=categories,
        outside=bool(categories & EXTERNAL) or bool(_ADDRESS.search(request)),
    )


def documents(spec: ToolSpec, hit: Ranked, request: str) -> bool:
    """Whether a tool is documentation of what a request is about."""
    return spec.category == DOCUMENTATION and bool(hit.terms & subject_of(request).terms)


def subject_shift(earlier: Collection[str], now: Collection[str], own: CategoryWords = _NONE) -> str:
    """Return in a few words how the subject changed; empty when it did not, or when either turn had none.

    It did when the turns share neither a word, in whatever form, nor a category.
    """
    if not earlier or not now or categories_in(earlier, own) & categories_in(now, own):
        return ""
    if {stem_of(word) for word in earlier} & {stem_of(word) for word in now}:
        return ""
    return f"from {_listed(earlier)} to {_listed(now)}"


def context_shift(earlier: str, now: str) -> str:
    """Return in a few words how the conversation's type changed; empty when it did not."""
    return f"from {earlier} to {now}" if earlier != now else ""


def _listed(words: Collection[str]) -> str:
    return ", ".join(sorted(words)[:5])
