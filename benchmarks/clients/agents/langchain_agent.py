"""LangChain's agent with the tools of langchain-mcp-adapters, in one session.

Without a session, the adapters start the proxy, and its servers, for each call.
"""

from benchmarks.clients.agents.agent import Agent
from benchmarks.clients.place import from_pypi

PLAY = """
import asyncio, json, sys
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

async def main():
    command, *arguments = json.loads(sys.argv[1])
    servers = {"packetgate": {"transport": "stdio", "command": command, "args": arguments}}
    async with MultiServerMCPClient(servers).session("packetgate") as session:
        agent = create_agent("openai:gpt-5-mini", await load_mcp_tools(session))
        result = await agent.ainvoke({"messages": [("user", sys.argv[2])]})
    print(result["messages"][-1].text)

asyncio.run(main())
"""
PACKAGE = "langchain-mcp-adapters"
LANGCHAIN = Agent(
    PACKAGE,
    f"PyPI {PACKAGE}",
    lambda folder: from_pypi(PACKAGE, folder, PACKAGE, "langchain", "langchain-openai"),
    lambda bench: bench.python(PLAY),
)
