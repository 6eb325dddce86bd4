"""What a search answers."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from state.printing import counted
from tools.builtin.corpus import Chunk


class Hit(BaseModel):
    """A place that fits the query."""

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="The file, relative to the working folder.")
    first_line: int
    last_line: int
    score: float = Field(description="Higher is better; comparable only within one search.")
    text: str


class SearchResult(BaseModel):
    """The hits of a search, how they were found, and what was not looked at."""

    model_config = ConfigDict(frozen=True)

    search: Literal["lexical", "embeddings"] = Field(description="Whether words or meanings were compared.")
    note: str = Field(default="", description="Why it is not the search that was configured, if so.")
    files_searched: int
    left_out: dict[str, int] = Field(description="How many files were not searched, by reason.")
    hits: list[Hit]

    def as_text(self, query: str) -> str:
        """Return the result as a person reads it."""
        kind = "by words" if self.search == "lexical" else "by meaning, with embeddings"
        if self.hits:
            head = f"{counted(len(self.hits), 'hit')} for {query!r} in {counted(self.files_searched, 'file')}, {kind}."
        elif self.files_searched:
            head = (
                f"NO HITS: nothing in {counted(self.files_searched, 'file')} matches {query!r}, searched {kind}. "
                "Try other words."
            )
        else:
            head = f"NO HITS: there was no text file to search for {query!r}."
        left_out = ", ".join(
            f"{number:,} {reason.replace('_', ' ')}" for reason, number in self.left_out.items() if number
        )
        parts = [head, self.note, left_out and f"Not searched: {left_out}."]
        places = [
            f"{hit.path}, lines {hit.first_line} to {hit.last_line} (score {hit.score:g}):\n{hit.text}"
            for hit in self.hits
        ]
        return "\n\n".join([" ".join(part for part in parts if part), *places])


def best(scored: Iterable[tuple[Chunk, float]], top_k: int) -> list[Hit]:
    """Return the best hits, best first, leaving out chunks that overlap a better one."""
    hits: list[Hit] = []
    for chunk, score in scored:
        overlaps = any(
            hit.path == chunk.path and hit.first_line <= chunk.last_line and chunk.first_line <= hit.last_line
            for hit in hits
        )
        if not overlaps:
            hits.append(Hit(**chunk._asdict(), score=float(f"{score:.4g}")))
        if len(hits) == top_k:
            break
    return hits
