"""What the README says of others: a tool that the model was not shown runs all the same when it is named."""

from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolSelectorMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr


class Disobedient(BaseChatModel):
    """Selects `read`, and then calls `wipe`."""

    _was_shown_read: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "disobedient"

    def bind_tools(self, tools: Any, **options: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        shown = [one["function"]["name"] for one in options["tools"]]
        if shown == ["read"]:
            self._was_shown_read += 1
            calls = [{"name": "wipe", "args": {}, "id": "2"}] if self._was_shown_read == 1 else []
        else:
            calls = [{"name": shown[0], "args": {"tools": ["read"]}, "id": "1"}]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])


async def test_langchain_runs_a_tool_that_its_selector_left_out() -> None:
    ran = []

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

    agent = create_agent(Disobedient(), [read, wipe], middleware=[LLMToolSelectorMiddleware()])
    await agent.ainvoke({"messages": [HumanMessage("Read it")]})
    assert ran == ["wipe"]


async def test_fastmcp_runs_a_tool_that_no_search_found() -> None:
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
