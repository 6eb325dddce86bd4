"""Run LangChain's agent with the tools of langchain-mcp-adapters, in one session or with a session per call."""

from dataclasses import replace
from string import Template

from benchmarks.clients.agents.agent import Agent
from benchmarks.clients.place import from_pypi

PLAY = Template("""
import asyncio, json, sys
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

async def run(tools):
    result = await create_agent("openai:gpt-5-mini", tools).ainvoke({"messages": [("user", sys.argv[2])]})
    print(result["messages"][-1].text)

async def in_session():
    async with client.session("packetgate") as session:
        await run(await load_mcp_tools(session))

async def without_session():
    await run(await client.get_tools())

command, *arguments = json.loads(sys.argv[1])
client = MultiServerMCPClient({"packetgate": {"transport": "stdio", "command": command, "args": arguments}})
asyncio.run($main())
""")
PACKAGE = "langchain-mcp-adapters"
LANGCHAIN = Agent(
    "LangChain, in a session",
    f"PyPI {PACKAGE}",
    lambda folder: from_pypi(PACKAGE, folder, PACKAGE, "langchain", "langchain-openai"),
    lambda bench: bench.python(PLAY.substitute(main="in_session")),
)
LANGCHAIN_WITHOUT_SESSION = replace(
    LANGCHAIN,
    name="LangChain, a session a call",
    start=lambda bench: bench.python(PLAY.substitute(main="without_session")),
)
"""The default of the adapters: each call starts a proxy, which starts a server."""
