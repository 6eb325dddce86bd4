"""What came of a request, by checks alone: on disk, in the database, in the memory, under git, and in the answer."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from benchmarks.everyday.asked import Asked, FileExpected, Text
from benchmarks.everyday.playing import Played
from benchmarks.everyday.world import GIT, State, World

Outcome = Literal["well", "asked", "declined", "wrong"]
"""As the docstring of `benchmarks.everyday` defines them."""

Wrong = Literal["changed", "answer", "failed", ""]
"""How it is wrong: something changed otherwise than expected; a call returned something else than what was wanted; all
calls failed."""

_NOW = re.compile(r"\{now ([A-Za-z_/]+)\}")


@dataclass(frozen=True)
class Verdict:
    """What came of one request, and why that is thought."""

    asked: Asked
    played: Played
    outcome: Outcome
    wrong: Wrong = ""
    problems: tuple[str, ...] = ()
    """What does not hold."""


@dataclass(frozen=True)
class Moment:
    """A stretch of time in which a request was played."""

    start: datetime
    end: datetime

    def texts(self, text: str) -> list[str]:
        """Return a text with `{now ZONE}` filled in: the hour and minute there, of the start and of the end."""
        return [_NOW.sub(partial(_clock, at), text) for at in (self.start, self.end)]


def _clock(at: datetime, zone: re.Match[str]) -> str:
    return at.astimezone(ZoneInfo(zone[1])).strftime("%H:%M")


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def judged(asked: Asked, played: Played, world: World, moment: Moment) -> Verdict:
    """Judge a request from how it was played and from how the world stands now."""
    after = world.state()
    changed = [*_wrong_changes(asked, world, after)]
    problems = tuple(changed) + tuple(
        one for one in _problems(asked, played, world, after, moment) if one not in changed
    )
    if not problems:
        return Verdict(asked, played, "well")
    outcome = _outcome(played, changed=bool(changed))
    return Verdict(asked, played, outcome, _how(played, changed) if outcome == "wrong" else "", problems)


def _outcome(played: Played, *, changed: bool) -> Outcome:
    """Return how a request ended of which something does not hold."""
    ran = played.ran_last
    if played.picked or (ran and all(call.doubted and call.approved for call in ran)):
        return "asked"
    if changed or (ran and not played.asks):
        return "wrong"
    return "asked" if played.asks else "declined"


def _how(played: Played, changed: Sequence[str]) -> Wrong:
    if changed:
        return "changed"
    return "failed" if all(call.failed for call in played.ran_last) else "answer"


def _wrong_changes(asked: Asked, world: World, after: State) -> Iterator[str]:
    """Yield what has changed and is not as expected, or was not to change at all."""
    expect, before = asked.expect, world.before
    expected = {path.strip("/"): one for path, one in expect.files.items()}
    for path in sorted(after.changed_files(before)):
        name = path.strip("/")
        if name not in expected:
            yield f"{path} has changed"
        else:
            yield from _file_problems(name, expected[name], world, after)
    if after.tables != before.tables:
        yield from [*_sql_problems(asked, world)] if expect.sql else ["the database has changed"]
    if after.memory != before.memory:
        yield from (
            [*_memory_problems(asked, after)] if expect.memory or expect.memory_lacks else ["the memory has changed"]
        )
    if after.commits != before.commits:
        named = expect.git or any(path.startswith(GIT) for path in expect.files)
        yield from [*_git_problems(asked, world)] if named else ["what git keeps has changed"]


def _problems(asked: Asked, played: Played, world: World, after: State, moment: Moment) -> Iterator[str]:
    expect, ran = asked.expect, played.ran
    answer = _squeezed(played.answer)
    if expect.answer and expect.calls != 0 and not expect.asks and not ran:
        yield "no call ran"  # an answer without one may hold the words of the request
    for text in expect.answer:
        options = [one for option in _options(text) for one in moment.texts(option.replace("{site}", world.site))]
        if not any(_squeezed(one) in answer for one in options):
            yield f"the answer lacks {text!r}"
    yield from (f"the answer says {text!r}" for text in expect.answer_lacks if _squeezed(text) in answer)
    for path, one in expect.files.items():
        yield from _file_problems(path.strip("/"), one, world, after)
    yield from _sql_problems(asked, world)
    yield from _memory_problems(asked, after)
    yield from _git_problems(asked, world)
    if expect.asks and not (played.asks or (not played.ran_last and answer.endswith("?"))):
        yield "it does not ask"
    if not expect.asks and played.asks:
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


def _sql_problems(asked: Asked, world: World) -> Iterator[str]:
    for one in asked.expect.sql:
        try:
            rows = world.rows(one.query)
        except sqlite3.Error as error:
            yield f"{one.query}: {error}"
            continue
        if rows != one.rows:
            yield f"{one.query} gives {rows}"


def _memory_problems(asked: Asked, after: State) -> Iterator[str]:
    yield from _texts("the memory", after.memory, asked.expect.memory, asked.expect.memory_lacks)


def _git_problems(asked: Asked, world: World) -> Iterator[str]:
    for one in asked.expect.git:
        yield from _texts(f"git {one.command}", world.git(one.command), one.has, one.lacks)


def _texts(what: str, text: str, has: Sequence[Text], lacks: Sequence[str]) -> Iterator[str]:
    yield from (f"{what} lacks {one!r}" for one in has if not any(option in text for option in _options(one)))
    yield from (f"{what} has {one!r}" for one in lacks if one in text)


def _options(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else text


def _squeezed(text: str) -> str:
    return " ".join(text.casefold().split())
