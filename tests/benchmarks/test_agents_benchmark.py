"""The agents' scripted model refuses the same requests as OpenAI, and a real agent does its task behind the proxy."""

from pathlib import Path
from typing import Any

import pytest
from support.programs import missing

from benchmarks.clients.agents.agent import measure
from benchmarks.clients.agents.forms import FORMS
from benchmarks.clients.agents.openai_agents import OPENAI_AGENTS
from benchmarks.clients.agents.strictness import problem

CALL = {"id": "1", "type": "function", "function": {"name": "show", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "5"}
USER = {"role": "user", "content": "Go on"}


def tool(parameters: Any, name: str = "show") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


@pytest.mark.parametrize(
    ("messages", "tools", "refused"),
    [
        ([USER, CALLS, RESULT, USER], [tool({"type": "object", "properties": {}})], ""),
        ([USER, CALLS, USER], [], "must be followed by tool messages"),
        ([USER, CALLS], [], "must be followed by tool messages"),
        ([USER, RESULT], [], "must be a response to a preceding"),
        ([USER, CALLS, RESULT, RESULT], [], "must be a response to a preceding"),
        ([USER, CALLS, RESULT | {"content": [{"type": "image_url"}]}], [], "text only"),
        ([{"role": "assistant", "content": None}], [], "expected a string, got null"),
        ([USER], [tool({"type": "object"}, "a/b")], "Invalid 'tools[].function.name'"),
        ([USER], [tool({"type": "object"}, "a" * 65)], "Invalid 'tools[].function.name'"),
        ([USER], [tool({"type": "string"})], "must be of type 'object'"),
        ([USER], [tool({"type": "object", "anyOf": []})], "'anyOf' at the top level"),
        ([USER], [tool({"type": "object", "properties": {"a": {"type": "array"}}})], "array schema missing items"),
        ([USER], [tool({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}})], "'/$defs/x' does not exist"),
        ([USER], [tool({"type": "object"}, f"t{number}") for number in range(129)], "array too long"),
    ],
)
def test_invalid_requests_are_refused(messages: list[Any], tools: list[Any], refused: str) -> None:
    body = {"messages": messages, "tools": tools}
    found = problem("chat/completions", body, FORMS["chat/completions"].tools(body))
    assert (refused in found, bool(found)) == (True, bool(refused))


@pytest.mark.slow
def test_an_agent_does_the_task_behind_the_proxy(tmp_path: Path) -> None:
    measured = measure(OPENAI_AGENTS, tmp_path / "installed")
    if "unavailable" in measured:
        missing(measured["unavailable"])
    figures = {name: measured.get(name) for name in ("works", "calls", "writes", "processes")}
    assert figures == {"works": "yes", "calls": 2, "writes": 1, "processes": 1}, measured
