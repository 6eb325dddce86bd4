"""The statements in docs/comparison.md about other libraries hold when these libraries run."""

from typing import Any

import pytest
from contract.model import ScriptedModel
from fastmcp import Client, FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.transforms.search import BM25SearchTransform
from langchain.agents import create_agent
from langchain.agents.middleware import AutoModeMiddleware, LLMToolSelectorMiddleware
from langchain_core._api import suppress_langchain_beta_warning
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, tool

with suppress_langchain_beta_warning():
    from langchain.mcp import MCPAdapter


def read_and_wipe(ran: list[str]) -> list[BaseTool]:
    """Return two tools that record their runs."""

    @tool
    def read() -> str:
        """Read."""
        ran.append("read")
        return ""

    @tool
    def wipe() -> str:
        """Wipe."""
        ran.append("wipe")
        return ""

    return [read, wipe]


async def test_langchain_runs_a_tool_that_its_selector_omitted() -> None:
    ran: list[str] = []
    select = [("ToolSelectionResponse", {"tools": ["read"]})]
    model = ScriptedModel(steps=[select, [("wipe", {})], select])
    agent = create_agent(model, read_and_wipe(ran), middleware=[LLMToolSelectorMiddleware()])
    await agent.ainvoke({"messages": [HumanMessage("Read it")]})
    assert ran == ["wipe"]


async def test_fastmcp_runs_a_tool_that_no_search_returned() -> None:
    server: FastMCP[Any] = FastMCP("disk", transforms=[BM25SearchTransform(max_results=1)])
    ran = []

    @server.tool
    def read_file() -> str:
        """Read a file."""
        ran.append("read")
        return ""

    @server.tool
    def wipe_disk() -> str:
        """Wipe the disk."""
        ran.append("wipe")
        return ""

    async with Client(server) as client:
        found = await client.call_tool("search_tools", {"query": "read a file"})
        await client.call_tool("call_tool", {"name": "wipe_disk", "arguments": {}})
    assert "wipe_disk" not in str(found.content)
    assert ran == ["wipe"]


class Judge(BaseDecisionModel):
    """Gives every call the same risk."""

    model: str = "scripted"
    risk: float

    @property
    def _provider(self) -> str:
        return "scripted"

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        answers = {name: {"type": "noul", "noul": self.risk} for name in questions}
        return ClassifierResponse.model_validate({"model": self.model, "answers": answers})


@pytest.mark.parametrize(("risk", "expected"), [(0.49, ["read", "wipe"]), (0.5, ["read"])])
async def test_auto_mode_with_a_decision_model_never_asks(risk: float, expected: list[str]) -> None:
    ran: list[str] = []
    auto_mode = AutoModeMiddleware(tools=["wipe"], classifier=Judge(risk=risk))
    model = ScriptedModel(steps=[[("read", {}), ("wipe", {})]])
    done = await create_agent(model, read_and_wipe(ran), middleware=[auto_mode]).ainvoke(
        {"messages": [HumanMessage("Read it")]}
    )
    assert ran == expected
    assert "__interrupt__" not in done


async def test_langchains_adapter_opens_a_session_per_call_by_default() -> None:
    server: FastMCP[Any] = FastMCP("notes")
    opened = []

    @server.tool(annotations={"destructiveHint": True})
    def wipe() -> str:
        """Wipe."""
        return ""

    class Counted(FastMCPTransport):
        def connect_session(self, **options: Any) -> Any:
            opened.append("session")
            return super().connect_session(**options)

    adapter = MCPAdapter(Counted(server))
    (adapted,) = await adapter.list_tools()
    assert adapted.metadata["mcp"]["tool"]["annotations"] == {"destructive_hint": True}
    opened.clear()
    await adapted.ainvoke({})
    await adapted.ainvoke({})
    assert len(opened) == 2
    async with adapter:
        await adapted.ainvoke({})
        await adapted.ainvoke({})
    assert len(opened) == 3


async def test_fastmcps_cache_answers_a_repeated_write_without_running_it() -> None:
    written: list[str] = []
    server: FastMCP[Any] = FastMCP("ledger", middleware=[ResponseCachingMiddleware()])

    @server.tool
    def add_entry(text: str) -> str:
        """Add an entry."""
        written.append(text)
        return f"entry {len(written)}"

    for _ in range(2):
        async with Client(server) as client:
            assert (await client.call_tool("add_entry", {"text": "x"})).data == "entry 1"
    assert written == ["x"]
