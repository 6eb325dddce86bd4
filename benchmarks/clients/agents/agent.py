"""Run one agent behind `packetgate proxy` with a person who approves the write, and return its metrics."""

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clients.agents.counter import ADDITIONS
from benchmarks.clients.agents.model import ADDITION, COUNTER, REQUEST, AgentModel, adds, serve_agent_model
from benchmarks.clients.agents.terminal import Terminal
from benchmarks.clients.place import COMMAND, UnavailableError

PATIENCE_S = 180
"""Maximum run time of an agent, in seconds."""
CLOSING_S = 20
"""Maximum number of seconds between the model's last answer and the agent's exit."""
ANSWER = re.compile(r"cd \S+ && [^\n]*? answer --session [\w-]+")
"""Matches the command that the proxy prints for a person."""
READS_S = 1.5
"""Seconds before the person answers a question."""
FIGURES = {
    "works": "works",
    "asked": "the person is asked by",
    "calls": "calls of the write",
    "writes": "writes that ran",
    "processes": "server processes",
    "seconds": "seconds of the write",
}
"""Maps each metric of an agent to its label, in the order of the table."""


@dataclass(frozen=True)
class Bench:
    """The folders and addresses in an agent's configuration."""

    home: Path
    """The agent's home folder."""
    work: Path
    """The folder of the task, with the proxy's `mcp.json`."""
    installed: Path
    origin: str
    """Base URL of the model."""

    @property
    def proxy(self) -> list[str]:
        """The command of the proxy."""
        return [COMMAND, "proxy", "--folder", str(self.work), "--allow-writes"]

    def python(self, script: str) -> tuple[list[str], dict[str, str]]:
        """Return the command and variables of an agent's script, which gets the proxy's command and the request."""
        command = [str(self.installed / "bin" / "python"), "-c", script, json.dumps(self.proxy), REQUEST]
        return command, {"OPENAI_BASE_URL": f"{self.origin}/v1", "OPENAI_API_KEY": "none"}


@dataclass(frozen=True)
class Dialog:
    """A question that the agent itself asks its user."""

    shows: str
    """Matches the question in the terminal."""
    keys: str
    """The keys that the person presses to approve."""


@dataclass(frozen=True)
class Agent:
    """An agent, with functions that install and start it."""

    name: str
    package: str
    """The agent's source, such as `npm opencode-ai`."""
    install: Callable[[Path], str]
    """Installs the agent into a folder, and returns its version; raises `UnavailableError`."""
    start: Callable[[Bench], tuple[Sequence[str], Mapping[str, str]]]
    """Configures the agent, and returns its command and additional environment variables."""
    dialogs: tuple[Dialog, ...] = ()
    """The agent's own questions, in order; the last asks whether the write may run."""
    ends: bool = True
    """Whether the agent exits after its answer."""


def measure(agent: Agent, installed: Path) -> dict[str, Any]:
    """Return the metrics of the agent's task."""
    row: dict[str, Any] = {"name": agent.name, "from": agent.package}
    try:
        row["version"] = agent.install(installed)
    except UnavailableError as error:
        return row | {"unavailable": str(error)}
    with tempfile.TemporaryDirectory() as folder, serve_agent_model() as model:
        bench = Bench(Path(folder, "home"), Path(folder, "work"), installed, model.origin)
        for place in (bench.home, bench.work):
            place.mkdir()
        counter = {"command": sys.executable, "args": [str(Path(__file__).with_name("counter.py"))], "trusted": True}
        (bench.work / "mcp.json").write_text(json.dumps({"mcpServers": {"counter": counter}}))
        command, variables = agent.start(bench)
        environment = _environment(bench.home) | dict(variables)
        with Terminal(command, bench.work, environment) as terminal:
            asked = _approve(agent, model, terminal, bench, _environment(bench.home))
            ended = terminal.ends(CLOSING_S) if agent.ends else True
            additions = bench.work / ADDITIONS
            added = additions.read_text().splitlines() if additions.exists() else []
            return row | _figures(model, terminal, asked, added, ended)


def _environment(home: Path) -> dict[str, str]:
    own = ("PACKETGATE_", "OPENAI_", "GEMINI_", "GOOGLE_", "XDG_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return inherited | {"HOME": str(home), "TERM": "xterm-256color", "NO_PROXY": "127.0.0.1"}


def _approve(agent: Agent, model: AgentModel, terminal: Terminal, bench: Bench, environment: Mapping[str, str]) -> str:
    """Approve the write as a person does, wait for the agent, and return where the question appeared."""
    dialogs, asked, ends = list(agent.dialogs), "", time.monotonic() + PATIENCE_S
    while time.monotonic() < ends and terminal.process.poll() is None and not model.is_done:
        time.sleep(0.2)
        if dialogs and re.search(dialogs[0].shows, terminal.text):
            time.sleep(READS_S)
            terminal.type(dialogs.pop(0).keys)
            asked = asked if dialogs else "a question of the agent"
        texts = {"a command in its terminal": terminal.text, "a command that its model reads": model.news}
        found = {where: command for where, text in texts.items() if (command := ANSWER.search(text))}
        if found and not asked:
            asked, command = next(iter(found.items()))
            _answer(command[0], bench.work, environment)
    return asked


def _answer(command: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run the printed command in another terminal, and approve the call."""
    with Terminal(["sh", "-c", command], folder, environment) as other:
        if other.wait_for(r"\[y\]es, \[n\]o", 60):
            time.sleep(READS_S)
            other.type("yes\r")
        other.ends(60)


def _figures(model: AgentModel, terminal: Terminal, asked: str, added: Sequence[str], ended: bool) -> dict[str, Any]:
    shown = [found for turn in model.turns if (found := COUNTER.search(turn.news))]
    results = [(turn.at, found) for turn in model.turns if (found := ADDITION.search(turn.news))]
    calls = [turn.at for turn in model.turns if adds(turn.reply)]
    figures: dict[str, Any] = {"works": _works(model, terminal, ended)}
    if calls:
        figures |= {"asked": asked or "nobody", "calls": len(calls), "writes": len(added)}
    if results:
        processes = {line.split()[-1] for line in added} | {found[2] for found in shown} | {results[0][1][1]}
        figures |= {"processes": len(processes), "seconds": round(results[0][0] - calls[0], 1)}
    return figures


def _works(model: AgentModel, terminal: Terminal, ended: bool) -> str:
    last, shown = model.turns[-1].reply if model.turns else "", terminal.text.strip()
    if model.refused:
        return f"no: the model refused a request: {model.refused}"
    if isinstance(last, tuple):
        return f"no: it stopped after a call of {last[0]}: {shown[-300:]}"
    if not last.startswith("The counter is"):
        return f"no: {last or f'its model was shown no tool of the proxy: {shown[-300:]}'}"
    if last not in shown:
        return f"no: it did not show the answer {last!r}: {shown[-300:]}"
    return "yes" if ended else "no: it did not end after its answer"
