"""Record the requests of LangChain's tool selector and FastMCP's search for the same tools and user requests."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool
from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolSelectorMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp_types import TextContent
from pydantic import PrivateAttr

from benchmarks.chat import StandInChat
from benchmarks.tokens.counting import openai_tool
from packetgate.state.printing import compact_json
from packetgate.tools.catalogue.catalogue import Catalogue


async def langchain_selections(catalogue: Catalogue, requests: Iterable[str]) -> AsyncIterator[str]:
    """Yield the messages and the answer schema that LangChain's middleware sends to its selection model."""
    model = RecordingChat()
    tools = [
        StructuredTool(name=tool.name, description=tool.full, args_schema=tool.input_schema, coroutine=_never_called)
        for tool in catalogue.values()
    ]
    agent = create_agent(model, tools, middleware=[LLMToolSelectorMiddleware()])
    for request in requests:
        model.sent.clear()
        await agent.ainvoke({"messages": [HumanMessage(request)]})
        messages, schemas = model.sent[0]
        yield "\n".join([*(message.text for message in messages), compact_json(schemas)])


async def fastmcp_searches(catalogue: Catalogue, requests: Iterable[str]) -> AsyncIterator[str]:
    """Yield the tools that a client of FastMCP's search transform sees, and the search result for the request."""
    server: FastMCP[Any] = FastMCP("tools")
    server.add_transform(BM25SearchTransform())
    for tool in catalogue.values():  # no validation: FastMCP warns of every name with characters outside MCP's set
        server.add_tool(Tool.model_construct(name=tool.name, description=tool.full, parameters=tool.input_schema))
    async with Client(server) as client:
        listed = await client.list_tools()
        seen = compact_json([openai_tool(tool.name, tool.description or "", tool.input_schema) for tool in listed])
        for request in requests:
            found = await client.call_tool("search_tools", {"query": request})
            yield "\n".join([seen, *(block.text for block in found.content if isinstance(block, TextContent))])


class RecordingChat(StandInChat):
    """Records its requests, and calls its first tool with an empty choice."""

    _sent: list[tuple[Sequence[BaseMessage], Sequence[dict[str, Any]]]] = PrivateAttr(default_factory=list)

    @property
    def sent(self) -> list[tuple[Sequence[BaseMessage], Sequence[dict[str, Any]]]]:
        """The messages and the tools of each request."""
        return self._sent

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        """Bind tools of any form in OpenAI's form."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Record a request, and call the first tool."""
        tools = options.get("tools", [])
        self._sent.append((messages, tools))
        calls = [{"name": tool["function"]["name"], "args": {"tools": []}, "id": "1"} for tool in tools[:1]]
        return AIMessage("", tool_calls=calls)


async def _never_called(**arguments: Any) -> str:
    raise NotImplementedError
