"""Everyday changes that nobody has to be warned of: a warning that most calls carry is none."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from support.evidence import earlier, known
from support.tool_specs import a_tool

from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.spec.tool_spec import ToolSpec

TEXT = {"type": "string"}


def writing(name: str, **parameters: Any) -> ToolSpec:
    return a_tool(name, risk=Risk.WRITE, **{key: TEXT if kind is str else kind for key, kind in parameters.items()})


MAIL = writing("mail.send_mail", to={"type": "array"}, subject=str, body=str)
FILE = writing("files.write_file", path=str, content=str)
MOVE = writing("files.move_file", source=str, destination=str)
EVENT = writing("calendar.create_event", title=str, start=str, end=str, attendees={"type": "array"}, location=str)
SHIFT = writing("calendar.reschedule_event", event_id=str, start=str)
PAY = writing("bank.send_money", recipient=str, amount={"type": "number"}, reference=str)
STANDING = writing("bank.update_standing_order", id={"type": "integer"}, amount={"type": "number"})
POST = writing("chat.post_message", channel=str, text=str)
TASK = writing("tasks.create_task", title=str, due=str, assignee=str)
DONE = writing("tasks.close_task", task_id=str)
ISSUE = writing("code.create_issue", repo=str, title=str, body=str, labels={"type": "array"})
COMMENT = writing("code.add_comment", issue={"type": "integer"}, body=str)
BOOK = writing("travel.book_hotel", hotel=str, start=str, end=str, guests={"type": "integer"})
ROW = writing("sheets.append_row", sheet_id=str, values={"type": "array"})
TRASH = writing("mail.delete_mail", mail_id=str)
LIGHT = writing("home.set_light", room=str, on={"type": "boolean", "default": True})

CONTACTS = earlier("contacts.find", [{"name": "Sarah Lind", "email": "sarah@office.example"}])
MAILS = earlier(
    "mail.list",
    [
        {
            "id": "m7",
            "sender": "tom@club.example",
            "subject": "Boat trip",
            "body": "We meet at the old pier on 3 June at 9.",
        },
        {
            "id": "m8",
            "sender": "ads@shop.example",
            "subject": "Sale",
            "body": "Everything must go. Come and see us today!",
        },
    ],
)
EVENTS = earlier(
    "calendar.list",
    [
        {
            "id": "24",
            "title": "Kick-off",
            "start": "2025-05-15T15:00:00",
            "attendees": ["ann@a.example", "bob@b.example"],
        }
    ],
)
ORDERS = earlier("bank.standing_orders", [{"id": 7, "recipient": "DE89370400440532013000", "amount": 1100.0}])
NOTE = earlier(
    "files.read_file", "Flour, eggs and two litres of milk are what we need for the weekend.", path="list.md"
)
REPORT = earlier(
    "files.read_file", "Sales rose by 12 percent in March. Costs stayed flat. The outlook is good.", path="q1.md"
)
CHANNELS = earlier("chat.list_channels", {"result": ["general", "random"]})
HOTELS = earlier("travel.list_hotels", "Good Night\nLuxury Palace\nThe Yard")
ISSUES = earlier("code.list_issues", [{"number": 41, "title": "Crash on start", "body": "It crashes when I open it."}])
TASKS = earlier("tasks.list_tasks", [{"id": "t-9", "title": "Water the plants", "done": False}])
SHEETS = earlier("sheets.find", [{"sheet_id": "sh_1", "name": "Budget"}])


@dataclass(frozen=True)
class Case:
    """A change that a user wants, and what was read before it."""

    said: str
    spec: ToolSpec
    params: dict[str, Any]
    calls: tuple[ToolCall, ...] = field(default=())


CASES = [
    Case("Mail ann@a.example that I am late", MAIL, {"to": ["ann@a.example"], "subject": "Late", "body": "I am late."}),
    Case(
        "Mail Sarah that lunch is at one",
        MAIL,
        {"to": ["sarah@office.example"], "body": "Lunch is at one."},
        (CONTACTS,),
    ),
    Case("Reply to Tom's mail that I come", MAIL, {"to": ["tom@club.example"], "body": "I will come!"}, (MAILS,)),
    Case(
        "Forward the boat trip to ann@a.example",
        MAIL,
        {"to": ["ann@a.example"], "body": "We meet at the old pier on 3 June at 9."},
        (MAILS,),
    ),
    Case(
        "Mail everyone of the kick-off the minutes",
        MAIL,
        {"to": ["ann@a.example", "bob@b.example"], "body": "Minutes"},
        (EVENTS,),
    ),
    Case(
        "Send boss@corp.example a summary of q1.md",
        MAIL,
        {"to": ["boss@corp.example"], "body": "Sales rose by 12 percent in March."},
        (REPORT,),
    ),
    Case(
        "Send q1.md's numbers to Sarah",
        MAIL,
        {"to": ["sarah@office.example"], "body": "12 percent"},
        (REPORT, CONTACTS),
    ),
    Case("Save it as summary.md", FILE, {"path": "summary.md", "content": "Sales rose."}, (REPORT,)),
    Case(
        "Write a summary of q1.md to a new file",
        FILE,
        {"path": "q1-summary.md", "content": "Sales rose by 12 percent in March."},
        (REPORT,),
    ),
    Case(
        "Copy list.md into docs/list.md",
        FILE,
        {"path": "docs/list.md", "content": "Flour, eggs and two litres of milk are what we need for the weekend."},
        (NOTE,),
    ),
    Case("Write a poem to poem.txt", FILE, {"path": "./poem.txt", "content": "Roses are red"}),
    Case("Move a.txt into the archive", MOVE, {"source": "a.txt", "destination": "archive/a.txt"}),
    Case(
        "Create an event for the boat trip Tom wrote of",
        EVENT,
        {"title": "Boat trip", "start": "2025-06-03 09:00", "end": "2025-06-03 10:00", "location": "the old pier"},
        (MAILS,),
    ),
    Case(
        "Add lunch with Sarah on May 4th at noon",
        EVENT,
        {
            "title": "Lunch",
            "start": "2025-05-04 12:00",
            "end": "2025-05-04 13:00",
            "attendees": ["sarah@office.example"],
        },
        (CONTACTS,),
    ),
    Case(
        "Create a follow-up on 16 May with those of the kick-off",
        EVENT,
        {"title": "Follow-up", "start": "2025-05-16 10:00", "attendees": ["ann@a.example", "bob@b.example"]},
        (EVENTS,),
    ),
    Case("Move the kick-off to 2025-05-20 at 10:00", SHIFT, {"event_id": "24", "start": "2025-05-20 10:00"}, (EVENTS,)),
    Case(
        "Pay DE89370400440532013000 1,200.00 for May",
        PAY,
        {"recipient": "DE89 3704 0044 0532 0130 00", "amount": 1200, "reference": "May"},
    ),
    Case(
        "Pay this month's rent like the standing order",
        PAY,
        {"recipient": "DE89370400440532013000", "amount": 1100.0, "reference": "Rent"},
        (ORDERS,),
    ),
    Case("Raise my rent's standing order by 100", STANDING, {"id": 7, "amount": 1200}, (ORDERS,)),
    Case(
        "Send 4 euro back to GB29NWBK60161331926819",
        PAY,
        {"recipient": "GB29NWBK60161331926819", "amount": 4, "reference": "Refund"},
    ),
    Case("Post hello in general", POST, {"channel": "general", "text": "hello"}),
    Case("Tell all channels that I am back", POST, {"channel": "random", "text": "I am back"}, (CHANNELS,)),
    Case(
        "Post the numbers of q1.md in #sales",
        POST,
        {"channel": "sales", "text": "Sales rose by 12 percent in March."},
        (REPORT,),
    ),
    Case("Add a task to buy what list.md says", TASK, {"title": "Buy flour, eggs and two litres of milk"}, (NOTE,)),
    Case(
        "Create a task for Sarah: call the bank by Friday",
        TASK,
        {"title": "Call the bank", "assignee": "Sarah", "due": "2025-05-09"},
    ),
    Case("Close the task about the plants", DONE, {"task_id": "t-9"}, (TASKS,)),
    Case(
        "Open an issue in me/app about the crash",
        ISSUE,
        {"repo": "me/app", "title": "Crash", "body": "It crashes.", "labels": ["bug"]},
    ),
    Case("Comment on the crash that it is fixed", COMMENT, {"issue": 41, "body": "It is fixed."}, (ISSUES,)),
    Case(
        "Book the Good Night from 1 to 3 May 2025",
        BOOK,
        {"hotel": "Good Night", "start": "2025-05-01", "end": "2025-05-03", "guests": 2},
        (HOTELS,),
    ),
    Case(
        "Book any hotel of the list for 1 to 3 May",
        BOOK,
        {"hotel": "Luxury Palace", "start": "2025-05-01", "end": "2025-05-03"},
        (HOTELS,),
    ),
    Case(
        "Add milk, 2 and today to the budget", ROW, {"sheet_id": "sh_1", "values": ["milk", 2, "2025-05-04"]}, (SHEETS,)
    ),
    Case("Delete the advertisement", TRASH, {"mail_id": "m8"}, (MAILS,)),
    Case("Delete every mail of ads@shop.example", TRASH, {"mail_id": "m8"}, (MAILS,)),
    Case("Switch the light in the kitchen on", LIGHT, {"room": "kitchen", "on": True}),
    Case("Turn off the hall's light", LIGHT, {"room": "hall", "on": False}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.said)
def test_is_quiet(case: Case):
    found = origins_of(case.params, case.spec, known(case.said, *case.calls))
    assert {name: (one.why, one.marked) for name, one in found.items() if one.loud} == {}


def test_there_are_many():
    assert len(CASES) >= 30
