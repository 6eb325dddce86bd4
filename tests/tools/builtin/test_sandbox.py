"""Each rung of the ladder with real programs, as far as this machine offers it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.sleepers import Sleepers

from packetgate.tools.builtin import sandbox as sandboxes
from packetgate.tools.builtin.executing import execute
from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.sandbox import NONE, RUNGS, Rung, Sandbox, SandboxSettings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
ALL = (*RUNGS, NONE)
CONFINING = [rung for rung in RUNGS if rung.keeps_files]
SECRET = "the-value-of-a-secret"


CODE = """
import asyncio, sys
from pathlib import Path
from packetgate.tools.builtin import sandbox
from packetgate.tools.builtin.executing import execute
from packetgate.tools.builtin.root import Root

_, name, folder, script = sys.argv
sandbox.RUNGS = tuple(rung for rung in sandbox.RUNGS if rung.name == name)
print(asyncio.run(execute(Root(Path(folder)), sandbox.Sandbox(), ["sh", "-c", script], 300, dry_run=False)))
"""


def packetgate(rung: Rung, folder: Path, script: str) -> list[str]:
    """Return the command of a process that runs a script in that rung."""
    return [sys.executable, "-c", CODE, rung.name, str(folder), script]


def rungs(*wanted: Rung):
    return pytest.mark.parametrize("rung", wanted, ids=[rung.name for rung in wanted])


@pytest.fixture
async def run(rung: Rung, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a program in that rung alone; return its output, or the failure that carries it."""
    monkeypatch.setattr(sandboxes, "RUNGS", (rung,))
    settings: dict[str, object] = {}

    async def run(*argv: str, **more: object) -> str:
        sandbox = Sandbox(SandboxSettings(**(settings | more)))  # type: ignore[arg-type]
        if await sandbox.rung(folder) is not rung:
            pytest.skip(f"{rung.name} does not work here")
        try:
            return await execute(Root(folder), sandbox, argv, 60, dry_run=False)
        except ToolFailure as error:
            return str(error)

    return run


@rungs(*CONFINING)
async def test_what_lies_outside_is_not_written_or_read(run, folder):
    outside = folder.parent / "secret.txt"

    answer = await run("sh", "-c", f"cat {outside}; echo x > {outside}; echo x > {folder.parent}/new; echo in > in")

    assert "Exit status 0" in answer
    assert (folder / "in").read_text() == "in\n"
    assert outside.read_text() == "outside\n"
    assert "outside\n" not in answer
    assert not (folder.parent / "new").exists()


@rungs(*CONFINING)
async def test_folders_that_the_user_names_are_open_as_named(run, folder):
    beside = folder.parent / "beside"
    beside.mkdir()
    script = f"cat {folder.parent}/secret.txt; echo x > {beside}/new"

    answer = await run("sh", "-c", script, reads=(str(folder.parent / "secret.txt"),), writes=(str(beside),))

    assert answer.endswith("--- stdout\noutside")
    assert (beside / "new").read_text() == "x\n"


@rungs(*ALL)
def test_the_environment_of_packetgate_cannot_be_read(rung, folder):
    script = "tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/[0-9]*/environ; echo looked"
    command = packetgate(rung, folder, f"{script} || echo looked")
    told = subprocess.run(command, env={**os.environ, "A_TOKEN": SECRET}, capture_output=True, text=True, check=True)

    assert "looked" in told.stdout
    assert SECRET not in told.stdout


@rungs(*ALL)
async def test_nothing_of_a_program_outlives_it(run):
    sleepers = Sleepers()

    assert (await run("sh", "-c", sleepers.script)).endswith("--- stdout\nstarted")
    assert sleepers.end()


@rungs(*ALL)
def test_nothing_outlives_packetgate_killed_outright(rung, folder):
    sleepers = Sleepers()
    with subprocess.Popen(packetgate(rung, folder, f"{sleepers.script}wait\n")) as started:
        sleepers.begin()
        started.send_signal(signal.SIGKILL)
    assert sleepers.end()


@rungs(*RUNGS)
async def test_there_is_no_network_unless_it_is_allowed(run):
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('reached')"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = str(listening.getsockname()[1])
        assert (await run(sys.executable, "-c", code, port)).startswith("Exit status 1")
        assert (await run(sys.executable, "-c", code, port, network=True)).endswith("reached")


@rungs(*(rung for rung in RUNGS if rung.bubblewrap or rung.namespaces))
async def test_a_program_can_reach_itself_over_the_network(run):
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(s.getsockname()); print('reached')"
    )
    assert (await run(sys.executable, "-c", code)).endswith("reached")


@rungs(*ALL)
async def test_the_usual_programs_work(run, folder):
    (folder / "Makefile").write_text("all:\n\t@echo made > made\n")
    commands = {
        "python": [sys.executable, "-c", "import ssl, sqlite3, multiprocessing as m; m.Lock(); print('works')"],
        "git": ["sh", "-c", "git init -q . && git add -A && git status --short | head -1 && echo works"],
        "make": ["sh", "-c", "make -s && cat made && echo works"],
        "node": ["node", "-e", "require('fs').writeFileSync('n', ''); console.log('works')"],
        "temporary": ["sh", "-c", "mktemp > /dev/null && echo works"],
    }
    for name, argv in commands.items():
        if shutil.which(argv[0]) and (name not in {"git", "make"} or shutil.which(name)):
            assert (await run(*argv)).endswith("works"), name


@rungs(*ALL)
async def test_what_cannot_start_is_told_as_without_a_sandbox(run, folder):
    (folder / "plain.txt").write_text("text")

    assert "cannot run 'no-such-thing': no such program" in await run("no-such-thing")
    assert "cannot run './plain.txt': Permission denied" in await run("./plain.txt")
    assert "Ended by signal 11" in await run("sh", "-c", "kill -SEGV $$")


async def test_where_a_sandbox_is_required_nothing_runs_without(folder, monkeypatch):
    monkeypatch.setattr(sandboxes, "RUNGS", ())
    sandbox = Sandbox(SandboxSettings(mode="require"))

    for dry_run in (True, False):
        with pytest.raises(ToolFailure, match=r"a sandbox is required .* this machine offers none"):
            await execute(Root(folder), sandbox, ["touch", "x"], 30, dry_run=dry_run)
    assert not (folder / "x").exists()


async def test_switched_off_it_is_none(folder):
    assert await Sandbox(SandboxSettings(mode="off")).rung(folder) is NONE
