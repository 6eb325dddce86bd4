"""Files with any content are parsed, or refused in one line."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.full_packet import full_packet
from support.fuzzing import as_json, as_toml, fuzzed, mutated

from packetgate.connectors.discord.config import load_discord_config
from packetgate.state.errors import ConfigError, PacketError, PacketgateError
from packetgate.state.packet import read_packet
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.opening import new_connection

MCP = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"KEY": "${KEY}"}, "timeout": 5_000, "trusted": True},
        "web": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
    },
    "builtin": True,
}
PREFERENCES = {
    "permanent": ["ai.read"],
    "pools": {"tasks": ["ai.*"]},
    "tools": {"ai.read": {"brief": "Read.", "category": "files", "external": False, "examples": ["read a.txt"]}},
    "sandbox": "auto",
    "sandbox_reads": ["/srv"],
    "policy": {
        "remember": "session",
        "remember_days": 3,
        "rules": [{"effect": "allow", "tool": "ai.write", "arguments": {"path": "a/*"}, "channels": ["terminal"]}],
    },
}
GROUP = {"users": [1], "roles": [2], "channels": [3]}
DISCORD = {
    "discord": {
        "allowed": GROUP,
        "approvers": GROUP,
        "blocked": GROUP,
        "models": {"small": "ollama:qwen3:4b"},
        "status": "Here to help",
        "tools": {"3": ["ai.*"]},
        "rate": {"turns": 3, "seconds": 1.5},
    }
}


def servers(path: Path) -> None:
    """Parse `mcp.json` without starting a server."""
    for server in load_config(path).servers:
        new_connection(server, path.parent / "logs")


def outcome(read: Callable[[], Any], refused: type[PacketgateError]) -> str:
    """Return the outcome of parsing; an unexpected error fails the test."""
    try:
        read()
    except refused as error:
        return "refused" if str(error).strip() else "refused without a word"
    return "read"


FORMS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], bytes], Any]] = {
    "mcp.json": (servers, as_json, MCP),
    "packetgate.toml": (load_preferences, as_toml, PREFERENCES),
    "discord": (load_discord_config, as_toml, DISCORD),
    "packet": (lambda path: read_packet(path.read_bytes()), as_json, full_packet().model_dump(mode="json")),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_file_is_read_or_refused_in_one_line(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    read, written, sound = FORMS[form]
    path, counts = tmp_path / "file", Counter[str]()
    path.write_bytes(written(sound))
    read(path)

    @fuzzed(150, 3_000)
    @given(content=mutated(sound).map(written) | st.binary(max_size=40))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        counts[outcome(lambda: read(path), PacketError if form == "packet" else ConfigError)] += 1

    check()
    with capsys.disabled():
        print(f"\n{form}: {dict(counts)}")  # noqa: T201  the figures are the point
    assert counts.keys() == {"read", "refused"}
