"""The README's commands run, and the diagram of docs/how-it-works.md is current."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from support.command_line import COMMAND, CommandLine
from support.scripted_openai import free_port

from packetgate.graph.diagram import mermaid

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)

GIVEN = {"packetgate chat": b"Hello\n/quit\n"}
"""What is typed into a command."""
MAKE_ARGS = {"make test": ["TESTS=tests/prompts", "WORKERS=0"]}
"""`make test` within itself: the same command, on the smallest room."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the README uses."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("README.md", "pyproject.toml", "Makefile"):
        shutil.copy(ROOT / name, work)
    return work


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_every_command_runs(block: str, folder: Path, tmp_path: Path) -> None:
    cli = CommandLine(folder, tmp_path / "home")
    for command in block.splitlines():
        if command.startswith("make "):
            words = [*shlex.split(command), *MAKE_ARGS.get(command, [])]
            made = subprocess.run(words, cwd=ROOT, env=cli.environment, capture_output=True, timeout=250, check=False)
            assert made.returncode == 0, made.stdout.decode() + made.stderr.decode()
        else:
            program, *args = shlex.split(command)
            assert program == COMMAND.name
            done = cli.run(*args, given=GIVEN.get(command, b""))
            assert done.status == 0, f"{command}\n{done.out}{done.err}"


def test_make_studio_serves_the_graph(folder: Path, tmp_path: Path) -> None:
    _serve("make studio", CommandLine(folder, tmp_path / "home"))


def test_the_demo_reads_and_does_not_write(tmp_path: Path) -> None:
    environment = CommandLine(ROOT, tmp_path / "home").environment
    shown = subprocess.run(["make", "demo"], cwd=ROOT, env=environment, capture_output=True, timeout=250, check=True)
    out = shown.stdout.decode()
    assert "behind a confidence gate" in out
    assert "Would create notes.txt" in out
    assert not (ROOT / "notes.txt").exists()


def test_the_diagram_matches_the_graph() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text()
    drawn = re.search(r"```mermaid\n(.*?)```", page, re.DOTALL)
    assert drawn is not None
    assert drawn[1].strip() == mermaid().strip()


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
        while not _answers(f"http://127.0.0.1:{port}/ok"):
            assert server.poll() is None, server.communicate()[0].decode()
            assert time.monotonic() < deadline, "the server never answered"
            time.sleep(0.5)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=60)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False
