"""Run the OpenAI Agents SDK, with the responses protocol."""

from functools import partial

from benchmarks.clients.agents.agent import Agent
from benchmarks.clients.place import from_pypi

PLAY = """
import asyncio, json, sys
from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio

async def main():
    command, *arguments = json.loads(sys.argv[1])
    proxy = MCPServerStdio({"command": command, "args": arguments}, client_session_timeout_seconds=60)
    async with proxy:
        result = await Runner.run(Agent("Clerk", model="gpt-5-mini", mcp_servers=[proxy]), sys.argv[2])
    print(result.final_output)

set_tracing_disabled(True)
asyncio.run(main())
"""
PACKAGE = "openai-agents"
OPENAI_AGENTS = Agent(PACKAGE, f"PyPI {PACKAGE}", partial(from_pypi, PACKAGE), lambda bench: bench.python(PLAY))
