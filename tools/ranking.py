"""Lexical ranking of tools against a request.

SQLite's full-text index does the work: BM25 with Porter stemming and a weight per field.
"""

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from tools.risk import words_of
from tools.spec import ToolSpec

NAME_WEIGHT = 8.0
SERVER_WEIGHT = 2.0
BRIEF_WEIGHT = 3.0
FULL_WEIGHT = 1.0
PARAMETER_WEIGHT = 1.5

STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been being but by can could did do does done for from had has have he"
    " her him his how i if in into is it its just let like make may me might more most my no not now of on or our out"
    " over please she should so some such than that the their them then there these they this those to too under up us"
    " use want was we were what when where which who why will with would you your".split()
)

_TERM = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Ranked:
    """A tool and how well it fits; higher is better, always above 0."""

    name: str
    score: float
    terms: frozenset[str] = frozenset()
    """Words of the request that the tool knows."""
    name_terms: frozenset[str] = frozenset()
    """Those that its name holds."""


class Ranking:
    """An index over one set of tools."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = Lock()
        self._db.execute(
            "CREATE VIRTUAL TABLE tool USING fts5(id UNINDEXED, name, server, brief, detail, parameters,"
            " tokenize = 'porter unicode61')"
        )
        self._db.executemany("INSERT INTO tool VALUES (?, ?, ?, ?, ?, ?)", [_row(spec) for spec in specs])

    def rank(self, request: str, limit: int = 20) -> list[Ranked]:
        """Return the tools that share a word with the request, best first; ties in order of name."""
        terms = query_terms(request)
        if not terms:
            return []
        weights = f"0, {NAME_WEIGHT}, {SERVER_WEIGHT}, {BRIEF_WEIGHT}, {FULL_WEIGHT}, {PARAMETER_WEIGHT}"
        rows = self._query(
            f"SELECT id, -bm25(tool, {weights}) AS score FROM tool WHERE tool MATCH ?"  # noqa: S608 - own constants
            " ORDER BY score DESC, id LIMIT ?",
            " OR ".join(f'"{term}"' for term in terms),
            limit,
        )
        anywhere = {term: self._holders(f'"{term}"') for term in terms}
        in_name = {term: self._holders(f'{{name server}} : "{term}"') for term in terms}
        return [
            Ranked(
                name=name,
                # BM25 turns zero or negative for a word that most tools share; such a tool still ranks, just barely.
                score=max(score, 1e-6),
                terms=frozenset(term for term in terms if name in anywhere[term]),
                name_terms=frozenset(term for term in terms if name in in_name[term]),
            )
            for name, score in rows
        ]

    def _holders(self, match: str) -> frozenset[str]:
        return frozenset(name for (name,) in self._query("SELECT id FROM tool WHERE tool MATCH ?", match))

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()


def query_terms(request: str) -> list[str]:
    """Return the request's words that say something, in order, without repeats."""
    words = (word for token in _TERM.findall(request) for word in (token.lower(), *words_of(token)))
    return list(dict.fromkeys(word for word in words if word not in STOP_WORDS))


def _row(spec: ToolSpec) -> tuple[str, str, str, str, str, str]:
    parameters = " ".join(
        f"{' '.join(words_of(name))} {schema.get('description', '')}" for name, schema in spec.parameters.items()
    )
    return (
        spec.name,
        " ".join(words_of(spec.upstream_name)),
        " ".join(words_of(spec.server)),
        spec.brief,
        spec.full,
        parameters,
    )
