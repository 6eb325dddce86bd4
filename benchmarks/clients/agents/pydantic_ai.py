"""Run pydantic-ai with a handler for the proxy's questions."""

from benchmarks.clients.agents.agent import Agent, Dialog
from benchmarks.clients.place import from_pypi

PLAY = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

async def decide(question, answer_type, params, context):
    print(question)
    return answer_type(answer=await asyncio.to_thread(input, "yes or no? "))

async def main():
    command, *arguments = json.loads(sys.argv[1])
    proxy = Client(StdioTransport(command, arguments), elicitation_handler=decide, init_timeout=60)
    agent = Agent("openai-chat:gpt-5-mini", toolsets=[MCPToolset(proxy)])
    async with agent:
        print((await agent.run(sys.argv[2])).output)

asyncio.run(main())
"""
PACKAGE = "pydantic-ai-slim"
PYDANTIC_AI = Agent(
    "pydantic-ai",
    f"PyPI {PACKAGE}",
    lambda folder: from_pypi(PACKAGE, folder, f"{PACKAGE}[mcp,openai]"),
    lambda bench: bench.python(PLAY),
    dialogs=(Dialog(r"yes or no\?", "yes\n"),),
)
