"""A pydantic-ai agent whose tools come from `packetgate proxy`: each change needs your approval."""

import asyncio
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


async def decide(question: str, answer_type: Any, params: Any, context: Any) -> Any:
    """Ask on the terminal whether a call may run."""
    print(question)
    return answer_type(answer=await asyncio.to_thread(input, "yes or no? "))


proxy = StdioTransport("packetgate", ["proxy", "--allow-writes"])
tools = MCPToolset(Client(proxy, elicitation_handler=decide, init_timeout=60))
agent = Agent("openai-chat:gpt-5-mini", toolsets=[tools])


async def main() -> None:
    """Chat until an empty line."""
    history = None
    async with agent:
        while request := await asyncio.to_thread(input, "> "):
            result = await agent.run(request, message_history=history)
            history = result.all_messages()
            print(result.output)


asyncio.run(main())
