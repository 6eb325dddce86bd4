"""Invalid input causes a one-line error, exit status 2 and no changes."""

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command_line import CommandLine


@dataclass(frozen=True)
class Case:
    id: str
    args: tuple[str, ...]
    names: tuple[str, ...]
    """The text that the line must contain, with its code."""
    given: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


def toml(text: str) -> dict[str, bytes]:
    return {"packetgate.toml": text.encode()}


REQUEST, CONFIGURATION, MODEL = "[request-unusable]", "[configuration]", "[model-unavailable]"

CASES = [
    Case("blank", ("ask", " \n "), (REQUEST,)),
    Case("1 MB", ("ask",), ("1,048,576", "200,000", REQUEST), given=b"x" * 1_048_576),
    Case("binary", ("ask",), ("U+0000", REQUEST), given=b"Read\x00\x01\x02"),
    Case("wrong encoding", ("ask",), ("standard input", "0xe9"), given="Lies café.txt".encode("latin-1")),
    Case("broken mcp.json", ("ask", "Read a.txt"), ("mcp.json", "line 1"), files={"mcp.json": b'{"mcpServers": '}),
    Case("missing mcp.json", ("tools", "--mcp-config", "no.json"), ("no.json", CONFIGURATION)),
    Case("no TOML", ("ask", "Hello"), ("packetgate.toml", CONFIGURATION), files=toml("= 1")),
    Case("unknown preference", ("tools",), ("packetgate.toml", "colour", CONFIGURATION), files=toml("colour = 1")),
    Case("tool without quotes", ("answer", "yes", "-s", "s"), ("tools.ai.read",), files=toml("[tools.ai.read]\nx = 1")),
    Case("wrong type", ("chat",), ('tools."ai.read".external',), files=toml("[tools.'ai.read']\nexternal = 'yes'")),
    Case("no such toml", ("ask", "Hello"), ("no.toml",), variables={"PACKETGATE_CONFIG": "no.toml"}),
    *(
        Case(f"{variable}={path}", ("tools",), (path, "not a plain file", CONFIGURATION), variables={variable: path})
        for variable in ("PACKETGATE_CONFIG", "PACKETGATE_MCP_CONFIG")
        for path in ("/dev/zero", "pipe")
    ),
    Case("folder as mcp.json", ("tools", "--mcp-config", "/etc"), ("/etc", "directory", CONFIGURATION)),
    Case("empty context", ("ask", "--context", " ", "Hello"), ("--context",)),
    Case("context in bytes", ("ask", "--context", "\udcff", "Hello"), ("--context", "UTF-8")),
    Case("missing model file", ("ask", "--lite", "llamacpp:no.gguf", "Hello"), ("no.gguf", MODEL)),
    Case("no key", ("ask", "--lite", "openai:gpt", "Hello"), ("OPENAI_API_KEY",)),
    Case("edit is no JSON", ("answer", "--session", "s", "--edit", "{"), ("an edit", REQUEST)),
    Case("edit is words", ("answer", "--session", "s", "--edit", "yes"), ("--edit", REQUEST)),
    Case("bad setting", ("doctor",), ("PACKETGATE_PATIENCE_S",), variables={"PACKETGATE_PATIENCE_S": "soon"}),
    Case("unbounded rule", ("ask", "Hello"), ("policy.rules.0",), files=toml("[[policy.rules]]\neffect = 'allow'")),
    Case("unknown option of a model", ("ask", "Hello"), ("models.lite.x",), files=toml("[models.lite]\nx = 1")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bad_input_is_one_line_and_exit_status_2(case: Case, cli: CommandLine) -> None:
    for name, content in case.files.items():
        (cli.folder / name).write_bytes(content)
    os.mkfifo(cli.folder / "pipe")
    done = cli.run(*case.args, given=case.given, **case.variables)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert done.err.startswith("packetgate: ")
    assert [name for name in case.names if name not in done.err] == []


def test_an_unreachable_endpoint_is_named(cli: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        done = cli.run("ask", "--lite", "openai:small", "Hello", OPENAI_BASE_URL=url)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert url in done.err


def test_an_invalid_request_leaves_the_session_unchanged(cli: CommandLine) -> None:
    assert cli.run("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt').status == 3
    assert cli.run("ask", "--session", "s", "").status == 2
    assert cli.run("ask", "--session", "s", given=b"\xff\xfe").status == 2
    assert cli.run("answer", "yes", "--session", "s").status == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"


def test_tracebacks_are_printed_only_for_debugging(cli: CommandLine) -> None:
    assert "Traceback" not in cli.run("tools", "--mcp-config", "no.json").err
    assert "Traceback" in cli.run("tools", "--mcp-config", "no.json", PACKETGATE_DEBUG="1").err


def test_an_unusable_home_is_named(cli: CommandLine, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    done = CommandLine(cli.folder, blocker / "home").run("ask", "Hello")
    assert done.status == 2
    assert str(blocker) in done.err
    assert "PACKETGATE_HOME" in done.err
