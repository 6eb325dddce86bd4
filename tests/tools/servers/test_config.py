import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from packetgate.state.errors import ConfigError, ServerError
from packetgate.tools.servers.config import McpConfig, load_config
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.opening import open_hub
from packetgate.tools.servers.starting import configured


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
    assert load_config(None) == McpConfig(servers=(), builtin="all")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1"),
        (b'{"mcpServers": {,}}', "not JSON: Expecting property name enclosed in double quotes at line 1, column 17"),
        (b'// mine\n{"mcpServers": {"a" 5}}', "not JSON: Expecting ':' delimiter at line 2, column 21"),
        (b'{"a": "\xff"}', "not UTF-8 text at byte 7: save it as UTF-8"),
        (b"[" * 100_000, "not JSON that can be read: maximum recursion depth"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not JSON that can be read: "),
        (b"[]", 'must be an object with "mcpServers", not list'),
        (b'"mcpServers"', 'must be an object with "mcpServers", not str'),
        (b"null", 'must be an object with "mcpServers", not NoneType'),
        (b"{}", 'no servers under "mcpServers": add one, or remove the file'),
        (b'{"mcpServers": {}, "builtin": false}', 'no servers under "mcpServers": add one, or remove the file'),
        (b'{"mcpServers": {}, "builtin": "yes"}', "\"builtin\" must be true or false, not 'yes'"),
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
        ("notes", "left out: must be an object, not str"),
        (None, "left out: must be an object, not NoneType"),
        ({}, 'left out: needs either a "command" to start or a "url" to reach, as text'),
        ({"command": ""}, 'left out: needs either a "command" to start or a "url" to reach, as text'),
        ({"command": 5}, 'left out: "command" must be text, not int'),
        ({"command": "a", "args": [{}]}, 'left out: "args.0" must be text, not dict'),
        ({"command": "a", "args": "-x 'y"}, 'left out: a quotation mark is open in "-x \'y"'),
        ({"command": "a", "env": ["A"]}, 'left out: "env" must be an object of texts by name'),
        ({"command": "a", "env": "A=1"}, 'left out: "env" must be an object of texts by name, not str'),
        ({"command": "a", "cwd": 5}, 'left out: "cwd" must be text, not int'),
        ({"command": "a", "env": {"K": "${input:key}"}}, "left out: an editor asks for ${input:key}: write ${NAME}"),
        ({"command": "a", "timeout": "soon"}, "timeout 'soon' is no time: the usual one holds"),
        ({"command": "a", "timeout": 0}, "timeout 0 is no time: the usual one holds"),
        ({"command": "a", "timeout": True}, "timeout true is no time: the usual one holds"),
        ({"command": "a", "trusted": "yes"}, "\"trusted\" must be true or false, not 'yes': it is not trusted"),
        ({"command": "a", "type": "pigeon"}, "transport 'pigeon' is not known here: passed over"),
        ({"url": "http://a", "headers": "x"}, 'left out: "headers" must be an object of texts by name, not str'),
        ({"url": "http://a", "transport": "websocket"}, "left out: no server is reached by websocket here"),
        ({"url": "ftp://a"}, "left out: \"url\" must start with http:// or https://, not 'ftp://a'"),
        ({"url": "somewhere"}, "left out: \"url\" must start with http:// or https://, not 'somewhere'"),
    ],
)
def test_an_odd_entry_is_named_and_costs_no_other(file: Path, entry: Any, says: str):
    file.write_text(json.dumps({"mcpServers": {"good": {"command": "good"}, "notes": entry}}))
    config = load_config(file)
    (line,) = config.odd
    assert line.startswith(f"{file}: server 'notes': {says}")
    assert len(line.splitlines()) == 1
    names = ["good"] if "left out" in says else ["good", "notes"]
    assert [one.name for one in config.servers] == names
    assert opened(file).names == tuple(names)


def test_a_file_of_which_no_entry_can_be_used_is_refused(file: Path):
    file.write_text(json.dumps({"mcpServers": {"notes": {"args": []}}}))
    assert "no entry can be used: server 'notes': left out: needs either" in refused(file)


A = {"command": "a"}
B = {"command": "b", "args": ["-x"]}


