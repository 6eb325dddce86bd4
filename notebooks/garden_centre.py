"""An MCP server of a garden centre with 216 tools, each a verb and a thing, that do nothing."""

from fastmcp import FastMCP
from fastmcp.tools import Tool
from mcp.types import ToolAnnotations

THINGS = (
    "roses tulips ferns herbs shrubs hedges bulbs seeds pots planters gloves spades"
    " rakes fountains shears saws hoses sprinklers"
).split()
READING = {
    "list": "List all {} with their prices.",
    "find": "Find {} by name or colour.",
    "count": "Count the {} in stock.",
    "price": "Show what {} cost.",
    "describe": "Describe {} and their care.",
    "rate": "Show how {} are rated.",
}
CHANGING = {
    "order": "Order {} from the supplier.",
    "reserve": "Reserve {} for a customer.",
    "move": "Move {} to another hall.",
    "label": "Print labels for {}.",
    "return": "Take {} back from a customer.",
    "discount": "Give a discount on {}.",
}


def made(deed: str, thing: str) -> Tool:
    """Return a tool that repeats its own name."""

    def act(name: str = "") -> str:
        return f"{deed} {thing} {name}".strip() + ": 12"

    hints = ToolAnnotations(readOnlyHint=deed in READING)
    about = (READING | CHANGING)[deed].format(thing)
    return Tool.from_function(
        act, name=f"{deed}_{thing}", description=about, annotations=hints
    )


if __name__ == "__main__":
    server = FastMCP(
        "centre", instructions="A garden centre: its plants, tools and orders."
    )
    for one in (made(deed, thing) for deed in READING | CHANGING for thing in THINGS):
        server.add_tool(one)
    server.run(show_banner=False)
