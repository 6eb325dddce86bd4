"""LangChain's side: `create_agent` with `HumanInTheLoopMiddleware`, over the same server and the same script."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp_types import TextContent
from pydantic import PrivateAttr

from benchmarks.safety.dojo import Call, Dojo
from benchmarks.safety.playing import Person, Script
from packetgate.state.base import new_id

STEPS = 1_000


class ScriptedChat(BaseChatModel):
    """Calls what the script says, and reads what the tools return."""

    _script: Script = PrivateAttr()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def follow(self, script: Script) -> None:
        """Take up a script."""
        self._script = script

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        """Take the tools for known."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        self._script.read(message.text for message in messages if isinstance(message, ToolMessage))
        calls = [{"name": call.tool, "args": call.params, "id": new_id()} for call in self._script.next_pass()]
        message = AIMessage("" if calls else "Done.", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


@dataclass(frozen=True)
class LangChain:
    """An agent over a suite's server."""

    agent: Any
    model: ScriptedChat

    async def play(self, script: Script, person: Person) -> None:
        """Play a script on a thread of its own."""
        self.model.follow(script)
        config: RunnableConfig = {"configurable": {"thread_id": new_id()}, "recursion_limit": STEPS}
        given: Any = {"messages": [HumanMessage(script.started.prompt)]}
        while True:
            state = await self.agent.ainvoke(given, config)
            asked = state.get("__interrupt__")
            if not asked:
                return
            given = Command(resume=person.decisions(asked[0].value["action_requests"]))


@asynccontextmanager
async def langchain(dojo: Dojo) -> AsyncIterator[LangChain]:
    """Open the agent. It interrupts on every tool that writes: somebody has listed them, since the server does not."""
    transport = StdioTransport(dojo.entry["command"], dojo.entry["args"], keep_alive=False)
    async with Client(transport) as client:
        listed = await client.list_tools()

        def tool(name: str, description: str, schema: dict[str, Any]) -> StructuredTool:
            async def call(**params: Any) -> str:
                result = await client.call_tool_mcp(name, params)
                text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
                if result.is_error:
                    raise ToolException(text)
                return text

            return StructuredTool(
                name=name, description=description, args_schema=schema, coroutine=call, handle_tool_error=True
            )

        model = ScriptedChat()
        writing = {one.name: True for one in listed if Call(one.name, {}).writes}
        agent = create_agent(
            model,
            [tool(one.name, one.description or "", one.input_schema) for one in listed],
            middleware=[HumanInTheLoopMiddleware(interrupt_on=dict(writing))],
            checkpointer=InMemorySaver(),
        )
        yield LangChain(agent, model)
