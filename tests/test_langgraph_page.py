"""The program of the page about LangGraph, before and after the page's change."""

import re
from pathlib import Path
from typing import Any

import pytest
from contract.model import ScriptedModel
from langchain_core.messages import HumanMessage
from langgraph.types import Command

PAGE = (Path(__file__).parents[1] / "docs" / "langgraph.md").read_text()
(LINES,) = [block.splitlines() for block in re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)]


def program(sign: str) -> str:
    """Return the program with the lines of one side."""
    return "\n".join(line[1:] for line in LINES if line[:1] in ("", " ", sign))


def test_the_page_changes_three_lines() -> None:
    assert sum(line.startswith("+") for line in LINES) == 3


@pytest.mark.parametrize("sign", ["-", "+"])
def test_the_program_asks_about_the_change(sign: str) -> None:
    model = ScriptedModel(steps=[[("late_orders", {})], [("cancel_order", {"order": "A-17"})]])
    names: dict[str, Any] = {"model": model}
    exec(program(sign), names)
    config: Any = {"configurable": {"thread_id": "one"}}
    agent = names["agent"]
    state = agent.invoke({"messages": [HumanMessage("Cancel the late orders")]}, config)
    (asked,) = state["__interrupt__"][0].value["action_requests"]
    assert (asked["name"], asked["args"]) == ("cancel_order", {"order": "A-17"})
    state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert [one.text for one in state["messages"] if one.type == "tool"] == ["A-17", "cancelled A-17"]
