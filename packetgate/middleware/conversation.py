"""Read an agent's state and messages, and change its results."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.messages import ToolCall as AgentCall
from langgraph.types import Command

from packetgate.state.errors import RequestError
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.toolsets.servers.langchain_results import safe_message

SERVER = "agent"
"""Server name of the agent's tools, in rules and in the journal."""


def grown(shown: list[str], more: list[str]) -> list[str]:
    """Return the names of both lists without duplicates; the shown names keep their positions."""
    return [*dict.fromkeys([*shown, *more])]


class GatedState(AgentState[Any]):
    """The agent's state, with the data that the middleware needs in the next step."""

    gated: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    """Proposals of calls that run next, or ask the user when they start, as JSON, by message and call."""
    labels: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    """The thread's labels with their sources."""
    shown: NotRequired[Annotated[list[str], PrivateStateAttr, grown]]
    """Names of the tools on the model's list, in order; empty while the model sees all tools."""
    unshown: NotRequired[Annotated[list[str], PrivateStateAttr]]
    """Names that the model's last answer calls although they were not on the list."""
    found: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    """Results of the searches that the model called last, by query."""
    added: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, operator.or_]]
    """Definitions of the called tools that were not given to the middleware, by name."""


_OWN_STATE = GatedState.__annotations__.keys() - AgentState.__annotations__.keys()
"""Keys of the state that no tool may change."""


def shown_names(state: Any) -> list[str]:
    """Return the names on the model's list, in order; empty if the model sees all tools."""
    return [*(state.get("shown") or ())]


def unprefixed_name(name: str) -> str:
    """Return the agent's name of a tool."""
    return name.removeprefix(f"{SERVER}.")


def last_answer(messages: Sequence[AnyMessage]) -> int:
    """Return the index of the model's last answer; without one, the number of messages."""
    return max((at for at, item in enumerate(messages) if isinstance(item, AIMessage)), default=len(messages))


def call_key(answer_id: str, call: AgentCall) -> str:
    """Return the key of a call in the state: some model servers number the calls of each answer from 0."""
    return f"{answer_id}/{call['id']}"


def with_own_ids(answer: AIMessage) -> AIMessage:
    """Return an answer in which each call has a unique id."""
    calls, known = list[AgentCall](), set[str | None]()
    for at, call in enumerate(answer.tool_calls):
        is_own = bool(call["id"]) and call["id"] not in known
        calls.append(call if is_own else {**call, "id": f"call_{digest_of([answer.id, at])[:24]}"})
        known.add(calls[-1]["id"])
    return answer if calls == answer.tool_calls else answer.model_copy(update={"tool_calls": calls})


def changed_request(request: ToolCallRequest, name: str, params: dict[str, Any]) -> ToolCallRequest:
    """Return the request with the approved call, which the user may have edited."""
    call = AgentCall(**{**request.tool_call, "name": name, "args": params})
    if name == request.tool_call["name"]:
        return request.override(tool_call=call)
    tools = [tool for tool in request.runtime.tools if tool.name == name]
    if not tools:
        raise RequestError(f"the call was edited to {name}, which the agent cannot run")
    return request.override(tool_call=call, tool=tools[0])


def calls_in(messages: Sequence[AnyMessage], catalogue: Catalogue) -> tuple[ToolCall, ...]:
    """Return the calls of a conversation that have a result, as calls of reads."""
    calls = []
    for call, message in earlier_calls(messages):
        name = f"{SERVER}.{call['name']}"
        result = ToolResult(success=message.status != "error", output=message.text)
        labels = {"result_labels": catalogue[name].result_labels} if name in catalogue else {}
        calls.append(ToolCall(tool_name=name, params=call["args"], risk=Risk.READ, result=result, **labels))
    return tuple(calls)


def earlier_calls(messages: Sequence[AnyMessage]) -> Iterator[tuple[AgentCall, ToolMessage]]:
    """Yield the calls of a conversation with their results."""
    calls: dict[str, AgentCall] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls |= {str(call["id"]): call for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in calls:
            yield calls[message.tool_call_id], message


def messages_in(handled: Any) -> list[BaseMessage]:
    """Return the messages in a tool's return value: a message, a `Command`, or a list of both."""
    if isinstance(handled, list):
        return [message for item in handled for message in messages_in(item)]
    if not isinstance(handled, Command):
        return [handled]
    update = handled.update.get("messages", []) if isinstance(handled.update, dict) else handled.update or []
    return convert_to_messages(update if isinstance(update, list) else [update])


def safe_results(handled: Any, notice: str = "") -> Any:
    """Return a tool's return value with safe messages, after a notice, and without the middleware's state."""
    if isinstance(handled, list):
        return [safe_results(item, notice) for item in handled]
    messages = [_noticed(safe_message(message), notice) for message in messages_in(handled)]
    if not isinstance(handled, Command):
        return messages[0]
    if not isinstance(handled.update, dict):
        return replace(handled, update=messages) if messages else handled
    others = {key: value for key, value in handled.update.items() if key not in {"messages", *_OWN_STATE}}
    return replace(handled, update={**others, **({"messages": messages} if messages else {})})


def _noticed(message: BaseMessage, notice: str) -> BaseMessage:
    if not notice or not isinstance(message, ToolMessage):
        return message
    is_text = isinstance(message.content, str)
    content = notice + message.text if is_text else [{"type": "text", "text": notice}, *message.content]
    return message.model_copy(update={"content": content})
