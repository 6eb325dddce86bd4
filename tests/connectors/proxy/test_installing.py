"""The proxy replaces the servers in a client's settings, and the old settings are backed up."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine, Outcome

from packetgate.connectors.client_settings import install, settings_place
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError

NPX = {"command": "npx", "args": ["-y", "x"]}
SERVERS = {"files": {**NPX, "env": {"KEY": "v"}}}
BACKUP = ".before-packetgate"


class Installation:
    """A command line, and the settings of Cursor in a separate home folder."""

    def __init__(self, cli: CommandLine) -> None:
        self.cli, self.home = cli, cli.folder.parent / "person"
        self.file = self.home / ".cursor" / "mcp.json"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(json.dumps({"mcpServers": SERVERS, "other": 1}))
        self.ours = cli.folder / "mcp.json"

    def run(self, *options: str) -> Outcome:
        return self.cli.run("proxy", "--install", "cursor", *options, HOME=str(self.home))


@pytest.fixture
def installation(cli: CommandLine) -> Installation:
    return Installation(cli)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_clients_servers_move_into_mcp_json(installation: Installation) -> None:
    before = installation.file.read_text()
    for _ in range(2):
        outcome = installation.run()
        assert outcome.status == 0, outcome.err
        assert read(installation.ours) == {"mcpServers": SERVERS}
        settings = read(installation.file)
        assert (settings["other"], list(settings["mcpServers"])) == (1, ["packetgate"])
        entry = settings["mcpServers"]["packetgate"]
        place = ["--folder", str(installation.cli.folder), "--mcp-config", str(installation.ours)]
        assert entry["args"] == ["proxy", *place, "--client", "cursor"]
        assert entry["env"]["PACKETGATE_HOME"] == str(installation.cli.home)
        assert entry["env"]["PACKETGATE_ROOT"] == str(installation.cli.folder)
        assert installation.file.with_name(f"mcp.json{BACKUP}").read_text() == before


def test_print_shows_the_entry_and_changes_nothing(installation: Installation) -> None:
    before = installation.file.read_text()
    assert list(json.loads(installation.run("--print").out)) == ["mcpServers"]
    assert installation.file.read_text() == before
    assert not installation.ours.exists()


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"half": "\\ud83d"}', '{"mcpServers": 3}', '{"a": 1} // more\n{}', '// mine\n{"mcpServers": {}}'],
)
def test_unusable_settings_stay_unchanged(installation: Installation, content: str) -> None:
    installation.file.write_text(content)
    outcome = installation.run()
    assert outcome.status == 2
    assert str(installation.file) in outcome.err
    assert installation.file.read_text() == content
    assert not installation.ours.exists()


CODEX = """# mine
model = "a"
[mcp_servers.a]  # ours
command = "npx"
args = [
  "-y",
  "x",
]
[mcp_servers."a".env]
KEY = "v"
[mcp_servers.b]
url = "https://b.example/mcp"
bearer_token_env_var = "B"
[tui]
theme = '''
[mcp_servers.c]
'''
"""
HTTP = {"httpUrl": "https://a.example/mcp", "headers": {"X-A": "b"}}


@pytest.mark.parametrize(
    ("client", "content", "moved", "stays"),
    [
        ("gemini-cli", json.dumps({"mcpServers": {"a": HTTP}, "theme": "b"}), ["a"], []),
        ("codex", "", [], []),
        ("cursor", "", [], []),
        ("cursor", '{"mcpServers": null}', [], []),
        ("cursor", json.dumps({"mcpServers": {"packetgate": {"command": "own"}, "a": NPX}}), ["a"], []),
        ("claude-code", "\ufeff" + json.dumps({"mcpServers": {"a": NPX, "odd": None}}), ["a"], ["odd"]),
        ("vscode", json.dumps({"servers": {"a": NPX, "b": {**NPX, "env": {"K": "${input:k}"}}}}), ["a"], ["b"]),
    ],
)
def test_installing_changes_only_the_servers_of_a_settings_file(
    tmp_path: Path, client: str, content: str, moved: list[str], stays: list[str]
) -> None:
    place = settings_place(client, tmp_path, "linux")
    place.file.parent.mkdir(parents=True, exist_ok=True)
    place.file.write_text(content)
    lines = install(client, place, Settings(root=tmp_path, home=tmp_path / "home"))
    written = place.file.read_text()
    assert '"packetgate"' in written
    if client != "codex":
        assert [*read(place.file)[place.key]] == [*stays, "packetgate"]
    assert all(f'"{name}"' in written for name in stays)
    ours = read(tmp_path / "mcp.json")["mcpServers"] if moved else {}
    assert [*ours] == moved
    assert sum("was not moved" in line for line in lines) == len(stays)


def test_other_tables_and_their_comments_are_unchanged(tmp_path: Path) -> None:
    place = settings_place("codex", tmp_path, "linux")
    place.file.parent.mkdir(parents=True)
    place.file.write_text(CODEX)
    for _ in range(2):
        lines = install("codex", place, Settings(root=tmp_path, home=tmp_path / "home"))
        text = place.file.read_text()
        written = tomllib.loads(text)
        assert ["# mine" in text, written["model"], written["tui"]] == [True, "a", {"theme": "[mcp_servers.c]\n"}]
        assert [*written["mcp_servers"]] == ["b", "packetgate"]
        assert written["mcp_servers"]["packetgate"]["env"]["PACKETGATE_ROOT"] == str(tmp_path)
        assert any("'b' was not moved" in line for line in lines)
    assert read(tmp_path / "mcp.json")["mcpServers"] == {"a": {**NPX, "env": {"KEY": "v"}}}
    assert place.backup.read_text() == CODEX
    for dotted in ('mcp_servers.d.command = "npx"', 'mcp_servers = { d = { command = "npx" } }'):
        place.file.write_text(dotted)
        with pytest.raises(ConfigError, match="by hand"):
            install("codex", place, Settings(root=tmp_path, home=tmp_path / "home"))
        assert place.file.read_text() == dotted


def test_a_different_server_of_the_same_name_is_a_conflict(tmp_path: Path) -> None:
    place = settings_place("cursor", tmp_path, "linux")
    place.file.parent.mkdir(parents=True)
    place.file.write_text(json.dumps({"mcpServers": SERVERS}))
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"files": {"command": "other"}}}))
    before = place.file.read_text()
    with pytest.raises(ConfigError, match="'files'"):
        install("cursor", place, Settings(root=tmp_path, home=tmp_path / "home"))
    assert place.file.read_text() == before
