"""A chat model that makes scripted calls and records its prompts, and a reviewer that approves them."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview


class ScriptedModel(BaseChatModel):
    """Makes the calls of the next step if a request offers tools. Otherwise, or without a step, answers with text."""

    steps: Any
    """A list of steps. A step is a list of calls, removed when the model makes them."""
    answer: str = "That is all."
    prompts: Any = Field(default_factory=list)
    """The text of every prompt."""
    shown: Any = Field(default_factory=list)
    """The names of the tools in every prompt."""
    made: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        self.prompts.append("\n".join(message.text for message in messages))
        offered = [tool["function"]["name"] for tool in options.get("tools") or ()]
        self.shown.append(offered)
        step = self.steps.pop(0) if offered and self.steps else []
        calls = []
        for name, args in step:
            self.made += 1
            calls.append({"name": _offered_name(name, offered), "args": args, "id": f"call-{self.made}"})
        message = AIMessage("" if calls else self.answer, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


async def approve(packet: Any, catalogue: Any, settings: Any) -> Review:
    """Approve every call, without a model."""
    calls = packet.routing.calls
    return Review(reviews=tuple(CallReview(call_id=call.call_id, approved=True, confidence=0.95) for call in calls))


def _offered_name(name: str, offered: Sequence[str]) -> str:
    """Return the name under which a tool is offered; the plain name if it is not offered."""
    return next((one for one in offered if one == name or one.endswith(f"__{name}")), name)
