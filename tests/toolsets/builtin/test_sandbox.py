"""Real programs with and without bubblewrap."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import require
from support.sleepers import Sleepers

from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.toolsets.builtin.appeared import confirm
from packetgate.toolsets.builtin.executing import executing_tools
from packetgate.toolsets.builtin.files import Root, ToolFailure
from packetgate.toolsets.builtin.sandbox import Sandbox, SandboxMode, SandboxSettings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
SECRET = "the-value-of-a-secret"
MODES = ("require", "off")

CODE = """
import asyncio, sys
from pathlib import Path
from packetgate.toolsets.builtin.executing import executing_tools
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.builtin.sandbox import Sandbox, SandboxSettings

_, mode, folder, script = sys.argv
(tool,) = executing_tools(Root(Path(folder)), Sandbox(SandboxSettings(mode=mode)))
print(asyncio.run(tool.call({"argv": ["sh", "-c", script], "timeout_s": 300, "dry_run": False})).text)
"""


def packetgate(mode: SandboxMode, folder: Path, script: str) -> list[str]:
    """Return the command of a process that runs a script with or without bubblewrap."""
    return [sys.executable, "-c", CODE, mode, str(folder), script]


async def execute(folder: Path, settings: SandboxSettings, *argv: str, dry_run: bool = False) -> str:
    (tool,) = executing_tools(Root(folder), Sandbox(settings))
    return (await tool.call({"argv": [*argv], "timeout_s": 60, "dry_run": dry_run})).text


@pytest.fixture(autouse=True)
def bubblewrap() -> None:
    require("bwrap")


@pytest.fixture
def mode() -> SandboxMode:
    return "require"


@pytest.fixture
async def run(mode: SandboxMode, folder: Path):
    """Run a program; return its output, or the error that contains it."""

    async def run(*argv: str, **more: object) -> str:
        try:
            return await execute(folder, SandboxSettings(mode=mode, **more), *argv)  # type: ignore[arg-type]
        except ToolFailure as error:
            return str(error)

    return run


async def test_outside_files_are_neither_written_nor_read(run, folder):
    outside = folder.parent / "secret.txt"

    answer = await run("sh", "-c", f"cat {outside}; echo x > {outside}; echo x > {folder.parent}/new; echo in > in")

    assert "Exit status 0" in answer
    assert (folder / "in").read_text() == "in\n"
    assert outside.read_text() == "outside\n"
    assert "outside\n" not in answer
    assert not (folder.parent / "new").exists()


async def test_configured_folders_are_accessible(run, folder):
    beside = folder.parent / "beside"
    beside.mkdir()
    script = f"cat {folder.parent}/secret.txt; echo x > {beside}/new"

    answer = await run("sh", "-c", script, reads=(str(folder.parent / "secret.txt"),), writes=(str(beside),))

    assert answer.endswith("--- stdout\noutside")
    assert (beside / "new").read_text() == "x\n"


@pytest.mark.parametrize("mode", MODES)
def test_the_environment_of_packetgate_cannot_be_read(mode, folder):
    script = "tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/[0-9]*/environ; echo looked"
    command = packetgate(mode, folder, f"{script} || echo looked")
    outcome = subprocess.run(command, env={**os.environ, "A_TOKEN": SECRET}, capture_output=True, text=True, check=True)

    assert "looked" in outcome.stdout
    assert SECRET not in outcome.stdout


@pytest.mark.parametrize("mode", MODES)
async def test_no_process_outlives_the_program(run):
    sleepers = Sleepers()

    assert (await run("sh", "-c", sleepers.script)).endswith("--- stdout\nstarted")
    assert sleepers.end()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_no_process_outlives_a_killed_packetgate(mode, folder):
    sleepers = Sleepers()
    with subprocess.Popen(packetgate(mode, folder, f"{sleepers.script}wait\n")) as started:
        sleepers.begin()
        started.send_signal(signal.SIGKILL)
    assert sleepers.end()


async def test_the_network_is_blocked_unless_allowed(run):
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('reached')"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = str(listening.getsockname()[1])
        assert (await run(sys.executable, "-c", code, port)).startswith("Exit status 1")
        assert (await run(sys.executable, "-c", code, port, network=True)).endswith("reached")


@pytest.mark.parametrize("mode", MODES)
async def test_common_programs_work(run, folder):
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


@pytest.mark.parametrize("bwrap", ["", "exit 1"], ids=["not installed", "not allowed"])
async def test_a_required_sandbox_is_enforced(folder, tmp_path, monkeypatch, bwrap: str):
    (tmp_path / "bin").mkdir()
    if bwrap:
        (tmp_path / "bin" / "bwrap").write_text(f"#!/bin/sh\n{bwrap}\n")
        (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    touch = ["/usr/bin/touch", "x"]

    for dry_run in (True, False):
        with pytest.raises(ToolFailure, match=r"a sandbox is required .* bubblewrap does not work"):
            await execute(folder, SandboxSettings(mode="require"), *touch, dry_run=dry_run)
    assert not (folder / "x").exists()

    assert "Sandbox: none: " in await execute(folder, SandboxSettings(), *touch, dry_run=True)
    await execute(folder, SandboxSettings(), *touch)
    assert (folder / "x").exists()


async def test_files_that_configure_what_may_run_are_read_only(run, folder):
    for name in (".env", "mcp.json", ".git/config", ".git/hooks/pre-push", "app/.env.local"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    script = """
    for f in .env mcp.json .git/config .git/hooks/pre-push app/.env.local
        do echo x > $f; rm -f $f; mv $f moved; ln $f link; echo x > link; echo x > new; mv new $f; done
    echo x > .git/hooks/post-merge; rm -rf .git; mv .git other; echo x > .git/commondir; touch fine"""

    await run("sh", "-c", script)

    for name in (".env", "mcp.json", ".git/config", ".git/hooks/pre-push", "app/.env.local"):
        assert (folder / name).read_text() == "mine", name
    assert not (folder / ".git" / "hooks" / "post-merge").exists()
    assert not (folder / ".git" / "commondir").exists()
    assert (folder / "fine").exists()


async def test_new_files_that_configure_what_may_run_are_named(run, folder):
    (folder / ".envrc").write_text("mine")
    report = await run("sh", "-c", "mkdir -p .git/hooks app; touch .git/config .env app/.env fine $TMPDIR/.env; ls")
    assert "Created files that say what may run; read them before you use them: " in report
    named = report.splitlines()[1].rpartition(": ")[2].split(", ")
    assert sorted(named) == [".env", ".git/config", ".git/hooks", "app/.env"]
    assert "say what may run" not in await run("touch", "fine")


async def test_the_git_file_of_a_worktree_is_read_only(run, folder):
    (folder / "tree").mkdir()
    (folder / "tree" / ".git").write_text("gitdir: /elsewhere")
    await run("sh", "-c", "cd tree; echo x > .git; rm .git; mv .git old; cd ..; mv tree other; touch tree/fine")
    assert (folder / "tree" / ".git").read_text() == "gitdir: /elsewhere"
    assert (folder / "tree" / "fine").exists()


async def test_repeated_runs_leave_one_note_of_the_folder(run, folder, tmp_path):
    for _ in range(3):
        await run("true", data=tmp_path / "data")
    assert len([*(tmp_path / "data" / "writable").glob("*.folder")]) == 1


@pytest.mark.parametrize("script", ["echo x > NAME", "ln -s other NAME", "echo x > other; mv other NAME"])
@pytest.mark.parametrize("name", ["packetgate.toml", "mcp.json"])
async def test_a_settings_file_that_appears_needs_a_confirmation(run, folder, tmp_path, name, script, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "other").write_text("")
    data = tmp_path / "data"
    used = {"mcp.json": "config_path", "packetgate.toml": "preferences_path"}[name]

    await run("sh", "-c", script.replace("NAME", name), data=data)

    with pytest.raises(ConfigError, match=f"{name} appeared after confined programs could write"):
        getattr(Settings(home=data), used)
    confirm(Path(name), data)
    assert getattr(Settings(home=data), used) == Path(name)


async def test_settings_files_of_the_user_need_no_confirmation(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "linked.toml").write_text("")
    (folder / "mcp.json").write_text("{}")
    (folder / "packetgate.toml").symlink_to("linked.toml")

    await run("true", data=tmp_path / "data")
    settings = Settings(home=tmp_path / "data")

    assert (settings.config_path, settings.preferences_path) == (Path("mcp.json"), Path("packetgate.toml"))


async def test_the_kernel_cannot_be_changed(run):
    assert "Read-only file system" in await run("sh", "-c", "exec 3<> /proc/sys/kernel/core_pattern")


async def test_the_settings_file_in_use_is_read_only_under_any_name(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "tools.json").write_text("mine")
    (folder / "linked.json").symlink_to("sub/tools.json")
    replacing = "echo x > sub/tools.json; mv sub moved; mkdir -p sub; echo x > sub/new; mv sub/new sub/tools.json"

    await run("sh", "-c", replacing, data=tmp_path / "data", settings_files=(folder / "linked.json",))

    assert (folder / "sub" / "tools.json").read_text() == "mine"
    assert not (folder / "moved").exists()


async def test_a_settings_file_that_appears_in_a_subfolder_needs_a_confirmation(run, folder, tmp_path, monkeypatch):
    data = tmp_path / "data"
    for name in ("old", "new", "replaced"):
        (folder / name).mkdir()
    for name in ("old", "replaced"):
        (folder / name / "mcp.json").write_text("{}")

    script = "echo {} > new/mcp.json; mkdir later; echo {} > later/mcp.json; mv replaced moved; mkdir replaced"
    await run("sh", "-c", script, data=data)
    (folder / "replaced" / "mcp.json").unlink()
    await run("sh", "-c", "echo {} > replaced/mcp.json", data=data)
    await run("true", data=data)

    for name, is_confirmed in {"old": True, "new": False, "later": False, "replaced": False}.items():
        monkeypatch.chdir(folder / name)
        if is_confirmed:
            assert Settings(home=data).config_path == Path("mcp.json")
        else:
            with pytest.raises(ConfigError, match="appeared after confined programs could write"):
                _ = Settings(home=data).config_path


async def test_a_write_outside_fails_instead_of_vanishing(run):
    answer = await run("sh", "-c", "mkdir -p /new /work/new; echo x > /srv-x")
    assert answer.count("Read-only file system") == 3
