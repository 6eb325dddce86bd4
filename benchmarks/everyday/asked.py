"""The requests, and what is expected of each: one JSON object a line."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from packetgate.state.errors import InputError, first_problem

FOLDER = Path(__file__).parent / "requests"

ServerName = Literal["builtin", "filesystem", "git", "time", "memory", "sqlite", "fetch"]
SERVERS: tuple[ServerName, ...] = get_args(ServerName)

Text = str | list[str]
"""A text that must stand somewhere, in any case; of a list, one of them."""


class Row(BaseModel):
    """A part of a request's line, strictly as described."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FileExpected(Row):
    """What a file must be afterwards."""

    exactly: str | None = Field(default=None, alias="is")
    has: list[Text] = []
    lacks: list[str] = []


class QueryExpected(Row):
    """What a query of the database must return afterwards."""

    query: str
    rows: list[list[Any]]


class GitExpected(Row):
    """What `git` must say afterwards."""

    command: str
    """What follows `git`, for example `log -1 --format=%s`."""
    has: list[Text] = []
    lacks: list[str] = []


class Expected(Row):
    """What must hold after the last message. What of the world is not named may not have changed."""

    answer: list[Text] = []
    """What the last answer must say; of one that asks, the question."""
    answer_lacks: list[str] = []
    files: dict[str, FileExpected | None] = {}
    """By path; None: there is no such file."""
    sql: list[QueryExpected] = []
    memory: list[Text] = []
    memory_lacks: list[str] = []
    git: list[GitExpected] = []
    asks: bool = False
    """Whether the turn must end in a question, without a call."""
    calls: int | None = None
    """How many calls may be made; None: any number."""
    unchanged: bool = False
    """Says aloud that nothing may change, which holds anyway where nothing else is named."""


class Asked(Row):
    """One request: what is said, in what company of servers, and what must come of it."""

    id: str = Field(min_length=1)
    servers: list[ServerName] = Field(min_length=1)
    say: list[str] = Field(min_length=1)
    expect: Expected
    note: str = ""

    @property
    def company(self) -> tuple[ServerName, ...]:
        """The servers, each once, in one order."""
        return tuple(name for name in SERVERS if name in self.servers)


def read_asked(paths: Iterable[Path] = ()) -> list[Asked]:
    """Read the requests of these files, or of all that are kept here.

    Raises:
        InputError: a file cannot be read, a line is no request, or two have one id.
    """
    asked: dict[str, Asked] = {}
    for path in paths or sorted(FOLDER.glob("*.jsonl")):
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                one = Asked.model_validate(json.loads(line))
            except ValidationError as error:
                raise InputError(f"{where}: {first_problem(error)}") from error
            except ValueError as error:
                raise InputError(f"{where}: not JSON: {error}") from error
            if one.id in asked:
                raise InputError(f"{where}: there is another request {one.id!r}")
            asked[one.id] = one
    return [*asked.values()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
