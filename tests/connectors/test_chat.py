"""`packetgate chat` at a terminal: input, slash commands, streamed answers, Ctrl-C."""

import json
import sys
from pathlib import Path

import pytest
from support import plain_server
from support.command_line import CommandLine
from support.mcp_servers import until
from support.packets import tool
from support.prompts import NO_TOOL
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import CutOff, Stall
from support.terminals import KEYS, PASTE, Terminal, chatting, ended, leave, printed

from packetgate.connectors.terminal.completion import MAX_PATHS, completions
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.typed_calls import parse_call

WORKS = "[\u2800-\u28ff]"
"""Matches a frame of the spinner of a running turn."""


def test_a_pasted_message_may_have_several_lines(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.send(f"{PASTE[0]}Hello\nthere{PASTE[1]}")
        child.send("\r")
        child.expect(WORKS)
        child.expect("you> ")
        packet = json.loads(cli.run("trace", "--session", "s", "--json").out)
        assert packet["content"]["original_prompt"] == "Hello\nthere"
        assert leave(child) == 0


def test_the_history_is_private(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline("Hello from before")
        child.expect(WORKS)
        child.expect("you> ")
        assert leave(child) == 0
    assert (cli.home / "history").stat().st_mode & 0o077 == 0
    with chatting(cli) as child:
        child.send(KEYS["Up"])
        child.expect("Hello from before")
        child.send(KEYS["Ctrl-C"])
        child.send("/qu")
        child.expect("leave the chat and keep")
        child.send(KEYS["Tab"])
        child.expect("/quit")
        child.send("\r")
        assert ended(child) == 0


def test_ctrl_c_clears_the_input_and_hints_how_to_leave(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.send("Write nonsense")
        child.expect("nonsense")
        child.send(KEYS["Ctrl-C"])
        child.expect("/quit or Ctrl-D leaves")
        child.expect("you> ")
        child.sendline("/why")
        child.expect("has no request yet")
        child.expect("you> ")  # the terminal itself handles a Ctrl-D between two prompts
        assert leave(child) == 0


SLASH: list[tuple[str, tuple[str, ...]]] = [
    ("/why", ("session 's' has no request yet",)),
    ("/continue", ("nothing to continue",)),
    ("Read plan.txt", ("The gate opens", "ai.read plan.txt · chosen by the rules")),
    ("/trace on", ()),
    ("Read plan.txt", ("The gate opens", "execute_tool")),
    ("/trace", ("'/trace' is not a command",)),
    ("/why", ("execute_tool", "ai.read: executed", "packet ", "session s")),
    ("/writes on", ("run after your approval",)),
    ("/writes", ("'/writes' is not a command",)),
    ("/commands off", ("only describe what they would do",)),
    ("/attach", ("'/attach' is not a command",)),
    ("/wyh", ("Unknown command `/wyh`", "`/why`")),
    ("/umbrellas", ("Unknown command `/umbrellas`", "`/help`")),
    ("/read plan.txt", ("The gate opens",)),
    ("/raed plan.txt", ("Unknown command `/raed`", "`/read`")),
    ("/why not", ("'/why not' is not a command",)),
    ("/help", ("on|off", "/reset", "/write PATH CONTENT")),
    ("/etc/hosts what is that?", ("detect_intent",)),
    ("/reset\rn", ("nothing was deleted",)),
    ("/reset\ry", ("session s was deleted",)),
    ("/why", ("has no request yet",)),
]


@pytest.mark.parametrize("words", ["/quit", "/exit", "exit", "Quit"])
def test_a_word_leaves_the_chat_and_the_question(words: str, cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline(words)
        assert ended(child) == 0
    with chatting(cli) as child:
        child.sendline("Read the file")
        child.expect_exact("To use ai.read")
        child.sendline(words)
        assert ended(child) == 0


def test_slash_commands_print_their_results(cli: CommandLine) -> None:
    with chatting(cli) as child:
        for text, shown in SLASH:
            child.sendline(text)
            for words in shown:
                child.expect_exact(words)
            child.expect("you> ")
        assert leave(child) == 0


def test_tools_are_completed(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline("/list")  # after this command, the tools are known
        child.expect_exact("plan.txt")
        child.expect("you> ")
        child.send("/sea")
        child.expect("Search inside files")
        child.send(KEYS["Tab"])
        child.send(" gate\r")
        child.expect_exact("plan.txt, line 1")
        child.expect("you> ")
        assert leave(child) == 0


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("", []),
        ("why", []),
        ("/re", ["/read", "/read_file", "/reset"]),
        ("/read pl", ["plan.txt", "plans/"]),
        ("/read plans/", ["plans/a.txt", '"plans/b c.txt"']),
        ('/read path="plans/b', ['path="plans/b c.txt"']),
        ("/read plan.txt pa", ["path="]),
        ("/find sort=n", ["sort=name", "sort=newest"]),
        ("/find sort=b", ['sort="by size\\npath=x"']),
        ("/find sort=name h", ["hidden="]),
        ("/find hidden=", ["hidden=true", "hidden=false"]),
        ("/nothing pl", []),
        ("/read many/z", ["many/zoo.txt"]),
    ],
)
def test_names_and_values_are_completed(tmp_path: Path, text: str, completed: list[str]) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "many").mkdir()
    many = [f"many/{number}.txt" for number in range(MAX_PATHS)]
    for name in ("plan.txt", ".hidden", "plans/a.txt", "plans/b c.txt", "many/zoo.txt", *many):
        (tmp_path / name).touch()
    find = tool("disk.find", sort={"enum": ["name", "newest", "by size\npath=x"]}, hidden="boolean", path="string")
    catalogue = Catalogue(
        [tool("files.read_file", "path", path="string"), tool("ai.read", "path", path="string"), find]
    )
    found = completions(text, {"/reset": "", "/why": ""}, catalogue, tmp_path)
    assert [new for new, old, _ in found if text.endswith(old)] == completed


NAMES = [
    'a" content="x',
    "a\ncontent=x",
    "a content=y",
    "a'b c",
    "a\\nb",
    "a=b",
    "path=a",
    "a\tb",
    "[a",
    "in",
    "7",
    "a b",
]


@pytest.mark.parametrize("line", ["/read ", '/read "', "/read path=", '/read path="'])
@pytest.mark.parametrize("name", NAMES)
def test_a_completed_value_is_one_argument(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / name).touch()
    catalogue, typed = Catalogue([tool("files.read_file", "path", path="string", content="string")]), line + name[0]
    found = [typed.removesuffix(old) + new for new, old, _ in completions(typed, {}, catalogue, tmp_path)]
    calls = [parse_call(one, catalogue) for one in found if not one.endswith("=")]
    assert [call and call.params for call in calls] == [{"path": name}]


def test_switches_apply_from_the_next_turn(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline("/writes on")
        child.expect("you> ")
        child.sendline('Write "hello" to notes.txt')
        child.expect(r"\[y\]es")
        child.sendline("y")
        child.expect("Created notes.txt")
        child.expect("you> ")
        child.sendline("/writes off")
        child.expect("you> ")
        child.sendline('Write "hello" to more.txt')
        child.expect_exact("switched off; `/writes on` switches them on.")
        child.expect("Would create more.txt")
    assert sorted(path.name for path in cli.folder.iterdir()) == ["notes.txt", "plan.txt", "todo.txt"]


def test_an_unanswered_question_is_asked_again(cli: CommandLine) -> None:
    with chatting(cli, "--allow-writes") as child:
        child.sendline('Write "hello" to notes.txt')
        child.expect(r"\[y\]es")
        child.send(KEYS["Ctrl-D"])
        child.expect("left unanswered")
        child.expect("you> ")
        child.sendline("/continue")
        child.expect(r"\+hello")
        child.expect(r"\[y\]es")
        child.sendline("y")
        child.expect("Created notes.txt")
        child.expect("you> ")
        assert leave(child) == 0


HARBOUR = f"""
import pathlib, sys, time
sys.path[0] = {str(Path(plain_server.__file__).parent)!r}
from plain_server import PlainServer
name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
(folder / f"{{name}}.started").touch()
while name == "slow" and not (folder / "may_start").exists():
    time.sleep(0.01)
server = PlainServer(name)
@server.reading
async def harbour_depth(harbour):
    "Get the depth of a harbour."
    return f"The {{name}} depth of {{harbour}} is nine metres."
server.run()
"""


@pytest.mark.slow
async def test_a_slow_server_delays_no_answer(cli: CommandLine, tmp_path: Path) -> None:
    (program := tmp_path / "harbour.py").write_text(HARBOUR)
    server = {"command": sys.executable, "trusted": True}
    servers = {name: {**server, "args": [str(program), name, str(tmp_path)]} for name in ("ready", "slow")}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with chatting(cli) as child:
        await until(lambda: {one.stem for one in tmp_path.glob("*.started")} == {"ready", "slow"}, 60)
        child.sendline("Get the depth of the harbour Brest")
        child.expect("starting .*slow")
        child.expect("The ready depth of .*Brest is nine metres")
        (tmp_path / "may_start").touch()
        child.expect("you> ")
        assert leave(child) == 0


def test_rest_shows_the_complete_result(cli: CommandLine) -> None:
    lines = [f"line {number} of the log" for number in range(1, 1_001)]
    (cli.folder / "log.txt").write_text("\n".join(lines))
    with chatting(cli) as child:
        child.sendline("Read log.txt")
        child.expect("/rest")
        child.expect("you> ")
        child.sendline("/rest")
        child.expect("line 1000 of the log")
        child.expect("you> ")
        assert leave(child) == 0


MODELS = ("--lite", "openai:scripted")


@pytest.fixture
def endpoint(scripted_openai: ScriptedOpenAI) -> dict[str, str]:
    streaming = {"PACKETGATE_PRIME_ENABLE_THINKING": "false"}  # otherwise the first words are not streamed
    return {"OPENAI_BASE_URL": scripted_openai.base_url, "NO_PROXY": "127.0.0.1", **streaming}


def ask(child: Terminal) -> None:
    child.sendline("Who opens the gate?")
    child.expect(WORKS)


def test_a_streamed_answer_is_printed_once(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    scripted_openai.script(NO_TOOL, "The keeper opens it.\x1b]0;owned\x07 <tool_call>{}</tool_call> At seven.")
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("you> ")
        assert "The keeper opens it.\ufffd]0;owned\ufffd" in printed(child)
        assert printed(child).count("The keeper") == printed(child).count("At seven") == 1
        assert "tool_call" not in printed(child)
        assert "\x1b]0;" not in (child.before or "")
        assert leave(child) == 0


def test_ctrl_c_stops_a_streamed_answer_and_keeps_the_session(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    scripted_openai.script(NO_TOOL, Stall("The keeper opens it, "), NO_TOOL, "At seven.", NO_TOOL, "As I said.")
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("The keeper opens")
        child.send(KEYS["Ctrl-C"])
        child.expect("stopped: /continue")
        child.expect("you> ")
        for question, answer in (("When?", r"At seven\."), ("When again?", r"As I said\.")):
            child.sendline(question)
            child.expect(answer)
            child.expect("you> ")
        assert leave(child) == 0
    earlier = [message["content"] for message in scripted_openai.requests[-1]["messages"]]
    assert any("Who opens the gate?" in text for text in earlier)
    assert any("At seven." in text for text in earlier)
    assert not any("The keeper opens" in text for text in earlier)


@pytest.mark.slow
@pytest.mark.parametrize("in_a_turn", [True, False])
def test_sigterm_ends_the_chat(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str], in_a_turn: bool
) -> None:
    scripted_openai.script(NO_TOOL, Stall("The keeper opens it, "))
    with chatting(cli, *MODELS, **endpoint) as child:
        if in_a_turn:
            ask(child)
            child.expect("The keeper opens")
        child.terminate()
        assert child.wait() == 143


def test_an_aborted_answer_is_withdrawn(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    scripted_openai.script(NO_TOOL, CutOff("The keeper opens it, "))
    with chatting(cli, *MODELS, **endpoint, PACKETGATE_FALLBACK="reflex") as child:
        ask(child)
        child.expect("The keeper opens")
        child.expect("is withdrawn")
        child.expect("Decided without a language model: respond")
        child.expect("you> ")
        assert leave(child) == 0
