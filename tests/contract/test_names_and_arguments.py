"""A tool that is not offered never runs, and arguments must fit the tool's own schema."""

from pathlib import Path
from typing import Any

from contract.doors import AGENTS, ALL
from contract.rows import ASKS, REFUSED, RUNS, WRITES, Row, check, each, find, mail, note, request

ONLY_ORDERS = {"allowed_tools": ["*.find_order"]}
ONE_TOOL = request("Find order 17", ("read_diary", {}))

NAMES = [
    Row("a name that no server has does not run", request("Burn note a", ("burn_note", {"name": "a"})), REFUSED,
        doors=ALL),
    Row("an unknown name is answered with similar names",
        request("Find order 17", ("find_orders_of_all", {"number": 17})), REFUSED, says="find_order"),
    Row("an empty name does not run", request("Find order 17", ("", {})), REFUSED),
    Row("a tool outside the allow-list does not run", request("Read my diary", ("read_diary", {})), REFUSED,
        settings=ONLY_ORDERS, doors=ALL),
    Row("a tool on the allow-list runs", request("Find order 17", find()), RUNS, settings=ONLY_ORDERS),
    Row("a tool that was not shown does not run", ONE_TOOL, REFUSED, doors=AGENTS, setup={"shown": 1}),
]  # fmt: skip


@each(NAMES)
async def test_only_offered_names_run(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)


def order(promise: str, then: str, says: str, params: dict[str, Any], **more: Any) -> Row:
    return Row(promise, request("Find order 17", ("find_order", params)), then, says, **more)


def written(promise: str, then: str, says: str, params: dict[str, Any]) -> Row:
    return Row(promise, request("Write avocado to a", ("write_note", params)), then, says, settings=WRITES)


ARGUMENTS = [
    order("a missing argument is named", REFUSED, "number", {}),
    order("an argument of another type does not run", REFUSED, "number", {"number": "many"}),
    order("a list in place of a value does not run", REFUSED, "number", {"number": [17, 18]}),
    order("a number below the schema's minimum does not run", REFUSED, "number", {"number": 0}),
    order("an unknown parameter does not run", REFUSED, "colour", {"number": 17, "colour": "red"}),
    order("a number as text is read as a number", RUNS, "order 17 is late", {"number": "17"}, runs_as={"number": 17}),
    written("a value that is not in the enumeration does not run", REFUSED, "mode", {**note()[1], "mode": "burn"}),
    written("a write with a missing argument is not asked about", REFUSED, "text", {"name": "a"}),
    written("a valid write is asked about", ASKS, "avocado", note(mode="append")[1]),
    Row("additional arguments do not reach a write",
        request("Write to mia@example.org: it is late", ("send_mail", {**mail()[1], "approved": True})), REFUSED,
        "approved", settings=WRITES),
]  # fmt: skip


@each(ARGUMENTS)
async def test_arguments_fit_the_schema(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)
