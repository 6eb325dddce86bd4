"""Bad input: one clear line that names the thing and the way out, exit status 2, and nothing lost."""

import json
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command_line import CommandLine


@dataclass(frozen=True)
class Case:
    id: str
    args: tuple[str, ...]
    says: tuple[str, ...]
    """What the line must name: the thing, and the way out."""
    given: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


CONFIG = ("PACKETGATE_CONFIG",)
OWN = {"PACKETGATE_CONFIG": "own.toml"}
NEWER = json.dumps({"header": {"version": 99}}).encode()

CASES = [
    Case("empty", ("ask", ""), ("empty", "say what you want")),
    Case("blank", ("ask", " \n "), ("empty", "say what you want")),
    Case("1 MB", ("ask",), ("1,048,576 characters", "200,000", "file"), given=b"x" * 1_048_576),
    Case("binary", ("ask",), ("not text", "U+0000"), given=b"Read\x00\x01\x02"),
    Case("wrong encoding", ("ask",), ("standard input", "0xe9", "UTF-8"), given="Lies café.txt".encode("latin-1")),
    Case("newer packet", ("trace", "p.json"), ("version 99", "upgrade"), files={"p.json": NEWER}),
    Case("no packet", ("trace", "p.json"), ("not a packet",), files={"p.json": b"[1, 2]"}),
    Case("missing packet", ("trace", "p.json"), ("p.json", "neither a file")),
    Case("broken mcp.json", ("ask", "Read a.txt"), ("mcp.json", "line 1"), files={"mcp.json": b'{"mcpServers": '}),
    Case("mcp.json is a list", ("tools",), ("mcp.json", "object"), files={"mcp.json": b"[]"}),
    Case(
        "server without command",
        ("ask", "Read a.txt"),
        ("mcp.json", "'files'", '"command"', '"url"'),
        files={"mcp.json": b'{"mcpServers": {"files": {"args": []}}}'},
    ),
    Case("missing mcp.json", ("tools", "--mcp-config", "no.json"), ("no.json", "--mcp-config")),
    Case(
        "packetgate.toml is no TOML", ("ask", "Hello"), ("packetgate.toml", "TOML"), files={"packetgate.toml": b"= 1"}
    ),
    Case(
        "unknown preference",
        ("tools",),
        ("packetgate.toml", "colour", "permanent", "pools", '[tools."server.tool"]'),
        files={"packetgate.toml": b"colour = 1"},
    ),
    Case(
        "tool without quotes",
        ("answer", "yes", "--session", "s"),
        ("tools.ai.read", '[tools."server.tool"]'),
        files={"packetgate.toml": b"[tools.ai.read]\nbrief = 'Read.'"},
    ),
    Case(
        "wrong type of preference",
        ("chat",),
        ('packetgate.toml: tools."ai.read".external', "boolean"),
        files={"packetgate.toml": b"[tools.'ai.read']\nexternal = 'yes'"},
    ),
    Case("empty pattern", ("tools",), ("permanent.0",), files={"packetgate.toml": b"permanent = ['']"}),
    Case("missing packetgate.toml", ("ask", "Hello"), ("no.toml", *CONFIG), variables={CONFIG[0]: "no.toml"}),
    Case("packetgate.toml is a folder", ("tools",), CONFIG, variables={CONFIG[0]: "."}),
    Case("binary packetgate.toml", ("tools",), ("own.toml", "UTF-8"), files={"own.toml": b"\xff"}, variables=OWN),
    Case("no kind of conversation", ("ask", "--context", " ", "Hello"), ("--context", "empty")),
    Case("bytes for a kind of conversation", ("ask", "--context", "\udcff", "Hello"), ("--context", "UTF-8")),
    Case("unknown group of tools", ("tools", "flies"), ("category", "'flies'", "files", "packetgate tools")),
    Case("missing model file", ("ask", "--lite", "llamacpp:no.gguf", "Hello"), ("no.gguf",)),
    Case(
        "not a model file",
        ("ask", "--lite", "llamacpp:bad.gguf", "Hello"),
        ("bad.gguf", "GGUF"),
        files={"bad.gguf": b"hello"},
    ),
    Case("unknown model", ("ask", "--prime", "magic:x", "Hello"), ("magic:x", "openai:NAME")),
    Case("no key", ("ask", "--lite", "openai:gpt", "Hello"), ("OPENAI_API_KEY",)),
    Case("unknown tool", ("tools", "ai.raed"), ("ai.raed", "ai.read")),
    Case("nothing pending", ("answer", "yes", "--session", "new"), ("'new'", "packetgate ask")),
    Case("nothing to continue", ("answer", "--session", "new"), ("'new'", "packetgate ask")),
    Case("no session", ("answer", "yes"), ("--session",)),
    Case("edit is no JSON", ("answer", "--session", "s", "--edit", "{"), ("--edit", "JSON")),
    Case("bad setting", ("doctor",), ("PACKETGATE_PATIENCE_S",), variables={"PACKETGATE_PATIENCE_S": "soon"}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bad_input_gets_one_line_and_exit_status_2(case: Case, cli: CommandLine) -> None:
    for name, content in case.files.items():
        (cli.folder / name).write_bytes(content)
    done = cli.run(*case.args, given=case.given, **case.variables)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("packetgate: ")
    assert done.err.count("\n") == 1
    for word in case.says:
        assert word in done.err


def test_an_unreachable_endpoint_is_named(cli: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nothing else answers there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        done = cli.run("ask", "--lite", "openai:small", "Hello", OPENAI_BASE_URL=url)
    assert done.status == 2
    assert url in done.err
    assert done.err.count("\n") == 1


def test_a_refused_request_leaves_the_session_as_it_was(cli: CommandLine) -> None:
    asked = ("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt')
    assert cli.run(*asked).status == 3
    assert cli.run("ask", "--session", "s", "").status == 2
    assert cli.run("ask", "--session", "s", given=b"\xff\xfe").status == 2
    assert cli.run("answer", "yes", "--session", "s").status == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"


def test_a_traceback_is_shown_only_when_asked_for(cli: CommandLine) -> None:
    assert "Traceback" not in cli.run("tools", "--mcp-config", "no.json").err
    assert "Traceback" in cli.run("tools", "--mcp-config", "no.json", PACKETGATE_DEBUG="1").err


def test_an_unusable_home_is_named(cli: CommandLine, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    done = CommandLine(cli.folder, blocker / "home").run("ask", "Hello")
    assert done.status == 2
    assert str(blocker) in done.err
    assert "PACKETGATE_HOME" in done.err
