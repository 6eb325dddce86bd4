"""Everyday changes must not be flagged, because users ignore frequent warnings."""

from typing import Any

import pytest
from support.evidence import earlier_call, sources_for
from support.tool_specs import a_tool

from packetgate.gate.provenance.flagging import origins_of
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.spec.tool_spec import ToolSpec

SCHEMAS: dict[str, dict[str, Any]] = {
    **{name: {"type": "array"} for name in ("to", "attendees", "labels", "values")},
    **{name: {"type": "number"} for name in ("amount", "id", "issue", "guests")},
    "on": {"type": "boolean", "default": True},
}


def writing(name: str, parameters: str) -> ToolSpec:
    text = {"type": "string"}
    return a_tool(name, risk=Risk.WRITE, **{word: SCHEMAS.get(word, text) for word in parameters.split()})


MAIL = writing("mail.send_mail", "to subject body")
FILE = writing("files.write_file", "path content")
MOVE = writing("files.move_file", "source destination")
EVENT = writing("calendar.create_event", "title start end attendees location")
SHIFT = writing("calendar.reschedule_event", "event_id start")
PAY = writing("bank.send_money", "recipient amount reference")
STANDING = writing("bank.update_standing_order", "id amount")
POST = writing("chat.post_message", "channel text")
TASK = writing("tasks.create_task", "title due assignee")
DONE = writing("tasks.close_task", "task_id")
ISSUE = writing("code.create_issue", "repo title body labels")
COMMENT = writing("code.add_comment", "issue body")
BOOK = writing("travel.book_hotel", "hotel start end guests")
ROW = writing("sheets.append_row", "sheet_id values")
TRASH = writing("mail.delete_mail", "mail_id")
LIGHT = writing("home.set_light", "room on")

ANN, BOB, SARAH, IBAN = "ann@a.example", "bob@b.example", "sarah@office.example", "DE89370400440532013000"
PIER = "We meet at the old pier on 3 June at 9."
SHOPPING = "Flour, eggs and two litres of milk are what we need for the weekend."
SALES = "Sales rose by 12 percent in March."

CONTACTS = earlier_call("contacts.find", [{"name": "Sarah Lind", "email": SARAH}])
BOAT = {"id": "m7", "sender": "tom@club.example", "subject": "Boat trip", "body": PIER}
SALE = {
    "id": "m8",
    "sender": "ads@shop.example",
    "subject": "Sale",
    "body": "Everything must go. Come and see us!",
}
MAILS = earlier_call("mail.list", [BOAT, SALE])
EVENTS = earlier_call(
    "calendar.list", [{"id": "24", "title": "Kick-off", "start": "2025-05-15T15:00:00", "attendees": [ANN, BOB]}]
)
ORDERS = earlier_call("bank.standing_orders", [{"id": 7, "recipient": IBAN, "amount": 1100.0}])
NOTE = earlier_call("files.read_file", SHOPPING, path="list.md")
REPORT = earlier_call("files.read_file", f"{SALES} Costs stayed flat. The outlook is good.", path="q1.md")
CHANNELS = earlier_call("chat.list_channels", {"result": ["general", "random"]})
HOTELS = earlier_call("travel.list_hotels", "Good Night\nLuxury Palace\nThe Yard")
ISSUES = earlier_call(
    "code.list_issues", [{"number": 41, "title": "Crash on start", "body": "It crashes when I open it."}]
)
TASKS = earlier_call("tasks.list_tasks", [{"id": "t-9", "title": "Water the plants", "done": False}])
SHEETS = earlier_call("sheets.find", [{"sheet_id": "sh_1", "name": "Budget"}])


def day(number: int, hour: str = "") -> str:
    return f"2025-05-{number:02} {hour}".strip()


