"""Call tools plainly: the model receives only the request and all tools, by its server or chat template."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from packetgate.deciders.language.prompting import offered_tool
from packetgate.models.decoding import calls_in
from packetgate.models.model import Model
from packetgate.models.stripping import strip_markup
from packetgate.state.base import new_id
from packetgate.tools.spec.tool_spec import ToolSpec


async def plain_answer(
    model: Model, messages: Sequence[BaseMessage], tools: Iterable[ToolSpec], options: dict[str, Any]
) -> AIMessage:
    """Return the answer with its calls. A model in this process writes calls into the text."""
    offered = [offered_tool(spec).openai_format for spec in tools]
    answer: AIMessage = await model.chat.ainvoke([*messages], tools=offered, **options)
    if model.is_local:
        answer.tool_calls = [ToolCall(name=one.name, args=one.arguments, id=new_id()) for one in calls_in(answer.text)]
        answer.content = strip_markup(answer.text).text
    return answer
