"""Turns of a scripted model: what its prompt holds, and what becomes of the calls that it writes."""

import tempfile
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from packetgate import create_router
from packetgate.middleware import PacketgateMiddleware


class ScriptedModel(BaseChatModel):
    """Writes the script's calls in its first message, and then a text; keeps the prompts."""

    calls: list[ToolCall] = []
    prompts: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        """Accept any tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        is_first = not self.prompts
        self.prompts.append("\n".join(message.text for message in messages))
        message = AIMessage("" if is_first and self.calls else "Done.", tool_calls=self.calls if is_first else [])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def prompt_of(request: str) -> str:
    """Return the whole prompt that a router's model is given for a request."""
    model = ScriptedModel(prompts=[])
    with tempfile.TemporaryDirectory() as folder:
        async with create_router(model, root=folder) as router:
            await router.ainvoke(request)
    return "\n".join(model.prompts)


async def call_lamps(calls: list[tuple[str | None, str, dict[str, Any]]]) -> tuple[int, int]:
    """Return how many calls of a step the middleware asks about, and how many then run once with an own result."""
    ran: list[str] = []

    @tool
    def set_lamp(room: str) -> str:
        """Switch on the lamp of a room."""
        ran.append(room)
        return f"{room} is lit"

    model = ScriptedModel(calls=[ToolCall(id=given, name=name, args=args) for given, name, args in calls], prompts=[])
    gate = PacketgateMiddleware(tools=[set_lamp])
    agent = create_agent(model, [set_lamp], middleware=[gate], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    state = await agent.ainvoke({"messages": [HumanMessage("Set the lamps")]}, config)
    asked = [action for one in state.get("__interrupt__", ()) for action in one.value["action_requests"]]
    if asked:
        decisions = [{"type": "approve"} for _ in asked]
        state = await agent.ainvoke(Command(resume={"decisions": decisions}), config)
    told = [message.text for message in state["messages"] if message.type == "tool"]
    rooms = [args["room"] for _, _, args in calls]
    is_right = sorted(ran) == sorted(rooms) and sorted(told) == sorted(f"{room} is lit" for room in rooms)
    return len(asked), len(rooms) if is_right else 0
