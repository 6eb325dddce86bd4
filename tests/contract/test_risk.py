"""Reads run. Writes and commands are dry runs until they are enabled; then they need approval."""

from pathlib import Path
from typing import Any

from contract.doors import ALL, LIBRARY, PROXY
from contract.office import Made
from contract.rows import (
    ASKS,
    BOTH,
    COMMANDS,
    DRY_RUN,
    MAIL_MIA,
    NOTE_A,
    RUNS,
    WRITES,
    Row,
    ask_for,
    check,
    each,
    find,
    query,
    request,
)

FIND = request("Find order 17", find())
COMMAND = request("Run the command ls", ("run_command", {"command": "ls"}))
DELETE = request("Delete order 17", ("delete_order", {"number": 17}))
PAY = request("Pay 12.5 to Ann", ("pay", {"recipient": "Ann", "amount": 12.5}))
FORECAST = request("Get the forecast for Bern", ("get_forecast", {"city": "Bern"}))

SWITCHES = [
    Row("a read runs", FIND, RUNS, "order 17 is late", doors=ALL),
    Row("a read runs while everything is switched on", FIND, RUNS, settings=BOTH),
    Row("a write is a dry run", MAIL_MIA, DRY_RUN, doors=ALL),
    Row("a payment is a dry run", PAY, DRY_RUN),
    Row("a command is a dry run", COMMAND, DRY_RUN),
    Row("a command is a dry run while only writes are on", COMMAND, DRY_RUN, settings=WRITES),
    Row("a write is a dry run while only commands are on", NOTE_A, DRY_RUN, settings=COMMANDS),
    Row("a write that is switched on is asked about", MAIL_MIA, ASKS, settings=WRITES, doors=ALL),
    Row("a deletion that is switched on is asked about", DELETE, ASKS, settings=WRITES),
    Row("a command that is switched on is asked about", COMMAND, ASKS, settings=BOTH),
    Row("a tool that looks like a read is asked about", FORECAST, ASKS, "looks like a read"),
]


@each(SWITCHES)
async def test_writes_and_commands_are_off_by_default(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)


UNTRUSTED: Any = {"doors": (LIBRARY, PROXY), "setup": {"trusted": False}}
DECLARED = '[tools."SERVER.find_order"]\nrisk = "read"'
RAISED = '[tools."SERVER.find_order"]\nrisk = "write"'

TRUST = [
    Row("the annotation of an untrusted server does not make a tool a read", FIND, ASKS, "not trusted", **UNTRUSTED),
    Row("an untrusted server's tool is a read if the configuration says so", FIND, RUNS, policy=DECLARED, **UNTRUSTED),
    Row("an untrusted server's write is a dry run", MAIL_MIA, DRY_RUN, **UNTRUSTED),
    Row("the configuration can make a read a write", FIND, DRY_RUN, policy=RAISED),
    Row("a tool that the configuration makes a write is asked about", FIND, ASKS, policy=RAISED, settings=WRITES),
]


@each(TRUST)
async def test_only_trusted_annotations_and_the_configuration_make_reads(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)


RAISING: dict[str, Made] = {
    "a statement that deletes": query("DELETE FROM orders"),
    "a second statement that drops a table": query("SELECT 1; DROP TABLE orders"),
    "a deletion behind a comment": query("-- only looking\nDELETE FROM orders"),
    "a nested method": ask_for("/orders", http={"request": {"Method": "pAtCh"}}),
    "an action": ask_for("/orders", action="remove"),
    "a nested switch": ask_for("/orders", then={"archive": True}),
    "a command within a path": ask_for("$(touch x)"),
    "an address that runs code": ("fetch_page", {"url": "javascript:alert(1)"}),
    "an option that writes a file": ask_for("/orders", save_to="orders.txt"),
}
HARMLESS: dict[str, Made] = {
    "a statement that reads": query("SELECT * FROM orders WHERE state = 'DELETE FROM x'"),
    "a nested reading method": ask_for("/orders", http={"request": {"method": "GET"}}),
    "nested values": ask_for("/orders", a={"b": {"c": {"d": [{"e": "late"}]}}}),
    "what to include": ask_for("/orders", include_deleted=True),
}


WORDS = {"query": "Query the database", "request": "Request it from the shop", "fetch_page": "Fetch the page"}


def by_arguments(what: str, made: Made, then: str, **more: Any) -> Row:
    return Row(f"{what} makes a call that {then}", request(WORDS[made[0]], made), then, **more)


@each(
    [
        *(by_arguments(what, made, DRY_RUN) for what, made in RAISING.items()),
        *(by_arguments(what, RAISING[what], ASKS, settings=BOTH) for what in list(RAISING)[:4:3]),
        *(by_arguments(what, made, RUNS) for what, made in HARMLESS.items()),
    ]
)
async def test_arguments_raise_the_risk(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)
