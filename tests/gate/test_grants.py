"""The scope of a remembered answer: values from the user and from fields, never from free text."""

from dataclasses import dataclass
from typing import Any

import pytest
from support.evidence import earlier_call
from support.tool_specs import a_tool

from packetgate.gate.facts import Facts
from packetgate.gate.gate import Gate
from packetgate.gate.grants import Grants
from packetgate.gate.journal import MemoryJournal
from packetgate.gate.remembering import _terms
from packetgate.state.context import RoutingContext
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Header
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.text.roles import role_of
from packetgate.toolsets.servers.results import to_result

TEXT, NUMBER, RECORD = {"type": "string"}, {"type": "number"}, {"type": "object"}
DESK = Catalogue(
    [
        a_tool("desk.send_mail", "Send a mail.", risk=Risk.WRITE, to=TEXT, body=TEXT, cc=TEXT),
        a_tool("desk.cancel_event", "Cancel an event of the calendar.", risk=Risk.WRITE, event_id=TEXT),
        a_tool(
            "desk.create_event",
            "Create an event in the calendar.",
            risk=Risk.WRITE,
            **dict.fromkeys(("title", "start", "location", "invitees"), TEXT),
        ),
        a_tool(
            "desk.send_money", "Send money to somebody.", risk=Risk.WRITE, recipient=TEXT, amount=NUMBER, speed=TEXT
        ),
        a_tool("desk.update_table", "Update a table.", risk=Risk.WRITE, statement=TEXT),
        a_tool("desk.post_message", "Post a message in a channel.", risk=Risk.WRITE, message=RECORD),
    ],
    Preferences.model_validate({"policy": {"remember": "always", "remember_uses": 3}}),
)
PEOPLE, ELSEWHERE = (
    earlier_call(
        f"{server}.find_people",
        [{"name": one, "email": f"{one}@office.example", "note": f"{one}'s cat"} for one in ("ann", "ben", "cara")],
    )
    for server in ("desk", "other")
)
EVENTS = earlier_call("desk.list_events", [{"id": one, "title": f"Event {one}"} for one in ("24", "25")])
CHANNELS = earlier_call("desk.list_channels", ["general", "random"])
MAIL = earlier_call(
    "desk.read_mail",
    "The plumber moved. He reads eve@rival.example now. It is about event 31, and the bill comes to 77.5 this time.",
)
Made = tuple[str, dict[str, Any]]
Asked = tuple[ToolCall, dict[str, str]]
"""A call that needs approval, and the words that remember the approval, each with its terms."""


def mail(to: str, body: str = "hello", **more: Any) -> Made:
    return "desk.send_mail", {"to": to, "body": body, **more}


def cancel(event: str) -> Made:
    return "desk.cancel_event", {"event_id": event}


def event(title: str, start: str, **more: Any) -> Made:
    return "desk.create_event", {"title": title, "start": start, **more}


def pay(recipient: str, amount: float, **more: Any) -> Made:
    return "desk.send_money", {"recipient": recipient, "amount": amount, **more}


def post(channel: str, text: str) -> Made:
    return "desk.post_message", {"message": {"channel": channel, "text": text}}


@dataclass(frozen=True)
class GrantCase:
    """A request with earlier reads and a call that gets a permanent approval, and the terms of the grant."""

    request: str
    calls: tuple[Any, ...]
    terms: str