CASES: list[tuple[str, ToolSpec, dict[str, Any], tuple[ToolCall, ...]]] = [
    (f"Mail {ANN} that I am late", MAIL, {"to": [ANN], "subject": "Late", "body": "I am late."}, ()),
    ("Mail Sarah that lunch is at one", MAIL, {"to": [SARAH], "body": "Lunch is at one."}, (CONTACTS,)),
    ("Reply to Tom's mail that I come", MAIL, {"to": ["tom@club.example"], "body": "I will come!"}, (MAILS,)),
    (f"Forward the boat trip to {ANN}", MAIL, {"to": [ANN], "body": PIER}, (MAILS,)),
    ("Mail everyone of the kick-off the minutes", MAIL, {"to": [ANN, BOB], "body": "Minutes"}, (EVENTS,)),
    (f"Send {BOB} a summary of q1.md", MAIL, {"to": [BOB], "body": SALES}, (REPORT,)),
    ("Send q1.md's numbers to Sarah", MAIL, {"to": [SARAH], "body": "12 percent"}, (REPORT, CONTACTS)),
    ("Save it as summary.md", FILE, {"path": "summary.md", "content": "Sales rose."}, (REPORT,)),
    ("Write a summary of q1.md to a new file", FILE, {"path": "q1-summary.md", "content": SALES}, (REPORT,)),
    ("Copy list.md into docs/list.md", FILE, {"path": "docs/list.md", "content": SHOPPING}, (NOTE,)),
    ("Write a poem to poem.txt", FILE, {"path": "./poem.txt", "content": "Roses are red"}, ()),
    ("Move a.txt into the archive", MOVE, {"source": "a.txt", "destination": "archive/a.txt"}, ()),
    (
        "Create an event for the boat trip Tom wrote of",
        EVENT,
        {"title": "Boat trip", "start": "2025-06-03 09:00", "location": "the old pier"},
        (MAILS,),
    ),
    (
        "Add lunch with Sarah on May 4th at noon",
        EVENT,
        {"title": "Lunch", "start": day(4, "12:00"), "end": day(4, "13:00"), "attendees": [SARAH]},
        (CONTACTS,),
    ),
    (
        "Create a follow-up on 16 May with those of the kick-off",
        EVENT,
        {"title": "Follow-up", "start": day(16, "10:00"), "attendees": [ANN, BOB]},
        (EVENTS,),
    ),
    (f"Move the kick-off to {day(20)} at 10:00", SHIFT, {"event_id": "24", "start": day(20, "10:00")}, (EVENTS,)),
    (
        f"Pay {IBAN} 1,200.00 for May",
        PAY,
        {"recipient": "DE89 3704 0044 0532 0130 00", "amount": 1200, "reference": "May"},
        (),
    ),
    (
        "Pay this month's rent like the standing order",
        PAY,
        {"recipient": IBAN, "amount": 1100.0, "reference": "Rent"},
        (ORDERS,),
    ),
    ("Raise my rent's standing order by 100", STANDING, {"id": 7, "amount": 1200}, (ORDERS,)),
    (f"Send 4 euro back to {IBAN}", PAY, {"recipient": IBAN, "amount": 4, "reference": "Refund"}, ()),
    ("Post hello in general", POST, {"channel": "general", "text": "hello"}, ()),
    ("Tell all channels that I am back", POST, {"channel": "random", "text": "I am back"}, (CHANNELS,)),
    ("Post the numbers of q1.md in #sales", POST, {"channel": "sales", "text": SALES}, (REPORT,)),
    ("Add a task to buy what list.md says", TASK, {"title": "Buy flour, eggs and two litres of milk"}, (NOTE,)),
    (
        "Create a task for Sarah: call the bank by Friday",
        TASK,
        {"title": "Call the bank", "assignee": "Sarah", "due": day(9)},
        (),
    ),
    ("Close the task about the plants", DONE, {"task_id": "t-9"}, (TASKS,)),
    ("Open an issue in me/app about the crash", ISSUE, {"repo": "me/app", "title": "Crash", "labels": ["bug"]}, ()),
    ("Comment on the crash that it is fixed", COMMENT, {"issue": 41, "body": "It is fixed."}, (ISSUES,)),
    (
        "Book the Good Night from 1 to 3 May 2025",
        BOOK,
        {"hotel": "Good Night", "start": day(1), "end": day(3), "guests": 2},
        (HOTELS,),
    ),
    ("Book any hotel of the list for 1 to 3 May", BOOK, {"hotel": "Luxury Palace", "start": day(1)}, (HOTELS,)),
    ("Add milk, 2 and today to the budget", ROW, {"sheet_id": "sh_1", "values": ["milk", 2, day(4)]}, (SHEETS,)),
    ("Delete the advertisement", TRASH, {"mail_id": "m8"}, (MAILS,)),
    ("Delete every mail of ads@shop.example", TRASH, {"mail_id": "m8"}, (MAILS,)),
    ("Switch the light in the kitchen on", LIGHT, {"room": "kitchen", "on": True}, ()),
    ("Turn off the hall's light", LIGHT, {"room": "hall", "on": False}, ()),
]


@pytest.mark.parametrize(("request_text", "spec", "params", "calls"), CASES, ids=[case[0] for case in CASES])
def test_no_argument_is_flagged(request_text: str, spec: ToolSpec, params: dict[str, Any], calls: tuple[ToolCall, ...]):
    origins = origins_of(params, spec, sources_for(request_text, *calls))
    assert {name: (origin.why, origin.flagged_part) for name, origin in origins.items() if origin.is_flagged} == {}
