"""A message changes the argument whose kind and wording fit. If two arguments fit equally, it changes none."""

from datetime import UTC, datetime
from typing import Any

import pytest
from support.packets import tool

from packetgate.reflex.changes import read_change
from packetgate.tools.spec.tool_spec import ToolSpec

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
Call = tuple[str, ToolSpec, dict[str, Any]]


def call(request: str, spec: ToolSpec, **params: Any) -> Call:
    return request, spec, params


def strings(name: str, *names: str) -> ToolSpec:
    return tool(name, *names, **dict.fromkeys(names, "string"))


APPEND = call('append "buy pump" to todo.md', strings("a.append", "path", "text"), path="todo.md", text="buy pump")
WRITE = call('write "hello" to hi.txt', strings("a.write", "path", "content"), path="hi.txt", content="hello")
EDIT = call(
    "replace 89 with 95 in a.txt",
    strings("a.edit", "path", "old_text", "new_text"),
    path="a.txt",
    old_text="89",
    new_text="95",
)
MOVE = call("move a.txt to b.txt", strings("a.move", "path", "destination"), path="a.txt", destination="b.txt")
DELETE = call("delete a.txt", strings("a.delete", "path"), path="a.txt")
BRANCH = call("create a branch spring", strings("git.make_branch", "branch_name"), branch_name="spring")
SEND = call(
    'send "on my way" to priya@nair.example',
    strings("mail.send", "recipient", "body"),
    recipient="priya@nair.example",
    body="on my way",
)
REMIND = call(
    "remind me in 20 minutes to call the bank",
    tool("clock.remind", "minutes", "text", minutes="integer", text="string"),
    minutes=20,
    text="call the bank",
)
PLAN = call(
    'schedule "Team lunch" on 2026-12-03',
    tool("plan.add", "title", "date", title="string", date={"type": "string", "format": "date"}),
    title="Team lunch",
    date="2026-12-03",
)
FORGET = call("forget the entity Ana", tool("m.forget", "names", names={"type": "array"}), names=["Ana"])
UNITS = call(
    "show the weather in metric units",
    tool("w.show", units={"type": "string", "enum": ["metric", "imperial"]}),
    units="metric",
)


@pytest.mark.parametrize(
    ("made", "message", "changed"),
    [
        (APPEND, 'no, make it "buy two pumps"', {"text": "buy two pumps"}),
        (APPEND, 'yes but write "buy two pumps"', {"text": "buy two pumps"}),
        (APPEND, "sorry, I meant ideas.md", {"path": "ideas.md"}),
        (WRITE, 'no, write "goodbye"', {"content": "goodbye"}),
        (WRITE, "no wait, not hi.txt but ho.txt", {"path": "ho.txt"}),
        (WRITE, "path=b.txt", {"path": "b.txt"}),
        (EDIT, "I meant 99, not 95", {"new_text": "99"}),
        (EDIT, 'replace it with "99" instead', {"new_text": "99"}),
        (EDIT, "no, in b.txt", {"path": "b.txt"}),
        (MOVE, "no, to c.txt", {"destination": "c.txt"}),
        (MOVE, "the destination should be c/d.txt", {"destination": "c/d.txt"}),
        (MOVE, "not a.txt, c.txt", {"path": "c.txt"}),
        (DELETE, "wait, b.txt I mean", {"path": "b.txt"}),
        (BRANCH, "no, summer", {"branch_name": "summer"}),
        (BRANCH, "call the branch feature-2", {"branch_name": "feature-2"}),
        (SEND, "to omar@mail.example instead", {"recipient": "omar@mail.example"}),
        (SEND, 'change the body to "late"', {"body": "late"}),
        (REMIND, "make it 30", {"minutes": 30}),
        (REMIND, "no, to call the dentist", {"text": "call the dentist"}),
        (PLAN, "no, on 2026-12-04", {"date": "2026-12-04"}),
        (PLAN, "no, tomorrow", {"date": "2026-11-29"}),
        (PLAN, "the title should be Team dinner", {"title": "Team dinner"}),
        (PLAN, 'no, "Team dinner" on 2026-12-04', {"title": "Team dinner", "date": "2026-12-04"}),
        (FORGET, "sorry, Anna", {"names": ["Anna"]}),
        (UNITS, "no, imperial", {"units": "imperial"}),
    ],
)
def test_a_value_changes_the_argument_of_its_kind(made: Call, message: str, changed: dict[str, Any]):
    request, spec, params = made
    assert dict(read_change(message, spec, params, request, NOW).params) == changed


@pytest.mark.parametrize(
    ("made", "message", "unclear"),
    [
        (EDIT, "no, 99", ("old_text", "new_text")),
        (MOVE, "no, c.txt", ("path", "destination")),
    ],
)
def test_a_value_that_fits_two_arguments_changes_neither(made: Call, message: str, unclear: tuple[str, ...]):
    request, spec, params = made
    change = read_change(message, spec, params, request, NOW)
    assert (dict(change.params), change.unclear) == ({}, unclear)
    assert all(f"`{name}`" in change.question for name in unclear)


@pytest.mark.parametrize("made", [APPEND, WRITE, EDIT, MOVE, SEND, REMIND, PLAN, BRANCH])
@pytest.mark.parametrize(
    "message",
    ["never mind", "thx", "stop", "thanks Omar", "my dog is called Rex", "make it friendlier, and longer", "hmm", "no"],
)
def test_remarks_change_nothing(made: Call, message: str):
    request, spec, params = made
    change = read_change(message, spec, params, request, NOW)
    assert (dict(change.params), change.unclear) == ({}, ())


@pytest.mark.parametrize(
    ("made", "message", "corrected"),
    [
        (WRITE, 'no, write "goodbye"', 'write "goodbye" to hi.txt'),
        (EDIT, "I meant 99, not 95", "replace 89 with 99 in a.txt"),
        (PLAN, "no, tomorrow", 'schedule "Team lunch" on tomorrow'),
        (WRITE, "path=b.txt", ""),
        (WRITE, "hmm", ""),
    ],
)
def test_the_request_has_the_new_value_so_that_the_call_is_judged_anew(made: Call, message: str, corrected: str):
    request, spec, params = made
    assert read_change(message, spec, params, request, NOW).request == corrected