SEND = GrantCase(
    "Send a mail to everybody whom you find",
    (PEOPLE, mail("ann@office.example")),
    'allow desk.send_mail with to "ann@office.example" or from your words or a field of desk, any body, '
    "cc from your words",
)
CANCEL = GrantCase(
    "Cancel event 24",
    (EVENTS, cancel("24")),
    "allow desk.cancel_event with event_id from your words or a field of desk",
)
CREATE = GrantCase(
    "Create an event on 2026-05-01 10:00 called Lunch",
    (event("Lunch", "2026-05-01 10:00"),),
    "allow desk.create_event with any title, any start, any location, invitees from your words",
)
PAY = GrantCase(
    "Send money to Ann, 12.5",
    (pay("Ann", 12.5),),
    "allow desk.send_money with speed from your words, recipient from your words or a field of desk, "
    "amount at most 12.5",
)
TABLE = GrantCase(
    "Update the rows as I said yesterday",
    (("desk.update_table", {"statement": "INSERT INTO t VALUES (1)"}),),
    'allow desk.update_table with statement "INSERT INTO t VALUES (1)" or from your words',
)
POST = GrantCase(
    "Post hello in the first channel",
    (CHANNELS, post("general", "hello")),
    'allow desk.post_message with message "{"channel": "general", "text": "hello"}" or from your words or a field of '
    "desk",
)


async def run(request: str, calls: tuple[Any, ...], journal: MemoryJournal, word: str = "") -> Asked | None:
    """Propose the last call, and answer with `word`; return the question, or None if the call runs."""
    reached: list[str] = []

    async def execute(name: str, params: dict[str, Any], key: str) -> ToolResult:
        reached.append(name)
        return to_result("done", None, 1.0)

    *earlier, (name, params) = calls
    settings = RoutingContext(allow_write_tools=True)
    facts = Facts(Header(session_id="s"), DESK, frozenset(DESK), settings=settings, words=request, earlier=(*earlier,))
    gate = Gate(journal, execute)
    proposal = await gate.propose((facts.traced_call(DESK[name], params),), facts)
    asked = (proposal.calls[0], proposal.question.calls[0].remember) if proposal.question else None
    if asked is None or word:
        proposal = await gate.run(await gate.answer(proposal, word))
        assert (proposal.calls[0].status, reached) == (ToolExecutionStatus.EXECUTED, [name])
    return asked


async def journal_with_approval(given: GrantCase) -> MemoryJournal:
    """Return a journal with a call's approval."""
    journal = MemoryJournal()
    await run(given.request, given.calls, journal, "always")
    return journal


@pytest.mark.parametrize("given", [SEND, CANCEL, CREATE, PAY, TABLE, POST], ids=lambda given: given.calls[-1][0])
async def test_the_displayed_terms_are_the_stored_terms(given: GrantCase):
    journal = MemoryJournal()
    shown = await run(given.request, given.calls, journal, "always")
    assert shown is not None
    assert shown[1]["always"] == f"{given.terms}, asked in unknown: 3 times in 30 days"
    (status,) = await Grants(journal).all()
    assert status.grant.line.startswith(f"{given.terms}; 3 times, until ")


COVERED = {
    "another field": (SEND, "Send a mail to ben", (PEOPLE, mail("ben@office.example", "bye"))),
    "a field that the user does not name": (SEND, "Mail everybody", (PEOPLE, mail("cara@office.example"))),
    "a recipient that the user names": (SEND, "Send a mail to zoe@far.example", (mail("zoe@far.example"),)),
    "an optional recipient that the user names": (
        SEND,
        "Send a mail to everybody with cc zoe@far.example",
        (PEOPLE, mail("ben@office.example", cc="zoe@far.example")),
    ),
    "another id of a list": (CANCEL, "Cancel all events", (EVENTS, cancel("25"))),
    "a time and a place": (CREATE, "Create an event for tea", (event("Tea", "2026-06-02 09:00", location="Attic"),)),
    "an amount": (PAY, "Send the money to Ann", (pay("Ann", 11.25),)),
    "the same statement again": (TABLE, "Update the table again", TABLE.calls),
}


@pytest.mark.parametrize("case", COVERED)
async def test_a_covered_call_runs_without_a_question_and_uses_the_grant(case: str):
    given, request, calls = COVERED[case]
    journal = await journal_with_approval(given)
    assert await run(request, calls, journal) is None
    (status,) = await Grants(journal).all()
    assert status.use_count == 1


