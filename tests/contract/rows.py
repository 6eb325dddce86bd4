"""Rows: a promise, its requests, its doors, and the expected outcome of the last call."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from contract.doors import GATES, Answer, Outcome, Question, Setup, Step, open_door
from contract.office import Made

RUNS, ASKS, DRY_RUN, REFUSED = "runs", "asks", "dry run", "refused"
"""Outcomes of a call: it runs without a question; it waits for an answer; it does not run, and the result says how to
enable it; it does not run, and the result says why."""
WRITES = {"allow_write_tools": True}
COMMANDS = {"allow_execute_tools": True}
BOTH = {**WRITES, **COMMANDS}


@dataclass(frozen=True)
class Request:
    """A user message, and the calls that it causes in each step."""

    words: str
    steps: tuple[Step, ...]
    answers: tuple[Answer, ...] = ()
    thread: str = "one"


def request(words: str, *steps: Made | Sequence[Made], answers: Sequence[Answer] = (), thread: str = "one") -> Request:
    """Return a request. A step is one call or a list of calls."""
    return Request(
        words, tuple([step] if isinstance(step, tuple) else list(step) for step in steps), (*answers,), thread
    )


@dataclass(frozen=True)
class Row:
    """A promise about the last call of the last request."""

    promise: str
    requests: Request | Sequence[Request]
    then: str
    says: str = ""
    """A text in the question, or in the output."""
    does_not_say: str = ""
    runs_as: Mapping[str, Any] | None = None
    """The arguments with which the call runs, if they differ from those of the request."""
    doors: Sequence[str] = GATES
    settings: Mapping[str, Any] = field(default_factory=dict)
    policy: str = ""
    setup: Mapping[str, Any] = field(default_factory=dict)
    """More fields of `Setup`."""


def each(rows: Iterable[Row]) -> pytest.MarkDecorator:
    """Run a test for each row through each door of the row."""
    cases = [pytest.param(row, door, id=f"{row.promise} ({door})") for row in rows for door in row.doors]
    return pytest.mark.parametrize(("row", "door"), cases)


def through(*doors: str) -> pytest.MarkDecorator:
    """Run a test through each of these doors."""
    return pytest.mark.parametrize("door", doors)


async def check(row: Row, door: str, home: Path) -> Outcome:
    """Make the requests of a row through a door, and check the outcome of the last call."""
    setup = Setup(home, row.settings, row.policy, **row.setup)
    requests = [row.requests] if isinstance(row.requests, Request) else row.requests
    async with open_door(door, setup) as opened:
        for one in requests:
            outcome = await opened.turn(*one.steps, words=one.words, answers=one.answers, thread=one.thread)
    name, params = requests[-1].steps[-1][-1]
    check_call(outcome, name, params, row.then, row.runs_as)
    shown = f"{outcome.question}{outcome.asked[-1].calls}" if row.then == ASKS else outcome.output
    assert row.says in shown, shown
    assert not row.does_not_say or row.does_not_say not in f"{outcome.question}{outcome.output}"
    return outcome


def check_call(
    outcome: Outcome, name: str, params: Mapping[str, Any], then: str, runs_as: Mapping[str, Any] | None = None
) -> None:
    """Check the outcome of the last call of a request."""
    made = [args for tool, args in outcome.ran if tool == name]
    if then == RUNS:
        wanted = params if runs_as is None else runs_as
        assert any(wanted.items() <= args.items() for args in made), outcome
        assert not outcome.asked
        return
    assert not any(params.items() <= args.items() for args in made), outcome
    if then == ASKS:
        assert outcome.waits, outcome
        shows(outcome.asked[-1], name, params)
        return
    assert not outcome.asked
    assert (then == DRY_RUN) == ("switched off" in outcome.output), outcome.output


def shows(question: Question, name: str, params: Mapping[str, Any]) -> None:
    """Check that a question shows a call with all its arguments."""
    if question.calls:
        assert any(tool == name and params.items() <= args.items() for tool, args in question.calls), question
    else:
        assert name in question.text
        assert all(json.dumps(value)[1:-1] in question.text for value in params.values() if isinstance(value, str))


def find(number: Any = 17) -> Made:
    """Return a read of an order."""
    return "find_order", {"number": number}


def mail(to: str = "mia@example.org", text: str = "it is late") -> Made:
    """Return a write: a mail."""
    return "send_mail", {"to": to, "text": text}


def note(name: str = "a", text: str = "avocado", **more: Any) -> Made:
    """Return a write: a note."""
    return "write_note", {"name": name, "text": text, **more}


def fetch(url: str) -> Made:
    """Return a read of a page."""
    return "fetch_page", {"url": url}


def query(statement: str) -> Made:
    """Return a query, which is a read if its statement reads."""
    return "query", {"statement": statement}


def ask_for(path: str, **options: Any) -> Made:
    """Return a request to an API, which is a read unless its options change data."""
    return "request", {"path": path, "options": options}


MAIL_MIA = request("Write to mia@example.org: it is late", mail())
NOTE_A = request("Write avocado to note a", note())
READ_DIARY = request("Read my diary", ("read_diary", {}))
READ_MAIL = request("Read my mail", ("read_mail", {}))
