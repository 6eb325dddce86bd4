"""The proxy in a client's settings: in place of its servers, with a back-up, and out again."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support.command_line import CommandLine

from packetgate.connectors.client_settings import CLIENTS, SettingsFile, place_of
from packetgate.state.errors import ConfigError
from packetgate.tools.servers.config import load_config

THEIRS = {"files": {"command": "npx", "args": ["-y", "x"], "env": {"KEY": "v"}}}


@pytest.fixture
def settled(cli: CommandLine) -> tuple[CommandLine, dict[str, str], Path]:
    """A command line in a home of its own, and the settings of Cursor there."""
    home = cli.folder.parent / "person"
    settings = home / ".cursor" / "mcp.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"mcpServers": THEIRS, "other": 1}))
    return cli, {"HOME": str(home)}, settings


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_clients_servers_are_taken_over_and_given_back(settled: tuple[CommandLine, dict[str, str], Path]) -> None:
    cli, variables, settings = settled
    before = settings.read_text()
    done = cli.run("proxy", "--install", "cursor", **variables)
    assert done.status == 0, done.err
    assert read(cli.folder / "mcp.json") == {"mcpServers": THEIRS}
    now = read(settings)
    assert now["other"] == 1
    assert list(now["mcpServers"]) == ["packetgate"]
    assert now["mcpServers"]["packetgate"]["args"][:2] == ["proxy", "--mcp-config"]
    assert settings.with_name("mcp.json.before-packetgate").read_text() == before

    assert cli.run("proxy", "--install", "cursor", **variables).status == 0
    assert settings.with_name("mcp.json.before-packetgate").read_text() == before

    changed = {**read(settings), "other": 2}
    settings.write_text(json.dumps(changed))
    assert cli.run("proxy", "--uninstall", "cursor", **variables).status == 0
    assert read(settings) == {"mcpServers": THEIRS, "other": 2}
    assert not settings.with_name("mcp.json.before-packetgate").exists()


def test_the_entry_is_shown_and_nothing_changed(settled: tuple[CommandLine, dict[str, str], Path]) -> None:
    cli, variables, settings = settled
    before = settings.read_text()
    done = cli.run("proxy", "--install", "vscode", "--print", **variables)
    assert list(json.loads(done.out)) == ["servers"]
    assert settings.read_text() == before
    assert not (cli.folder / "mcp.json").exists()


async def test_the_entry_starts_the_proxy_from_anywhere(
    settled: tuple[CommandLine, dict[str, str], Path], tmp_path: Path
) -> None:
    cli, variables, settings = settled
    settings.write_text("{}")
    (cli.folder / "mcp.json").write_text('{"builtin": true}')
    cli.run("proxy", "--install", "cursor", **variables)
    entry = read(settings)["mcpServers"]["packetgate"]
    environment = {**cli.environment, **entry["env"]}
    transport = StdioTransport(entry["command"], entry["args"], cwd=str(tmp_path), env=environment)
    async with Client(transport, mode="legacy") as client:
        said = await client.call_tool("ai.read", {"path": "plan.txt"})
        assert said.content[0].text == "The gate opens at seven.\n"


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": 3}', '{"a": 1} // more\n{}'])
def test_settings_that_cannot_be_read_stay_as_they_are(
    settled: tuple[CommandLine, dict[str, str], Path], content: str
) -> None:
    cli, variables, settings = settled
    settings.write_text(content)
    done = cli.run("proxy", "--install", "cursor", **variables)
    assert done.status == 2
    assert str(settings) in done.err
    assert settings.read_text() == content
    assert not (cli.folder / "mcp.json").exists()


NPX = {"command": "npx", "args": ["-y", "x"]}
ODD: list[tuple[str, str, str, list[str], list[str]]] = [
    ("cursor", ".cursor/mcp.json", "", [], []),
    ("cursor", ".cursor/mcp.json", '{"mcpServers": null}', [], []),
    ("cursor", ".cursor/mcp.json", json.dumps({"mcpServers": {"packetgate": {"command": "own"}, "a": NPX}}), ["a"], []),
    (
        "cursor",
        ".cursor/mcp.json",
        '// mine\n{\n  "mcpServers": { // all\n    "a b": {"command": "npx",},\n  },\n  "z": [1,], /* end */\n}\n',
        ["a b"],
        [],
    ),
    (
        "claude-code",
        ".claude.json",
        "\ufeff" + json.dumps({"mcpServers": {"a": NPX, "odd": None, "off": {**NPX, "disabled": True}}}, indent=3),
        ["a", "off"],
        ["odd"],
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        json.dumps({"servers": {"a": NPX, "asks": {**NPX, "env": {"K": "${input:k}"}}}, "inputs": [{"id": "k"}]}),
        ["a"],
        ["asks"],
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        '{\r\n  "theme": "One", // dark\r\n  "servers": {\r\n    "ext": {"source": "extension"},\r\n'
        '    "a": {"command": "npx"},\r\n  },\r\n}\r\n',
        ["a"],
        ["ext"],
    ),
    ("vscode", ".config/Code/User/mcp.json", '{\n  "theme": "One", // dark\n}\n', [], []),
]


@pytest.mark.parametrize(("client", "file", "content", "taken", "staying"), ODD)
def test_settings_of_every_form_are_put_back_to_the_byte(
    cli: CommandLine, client: str, file: str, content: str, taken: list[str], staying: list[str]
) -> None:
    home = cli.folder.parent / "person"
    settings = home / file
    settings.parent.mkdir(parents=True)
    settings.write_bytes(content.encode())
    place = place_of(client, home)
    done = cli.run("proxy", "--install", client, HOME=str(home))
    assert done.status == 0, done.err
    installed = SettingsFile.read(settings).document
    assert [*installed[place.key]] == [*staying, "packetgate"]
    assert {**installed, place.key: 0} == {**SettingsFile.of(settings, content.encode()).document, place.key: 0}
    assert all(f"'{name}' stays {client}'s own: " in done.out for name in staying)
    config = cli.folder / "mcp.json"
    assert [*read(config)["mcpServers"]] == taken if taken else not config.exists()
    assert not taken or len(load_config(config).servers) + len(load_config(config).remarks) >= len(taken)
    assert cli.run("proxy", "--uninstall", client, HOME=str(home)).status == 0
    assert settings.read_bytes() == content.encode()
    assert [one.name for one in settings.parent.iterdir()] == [settings.name]


def test_a_server_that_two_clients_write_differently_is_one(cli: CommandLine) -> None:
    home = cli.folder.parent / "person"
    files = {".cursor/mcp.json": {"mcpServers": {"a": NPX}}}
    files[".config/Code/User/mcp.json"] = {"servers": {"a": {"type": "stdio", **NPX}}}
    for name, document in files.items():
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(json.dumps(document))
    for client in ("cursor", "vscode"):
        assert cli.run("proxy", "--install", client, HOME=str(home)).status == 0
    assert read(cli.folder / "mcp.json") == {"mcpServers": {"a": NPX}}


def test_a_file_that_was_made_for_the_proxy_goes_with_it(cli: CommandLine) -> None:
    home = cli.folder.parent / "person"
    assert cli.run("proxy", "--install", "cursor", HOME=str(home)).status == 0
    file = home / ".cursor" / "mcp.json"
    assert read(file)["mcpServers"]["packetgate"]["args"] == ["proxy", "--client", "cursor"]
    assert cli.run("proxy", "--uninstall", "cursor", HOME=str(home)).status == 0
    assert not file.exists()


def test_settings_behind_a_link_stay_there(settled: tuple[CommandLine, dict[str, str], Path]) -> None:
    cli, variables, settings = settled
    real = settings.rename(cli.folder.parent / "kept.json")
    settings.symlink_to(real)
    before = real.read_bytes()
    assert cli.run("proxy", "--install", "cursor", **variables).status == 0
    assert settings.is_symlink()
    assert "packetgate" in real.read_text()
    assert cli.run("proxy", "--uninstall", "cursor", **variables).status == 0
    assert (settings.is_symlink(), real.read_bytes()) == (True, before)


def test_nothing_changes_where_one_file_cannot_be_written(settled: tuple[CommandLine, dict[str, str], Path]) -> None:
    cli, variables, settings = settled
    (settings.parent / "mcp.json.writing").mkdir()
    before = settings.read_bytes()
    done = cli.run("proxy", "--install", "cursor", **variables)
    assert done.status == 2
    assert settings.read_bytes() == before
    assert not (cli.folder / "mcp.json").exists()
    assert not settings.with_name("mcp.json.before-packetgate").exists()


def test_two_servers_of_one_name_are_told(settled: tuple[CommandLine, dict[str, str], Path]) -> None:
    cli, variables, settings = settled
    (cli.folder / "mcp.json").write_text('{"mcpServers": {"files": {"command": "other"}}}')
    before = settings.read_text()
    done = cli.run("proxy", "--install", "cursor", **variables)
    assert done.status == 2
    assert "'files'" in done.err
    assert settings.read_text() == before


def test_what_was_not_installed_is_not_taken_out(settled: tuple[CommandLine, dict[str, str], Path]) -> None:
    cli, variables, _ = settled
    assert cli.run("proxy", "--uninstall", "cursor", **variables).status == 2
    assert "cursor" in cli.run("proxy", "--install", "nonesuch", **variables).err


@pytest.mark.parametrize("system", ["darwin", "win32", "linux"])
def test_every_client_has_its_place(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APPDATA", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    files = {place_of(name, tmp_path, system).file for name in CLIENTS}
    assert len(files) == len(CLIENTS)
    assert all(file.is_relative_to(tmp_path) for file in files)
    with pytest.raises(ConfigError, match="nonesuch"):
        place_of("nonesuch", tmp_path, system)
