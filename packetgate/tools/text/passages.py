"""Find passages of a long text with SQLite's full-text search."""

import sqlite3
from contextlib import closing

from packetgate.tools.text.words import query_terms


def nearest_passages(text: str, request: str, limit: int) -> list[str]:
    """Return at most `limit` paragraphs that share words with `request`, in the order of the text.

    A fenced code block of Markdown is part of the paragraph before it.
    """
    terms = query_terms(request)
    paragraphs = _paragraphs(text)
    if not terms or not paragraphs:
        return []
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE passage USING fts5(text, tokenize = 'porter unicode61')")
        database.executemany("INSERT INTO passage VALUES (?)", [(paragraph,) for paragraph in paragraphs])
        found = database.execute(
            "SELECT rowid FROM passage WHERE passage MATCH ? ORDER BY bm25(passage), rowid LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), limit),
        ).fetchall()
    return [paragraphs[row - 1] for row in sorted(row for (row,) in found)]


def _paragraphs(text: str) -> list[str]:
    paragraphs, fence = [""], ""
    for part in text.split("\n\n"):
        joined = bool(fence) or part.startswith(("```", "~~~"))
        for line in part.splitlines():
            if not fence and line.startswith(("```", "~~~")):
                fence = line[:3]
            elif fence and line.startswith(fence):
                fence = ""
        if joined:
            paragraphs[-1] += f"\n\n{part}"
        elif part.strip():
            paragraphs.append(part)
    return [paragraph.strip("\n") for paragraph in paragraphs if paragraph.strip()]
