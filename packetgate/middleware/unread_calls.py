"""Parse the model's calls that LangChain could not parse, and those that the model left in its text."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, InvalidToolCall, ToolMessage
from langchain_core.messages import ToolCall as AgentCall
from langchain_core.tools import BaseTool

from packetgate.tools.text.nearly_json import read_arguments

_UNREAD = "The call {}cannot be read{}, and was not made: its arguments must be one JSON object"
_MAY_BE_CALL = re.compile(r"[<\[{]")


def read_response(
    response: ModelResponse[Any], request: ModelRequest[Any], *, is_last: bool = False
) -> tuple[ModelResponse[Any], ModelRequest[Any] | None]:
    """Return the response with the calls that can be parsed; if none can, also the request that asks for them again.

    Args:
        is_last: whether the model was already asked again: its text then names the calls that did not run.
    """
    answers = [one for one in response.result if isinstance(one, AIMessage)]
    if len(answers) != 1 or request.response_format is not None:
        return response, None
    answer, problems = _with_calls(answers[0], {tool.name for tool in request.tools if isinstance(tool, BaseTool)})
    if problems and not answer.tool_calls:
        if not is_last:
            return response, request.override(messages=[*request.messages, answer, *problems])
        note = "\n".join(f"[{problem.text}]" for problem in problems)
        answer = answer.model_copy(update={"content": f"{answer.text}\n\n{note}".lstrip()})
    return replace(response, result=[answer if one is answers[0] else one for one in response.result]), None


def _with_calls(answer: AIMessage, offered: Collection[str]) -> tuple[AIMessage, list[AnyMessage]]:
    """Return the answer with all calls that can be parsed, and a message about each call that cannot.

    Calls in the text are parsed only if their tool is offered, and marks surround them or they are the whole text.
    """
    calls, unread, problems = [*answer.tool_calls], list[InvalidToolCall](), list[AnyMessage]()
    for at, call in enumerate(answer.invalid_tool_calls):
        name, id_ = call["name"] or "", call["id"] or f"unread_{at}"
        try:
            calls.append(AgentCall(name=name, args=read_arguments(call["args"] or ""), id=id_, type="tool_call"))
        except ValueError as error:
            unread.append({**call, "id": id_})
            text = _UNREAD.format(f"of {name} " if name else "", f" ({error})")
            problems.append(ToolMessage(text, tool_call_id=id_, status="error"))
    read: dict[str, Any] = {"tool_calls": calls, "invalid_tool_calls": unread}
    if not (calls or unread) and _MAY_BE_CALL.search(answer.text):
        from packetgate.models.decoding import calls_in  # these compile hundreds of patterns
        from packetgate.models.stripping import removes_call, strip_markup

        written = calls_in(answer.text, if_clear=True)
        if written and {call.name for call in written} <= {*offered}:
            read["tool_calls"] = [
                AgentCall(name=call.name, args=call.arguments, id=f"text_{at}", type="tool_call")
                for at, call in enumerate(written)
            ]
            read["content"] = strip_markup(answer.text).text
        elif not written and removes_call(answer.text):
            problems.append(HumanMessage(_UNREAD.format("in your text ", "")))
    return answer.model_copy(update=read), problems
