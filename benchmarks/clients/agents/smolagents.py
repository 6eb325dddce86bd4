"""Run the tool-calling agent of smolagents, which sends results as user messages."""

from benchmarks.clients.agents.agent import Agent
from benchmarks.clients.place import from_pypi

PLAY = """
import json, os, sys
from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent

command, *arguments = json.loads(sys.argv[1])
model = OpenAIServerModel("gpt-5-mini", os.environ["OPENAI_BASE_URL"], api_key="none")
with MCPClient(StdioServerParameters(command=command, args=arguments)) as tools:
    print(ToolCallingAgent(tools=tools, model=model).run(sys.argv[2]))
"""
PACKAGE = "smolagents"
SMOLAGENTS = Agent(
    PACKAGE,
    f"PyPI {PACKAGE}",
    lambda folder: from_pypi(PACKAGE, folder, f"{PACKAGE}[mcp,openai]", "mcp<2"),
    lambda bench: bench.python(PLAY),
)
