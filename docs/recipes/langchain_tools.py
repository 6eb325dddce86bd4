"""LangChain tools, sync or async. Their `metadata` may hold MCP's hints, such as `readOnlyHint`."""

from langchain_core.tools import StructuredTool, tool

from packetgate.router import create_router
from packetgate.toolsets.servers.functions import reads


@reads
@tool
async def convert_money(euros: float, currency: str) -> str:
    """Convert an amount of euros into another currency."""
    return f"{euros * 2} {currency}"


def find_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


weather = StructuredTool.from_function(find_weather, name="weather", metadata={"readOnlyHint": True})
with create_router(tools=[convert_money, weather]) as router:
    print(router.invoke("Convert 20 euros into dollars").answer)
    print(router.invoke("How is the weather in Oslo?").answer)
