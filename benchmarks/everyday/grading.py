"""Grade a request by the state of files, database, memory and git, and by the answer."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from benchmarks.everyday.cases import FileExpected, Request, Text
from benchmarks.everyday.playing import Transcript
from benchmarks.everyday.world import GIT, State, World

Outcome = Literal["well", "asked", "declined", "wrong"]
"""The docstring of `benchmarks.everyday` defines the outcomes."""

WrongKind = Literal["changed", "answer", "failed", ""]
"""An unexpected change, a call with an unexpected result, or only failed calls."""

_NOW = re.compile(r"\{now ([A-Za-z_/]+)\}")


@dataclass(frozen=True)
class Grade:
    """The outcome of one request, and its reasons."""

    request: Request
    transcript: Transcript
    outcome: Outcome
    wrong_kind: WrongKind = ""
    problems: tuple[str, ...] = ()
    """The expectations that do not hold."""


@dataclass(frozen=True)
class TimeSpan:
    """The time in which a request was played."""

    start: datetime
    end: datetime

    def texts(self, text: str) -> list[str]:
        """Return a text twice, with `{now ZONE}` replaced by the time in that zone at the start and at the end."""
        return [_NOW.sub(partial(_clock, at), text) for at in (self.start, self.end)]


def _clock(at: datetime, zone: re.Match[str]) -> str:
    return at.astimezone(ZoneInfo(zone[1])).strftime("%H:%M")


def grade(request: Request, transcript: Transcript, world: World, span: TimeSpan) -> Grade:
    """Grade a request by its transcript and the current state of the world."""
    after = world.state()
    changes = [*_unexpected_changes(request, world, after)]
    problems = tuple(dict.fromkeys([*changes, *_problems(request, transcript, world, after, span)]))
    if not problems:
        return Grade(request, transcript, "well")
    outcome = _outcome(transcript, changed=bool(changes))
    return Grade(request, transcript, outcome, _wrong_kind(transcript, changes) if outcome == "wrong" else "", problems)


def _outcome(transcript: Transcript, *, changed: bool) -> Outcome:
    """Return the outcome of a request with a problem."""
    ran = transcript.ran_last
    if transcript.picked or (ran and all(call.doubted and call.approved for call in ran)):
        return "asked"
    if changed or (ran and not transcript.asks):
        return "wrong"
    return "asked" if transcript.asks else "declined"


def _wrong_kind(transcript: Transcript, changes: Sequence[str]) -> WrongKind:
    if changes:
        return "changed"
    return "failed" if all(call.failed for call in transcript.ran_last) else "answer"


def _unexpected_changes(request: Request, world: World, after: State) -> Iterator[str]:
    """Yield the unexpected changes, and the expected changes with an unexpected result."""
    expect, before = request.expect, world.before
    expected = {path.strip("/"): one for path, one in expect.files.items()}
    for path in sorted(after.changed_files(before)):
        name = path.strip("/")
        if name not in expected:
            yield f"{path} has changed"
        else:
            yield from _file_problems(name, expected[name], world, after)
    if after.tables != before.tables:
        yield from [*_sql_problems(request, world)] if expect.sql else ["the database has changed"]
    if after.memory != before.memory:
        yield from (
            [*_memory_problems(request, after)] if expect.memory or expect.memory_lacks else ["the memory has changed"]
        )
    if after.commits != before.commits:
        named = expect.git or any(path.startswith(GIT) for path in expect.files)
        yield from [*_git_problems(request, world)] if named else ["the git repository has changed"]


def _problems(request: Request, transcript: Transcript, world: World, after: State, span: TimeSpan) -> Iterator[str]:
    expect, ran = request.expect, transcript.ran
    answer = _normalized(transcript.answer)
    if expect.answer and expect.calls != 0 and not expect.asks and not ran:
        yield "no call ran"  # without a call, the answer may repeat the words of the request
    for text in expect.answer:
        options = [one for option in _options(text) for one in span.texts(option.replace("{site}", world.site))]
        if not any(_normalized(one) in answer for one in options):
            yield f"the answer lacks {text!r}"
    yield from (f"the answer says {text!r}" for text in expect.answer_lacks if _normalized(text) in answer)
    for path, one in expect.files.items():
        yield from _file_problems(path.strip("/"), one, world, after)
    yield from _sql_problems(request, world)
    yield from _memory_problems(request, after)
    yield from _git_problems(request, world)
    if expect.asks and not (transcript.asks or (not transcript.ran_last and answer.endswith("?"))):
        yield "it does not ask"
    if not expect.asks and transcript.asks:
        yield "it asks"
    if expect.calls is not None and len(ran) > expect.calls:
        yield f"{len(ran)} calls ran"


def _file_problems(path: str, expected: FileExpected | None, world: World, after: State) -> Iterator[str]:
    found = world.inside_git(path) if path.startswith(GIT) else after.files.get(path, after.files.get(f"{path}/"))
    if expected is None or found is None:
        if (expected is None) != (found is None):
            yield f"{path} is there" if expected is None else f"{path} is not there"
        return
    text = found.decode(errors="replace")
    if expected.exactly is not None and text.rstrip("\n") != expected.exactly.rstrip("\n"):
        yield f"{path} is {text!r}"
    yield from _texts(path, text, expected.has, expected.lacks)


def _sql_problems(request: Request, world: World) -> Iterator[str]:
    for one in request.expect.sql:
        try:
            rows = world.rows(one.query)
        except sqlite3.Error as error:
            yield f"{one.query}: {error}"
            continue
        if rows != one.rows:
            yield f"{one.query} gives {rows}"


def _memory_problems(request: Request, after: State) -> Iterator[str]:
    yield from _texts("the memory", after.memory, request.expect.memory, request.expect.memory_lacks)


def _git_problems(request: Request, world: World) -> Iterator[str]:
    for one in request.expect.git:
        yield from _texts(f"git {one.command}", world.git(one.command), one.has, one.lacks)


def _texts(what: str, text: str, has: Sequence[Text], lacks: Sequence[str]) -> Iterator[str]:
    yield from (f"{what} lacks {one!r}" for one in has if not any(option in text for option in _options(one)))
    yield from (f"{what} has {one!r}" for one in lacks if one in text)


def _options(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else text


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())