@pytest.mark.parametrize(
    ("document", "servers"),
    [
        ({"servers": {"x": {"type": "stdio", **B}}, "inputs": []}, {"x": B}),
        ({"editor.tabSize": 2, "mcp": {"servers": {"x": B}}}, {"x": B}),
        (
            {"mcp": {"x": {"type": "local", "command": ["b", "-x"], "environment": {"K": "v"}}, "timeout": 5}},
            {"x": {**B, "env": {"K": "v"}}},
        ),
        ({"context_servers": {"x": {"command": {"path": "b", "args": ["-x"]}}}}, {"x": B}),
        ({"amp.mcpServers": {"x": B}}, {"x": B}),
        ({"mcp_servers": {"x": {**B, "tool_timeout_sec": 30}}}, {"x": {**B, "timeout": 30_000}}),
        ({"x": {"transport": "stdio", **B}}, {"x": B}),
        ({"mcpServers": [{"name": "x", "transport": {"type": "stdio", **B}}]}, {"x": {"name": "x", **B}}),
        ({"mcpServers": {"x": {"cmd": "b", "args": ["-x"], "envs": {}}}}, {"x": B}),
        ({"mcpServers": {"x": {"serverUrl": "https://h/m"}}}, {"x": {"url": "https://h/m"}}),
        ({"mcpServers": {"x": {"httpUrl": "https://h/m", "url": "https://h/sse"}}}, {"x": {"url": "https://h/m"}}),
        (
            {"mcpServers": {"x": {"url": "https://h/m", "type": "streamable_http"}}},
            {"x": {"url": "https://h/m", "transport": "http"}},
        ),
        (
            {"mcpServers": {"x": {"url": "https://h/m", "requestInit": {"headers": {"A": "b"}}}}},
            {"x": {"url": "https://h/m", "headers": {"A": "b"}, "requestInit": {"headers": {"A": "b"}}}},
        ),
        (
            {"mcpServers": {"x": {"url": "https://h/m", "bearer_token_env_var": "T"}}},
            {"x": {"url": "https://h/m", "headers": {"Authorization": "Bearer ${T}"}, "bearer_token_env_var": "T"}},
        ),
        (
            {"mcpServers": {"x": {**B, "env": None, "timeout": "90s", "cwd": None, "url": ""}}},
            {"x": {**B, "timeout": 90_000}},
        ),
        (
            {"servers": [{"name": "x", "source": {"type": "Process", "command": "b", "args": ["-x"]}}]},
            {"x": {"name": "x", **B}},
        ),
        ({"mcpServers": {"//": "a note", "x": B}}, {"x": B}),
        ({"customizations": {"vscode": {"mcp": {"servers": {"x": B}}}}}, {"x": B}),
        ({"folders": [], "settings": {"mcp": {"servers": {"x": B}}}}, {"x": B}),
    ],
)
def test_the_forms_of_other_clients_are_read_without_a_word(file: Path, document: Any, servers: dict[str, Any]):
    file.write_text(json.dumps(document))
    config = load_config(file)
    assert {one.name: one.entry for one in config.servers} == servers
    assert (config.odd, config.builtin) == ([], "reads")


