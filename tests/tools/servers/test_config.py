import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from state.errors import ConfigError, ServerError
from tools.servers.config import McpConfig, load_config
from tools.servers.connection import configured
from tools.servers.hub import McpHub
from tools.servers.opening import open_hub


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own name.json"


def server(**entry: Any) -> dict[str, Any]:
    return {"mcpServers": {"notes": {"command": "notes", **entry}}}


def opened(file: Path) -> McpHub:
    return asyncio.run(open_hub(load_config(file), file.parent, file.parent / "logs", None, patience_s=1.0))


def refused(file: Path) -> str:
    """Return the one line with which everything from the file to the hub refuses it."""
    with pytest.raises(ConfigError) as caught:
        opened(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert len(message.splitlines()) == 1
    assert len(message) < len(str(file)) + 300
    return message


def test_without_a_file_the_built_in_servers_alone():
    assert load_config(None) == McpConfig(servers=(), builtin=True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1"),
        (b'{"mcpServers": {,}}', "not JSON: Expecting property name enclosed in double quotes at line 1, column 17"),
        (b'{"mcpServers": {}} // mine', "not JSON: Extra data at line 1, column 20"),
        (b'{"a": "\xff"}', "not UTF-8 text at byte 7: save it as UTF-8"),
        ('{"mcpServers": {}}'.encode("utf-16"), "not UTF-8 text at byte 0: save it as UTF-8"),
        (b"[" * 100_000, "not JSON that can be read: maximum recursion depth"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not JSON that can be read: "),
        (b"[]", 'must be an object with "mcpServers", not list'),
        (b'"mcpServers"', 'must be an object with "mcpServers", not str'),
        (b"null", 'must be an object with "mcpServers", not NoneType'),
        (b"{}", 'no servers under "mcpServers": add one, or remove the file'),
        (b'{"servers": {"a": {"command": "a"}}}', 'no servers under "mcpServers": add one, or remove the file'),
        (b'{"mcpServers": {}, "builtin": false}', 'no servers under "mcpServers": add one, or remove the file'),
        (b'{"mcpServers": {}, "builtin": "yes"}', "\"builtin\" must be true or false, not 'yes'"),
        (b'{"mcpServers": []}', '"mcpServers" must be an object of servers by name, not list'),
        (b'{"mcpServers": null}', '"mcpServers" must be an object of servers by name, not NoneType'),
    ],
)
def test_a_broken_file_is_refused_in_one_line(file: Path, content: bytes, says: str):
    file.write_bytes(content)
    assert says in refused(file)


def test_a_file_that_is_not_there_or_is_a_folder(file: Path):
    assert "no such file: check --mcp-config or PACKETGATE_MCP_CONFIG, or leave both out" in refused(file)
    file.mkdir()
    assert "cannot be read: Is a directory: check --mcp-config" in refused(file)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("notes", "must be an object, not str"),
        (None, "must be an object, not NoneType"),
        ({}, 'needs either a "command" to start or a "url" to reach, as text'),
        ({"command": ""}, 'needs either a "command" to start or a "url" to reach, as text'),
        ({"command": ["notes"]}, 'needs either a "command" to start or a "url" to reach, as text'),
        ({"command": "a", "url": "http://a"}, 'needs either a "command" to start or a "url" to reach, as text'),
        ({"command": "a", "args": "-x"}, "args: Input should be a valid list"),
        ({"command": "a", "args": [1]}, "args.0: Input should be a valid string"),
        ({"command": "a", "env": ["A=1"]}, "env: Input should be a valid dictionary"),
        ({"command": "a", "cwd": 5}, "cwd: Input should be a valid string"),
        ({"command": "a", "timeout": "soon"}, "\"timeout\" must be a whole number of milliseconds above 0, not 'soon'"),
        ({"command": "a", "timeout": 0}, '"timeout" must be a whole number of milliseconds above 0, not 0'),
        ({"command": "a", "timeout": -5}, '"timeout" must be a whole number of milliseconds above 0, not -5'),
        ({"command": "a", "timeout": True}, '"timeout" must be a whole number of milliseconds above 0, not True'),
        ({"command": "a", "trusted": "yes"}, "\"trusted\" must be true or false, not 'yes'"),
        ({"url": "http://a", "headers": "x"}, "headers: Input should be a valid dictionary"),
        ({"url": "http://a", "headers": {"x": 5}}, "headers.x: Input should be a valid string"),
        ({"url": "http://a", "transport": "pigeon"}, "transport: Input should be 'http', 'streamable-http' or 'sse'"),
        ({"url": "ftp://a"}, "\"url\" must start with http:// or https://, not 'ftp://a'"),
        ({"url": "localhost:80"}, "\"url\" must start with http:// or https://, not 'localhost:80'"),
    ],
)
def test_a_broken_server_is_named(file: Path, entry: Any, says: str):
    file.write_text(json.dumps({"mcpServers": {"good": {"command": "good"}, "notes": entry}}))
    assert f"server 'notes': {says}" in refused(file)


