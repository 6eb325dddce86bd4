"""The commands and programs of the pages work for a new user: at a terminal, with the files that a page prints.

A page starts in an empty folder with an empty home. The tests compare the output with the page. Local servers stand in
for Ollama, OpenAI and the hub of models.
"""

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.pages import PAGES, ROOT, Step, steps_of
from support.pictures import png
from support.prompts import call
from support.reader import answers, new_reader
from support.scripted_openai import free_port
from support.scripted_replies import Reply

FIGURES = {"benchmarks", "comparison"}
"""Pages whose commands run benchmarks."""
RUN = [
    page
    for page in PAGES
    if page.name not in {"CONTRIBUTING.md", "CHANGELOG.md"} and page.stem not in FIGURES and any(steps_of(page))
]
NOT_RUN = {
    r"[\w/-]+: (pip|uvx) ": "needs the network: the tests use the environment that `make` installs",
    r"[\w/-]+: ollama pull": "needs Ollama: a server with its protocol stands for it",
    r"(tutorials/)?discord: (DISCORD_TOKEN|packetgate)": "needs Discord: tests/connectors/discord has a stand-in",
    r"[\w/-]+: packetgate discord": "needs Discord: tests/connectors/discord has a stand-in",
    r"[\w/-]+: packetgate log(in|out)": "needs an OAuth server: tests/connectors/test_login.py has one",
    r"[\w/-]+: (make|packetgate) studio|[\w/-]+: langgraph dev": "another test of this file starts `make studio`",
    r"[\w/-]+: packetgate model pull qwen3-4b": "downloads 2.5 GB: the list fixes the checksum of the file",
    r"[\w/-]+: (export PACKETGATE|export D|cd|docker|echo .*(\.env|served|aegra)|uvicorn)": "needs Docker",
    r"scaling: packetgate (serve|chat)": "needs PostgreSQL: tests/graph/test_postgres.py has it",
    r"[\w/-]+: \$?python -m benchmarks": "measures, for minutes and with data sets",
    r"models: packetgate evaluate (ollama|.?llamacpp)": "the tutorial on Ollama evaluates a model",
    r"models: .*(decisions|systemone):|models: OLLAMA": "needs a real model",
    r"telemetry: ": "needs an OpenTelemetry collector",
    r"how-it-works: packetgate trace last|proxy: packetgate trace$": "the page makes no turn",
    r"terminal: packetgate trace b590b3c4": "the id differs in each run",
    r"[\w/-]+: packetgate (answer yes.*|undo|init)$": "an answer or a name in a sentence: the blocks show it",
    r"tools: packetgate (ask --context tasks|tools .*--forget)|.*ask --json$": "a form: the text says what to add",
    r"servers: packetgate (doctor( -v)?|tools files)$": "needs packages of npm and PyPI",
    r".*: packetgate .*\b(NAME|ID|MODEL|FILE|CLIENT|CHANNEL_ID)\b|.*\.\.\.": "a form: the blocks show it with values",
    r".*: packetgate (ask|answer|evaluate|proxy --install)$": "the name of a command that needs arguments",
}
"""Maps each command that no page test runs, as PAGE: COMMAND, to the reason."""


STARTS_AFTER = {"tutorials/proxy": "tutorials/your-servers"}
"""Maps a tutorial to the tutorial with whose files it begins."""
LEAVES = {"tutorials/first-five-minutes": {"plan.txt": "Leave on Friday at noon.\n"}}
"""Contents of files after the commands of a page."""
ORDERS = (call("cancel_order", order="A-17"), "Order A-17 is cancelled.")
SUMMARY = ("Hi", "one hundred", call("ai.read", path="plan.txt"), "They leave on Friday.")
GIVEN = {
    "plan.txt": b"Leave on Friday at noon.\n",
    "notes.md": b"Bring a map.\n",
    "README.md": b"# Plans\n\nWe leave on Friday.\n",
    "chart.png": png(),
}
HAS_FILES = {"terminal", "models", "serve", "security", "tools", "journal"}
"""Pages that name files without printing the files."""
MODEL: dict[str, tuple[Reply, ...]] = {"README": ORDERS, "tutorials/ollama": SUMMARY}
"""Answers of a page's model, all of which the page needs. On other pages, the model says that it does not know."""


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, tiny_gguf: Path) -> None:
    name, steps = _name(page), list(steps_of(page))
    is_first = any("[y/N]:" in line for step in steps for line in step.shown)
    with new_reader(tmp_path, tiny_gguf, is_first=is_first) as (reader, model):
        folder = reader.cli.folder
        model.script(*MODEL.get(name, ()))
        for file, content in GIVEN.items() if name in HAS_FILES else ():
            (folder / file).write_bytes(content)
        for step in steps_of(ROOT / "docs" / f"{STARTS_AFTER[name]}.md") if name in STARTS_AFTER else ():
            if step.file:
                reader.do(step)
        for step in steps:
            if step.file or not _reason(page, step):
                reader.do(step)
        assert name not in MODEL or not model.replies
        for file, text in LEAVES.get(name, {}).items():
            assert (folder / file).read_text() == text


def test_every_reason_not_to_run_a_command_is_needed() -> None:
    given = {_reason(page, step) for page in RUN for step in steps_of(page)} - {""}
    assert given == set(NOT_RUN)


def test_make_studio_serves_the_graph(cli: CommandLine) -> None:
    _serve("make studio", cli)


def test_the_demo_reads_and_does_not_write(tmp_path: Path) -> None:
    environment = CommandLine(ROOT, tmp_path / "home").environment
    shown = subprocess.run(["make", "demo"], cwd=ROOT, env=environment, capture_output=True, timeout=250, check=True)
    out = shown.stdout.decode()
    assert "behind a confidence gate" in out
    assert "Would create notes.txt" in out
    assert not (ROOT / "notes.txt").exists()


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")


def _reason(page: Path, step: Step) -> str:
    """Return the pattern that excludes a command; empty if the command runs."""
    line = f"{_name(page)}: {step.text}"
    return next((one for one in NOT_RUN if not step.file and re.match(one, line)), "")


def _serve(command: str, cli: CommandLine) -> None:
    """Start a server command, wait until it answers, and stop it with its children."""
    port = free_port()
    server = subprocess.Popen(
        [*shlex.split(command), f"STUDIO_ARGS=--port {port}"],
        cwd=ROOT,
        env={**cli.environment, "PACKETGATE_ROOT": str(cli.folder)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        deadline = time.monotonic() + 200
        while not answers(f"http://127.0.0.1:{port}/ok"):
            assert server.poll() is None, server.communicate()[0].decode()
            assert time.monotonic() < deadline, "the server never answered"
            time.sleep(0.5)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=60)
