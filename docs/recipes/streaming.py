"""Async code, and typed events while a turn runs."""

import asyncio

from packetgate.connectors.sessions import AnswerPiece
from packetgate.router import Turn, create_router
from packetgate.state.events import StageFinished
from packetgate.toolsets.servers.functions import reads


@reads
async def late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


async def main() -> None:
    """Run a turn."""
    async with create_router("openai:gpt-5-mini", [late_orders]) as router:
        async for event in router.astream("Which orders are late?"):
            match event:
                case StageFinished(stage=stage, duration_ms=duration):
                    print(f"{stage}: {duration:.0f} ms")
                case AnswerPiece(text=text):
                    print(text, end="", flush=True)
                case Turn(calls=calls):
                    print("\n", [(call.tool_name, call.status.value) for call in calls])


asyncio.run(main())