@pytest.mark.parametrize("name", ["", " ", "a.b", "a b", "-a", "ä", "a\nb", "../a", "a/b"])
def test_a_name_that_could_not_stand_before_a_tools_is_refused(file: Path, name: str):
    file.write_text(json.dumps({"mcpServers": {name: {"command": "a"}}}))
    assert f"server {name!r}: a server's name may only have letters, digits, - and _" in refused(file)


def test_a_built_in_servers_name_is_taken_only_while_those_are_there(file: Path):
    file.write_text(json.dumps({"mcpServers": {"ai": {"command": "a"}}, "builtin": True}))
    assert "server 'ai': a built-in server has that name: rename it" in refused(file)
    file.write_text(json.dumps({"mcpServers": {"ai": {"command": "a"}}}))
    assert opened(file)


def test_what_the_file_says_is_kept_unknown_fields_too(file: Path):
    entry = {"args": ["-x"], "disabled": False, "x-note": {"by": ["me"]}, "timeout": 1500, "trusted": True}
    file.write_text(json.dumps({**server(**entry), "builtin": True, "other": 1}), encoding="utf-8-sig")
    config = load_config(file)
    (notes,) = config.servers
    assert (notes.name, notes.entry, notes.source) == ("notes", {"command": "notes", **entry}, str(file))
    assert (notes.trusted, notes.timeout_s) == (True, 1.5)
    assert (config.builtin, config.source) == (True, str(file))


def test_with_servers_the_built_in_ones_and_trust_must_be_asked_for(file: Path):
    file.write_text(json.dumps(server()))
    config = load_config(file)
    assert not config.builtin
    assert (config.servers[0].trusted, config.servers[0].timeout_s) == (False, None)


def test_servers_keep_their_order(file: Path):
    file.write_text(json.dumps({"mcpServers": {name: {"command": name} for name in ("b", "a", "c")}}))
    assert [one.name for one in load_config(file).servers] == ["b", "a", "c"]


def test_variables_are_filled_in_everywhere_but_in_names(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOTES_KEY", 'k"{}$${HOME}')
    entry = {"args": ["--key=${NOTES_KEY}", "$NOTES_KEY", "${}"], "env": {"${NOTES_KEY}": "${NOTES_KEY}${NOTES_KEY}"}}
    file.write_text(json.dumps(server(**entry)))
    (notes,) = load_config(file).servers
    key = 'k"{}$${HOME}'
    assert notes.filled()["args"] == [f"--key={key}", "$NOTES_KEY", "${}"]
    assert notes.filled()["env"] == {"${NOTES_KEY}": key + key}
    assert notes.entry == {"command": "notes", **entry}
    assert notes.concealed(f"no key {key} {key!r}") == "no key ${NOTES_KEY} '${NOTES_KEY}'"


def test_a_variable_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    file.write_text(json.dumps(server(env={"KEY": "${NOT_SET_HERE}"})))
    (notes,) = load_config(file).servers
    with pytest.raises(ServerError, match="the environment variable NOT_SET_HERE is not set: set it, or take it out"):
        notes.filled()


def test_the_connection_is_as_configured(file: Path, tmp_path: Path):
    file.write_text(json.dumps(server()))
    connection = configured(load_config(file).servers[0], tmp_path)
    assert (connection.name, connection.state, connection.specs) == ("notes", "connecting", ())
