"""An OpenAI Agents SDK agent whose tools come from `packetgate proxy`: a change waits for `packetgate answer`."""

import asyncio

from agents import Agent, Runner, SQLiteSession, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStdio

set_default_openai_api("chat_completions")
set_tracing_disabled(True)
PROXY = {"command": "packetgate", "args": ["proxy", "--allow-writes"]}


async def main() -> None:
    """Chat until an empty line."""
    conversation = SQLiteSession("ada")
    async with MCPServerStdio(PROXY, client_session_timeout_seconds=60) as proxy:
        agent = Agent("Gardener", model="gpt-5-mini", mcp_servers=[proxy])
        while request := await asyncio.to_thread(input, "> "):
            result = await Runner.run(agent, request, session=conversation)
            print(result.final_output)


asyncio.run(main())
