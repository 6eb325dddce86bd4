"""`packetgate --url`: the command line reaches a running LangGraph server."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support.command_line import CommandLine, Outcome
from support.langgraph_server import LangGraphServer
from support.prompts import NO_TOOL
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Stall
from support.terminals import KEYS, chatting, leave

from packetgate.state.context import RoutingContext
from packetgate.state.packet import read_packet
from packetgate.state.transitions import ToolExecutionStatus

Run = Callable[..., Outcome]


@pytest.fixture
def run(cli: CommandLine, langgraph_server: LangGraphServer) -> Run:
    """Run `packetgate` with `--url` of the server."""

    def run(*args: str, **variables: str) -> Outcome:
        url = {"PACKETGATE_URL": langgraph_server.url, "NO_PROXY": "127.0.0.1"}
        return langgraph_server.within(lambda: cli.run(*args, **{**url, **variables}))

    return run


def test_the_servers_own_files_are_read(run: Run, langgraph_server: LangGraphServer) -> None:
    (langgraph_server.root / "url.txt").write_text("the owl sleeps by day\n")
    done = run("ask", "Read url.txt", PACKETGATE_URL="", NO_PROXY="127.0.0.1")
    assert "the owl" not in done.out
    done = run(
        "ask", "--url", langgraph_server.url, "Read url.txt", PACKETGATE_URL="", PACKETGATE_ASSISTANT="packetgate"
    )
    assert done.status == 0, done.err
    assert "the owl sleeps by day" in done.out
    assert "execute_tool" in done.out


def test_a_write_is_approved_on_the_server(run: Run, langgraph_server: LangGraphServer) -> None:
    target = langgraph_server.root / "url-written.txt"
    asked = run("ask", "--session", "url-write", "--allow-writes", 'Write "hello" to url-written.txt')
    assert asked.status == 3, asked.err
    assert "+hello" in asked.out
    assert re.search(r"packetgate answer yes --question [0-9a-f]{8} --session url-write", asked.out)
    assert not target.exists()
    done = run("answer", "yes", "--session", "url-write", "--json")
    assert done.status == 0, done.err
    assert read_packet(done.out).routing.execution_status is ToolExecutionStatus.EXECUTED
    assert target.read_text() == "hello"


def test_only_explicit_settings_are_sent_to_the_server(
    run: Run, cli: CommandLine, langgraph_server: LangGraphServer
) -> None:
    (langgraph_server.root / "settings.txt").write_text("a quiet place\n")
    (cli.folder / "packetgate.toml").write_text("[settings]\npalette_size = 9\n")
    ask = ("ask", "--json", "--set", "confidence_threshold=0.65", "Read settings.txt")
    done = run(*ask, PACKETGATE_MAX_PARALLEL_CALLS="2")
    assert done.status == 0, done.err
    settings = read_packet(done.out).governance.settings
    assert settings == RoutingContext(palette_size=9, confidence_threshold=0.65, max_parallel_calls=2)
    (cli.folder / "packetgate.toml").write_text("[setings]\nenabled = false\n")
    assert run(*ask).status == 2


def test_chat_runs_on_the_server(run: Run, cli: CommandLine, langgraph_server: LangGraphServer) -> None:
    (langgraph_server.root / "chat.txt").write_text("four owls and a breeze\n")
    reached = {"PACKETGATE_URL": langgraph_server.url, "NO_PROXY": "127.0.0.1"}

    def talk() -> int | None:
        with chatting(cli, **reached) as child:
            child.sendline("Read chat.txt")
            child.expect("four owls and a breeze")
            child.expect("you> ")
            child.sendline("/why")
            child.expect("execute_tool")
            child.expect("you> ")
            return leave(child)

    assert langgraph_server.within(talk) == 0


def test_ctrl_c_stops_a_turn_on_the_server_and_keeps_the_session(
    cli: CommandLine, langgraph_server_with_model: tuple[LangGraphServer, ScriptedOpenAI]
) -> None:
    server, model = langgraph_server_with_model
    model.script(NO_TOOL, Stall("The keeper opens it, "), NO_TOOL, "At seven.")
    with chatting(cli, "--url", server.url, NO_PROXY="127.0.0.1") as child:
        child.sendline("Who opens the gate?")
        child.expect("The keeper opens")
        child.send(KEYS["Ctrl-C"])
        child.expect("stopped: /continue")
        child.expect("you> ")
        child.sendline("When?")
        child.expect(r"At seven\.")
        child.expect("you> ")
        assert leave(child) == 0
    model.script()


@dataclass(frozen=True)
class Case:
    id: str
    args: tuple[str, ...]
    says: tuple[str, ...]


NOWHERE = ("--url", "http://127.0.0.1:9")
REFUSED = [
    Case("a model", (*NOWHERE, "--lite", "reflex", "Hello"), ("--lite", "127.0.0.1:9", "its own models")),
    Case(
        "models and servers",
        (*NOWHERE, "--prime", "reflex", "--mcp-config", "mcp.json", "Hello"),
        ("--prime, --mcp-config",),
    ),
    Case("nobody there", (*NOWHERE, "Hello"), ("http://127.0.0.1:9", "make studio")),
    Case("no address", ("--url", "ftp://x", "Hello"), ("ftp://x", "http")),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_errors_are_one_line(case: Case, cli: CommandLine) -> None:
    done = cli.run("ask", *case.args, NO_PROXY="127.0.0.1")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    for word in case.says:
        assert word in done.err
