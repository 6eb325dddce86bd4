"""A small MCP server, which other recipes use."""

from fastmcp import FastMCP

garden = FastMCP("garden")


@garden.tool(annotations={"readOnlyHint": True})
def list_beds() -> list[str]:
    """List the flower beds of the garden."""
    return ["roses", "tulips"]


@garden.tool
def water_bed(name: str) -> str:
    """Water a flower bed of the garden.

    Args:
        name: the bed's name, such as roses.
    """
    return f"watered {name}"


if __name__ == "__main__":
    garden.run(show_banner=False)
