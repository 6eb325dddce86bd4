"""Run turns of a scripted model, and return its prompts and the outcomes of its calls."""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from fastmcp import FastMCP
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from benchmarks.chat import StandInChat
from packetgate import create_router
from packetgate.connectors.sessions import AnswerPiece, ShownText
from packetgate.middleware import PacketgateMiddleware
from packetgate.router import Turn
from packetgate.state.events import StageStarted


class ScriptedModel(StandInChat):
    """Writes the script's calls in its first message, then a text, and stores the prompts."""

    calls: list[ToolCall] = []
    prompts: list[str] = []

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Return the calls, and after them a text."""
        is_first = not self.prompts
        self.prompts.append("\n".join(message.text for message in messages))
        return AIMessage("" if is_first and self.calls else "Done.", tool_calls=self.calls if is_first else [])


async def prompt_of(request: str) -> str:
    """Return the complete prompt of a router's model for a request."""
    model = ScriptedModel(prompts=[])
    with tempfile.TemporaryDirectory() as folder:
        async with create_router(model, root=folder) as router:
            await router.ainvoke(request)
    return "\n".join(model.prompts)


async def call_lamps(calls: list[tuple[str | None, str, dict[str, Any]]]) -> tuple[int, int]:
    """Return for how many calls of a step the middleware asks, and how many then run once with their own result."""
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
    results = [message.text for message in state["messages"] if message.type == "tool"]
    rooms = [args["room"] for _, _, args in calls]
    is_right = sorted(ran) == sorted(rooms) and sorted(results) == sorted(f"{room} is lit" for room in rooms)
    return len(asked), len(rooms) if is_right else 0


class ScriptedTexts(StandInChat):
    """Answers with the messages of a script in order, and with yes to the question whether a call is right."""

    script: list[AIMessage] = []

    def reply(self, messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
        """Return the next message of the script."""
        is_review = messages[-1].text.rstrip().endswith("Is this call right?")
        return AIMessage("yes") if is_review else self.script.pop(0)


class StreamedTexts(ScriptedTexts):
    """Streams the messages in chunks."""

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        message = self.reply(messages)
        pieces = [message.text[at : at + 8] for at in range(0, len(message.text), 8)] or [""]
        for piece in pieces:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        last = AIMessageChunk(content="", tool_calls=message.tool_calls, invalid_tool_calls=message.invalid_tool_calls)
        yield ChatGenerationChunk(message=last)


async def weather_turns(
    model: type[ScriptedTexts], script: list[AIMessage], requests: Sequence[str]
) -> tuple[list[str], str, str]:
    """Return the cities whose weather a router's model reads, the last answer, and the streamed text of its turn."""
    cities: list[str] = []
    server = FastMCP[Any]("s")

    @server.tool(annotations={"readOnlyHint": True})
    def get_weather(city: str) -> str:
        """Show the weather in a city."""
        cities.append(city)
        return "mild"

    answer, shown = "", ShownText("[withdrawn]")
    with tempfile.TemporaryDirectory() as folder:
        async with create_router(model(script=script), [server], root=folder) as router:
            for request in requests:
                shown = ShownText("[withdrawn]")
                async for event in router.astream(request, thread="one"):
                    match event:
                        case StageStarted(stage=stage):
                            shown.start_stage(stage)
                        case AnswerPiece():
                            shown.add(event)
                        case Turn():
                            answer = event.answer
    return cities, answer, shown.text + shown.rest(answer)