GOOSE = """
extensions:
  x: {type: stdio, cmd: b, args: [-x], enabled: true}
  developer: {type: builtin, enabled: true}
"""
CONTINUE = """
mcpServers:
  - name: x
    command: b
    args: [-x]
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.toml", 'model = "m"\n[mcp_servers.x]\ncommand = "b"\nargs = ["-x"]\n'),
        ("config.yaml", GOOSE),
        ("config.yml", CONTINUE),
        ("mcp.json", "{\u00a0mcpServers: {x: {command: 'b', url: '', args: ['-x']}}} // don't"),
        ("mcp.json", '"mcpServers": {"x": {"command": "b", "args": ["-x"]}}'),
    ],
)
def test_files_of_other_forms_are_read(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    config = load_config(tmp_path / name)
    assert [(one.name, one.entry["command"], one.entry["args"]) for one in config.servers] == [("x", "b", ["-x"])]
    assert config.odd == []


def test_paths_of_windows_may_stand_as_they_are_typed(file: Path):
    file.write_text(r'{"mcpServers": {"x": {"command": "C:\Users\new\node.exe", "args": ["C:\\x", "a\nb"]}}}')
    (one,) = load_config(file).servers
    assert (one.entry["command"], one.entry["args"]) == (r"C:\Users\new\node.exe", ["C:\\x", "a\nb"])


@pytest.mark.parametrize(
    ("entry", "read", "says"),
    [
        ({"command": "a", "args": [1, True, 1.5, None]}, {"args": ["1", "true", "1.5"]}, "args.0: 1 is read as text"),
        ({"command": "a", "args": "-x y"}, {"args": ["-x", "y"]}, '"args" are one text: read as a shell does'),
        ({"command": "a", "env": {"P": 1, "Q": None}}, {"env": {"P": "1"}}, "env.P: 1 is read as text"),
        ({"command": "a", "timeout": 60}, {"timeout": 60_000}, "timeout 60 is read as 60 seconds"),
        (
            {"command": "a", "timeout": 1800, "autoApprove": []},
            {"timeout": 1_800_000},
            "timeout 1800 is read as 1800 sec",
        ),
        ({"command": "a", "timeout": 60.5}, {"timeout": 60_500}, "timeout 60.5 is read as 60.5 seconds"),
        ({"command": "a", "url": "http://b"}, {"command": "a"}, 'it has a "command" and a "url": its command is used'),
        ({"command": "python3 -m b"}, {"args": ["-m", "b"]}, "read as the program 'python3' and arguments"),
        ({"url": "localhost:80"}, {"url": "http://localhost:80"}, 'its "url" is read as http://localhost:80'),
    ],
)
def test_an_entry_that_can_be_read_otherwise_is(file: Path, entry: Any, read: dict[str, Any], says: str):
    file.write_text(json.dumps({"mcpServers": {"x": entry}}))
    config = load_config(file)
    assert read.items() <= config.servers[0].entry.items()
    assert says in config.odd[0]


@pytest.mark.parametrize(
    "entry",
    [
        {"disabled": True},
        {"disabled": "true"},
        {"enabled": False},
        {"isActive": False},
        {"active": 0},
        {"disabled": "perhaps"},
    ],
)
def test_what_is_switched_off_does_not_start(file: Path, entry: dict[str, Any]):
    file.write_text(json.dumps({"mcpServers": {"good": A, "x": {**A, **entry}}}))
    config = load_config(file)
    assert [one.name for one in config.servers] == ["good"]
    assert [(one.name, one.kind) for one in config.remarks] == [("x", "disabled")]
    assert config.odd == []


@pytest.mark.parametrize(
    ("entry", "offered"),
    [
        ({"includeTools": ["look(path)", "list"]}, ["look", "list"]),
        ({"excludeTools": ["delete"]}, ["look", "list"]),
        ({"enabled_tools": ["*"], "disabled_tools": ["del*"]}, ["look", "list"]),
        ({"tools": ["*"], "autoApprove": ["delete"]}, ["look", "list", "delete"]),
        ({"includeTools": []}, ["look", "list", "delete"]),
    ],
)
def test_tools_that_an_entry_switches_off_are_not_offered(file: Path, entry: dict[str, Any], offered: list[str]):
    file.write_text(json.dumps(server(**entry)))
    (notes,) = load_config(file).servers
    assert [tool for tool in ("look", "list", "delete") if notes.offers(tool)] == offered


def test_names_that_could_not_stand_before_a_tools_get_others(file: Path):
    written = ["a-b", "a.b", "@a/b", "b\u00fcro", "\u6587\u4ef6", "", "-a", "x" * 80, "ai"]
    file.write_text(json.dumps({"mcpServers": {name: {"command": name or "z"} for name in written}, "builtin": True}))
    config = load_config(file)
    names = [one.name for one in config.servers]
    assert names == [
        *("a-b", "a-b-2", "a-b-3", "buro", "server-39932f", "server-e3b0c4", "a", "x" * 48, "ai-2"),
    ]
    assert len(config.odd) == len(written) - 1
    assert config.odd[0].endswith("server 'a.b': it is called a-b-2 here")


def test_what_the_file_says_is_kept_unknown_fields_too(file: Path):
    entry = {"args": ["-x"], "disabled": False, "x-note": {"by": ["me"]}, "timeout": 1500, "trusted": True}
    file.write_text(json.dumps({**server(**entry), "builtin": True, "other": 1}), encoding="utf-8-sig")
    config = load_config(file)
    (notes,) = config.servers
    assert (notes.name, notes.entry, notes.source) == ("notes", {"command": "notes", **entry}, str(file))
    assert (notes.trusted, notes.timeout_s) == (True, 1.5)
    assert (config.builtin, config.source) == ("all", str(file))


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"mcpServers": []}', '{"servers": null}'])
def test_a_file_with_a_place_for_servers_and_none_in_it_leaves_the_built_in_ones(file: Path, text: str):
    file.write_text(text)
    assert load_config(file) == McpConfig(source=str(file))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_comments_and_trailing_commas_are_passed_over(file: Path, encoding: str):
    text = (
        '// mine\r\n{"mcpServers": { /* a "b" { */ "x": {"command": "a", "args": ["http://h//i", ",]", "\\"//",],},}}'
    )
    file.write_text(text, encoding=encoding)
    (x,) = load_config(file).servers
    assert x.entry["args"] == ["http://h//i", ",]", '"//']


def test_with_servers_the_built_in_ones_and_trust_must_be_asked_for(file: Path):
    file.write_text(json.dumps(server()))
    config = load_config(file)
    assert config.builtin == "reads"
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


def test_variables_in_the_forms_of_other_clients(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOTES_KEY", "key")
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    (file.parent / ".env").write_text("A=1\nexport B='2'\n")
    given = {
        "args": ["${env:NOTES_KEY}", "${NOT_SET_HERE:-x y}", "${workspaceFolder}/a", "${userHome}${/}b"],
        "env": {"K": "$NOTES_KEY", "L": "$NOT_SET_HERE", "B": "3"},
        "cwd": "~",
        "envFile": "${workspaceFolder}/.env",
    }
    file.write_text(json.dumps(server(**given)))
    (notes,) = load_config(file, file.parent).servers
    home = str(Path.home())
    filled = notes.filled()
    assert filled["args"] == ["key", "x y", f"{file.parent}/a", f"{home}/b"]
    assert filled["env"] == {"A": "1", "B": "3", "K": "key", "L": "$NOT_SET_HERE"}
    assert filled["cwd"] == home
    (file.parent / ".env").unlink()
    with pytest.raises(ServerError, match="the file of its variables"):
        notes.filled()


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
