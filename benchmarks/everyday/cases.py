"""Read the requests and their expected outcomes: one JSON object per line."""

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
"""A text that must occur in any case; of a list, at least one text must occur."""


class Row(BaseModel):
    """A part of a request's line. Rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FileExpected(Row):
    """Expected state of a file."""

    exactly: str | None = Field(default=None, alias="is")
    has: list[Text] = []
    lacks: list[str] = []


class QueryExpected(Row):
    """Expected result of a database query."""

    query: str
    rows: list[list[Any]]


class GitExpected(Row):
    """Expected output of a `git` command."""

    command: str
    """The arguments, for example `log -1 --format=%s`."""
    has: list[Text] = []
    lacks: list[str] = []


class Expected(Row):
    """Expected state after the last message. Everything else must be unchanged."""

    answer: list[Text] = []
    """Texts of the last answer, or of the question if the turn ends with a question."""
    answer_lacks: list[str] = []
    files: dict[str, FileExpected | None] = {}
    """Expected files by path; None: the file does not exist."""
    sql: list[QueryExpected] = []
    memory: list[Text] = []
    memory_lacks: list[str] = []
    git: list[GitExpected] = []
    asks: bool = False
    """Whether the turn must end with a question, without a call."""
    calls: int | None = None
    """Maximum number of calls; None: any number."""
    unchanged: bool = False
    """States that nothing may change. This is also the default if no change is expected."""


class Request(Row):
    """One request: its messages, its servers, and its expected outcome."""

    id: str = Field(min_length=1)
    servers: list[ServerName] = Field(min_length=1)
    say: list[str] = Field(min_length=1)
    expect: Expected
    note: str = ""

    @property
    def server_names(self) -> tuple[ServerName, ...]:
        """Names of the servers, without duplicates, in the order of SERVERS."""
        return tuple(name for name in SERVERS if name in self.servers)


def read_requests(paths: Iterable[Path] = ()) -> list[Request]:
    """Return the requests of these files, or of all files in this folder.

    Raises:
        InputError: a file cannot be read, a line is not a request, or two requests have the same id.
    """
    requests: dict[str, Request] = {}
    for path in paths or sorted(FOLDER.glob("*.jsonl")):
        for number, line in enumerate(_lines(path), 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                request = Request.model_validate(json.loads(line))
            except ValidationError as error:
                raise InputError(f"{where}: {first_problem(error)}") from error
            except ValueError as error:
                raise InputError(f"{where}: not JSON: {error}") from error
            if request.id in requests:
                raise InputError(f"{where}: there is another request {request.id!r}")
            requests[request.id] = request
    return [*requests.values()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
