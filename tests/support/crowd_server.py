"""A server of 2,000 tools on standard input and output: what an office keeps, and what can be done with each part of it."""

import sys
from itertools import product
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__)
TOOLS = 2_000
VERBS = {
    "get": "Get {what} of {whose}.",
    "list_former": "List what {what} of {whose} was before, newest first.",
    "compare": "Compare {what} of {whose} with that of the year before.",
    "change": "Change {what} of {whose}.",
    "remove": "Remove {what} of {whose} for good.",
}
PARTS = "price owner weight colour supplier deadline guarantee insurer".split()
THINGS = (
    "anchor antenna awning barge battery beehive bicycle boiler bridge cabin camera canoe chimney crane dinghy dredger"
    " elevator excavator ferry fountain furnace generator glider greenhouse harbour hoist kiln lathe lighthouse locomotive"
    " minibus mooring orchard parachute pavilion piano pump quarry sawmill scaffold sculpture shuttle sluice telescope"
    " tractor tramway trawler turbine vineyard windmill"
).split()


def entry() -> dict[str, Any]:
    """Return the entry of `mcp.json` that starts it."""
    return {"command": sys.executable, "args": [str(SCRIPT)]}


if __name__ == "__main__":
    from plain_server import PlainServer  # it lies beside this script

    server = PlainServer("crowd")

    def add(verb: str, thing: str, part: str) -> None:
        """Add a tool that answers with its own name."""

        async def run(number: str) -> str:
            return f"{run.__name__}: {thing} {number}"

        run.__name__ = f"{verb}_{thing}_{part}"
        run.__doc__ = VERBS[verb].format(what=f"the {part}", whose=f"a {thing}, by its number")
        server.tool(run)

    for one in product(VERBS, THINGS, PARTS):
        add(*one)
    server.run()
