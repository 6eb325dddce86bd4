"""The recipes for other agent frameworks behind the proxy, with a scripted model and two turns.

`uv` creates a separate environment for each recipe, because its pins conflict with ours.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.pages import ROOT
from support.programs import missing, require
from support.prompts import call
from support.scripted_openai import ScriptedOpenAI

RECIPES = ROOT / "docs" / "recipes"
PACKAGES = {
    "pydantic_ai_agent.py": "pydantic-ai-slim[mcp,openai]>=2.68,<3",
    "openai_agents_agent.py": "openai-agents>=0.24,<0.25",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(RECIPES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".packetgate"))
    return tmp_path


def water(bed: str) -> str:
    return call("call_changing_tool", name="garden.water_bed", arguments={"name": bed})


def environment(folder: Path, scripted: ScriptedOpenAI) -> dict[str, str]:
    cache = subprocess.run([require("uv"), "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PACKETGATE_", "OPENAI_"))},
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "UV_CACHE_DIR": cache,
        "OPENAI_BASE_URL": scripted.base_url,
        "OPENAI_API_KEY": "x",
        "NO_PROXY": "127.0.0.1",
        "PACKETGATE_PATIENCE_S": "120",
    }


@contextmanager
def started(recipe: str, folder: Path, scripted: ScriptedOpenAI) -> Iterator[subprocess.Popen[str]]:
    """Start a recipe with its packages. If they cannot be installed, skip, but fail in CI."""
    given: dict[str, Any] = {"cwd": folder, "env": environment(folder, scripted), "text": True}
    run = [require("uv"), "run", "--quiet", "--no-project", "--python", sys.executable, "--with", PACKAGES[recipe]]
    ready = subprocess.run([*run, "python", "-c", ""], capture_output=True, check=False, **given)
    if ready.returncode:
        missing(f"{PACKAGES[recipe]} cannot be installed: {ready.stderr}")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*run, "python", "-u", recipe], **pipes, **given) as agent:
        try:
            yield agent
        finally:
            agent.terminate()


def say(agent: "subprocess.Popen[str]", words: str, until: str) -> str:
    """Send a message, and return the agent's output up to a mark."""
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdin.write(f"{words}\n")
    agent.stdin.flush()
    output = ""
    while not output.endswith(until):
        output += (char := agent.stdout.read(1))
        assert char or agent.poll() is None, f"{output}\n{agent.stderr and agent.stderr.read()}"
    return output


def returned(scripted: ScriptedOpenAI) -> str:
    """Return the result of the last call of the agent's model."""
    last = scripted.requests[-1]["messages"][-1]
    assert last["role"] == "tool"
    return str(last["content"])


@pytest.mark.slow
def test_pydantic_ai_asks_by_elicitation(folder: Path, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(water("roses"), "The roses are watered.", water("tulips"), "The tulips are not.")
    with started("pydantic_ai_agent.py", folder, scripted_openai) as agent:
        say(agent, "Water the bed roses", "yes or no? ")
        assert "The roses are watered." in say(agent, "yes", "> ")
        assert "watered roses" in returned(scripted_openai)
        assert '"name": "tulips"' in say(agent, "Water the bed tulips", "yes or no? ")
        assert "The tulips are not." in say(agent, "no", "> ")
        assert "watered" not in returned(scripted_openai)
        _, errors = agent.communicate("\n")
    others = [line for line in errors.splitlines() if "so in a sandbox" not in line]
    assert (agent.returncode, others) == (0, [])


@pytest.mark.slow
def test_the_openai_agents_sdk_waits_for_an_answer(folder: Path, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(water("roses"), "It waits for you.", water("roses"), "The roses are watered.")
    with started("openai_agents_agent.py", folder, scripted_openai) as agent:
        assert "It waits for you." in say(agent, "Water the bed roses", "you.\n")
        refusal = returned(scripted_openai)
        assert "garden.water_bed was NOT run" in refusal
        (printed,) = re.findall(r"cd \S+ && .*? answer --session [\w-]+", refusal)
        given: dict[str, Any] = {"env": environment(folder, scripted_openai), "capture_output": True}
        shown = subprocess.run(["sh", "-c", printed], check=False, text=True, **given)
        assert "name = roses" in shown.stdout
        (decide,) = re.findall(r"To decide \(yes, no, skip\): (.*)", shown.stdout)
        done = subprocess.run(["sh", "-c", decide], check=False, text=True, cwd=folder, **given)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "The roses are watered." in say(agent, "Go on", "watered.\n")
        assert "watered roses" in returned(scripted_openai)
        agent.communicate("\n")
    assert agent.returncode == 0
