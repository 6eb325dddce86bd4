"""Requests to the scripted model, and its answers."""

import json
from typing import Any

from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import as_text


def sent(scripted: ScriptedOpenAI, number: int = -1) -> list[tuple[str, str]]:
    """Return (role, text) of a request's messages."""
    return [(message["role"], _text(message)) for message in scripted.requests[number]["messages"]]


def _text(message: dict[str, Any]) -> Any:
    """Return a message's text, the text of its parts, or its calls as JSON."""
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return json.dumps(calls, ensure_ascii=False) if calls else message["content"]


def offered(scripted: ScriptedOpenAI, number: int = -1) -> dict[str, dict[str, Any]]:
    """Return the tools that a request offers, by name."""
    return {one["function"]["name"]: one["function"] for one in scripted.requests[number]["tools"]}


def system(scripted: ScriptedOpenAI, number: int = -1) -> str:
    """Return a request's system prompt, after checking that it is the first message and the only one."""
    roles = [role for role, _ in sent(scripted, number)]
    assert roles.index("system") == 0
    assert roles.count("system") == 1
    return sent(scripted, number)[0][1]


def last(scripted: ScriptedOpenAI, number: int = -1) -> str:
    """Return the text of a request's last message, a user message, without surrounding white space."""
    role, text = sent(scripted, number)[-1]
    assert role == "user"
    return text.strip()


def selection(action: str, **more: Any) -> str:
    """Return a selection."""
    return json.dumps({"action": action, "reasoning": "because", "confidence": 0.85} | more)


NO_TOOL = selection("none", needs_tool=False)


def call(tool: str, **params: Any) -> str:
    """Return a selection of one call that does not state whether more calls follow."""
    return selection("call", calls=[{"tool": tool, "params": params}])


def written_call(tool: str, **params: Any) -> str:
    """Return a call in the form that models use for tools in words."""
    return as_text(json.loads(call(tool, **params)))


def first_call(tool: str, **params: Any) -> str:
    """Return a selection of one call that states that another call follows."""
    return selection("call", calls=[{"tool": tool, "params": params}], complete=False)
