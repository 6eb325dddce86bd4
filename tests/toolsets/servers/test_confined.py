"""Servers in the sandbox: attacks fail, and normal work succeeds."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import plain_server
from support.mcp_servers import sandboxed, until
from support.programs import descendants, require

from packetgate.state.errors import LostCallError, ServerError
from packetgate.tools.risk.registry import Registry
from packetgate.toolsets.builtin import limits
from packetgate.toolsets.builtin.sandbox import SandboxSettings
from packetgate.toolsets.servers.config import McpConfig, ServerConfig
from packetgate.toolsets.servers.confined import confirm_server, is_confined, unconfirmed_servers
from packetgate.toolsets.servers.hub import McpHub

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's"), pytest.mark.slow]
SCRIPT = Path(plain_server.__file__).with_name("escaping_server.py")
PROTECTED = ("mcp.json", "packetgate.toml", ".env", "app/.env.local", ".vscode/mcp.json")
SAVING = """
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
server = MCPServer("it")

@server.tool()
def save(path: str) -> str:
    try:
        open(path, "w").close()
    except OSError as error:
        raise ToolError(str(error))
    return "saved"

server.run()
"""
SECRETS = (".ssh/id_rsa", ".netrc", ".aws/credentials", ".bash_history", ".config/gh/hosts.yml", ".bashrc")


@pytest.fixture(autouse=True)
def bubblewrap() -> None:
    require("bwrap")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for name in (*SECRETS, ".local/share/packetgate/packetgate.db"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("SECRET")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("A_TOKEN", "SECRET")
    return home


@pytest.fixture
def work(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = home / "work"
    for name in (*PROTECTED, "old.txt"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("mine")
    subprocess.run(["git", "init", "-q", "."], cwd=work, check=True)
    monkeypatch.chdir(work)
    return work


@asynccontextmanager
async def running(home: Path, outside: Path = Path("none"), port: int = 0, **entry: Any) -> AsyncIterator[McpHub]:
    encoded = json.dumps([str(home), str(outside), os.getpid(), port]).encode().hex()
    async with sandboxed(data_of(home), sys.executable, str(SCRIPT), encoded, **entry) as hub:
        assert [(one.state, one.problem) for one in hub.health()] == [("ready", "")]
        yield hub


def data_of(home: Path) -> Path:
    return home / ".local" / "share" / "packetgate"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("hosts", [[], ["example.org"], None])
async def test_no_attack_succeeds(home: Path, work: Path, hosts: list[str] | None, tmp_path: Path):
    outside = tmp_path / "outside.txt"
    outside.write_text("SECRET")
    before = {name: (home / name).read_text() for name in SECRETS}
    git, entry = snapshot(work / ".git"), {} if hosts is None else {"hosts": hosts}
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_UNIX) as abstract:
        port = listening.getsockname()[1]
        abstract.bind(f"\0packetgate-{port}")
        abstract.listen()
        async with running(home, outside, port, **entry) as hub:
            worked = json.loads((await hub.call("it.escape", {})).output)

    reachable = set() if hosts is not None else {"connect to a port of the host", "connect to an abstract socket"}
    assert len(worked) > 35
    assert {name for name, is_worked in worked.items() if is_worked} <= reachable
    assert {name: (home / name).read_text() for name in SECRETS} == before
    assert outside.read_text() == "SECRET"
    assert snapshot(work / ".git") == git
    for name in PROTECTED:
        assert (work / name).read_text() == "mine"


async def test_a_server_works_in_the_sandbox_and_keeps_its_home(home: Path, work: Path):
    for starts in ("x", "xx"):
        async with running(home) as hub:
            assert (await hub.call("it.work", {})).output == f"new {starts}"
    assert (work / "old.txt").read_text() == "changed"
    assert not (home / ".cache").exists()


async def test_a_read_only_server_writes_nothing(home: Path, work: Path):
    async with running(home, sandbox="read-only") as hub:
        assert "Read-only file system" in (await hub.call("it.work", {})).output
    assert not (work / "new.txt").exists()


@pytest.mark.parametrize("attack", ["fork_bomb", "fill_memory"])
async def test_limits_end_the_server(home: Path, work: Path, attack: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("packetgate.toolsets.servers.stdio.max_memory_bytes", lambda: 400_000_000)
    monkeypatch.setattr(limits, "MAX_TASKS", 200)
    async with running(home) as hub:
        with pytest.raises(LostCallError, match=r"the server was stopped: it (had|used) more than "):
            await hub.call(f"it.{attack}", {})
        await until(lambda: "escaping_server" not in str(descendants()))
        await hub.catalogue()
        await hub.wait_for_servers("it")
        assert (await hub.call("it.work", {})).success


async def test_a_replaced_protected_file_restarts_the_server(home: Path, work: Path):
    async with running(home) as hub:
        (work / "new.env").write_text("mine")
        (work / "new.env").rename(work / ".env")
        await until(lambda: hub.health()[0].state == "failed" or hub._servers["it"].can_reconnect)  # type: ignore[attr-defined]
        assert (await hub.call("it.work", {})).success
        worked = json.loads((await hub.call("it.escape", {})).output)
    assert not worked["write .env"]
    assert not worked["replace .env"]


async def test_a_required_sandbox_that_does_not_work_stops_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    entry = {"command": "x"}

    data, config = tmp_path / "data", McpConfig(servers=(ServerConfig("it", entry),))
    for settings in (SandboxSettings(), SandboxSettings(data=data)):
        assert [*unconfirmed_servers(config, settings, Registry())] == ["it"]
        with pytest.raises(ServerError, match=r'the server is unknown, so it does not start: .* "sandbox": "off"'):
            is_confined(entry, settings, is_registered=False)
    confirm_server(entry, data)
    assert not unconfirmed_servers(config, SandboxSettings(data=data), Registry())
    assert not is_confined(entry, SandboxSettings(data=data), is_registered=False)
    for other in ({**entry, "args": ["y"]}, {**entry, "cwd": str(tmp_path)}):
        with pytest.raises(ServerError, match="the server is unknown"):
            is_confined(other, SandboxSettings(data=data), is_registered=False)
    assert not is_confined(entry, SandboxSettings(mode="off"), is_registered=False)
    for required in ({**entry, "sandbox": "workspace"}, {**entry, "sandbox": []}):
        with pytest.raises(ServerError, match=r'no sandbox works .* "sandbox": "off"'):
            is_confined(required, SandboxSettings(), is_registered=False)
    with pytest.raises(ServerError, match="no sandbox works"):
        is_confined(entry, SandboxSettings(mode="require"), is_registered=False)
    assert not is_confined({**entry, "sandbox": "off"}, SandboxSettings(mode="require"), is_registered=False)


async def test_a_package_that_a_stopped_start_left_half_installed_is_removed(home: Path, work: Path):
    script = (
        "test -e ~/.npm/_npx/half && exit 1; mkdir -p ~/.npm/_npx; touch ~/.npm/_npx/half; "
        f"if test -e slow; then while read x; do :; done; else exec {sys.executable} server.py; fi"
    )
    (work / "server.py").write_text(SAVING)
    (work / "slow").touch()
    states = []
    for patience_s in (2.0, 60.0, 60.0):
        async with sandboxed(data_of(home), "sh", "-c", script, patience_s=patience_s) as hub:
            states += [one.state for one in hub.health()]
        (work / "slow").unlink(missing_ok=True)
    assert states == ["connecting", "ready", "failed"], "the third start keeps the package"


@pytest.mark.parametrize(
    ("args", "entry"),
    [
        ([".."], {}),
        (["./up"], {}),
        (["../work/../.local/share/packetgate/.."], {}),
        ([], {"sandbox": [".."]}),
        ([], {"sandbox": ["up"]}),
        ([], {"env": {"ROOT": "../work/.."}}),
        ([], {"cwd": "up/work"}),
    ],
)
async def test_a_path_with_a_detour_opens_no_hidden_folder(
    home: Path, work: Path, args: list[str], entry: dict[str, Any]
):
    (work / "server.py").write_text(SAVING)
    (work / "up").symlink_to("..")
    hidden = [home / name for name in SECRETS if name != ".bash_history"] + [data_of(home) / "packetgate.db"]
    async with sandboxed(data_of(home), sys.executable, str(work / "server.py"), *args, **entry) as hub:
        for path in hidden:
            for name in (str(path), f"{work}/up/{path.relative_to(home)}"):
                await hub.call("it.save", {"path": name})
    assert [path.read_text() for path in hidden] == ["SECRET"] * len(hidden)


async def test_a_program_next_to_the_server_is_found_and_its_folder_is_not_the_data_folder(home: Path, work: Path):
    (work / "run").write_text(f"#!{sys.executable}\n{SAVING}")
    (work / "run").chmod(0o755)
    async with sandboxed(data_of(home), "./run") as hub:
        assert (await hub.call("it.save", {"path": "new.txt"})).success
    async with sandboxed(data_of(home), str(work / "run"), cwd=str(data_of(home))) as hub:
        assert "in Packetgate's data folder" in hub.health()[0].problem


async def test_an_error_that_the_sandbox_may_cause_names_the_sandbox(home: Path, work: Path):
    (work / "server.py").write_text(SAVING)
    async with sandboxed(data_of(home), sys.executable, "server.py") as hub:
        failed = await hub.call("it.save", {"path": "/new.txt"})
        saved = await hub.call("it.save", {"path": "new.txt"})
    assert failed.error is not None
    assert "sandbox" in failed.error
    assert "sandbox" not in failed.server_text
    assert saved.success
    async with sandboxed(data_of(home), sys.executable, "missing.py", hosts=["example.org"]) as hub:
        assert '"hosts" of its entry' in hub.health()[0].problem


async def test_files_that_a_server_leaves_behind_are_named_and_do_not_run(
    home: Path, work: Path, caplog: pytest.LogCaptureFixture
):
    (work / "server.py").write_text(SAVING.replace('"w").close()', '"w").write("[core]\\nfsmonitor = touch ran\\n")'))
    (work / "new").mkdir()
    async with sandboxed(data_of(home), sys.executable, "server.py") as hub:
        for path in (".npmrc", "new/HEAD", "new/config", ".git/config"):
            assert (await hub.call("it.save", {"path": path})).success == (path != ".git/config")
        (work / "new" / "commondir").write_text("../.git")
    log = (data_of(home) / "logs" / "it.log").read_text()
    for line in (
        "Created files that say what may run; read them before you use them: .npmrc",
        "run by themselves: new/config",
    ):
        assert line in caplog.text
        assert line in log


async def test_git_of_a_server_runs_no_hook_and_no_monitor(home: Path, work: Path):
    with (work / ".git" / "config").open("a") as config:
        config.write("[core]\nfsmonitor = touch ran;\n")
    (work / ".git" / "hooks" / "post-index-change").write_text("#!/bin/sh\ntouch ran\n")
    (work / ".git" / "hooks" / "post-index-change").chmod(0o755)
    (work / "server.py").write_text(
        SAVING.replace('open(path, "w").close()', "import subprocess; subprocess.run(path.split())")
    )
    entries: list[tuple[dict[str, Any], bool]] = [({}, False), ({"env": {"GIT_CONFIG_COUNT": "0"}}, True)]
    for entry, runs in entries:
        async with sandboxed(data_of(home), sys.executable, "server.py", **entry) as hub:
            assert (await hub.call("it.save", {"path": "git status"})).success
        assert (work / "ran").exists() is runs


@pytest.mark.parametrize("name", ["work/notes.jsonl", "notes/notes.jsonl", "shared/notes.jsonl"])
async def test_a_named_file_can_be_replaced_where_its_folder_is_open(home: Path, work: Path, name: str):
    for other in (name, "shared/of-another-program.txt"):
        (home / other).parent.mkdir(exist_ok=True)
        (home / other).touch()
    replacing = 'import os; open(path + ".tmp", "w").close(); os.replace(path + ".tmp", path)'
    (work / "server.py").write_text(SAVING.replace('open(path, "w").close()', replacing))
    async with sandboxed(data_of(home), sys.executable, "server.py", env={"NOTES": str(home / name)}) as hub:
        result = await hub.call("it.save", {"path": str(home / name)})
    assert result.success is not name.startswith("shared"), result.output


NODE_SERVER = """
const { name } = require("dep")
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  const results = {
    initialize: {
      protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version: "1" },
    },
    "tools/list": { tools: [{ name: "get_name", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: name }] },
  }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? {} }))
})
"""


@pytest.mark.parametrize("is_linked", [False, True])
async def test_a_program_in_a_hoisted_folder_finds_its_packages(home: Path, work: Path, *, is_linked: bool):
    app, modules = work / "packages" / "app", work / "node_modules"
    app.mkdir(parents=True)
    package = work / "tools" / "node_modules" / "x" if is_linked else modules / "x"
    files = {package / "package.json": "{}", package / "dist" / "index.js": NODE_SERVER}
    for file, text in {**files, package.parent / "dep" / "index.js": "exports.name = 'dep'"}.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if is_linked:
        modules.mkdir()
        (modules / "x").symlink_to(package)
    async with sandboxed(data_of(home), "node", "../../node_modules/x/dist/index.js", cwd=str(app)) as hub:
        assert [(one.state, one.problem) for one in hub.health()] == [("ready", "")]
        assert (await hub.call("it.get_name", {})).output == "dep"
