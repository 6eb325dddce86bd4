"""Run mcp-use with a LangChain model."""

from benchmarks.clients.agents.agent import Agent, Bench
from benchmarks.clients.place import from_pypi

PLAY = """
import asyncio, json, sys
from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient

async def main():
    command, *arguments = json.loads(sys.argv[1])
    client = MCPClient.from_dict({"mcpServers": {"packetgate": {"command": command, "args": arguments}}})
    agent = MCPAgent(llm=ChatOpenAI(model="gpt-5-mini"), client=client, max_steps=30)
    print(await agent.run(sys.argv[2]))
    await client.close_all_sessions()

asyncio.run(main())
"""
PACKAGE = "mcp-use"


def start(bench: Bench) -> tuple[list[str], dict[str, str]]:
    """Return the command and variables of the agent."""
    command, variables = bench.python(PLAY)
    return command, variables | {"MCP_USE_ANONYMIZED_TELEMETRY": "false"}


MCP_USE = Agent(
    PACKAGE, f"PyPI {PACKAGE}", lambda folder: from_pypi(PACKAGE, folder, PACKAGE, "langchain-openai"), start
)
