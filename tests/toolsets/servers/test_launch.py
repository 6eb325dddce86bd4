"""Entries that provably start a package of the registry, and how these entries start."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from packetgate.state.routing import Risk
from packetgate.tools.risk.registry import KnownServer, Registry, ToolLabel, definition_digest
from packetgate.toolsets.builtin.sandbox import SandboxSettings, bubblewrap_works
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.confined import server_start
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.launch import NotRegisteredError, ProvedLaunch, prove_launch
from packetgate.toolsets.servers.opening import new_connection

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
NOTES = KnownServer(
    package="npm:notes",
    versions=">=1",
    variables=("NOTES_FOLDER",),
    tools={"look": ToolLabel(digest=definition_digest("look", SCHEMA), risk=Risk.READ)},
)
REGISTRY = Registry(1, (NOTES, NOTES.model_copy(update={"package": "pypi:notes"})))
SERVER = f"""#!{sys.executable}
import json, os, sys
tools = [{{"name": "look", "description": "Look.", "inputSchema": {SCHEMA!r}}}]
shown = json.dumps([sys.argv[1:], os.getcwd(), sorted(os.listdir()), os.environ["PATH"].split(os.pathsep)[0]])
if os.path.exists(sys.argv[0]) and "deletes_itself" in sys.argv[0]:
    os.unlink(sys.argv[0])
for line in sys.stdin:
    message = json.loads(line)
    version = (message.get("params") or {{}}).get("protocolVersion")
    info = {{"capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "notes", "version": "1.0"}}}}
    results = {{"initialize": {{"protocolVersion": version, **info}}, "tools/list": {{"tools": tools}}}}
    result = results.get(message["method"], {{"content": [{{"type": "text", "text": shown}}]}})
    if "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
"""A server that replaces the launcher and its package, and reports how it was started."""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on the user's PATH with launchers, next to the working folder."""
    tools, work = tmp_path / "tools", tmp_path / "work"
    for folder in (tools, work, work / "notes", tmp_path / "home"):
        folder.mkdir()
    for name in ("npx", "uvx", "other"):
        write_program(tools / name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(work / "bin"), "bin", ".", str(tools), os.defpath]))
    monkeypatch.chdir(work)
    return tools


def write_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SERVER)
    path.chmod(0o755)
    return path


def proved(*command: str, folder: Path | None = None, **entry: Any) -> ProvedLaunch:
    resolved = {"command": command[0], "args": [*command[1:]], **entry}
    return prove_launch(resolved, REGISTRY, Path.cwd(), folder or Path.cwd().parent / "data" / "empty")


@pytest.mark.parametrize(
    ("command", "env", "starts"),
    [
        ("npx -y notes", {}, "npx -y notes"),
        ("npx.cmd notes@1.2.3 x", {"NOTES_API_KEY": "k"}, "npx notes@1.2.3 x"),
        ("cmd /c npx -y notes", {"A_B_TOKEN": "k", "NOTES_FOLDER": "x"}, "npx -y notes"),
        ("uvx --from notes notes", {}, "uvx --from notes notes"),
        ("TOOLS/npx -y notes", {}, "npx -y notes"),
        ("../tools/npx -y notes", {}, "npx -y notes"),
        ("npx notes . .. ./a --root=./b --at=x -v", {}, "npx notes WORK WORK/.. WORK/a --root=WORK/b --at=x -v"),
        ("npx notes notes/a new.db Europe/Oslo https://a.example/x /etc", {}, None),
    ],
)
def test_a_proved_launch_starts_from_the_users_path(tools: Path, command: str, env: dict[str, str], starts: str | None):
    Path("notes", "a").touch()
    starts = starts or "npx notes WORK/notes/a WORK/new.db Europe/Oslo https://a.example/x /etc"
    launch = proved(*command.replace("TOOLS", str(tools)).split(), env=env)
    assert launch.command == f"{tools}/{starts}".replace("WORK", str(Path.cwd())).split()
    assert launch.variables == env
    assert launch.environment["PATH"] == os.pathsep.join([str(tools), os.defpath])
    assert not [*launch.folder.iterdir()]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("other -y notes", "registry does not contain"),
        ("npx -y unknown", "registry does not contain"),
        ("npx --registry=x notes", "registry does not contain"),
        ("./npx notes", "its launcher is not"),
        ("WORK/npx notes", "its launcher is not"),
        ("/..WORK/npx notes", "its launcher is not"),
        ("/proc/self/cwd/npx notes", "its launcher is not"),
        ("WORK/link/npx notes", "its launcher is not"),
        ("cmd /c ./npx notes", "its launcher is not"),
        ("C:\\nodejs\\npx.cmd notes", "its launcher is not"),
        ("pnpm dlx notes", "PATH has no pnpm"),
        ("bunx notes", "PATH has no bunx"),
        ("npx notes notes", "write ./notes"),
    ],
)
def test_no_other_program_is_proved(tools: Path, command: str, reason: str):
    for name in ("npx", "bin/bunx"):
        write_program(Path(name))
    write_program(Path("evil", "npx"))
    Path("link").symlink_to("evil")
    (tools / "pnpm").symlink_to(write_program(Path("pnpm")).absolute())
    with pytest.raises(NotRegisteredError, match=reason):
        proved(*command.replace("WORK", str(Path.cwd())).split())


