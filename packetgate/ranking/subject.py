"""Find the subject of a request."""

import re
from dataclasses import dataclass

from packetgate.tools.spec.categories import CATEGORY_WORDS, EXTERNAL, CategoryWords, categories_in
from packetgate.tools.text.verbs import EXECUTE_VERBS, READ_VERBS, WRITE_VERBS
from packetgate.tools.text.words import query_terms, words_in

VAGUE = frozenset(
    "available current detail details existing first full help info information last latest lot name new next old other"
    " overview recent specific summary thing things today tomorrow use way work works yesterday anything everything"
    " something".split()
)
"""Words that say nothing about the subject."""

ACTION_VERBS = (READ_VERBS | WRITE_VERBS | EXECUTE_VERBS) - CATEGORY_WORDS
_NONE: CategoryWords = {}
_ADDRESS = re.compile(r"\bhttps?://|\bwww\.", re.IGNORECASE)


@dataclass(frozen=True)
class Subject:
    """The subject of a request."""

    terms: frozenset[str]
    """The request's words that are neither verbs nor vague."""
    verbs: frozenset[str]
    categories: frozenset[str]
    outside: bool
    """Whether the request asks for something beyond the user's own servers."""

    @property
    def is_known(self) -> bool:
        """Whether the request has a term or a verb."""
        return bool(self.terms or self.verbs)


def subject_of(request: str, own: CategoryWords = _NONE) -> Subject:
    """Return the subject of a request, by its words; `own` are the user's categories of words."""
    categories, content_words = categories_in(words_in(request), own), frozenset(query_terms(request))
    return Subject(
        terms=frozenset(term for term in content_words - ACTION_VERBS - VAGUE if not term.isdigit()),
        verbs=content_words & ACTION_VERBS,
        categories=categories,
        outside=bool(categories & EXTERNAL) or bool(_ADDRESS.search(request)),
    )
