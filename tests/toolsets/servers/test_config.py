import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from packetgate.state.errors import ConfigError, ServerError
from packetgate.state.redaction import redacted
from packetgate.toolsets.servers.config import McpConfig, load_config
from packetgate.toolsets.servers.opening import open_hub

A = {"command": "a"}
B = {"command": "b", "args": ["-x"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own name.json"


def write(file: Path, **entries: Any) -> McpConfig:
    file.write_text(json.dumps({"mcpServers": entries}))
    return load_config(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"mcpServers": {,}}',
        b'// mine\n{"mcpServers": {"a" 5}}',
        b'{"a": "\xff"}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
        b"[]",
        b"null",
        b"{}",
        b'{"mcpServers": {}, "builtin": false}',
        b'{"mcpServers": {}, "builtin": "yes"}',
        b'{"mcpServers": {"notes": {"args": []}}}',
    ],
)
def test_a_broken_file_is_refused_in_one_line(file: Path, content: bytes):
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert len(message.splitlines()) == 1
    assert len(message) < len(str(file)) + 300


def test_a_missing_file_and_a_folder_are_refused(file: Path):
    assert load_config(None) == McpConfig(servers=(), builtin="all")
    with pytest.raises(ConfigError, match="--mcp-config"):
        load_config(file)
    file.mkdir()
    with pytest.raises(ConfigError, match="--mcp-config"):
        load_config(file)


@pytest.mark.parametrize(
    "entry",
    [
        "notes",
        None,
        {},
        {"command": ""},
        {"command": 5},
        {"command": "a", "args": [{}]},
        {"command": ["a"]},
        {"command": "a", "args": "-x y"},
        {"command": "a", "env": ["A=1"]},
        {"command": "a", "cwd": []},
        {"command": "a", "env": {"K": "${input:key}"}},
        {"url": "http://a", "headers": "x"},
        {"url": "ftp://a"},
        {"url": "somewhere"},
        *(
            {"command": "a", "hosts": [host]}
            for host in (
                *("https://example.org", "example.org/x", "example.org:443", "a b", "u@b.example"),
                *("*.*.example", "*x.example", "", 5),
            )
        ),
    ],
)
def test_an_unusable_entry_is_left_out_with_a_remark(file: Path, entry: Any):
    config = write(file, good=A, notes=entry)
    assert [(remark.name, remark.kind) for remark in config.remarks] == [("notes", "left out")]
    (line,) = config.entry_problems
    assert line.startswith(f"{file}: server 'notes': left out: ")
    assert [server.name for server in config.servers] == ["good"]
    assert asyncio.run(open_hub(config, file.parent, file.parent, None, patience_s=1.0)).names == ("good",)


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({"timeout": 60}, "timeout", 60_000),
        ({"timeout": 0}, "timeout", None),
        ({"timeout": "soon"}, "timeout", None),
        ({"timeout": True}, "timeout", None),
        ({"trusted": "yes"}, "trusted", None),
        ({"sandbox": "of"}, "sandbox", "workspace"),
    ],
)
def test_a_repaired_value_is_remarked(file: Path, entry: dict[str, Any], field: str, value: Any):
    config = write(file, notes={**A, **entry})
    assert config.servers[0].entry.get(field) == value
    assert [remark.kind for remark in config.remarks] == ["repaired"]


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        ({"type": "stdio", **B}, B),
        ({**B, "env": {"K": 1, "L": None}, "cwd": None, "url": ""}, {**B, "env": {"K": "1"}}),
        ({"url": "https://h/m", "type": "http"}, {"url": "https://h/m", "transport": "http"}),
        ({"url": "https://h/m", "transport": "streamable-http"}, {"url": "https://h/m", "transport": "http"}),
        ({**B, "url": "https://h/m"}, B),
    ],
)
@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_entries_in_several_forms_are_read(file: Path, key: str, entry: dict[str, Any], fields: dict[str, Any]):
    file.write_text(json.dumps({key: {"x": entry}, "inputs": []}))
    config = load_config(file)
    assert {server.name: server.entry for server in config.servers} == {"x": fields}
    assert (config.entry_problems, config.builtin) == ([], "reads")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_comments_and_trailing_commas_are_accepted(file: Path, encoding: str):
    text = '// mine\r\n{"mcpServers": { /* a "b" { */ "x": {"command": "b", "args": ["http://h//i", ",]",],},}}'
    file.write_text(text, encoding=encoding)
    assert load_config(file).servers[0].entry["args"] == ["http://h//i", ",]"]