@pytest.mark.parametrize("name", "PATH HOME PREFIX npm_config_registry NODE_OPTIONS UV_PYTHON NOTES_API_URL".split())
def test_a_variable_that_is_not_listed_is_not_proved(tools: Path, name: str):
    with pytest.raises(NotRegisteredError, match=f"its entry sets {name}"):
        proved("npx", "notes", env={name: "x", "NOTES_API_KEY": "x"})


def test_the_folder_is_empty_and_outside_the_working_folder(tools: Path):
    with pytest.raises(NotRegisteredError, match="in the working folder"):
        proved("npx", "notes", folder=Path(".data/empty"))
    launch = proved("npx", "notes")
    launch.folder.chmod(0o700)
    (launch.folder / "package.json").touch()
    with pytest.raises(NotRegisteredError, match="is not empty"):
        proved("npx", "notes")


@pytest.mark.skipif(not bubblewrap_works(), reason="needs bubblewrap")
@pytest.mark.parametrize(("opened", "is_proved"), [(".", True), ("~", False), ("..", False), ("../data/servers", True)])
def test_folders_that_an_entry_opens_cannot_change_what_starts(tools: Path, opened: str, is_proved: bool):
    data = tools.parent / "data"
    (data / "servers").mkdir(parents=True)
    config = ServerConfig("it", {"command": "npx", "args": ["notes", str(Path(opened).expanduser())]}, Path.cwd())
    start = server_start(config, config.resolved_entry(), SandboxSettings(data=data), REGISTRY, data / "servers")
    assert (start.package is not None) is is_proved
    assert start.confinement is not None
    assert not any(path.is_relative_to(data) for path in start.confinement.writes)
    assert start.confinement.home is not None
    assert start.confinement.home.name.startswith("registered.") is is_proved


@pytest.mark.skipif(not bubblewrap_works(), reason="needs bubblewrap")
@pytest.mark.parametrize(
    ("command", "is_labelled"), [("npx", True), ("./deletes_itself/npx", False), ("/proc/self/cwd/npx", False)]
)
async def test_the_identity_is_that_of_the_start(tools: Path, command: str, is_labelled: bool):
    for name in ("npx", "bin/npx", "deletes_itself/npx"):
        write_program(Path(name))
    data = tools.parent / "data"
    config = ServerConfig("it", {"command": command, "args": ["-y", "notes", "."]}, Path.cwd())
    connection = new_connection(config, data / "logs", registry=REGISTRY, sandbox=SandboxSettings(data=data))
    async with McpHub([connection], patience_s=60) as hub:
        spec = (await hub.catalogue())["it.look"]
        started = (await hub.call("it.look", {})).output
        rights = hub.rights()["it"]
    assert spec.risk_source == ("registry 1" if is_labelled else "nobody")
    assert rights.startswith("registered: npm:notes; sandboxed" if is_labelled else "not registered: its launcher")
    assert f"changes {Path.cwd()}; reaches any host" in rights
    if is_labelled:
        assert started == f'[["-y", "notes", "{Path.cwd()}"], "{data}/servers/.empty", [], "{tools}"]'