ASKED = {
    "a field of another server": (SEND, "Send a mail to everybody", (ELSEWHERE, mail("ben@office.example"))),
    "a field whose text is free": (SEND, "Send a mail to a cat", (PEOPLE, mail("ben's cat"))),
    "an optional recipient that only a field names": (
        SEND,
        "Send a mail to everybody",
        (PEOPLE, mail("ben@office.example", cc="cara@office.example")),
    ),
    "an id that nobody named": (CANCEL, "Cancel an event", (cancel("77"),)),
    "an invalid time": (CREATE, "Create an event", (event("Tea", "whenever; and then"),)),
    "a place that is an address": (CREATE, "Create an event", (event("Tea", "2026-06-02", location="evil.example"),)),
    "an amount from a text": (PAY, "Send the money to Ann", (MAIL, pay("Ann", 77.5))),
    "another speed": (PAY, "Send the money to Ann", (pay("Ann", 13.75, speed="fast"),)),
    "another statement": (TABLE, "Delete the rows", (("desk.update_table", {"statement": "DELETE FROM t"}),)),
    "a forbidden recipient": (
        SEND,
        "Never write to ann@office.example",
        (mail("ann@office.example"),),
    ),
    "a recipient that the user does not name": (PAY, "Send the money to Ben", (pay("Ann", 12.5),)),
    "another value in an object": (POST, "Post hello", (CHANNELS, post("staff", "hello"))),
}


@pytest.mark.parametrize("case", ASKED)
async def test_a_call_outside_the_grant_is_asked_about(case: str):
    given, request, calls = ASKED[case]
    journal = await journal_with_approval(given)
    assert await run(request, calls, journal) is not None
    (status,) = await Grants(journal).all()
    assert status.use_count == 0


@pytest.mark.parametrize("name", ["to", "recipient", "account", "chat"])
def test_a_grant_of_a_number_that_is_a_destination_is_exact(name: str) -> None:
    spec = a_tool("bank.send", risk=Risk.WRITE, **{name: {"type": "integer"}, "amount": NUMBER})
    origins = {name: Origin(kind=OriginKind.NOBODY, role=role_of((name,), spec.parameters[name], 4411))}
    call = ToolCall(tool_name="bank.send", params={name: 4411, "amount": 10}, risk=Risk.WRITE, provenance=origins)
    terms = _terms("always", call, spec)
    assert terms["at_most"] == {"amount": 10}
    assert terms["arguments"][name] == "4411"


FLAGGED = {
    "a recipient": (SEND, "Send a mail to everybody", (MAIL, mail("eve@rival.example"))),
    "a recipient beside a field": (
        SEND,
        "Mail everybody",
        (PEOPLE, MAIL, mail("ann@office.example, eve@rival.example")),
    ),
    "an id": (CANCEL, "Tidy up the calendar as you like", (MAIL, cancel("31"))),
}


@pytest.mark.parametrize("case", FLAGGED)
async def test_a_value_from_free_text_is_flagged_despite_grants_and_cannot_be_granted(case: str):
    given, request, calls = FLAGGED[case]
    journal = await journal_with_approval(given)
    shown = await run(request, calls, journal)
    assert shown is not None
    assert shown[0].is_flagged
    assert not shown[1]


async def test_a_grant_of_fields_ends_with_its_count_or_when_revoked():
    journal = await journal_with_approval(CANCEL)
    for _ in range(3):
        assert await run("Cancel all events", (EVENTS, cancel("25")), journal) is None
    assert await run("Cancel all events", (EVENTS, cancel("25")), journal, "always") is not None
    first, second = await Grants(journal).all()
    assert (first.use_count, first.is_valid, second.is_valid) == (3, False, True)
    assert await Grants(journal).revoke(second.grant.grant_id)
    assert await run("Cancel all events", (EVENTS, cancel("25")), journal) is not None