@pytest.mark.parametrize("entry", [{"disabled": True}, {"enabled": False}, {"disabled": "perhaps"}])
def test_a_disabled_server_does_not_start(file: Path, entry: dict[str, Any]):
    config = write(file, good=A, x={**A, **entry})
    assert [server.name for server in config.servers] == ["good"]
    assert [(remark.name, remark.kind) for remark in config.remarks] == [("x", "disabled")]
    assert config.entry_problems == []


@pytest.mark.parametrize(
    ("entry", "offered"),
    [
        ({"includeTools": ["look", "list"]}, ["look", "list"]),
        ({"excludeTools": ["delete"]}, ["look", "list"]),
        ({"includeTools": ["*"], "excludeTools": ["del*"]}, ["look", "list"]),
        ({"includeTools": []}, ["look", "list", "delete"]),
    ],
)
def test_tools_that_an_entry_hides_are_not_offered(file: Path, entry: dict[str, Any], offered: list[str]):
    (notes,) = write(file, notes={**A, **entry}).servers
    assert [tool for tool in ("look", "list", "delete") if notes.offers(tool)] == offered


def test_unusable_names_are_replaced(file: Path):
    written = ["a-b", "a.b", "@a/b", "b\u00fcro", "\u6587\u4ef6", "", "-a", "x" * 80, "ai"]
    file.write_text(json.dumps({"mcpServers": dict.fromkeys(written, A), "builtin": True}))
    config = load_config(file)
    assert [server.name for server in config.servers] == [
        *("a-b", "a-b-2", "a-b-3", "buro", "server", "server-2", "a", "x" * 48, "ai-2")
    ]
    assert len(config.entry_problems) == len(written) - 1


def test_unknown_fields_order_and_settings_are_kept(file: Path):
    entry = {"command": "notes", "disabled": False, "x-note": {"by": ["me"]}, "timeout": 1500, "trusted": True}
    file.write_text(json.dumps({"mcpServers": {"notes": entry, "a": A}, "builtin": True, "other": 1}))
    config = load_config(file)
    notes, _ = config.servers
    assert (notes.name, notes.entry) == ("notes", entry)
    assert (config.builtin, config.source) == ("all", str(file))


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"servers": null}'])
def test_a_file_without_entries_leaves_the_built_in_servers(file: Path, text: str):
    file.write_text(text)
    assert load_config(file) == McpConfig(source=str(file))


def test_variables_are_filled_in_and_redacted(file: Path, monkeypatch: pytest.MonkeyPatch):
    key = 'k"{}$${HOME}'
    monkeypatch.setenv("NOTES_KEY", key)
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    (file.parent / ".env").write_text("A=1\nexport B='2'\n")
    entry = {
        "args": ["--key=${NOTES_KEY}", "${env:NOTES_KEY}", "${}", "${NOT_SET_HERE:-x y}", "${workspaceFolder}/a"],
        "env": {"${NOTES_KEY}": "${NOTES_KEY}${NOTES_KEY}", "B": "3"},
        "cwd": "~",
        "envFile": "${workspaceFolder}/.env",
    }
    write(file, notes={**A, **entry})
    (notes,) = load_config(file, file.parent).servers
    filled = notes.resolved_entry()
    assert filled["args"] == [f"--key={key}", key, "${}", "x y", f"{file.parent}/a"]
    assert filled["env"] == {"A": "1", "B": "3", "${NOTES_KEY}": key + key}
    assert filled["cwd"] == str(Path.home())
    assert notes.entry == {**A, **entry}
    assert redacted(f"no key {key} {key!r}") == "no key [redacted: NOTES_KEY] '[redacted: NOTES_KEY]'"
    (file.parent / ".env").unlink()
    with pytest.raises(ServerError, match="envFile"):
        notes.resolved_entry()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (None, None),
        ([], []),
        (["Example.org.", "*.example.org", "*"], ["example.org", "*.example.org", "*"]),
        (["bücher.example", "10.0.0.1", "[::1]"], ["xn--bcher-kva.example", "10.0.0.1", "::1"]),
    ],
)
def test_hosts_are_read_in_canonical_form(file: Path, written: Any, read: Any):
    assert write(file, a={**A, "hosts": written}).servers[0].entry.get("hosts") == read
