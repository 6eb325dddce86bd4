"""Play scripts with LangChain's `create_agent` on the same server, with its own middleware or Packetgate's."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command
from mcp_types import TextContent
from pydantic import PrivateAttr

from benchmarks.chat import StandInChat
from benchmarks.safety.dojo import Call, Dojo
from benchmarks.safety.playing import Person, Script
from packetgate.middleware import PacketgateMiddleware
from packetgate.state.base import new_id
from packetgate.toolsets.servers.functions import reads

STEPS = 1_000
"""Maximum number of steps of a script, more than any script needs."""
MODEL_STEPS = 25
"""Maximum number of steps of a real model, which may repeat calls forever; about Packetgate's maximum of passes."""


class ScriptedChat(StandInChat):
    """Makes the calls of a script, and reads the outputs of the tools."""

    _script: Script = PrivateAttr()

    def follow(self, script: Script) -> None:
        """Switch to a script."""
        self._script = script

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Return the next calls of the script."""
        self._script.read(message.text for message in messages if isinstance(message, ToolMessage))
        calls = [{"name": call.tool, "args": call.params, "id": new_id()} for call in self._script.next_pass()]
        return AIMessage("" if calls else "Done.", tool_calls=calls)


@dataclass(frozen=True)
class LangChain:
    """An agent with a suite's server."""

    agent: Any
    model: BaseChatModel
    without_writes: Any = None
    """The agent with writes disabled, if it has this setting."""

    async def play(self, script: Script, person: Person) -> None:
        """Play a script on its own thread."""
        if isinstance(self.model, ScriptedChat):
            self.model.follow(script)
        steps = STEPS if isinstance(self.model, ScriptedChat) else MODEL_STEPS
        config: RunnableConfig = {"configurable": {"thread_id": new_id()}, "recursion_limit": steps}
        given: Any = {"messages": [HumanMessage(script.started.prompt)]}
        agent = self.agent if person.policy.writes else self.without_writes or self.agent
        while True:
            try:
                state = await agent.ainvoke(given, config)
            except GraphRecursionError:
                if steps == STEPS:
                    raise
                state = (await agent.aget_state(config)).values
            if asked := state.get("__interrupt__"):
                given = Command(resume=person.decisions(asked[0].value["action_requests"]))
                continue
            for call in (one for message in state["messages"] for one in getattr(message, "tool_calls", ())):
                script.see(Call(call["name"], call["args"]))
            words = script.next_words()
            if words is None:
                return
            given = {"messages": [HumanMessage(words)]}


@asynccontextmanager
async def langchain(dojo: Dojo, chat: BaseChatModel | None = None) -> AsyncIterator[LangChain]:
    """Open the agent, which interrupts at every tool that writes, by a list, because the server has no annotations.

    Without `chat`, scripts decide.
    """
    async with _tools(dojo) as tools:
        model = chat or ScriptedChat()
        writing: dict[str, Any] = {one.name: True for one in tools if Call(one.name, {}).writes}
        asking = HumanInTheLoopMiddleware(interrupt_on=writing)
        yield LangChain(create_agent(model, tools, middleware=[asking], checkpointer=InMemorySaver()), model)


@asynccontextmanager
async def gated(dojo: Dojo, folder: Path) -> AsyncIterator[LangChain]:
    """Open the agent with Packetgate's middleware, and mark all tools that only read.

    The journal and policy are the same as in the measurement of Packetgate itself.
    """
    policy = folder / "middleware.toml"
    policy.write_text('[policy]\nremember = "always"\n')
    async with _tools(dojo) as tools:
        marked = [one if Call(one.name, {}).writes else reads(one) for one in tools]
        model = ScriptedChat()
        with_writes, without = (
            create_agent(
                model,
                middleware=[
                    PacketgateMiddleware(
                        marked,
                        max_tools=128,
                        settings={"allow_write_tools": allowed, "allow_execute_tools": allowed},
                        policy=policy,
                        journal=folder / "middleware.db",
                    )
                ],
                checkpointer=InMemorySaver(),
            )
            for allowed in (True, False)
        )
        yield LangChain(with_writes, model, without)


@asynccontextmanager
async def _tools(dojo: Dojo) -> AsyncIterator[list[StructuredTool]]:
    """Yield the suite's tools, which share one connection."""
    transport = StdioTransport(dojo.entry["command"], dojo.entry["args"], keep_alive=False)
    async with Client(transport) as client:

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

        yield [tool(one.name, one.description or "", one.input_schema) for one in await client.list_tools()]
