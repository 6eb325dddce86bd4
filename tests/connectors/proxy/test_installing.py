"""The proxy in a client's settings: in place of its servers, with a back-up, and out again."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support.command_line import CommandLine

from connectors.proxy.installing import NAMES, place_of
from state.errors import ConfigError

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


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": 3}', "// a comment\n{}"])
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
    files = {place_of(name, tmp_path, system).file for name in NAMES}
    assert len(files) == len(NAMES)
    assert all(file.is_relative_to(tmp_path) for file in files)
    with pytest.raises(ConfigError, match="nonesuch"):
        place_of("nonesuch", tmp_path, system)
