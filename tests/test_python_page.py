"""The Python code of docs/: the recipes with their excerpts, and the program of the page about LangGraph."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from contract.model import ScriptedModel
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from support.pages import ROOT
from support.programs import require
from support.prompts import call, first_call
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Reply, Token, Tokens

RECIPES = ROOT / "docs" / "recipes"
PAGE = (ROOT / "docs" / "python.md").read_text()

(DIFFERENCE,) = [
    block.splitlines()
    for block in re.findall(r"```diff\n(.*?)```", (ROOT / "docs" / "langgraph.md").read_text(), re.DOTALL)
]

TURN = (call("functions.late_orders"), "A-17 and B-4 are late.")
AGENT = (first_call("late_orders"), call("cancel_order", order="A-17"), "A-17 is cancelled.")
DECIDED = Tokens.of(Token("true", {"true": 0.9, "false": 0.1}))
READ = "late_orders ():"
PRINTS: dict[str, tuple[tuple[str, ...], tuple[Reply, ...]]] = {
    "functions.py": ((READ, "(days=10)", '["A-17"]', "`allow_write_tools` in the settings switches them on"), ()),
    "langchain_tools.py": (("40.0 dollars", "rain in Oslo"), ()),
    "mcp_servers.py": (("roses", "garden ready"), ()),
    "fastmcp_server.py": (("roses", "watered roses"), ()),
    "chat_model.py": (("A-17 and B-4 are late.\nA-17 and B-4 are late.\n", "input_tokens="), TURN * 2),
    "decision_model.py": (("executed cautious: probability that the call should run: 0.80", "wet: 0.90"), (DECIDED,)),
    "changes.py": (("cancelled A-17", "cancelled B-4", "you denied it", "need `order`", "['A-17', 'B-4', 'C-1']"), ()),
    "streaming.py": (("review_selection: ", "A-17 and B-4 are late.", "[('functions.late_orders', 'executed')]"), TURN),
    "checkpointer.py": (("11 pears", "11 plums", "4 messages in the conversation"), ()),
    "many_tools.py": (
        ("42 tools: 20 pounds are 3811.76 yen. ['functions.pounds_to_yen']",),
        (call("functions.pounds_to_yen", amount=20), "20 pounds are 3811.76 yen."),
    ),
    "subgraph.py": (("{'order': 'A-17'}", "for ada: ", "cancelled A-17"), ()),
    "langgraph_server.py": ((), ()),
    "own_check.py": (("refunded 20.0 euros", "at most 100 euros: ask the owner"), ()),
    "own_decider.py": (("refunded 20", "was skipped: at most 100"), ()),
    "policy.py": (("cancelled T-1", "denied by a policy rule", "[('functions.cancel_order', {'order': 'B-4'})]"), ()),
    "middleware.py": (("cancel_order (write)", "A-17 is cancelled."), AGENT),
    "result.py": (("functions.late_orders {} executed", "review_selection: ", "input_tokens=0"), ()),
}
"""The output of each recipe, and the answers of its model."""
AGENTS = {"pydantic_ai_agent.py", "openai_agents_agent.py"}
"""Recipes that need other packages, which tests/test_agent_frameworks.py runs."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with the recipes, and with modules named like ours."""
    shutil.copytree(RECIPES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".packetgate"))
    (tmp_path / "models").mkdir()
    for name in ("models/__init__.py", "tools.py", "graph.py", "state.py"):
        (tmp_path / name).write_text("MINE = 1\n")
    return tmp_path


def printed(program: str, folder: Path, scripted: ScriptedOpenAI) -> str:
    """Run a program in a folder and return its output. Standard error must be empty."""
    environment = {"HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"OPENAI_BASE_URL": scripted.base_url, "OPENAI_API_KEY": "x", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTS)
def test_a_recipe_runs(name: str, folder: Path, scripted_openai: ScriptedOpenAI):
    lines, answers = PRINTS[name]
    scripted_openai.script(*answers)
    said = printed(name, folder, scripted_openai)
    assert [line for line in lines if line not in said] == [], said
    assert not scripted_openai.replies


def test_every_recipe_is_listed():
    programs = {file.name for file in RECIPES.glob("*.py")} - {"garden_server.py"} - AGENTS
    assert programs == {*PRINTS} == {*re.findall(r"^\| \[`(\w+\.py)`\]", PAGE, re.MULTILINE)}


@pytest.mark.parametrize("page", ["python", "pydantic-ai", "openai-agents"])
def test_the_page_shows_the_code_of_the_recipes(page: str):
    for section in (ROOT / "docs" / f"{page}.md").read_text().split("\n## "):
        named = "".join((RECIPES / name).read_text() for name in re.findall(r"\(recipes/(\w+\.py)\)", section))
        for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            assert block in named, section.partition("\n")[0]


@pytest.mark.slow
def test_a_users_program_passes_strict_type_checking(tmp_path: Path):
    program = ROOT / "tests" / "support" / "users_program.py"
    shutil.copy(program, tmp_path)
    done = subprocess.run(
        [require("mypy"), "--strict", program.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    lines = len(program.read_text().splitlines())
    assert [line.split(":")[1] for line in errors] == [str(lines - 1), str(lines)], done.stdout


def program_on(side: str) -> str:
    """Return the program with the lines of one side."""
    return "\n".join(line[1:] for line in DIFFERENCE if line[:1] in ("", " ", side))


def test_the_langgraph_page_changes_three_lines() -> None:
    assert sum(line.startswith("+") for line in DIFFERENCE) == 3


@pytest.mark.parametrize("side", ["-", "+"])
def test_the_langgraph_program_asks_about_the_change(side: str) -> None:
    model = ScriptedModel(steps=[[("late_orders", {})], [("cancel_order", {"order": "A-17"})]])
    names: dict[str, Any] = {"model": model}
    exec(program_on(side), names)
    config: Any = {"configurable": {"thread_id": "one"}}
    agent = names["agent"]
    state = agent.invoke({"messages": [HumanMessage("Cancel the late orders")]}, config)
    (asked,) = state["__interrupt__"][0].value["action_requests"]
    assert (asked["name"], asked["args"]) == ("cancel_order", {"order": "A-17"})
    state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert [one.text for one in state["messages"] if one.type == "tool"] == ["A-17", "cancelled A-17"]
