"""A server of 2,000 tools on standard input and output: of what a port keeps, and of what is known of each thing."""

import sys
from itertools import product
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__)
READING = {
    "get": "Get the {part} of one {thing}, by its number.",
    "list_former": "List what the {part} of one {thing} was before, newest first.",
    "compare": "Compare the {part} of one {thing} with that of the year before.",
}
CHANGING = {
    "change": "Change the {part} of one {thing}.",
    "remove": "Remove the {part} of one {thing} for good.",
}
PARTS = "price owner weight colour supplier deadline guarantee insurer".split()
THINGS = (
    "anchor antenna awning barge battery beehive bicycle boiler bridge cabin camera canoe chimney crane dinghy"
    " dredger elevator excavator ferry fountain furnace generator glider greenhouse harbour hoist kiln lathe"
    " lighthouse locomotive minibus mooring orchard parachute pavilion piano pump quarry sawmill scaffold"
    " sculpture shuttle sluice telescope tractor tramway trawler turbine vineyard windmill"
).split()
TOOLS = len(READING | CHANGING) * len(PARTS) * len(THINGS)


def entry() -> dict[str, Any]:
    """Return the entry of `mcp.json` that starts it."""
    return {"command": sys.executable, "args": [str(SCRIPT)], "trusted": True}


def answering(name: str, about: str) -> Any:
    """Return a tool that says its name, and the number that it is given."""

    async def answer(number: str) -> str:
        return f"{name} of number {number}"

    answer.__name__, answer.__doc__ = name, about
    return answer


if __name__ == "__main__":
    from plain_server import PlainServer  # it lies beside this script

    server = PlainServer("crowd")
    for texts, offer in ((READING, server.reading), (CHANGING, server.tool)):
        for (verb, text), part, thing in product(texts.items(), PARTS, THINGS):
            offer(answering(f"{verb}_{thing}_{part}", text.format(part=part, thing=thing)))
    server.run()
