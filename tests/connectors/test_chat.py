"""`packetgate chat` at a real terminal: how messages are written, and what slash commands do."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import plain_server
from support.command_line import CommandLine
from support.mcp_servers import until
from support.scripted_openai import ScriptedOpenAI
from support.terminals import KEYS, PASTE, chatting, ended, leave

from packetgate.state.packet import read_packet


@dataclass(frozen=True)
class Written:
    id: str
    keys: tuple[str, ...]
    means: str = "Hello\nthere"


WRITTEN = [
    Written("Alt+Enter", ("Hello", KEYS["Alt+Enter"], "there", "\r")),
    Written("a last backslash", ("Hello\\", "\r", "there", "\r")),
    Written("pasted", (f"{PASTE[0]}Hello\nthere{PASTE[1]}", "\r")),
    Written("a backslash within", ("Hello \\ there", "\r"), means="Hello \\ there"),
]


def test_a_message_may_have_lines(cli: CommandLine) -> None:
    with chatting(cli) as child:
        for number, one in enumerate(WRITTEN):
            for keys in one.keys:
                child.send(keys)
            child.expect("open_packet")
            child.expect("you> ")
            child.sendline(f"/save {number}.json")
            child.expect("saved")
            child.expect("you> ")
            packet = read_packet((cli.folder / f"{number}.json").read_bytes())
            assert packet.content.original_prompt == one.means, one.id
        assert leave(child) == 0


def test_the_history_comes_back_to_its_owner_alone(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline("Hello from before")
        child.expect("open_packet")
        child.expect("you> ")
        assert leave(child) == 0
    assert (cli.home / "history").stat().st_mode & 0o077 == 0
    with chatting(cli) as child:
        child.send(KEYS["Up"])
        child.expect("Hello from before")
        child.send(KEYS["Ctrl-C"])
        child.send("/qu")
        child.expect("leave; the session is kept")
        child.send(KEYS["Tab"])
        child.expect("/quit")
        child.send("\r")
        assert ended(child) == 0


def test_ctrl_c_clears_what_was_written_and_says_how_to_leave(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.send("Write nonsense")
        child.expect("nonsense")
        child.send(KEYS["Ctrl-C"])
        child.send(KEYS["Ctrl-C"])
        child.expect("/quit or Ctrl-D leaves")
        child.expect("you> ")
        child.sendline("/why")
        child.expect("nothing has been asked")
        child.expect("you> ")  # a Ctrl-D between two prompts is the terminal's, not ours
        assert leave(child) == 0


@dataclass(frozen=True)
class Slash:
    words: str
    says: tuple[str, ...]
    """In this order."""


BEFORE_ANY_TURN = [
    Slash("/why", ("nothing has been asked in session 's' yet",)),
    Slash("/tools", ("nothing has been asked",)),
    Slash("/save x.json", ("nothing has been asked",)),
    Slash("/continue", ("nothing waits here",)),
]
AFTER_A_READ = [
    Slash("/why", ("execute_tool", "ai.read: executed", "packet ", "session s")),
    Slash("/tools", ("ai.read", "fits the request", "of 14 tools", "Read plan.txt")),
    Slash("/tools WRITE", ("ai.write", "fits the request")),
    Slash("/tools read fits nonsense", ("nothing else",)),
    Slash("/model", ("lite and prime: reflex",)),
    Slash("/writes on", ("run, after your approval",)),
    Slash("/writes", ("/writes takes on|off, not 'nothing'",)),
    Slash("/commands off", ("only tell what they would do",)),
    Slash("/save plan.txt", ("plan.txt: is there already",)),
    Slash("/save no/such/folder.json", ("cannot be written: No such file",)),
    Slash("/save", ("/save takes FILE",)),
    Slash("/wyh", ("there is no /wyh: did you mean /why?",)),
    Slash("/journey", ("shown after each answer",)),
    Slash("Hello", ("Hello!", "detect_intent", "packet ")),
    Slash("/why not", ("/why takes nothing more",)),
    Slash("/help", ("/reset", "Alt+Enter")),
    Slash("/session", ("packetgate chat --session s",)),
    Slash("/session other", ("session other",)),
    Slash("/why", ("nothing has been asked in session 'other'",)),
    Slash("/session s", ("session s",)),
    Slash("/why", ("detect_intent",)),
]


def test_slash_commands(cli: CommandLine) -> None:
    with chatting(cli) as child:
        for one in [*BEFORE_ANY_TURN, Slash("Read plan.txt", ("The gate opens",)), *AFTER_A_READ]:
            child.sendline(one.words)
            for words in one.says:
                child.expect_exact(words)
            child.expect("you> ")
        assert leave(child) == 0


def test_a_path_is_no_slash_command(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline("/etc/hosts what is that?")
        child.expect(["May this run", "ai\\.read", "No tool here is made for that"])


def test_reset_forgets_after_a_question(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.sendline("Hello")
        child.expect("you> ")
        for answer, says, left in (("n", "nothing was forgotten", "respond"), ("y", "begins anew", "nothing has been")):
            child.sendline("/reset")
            child.expect(r"Forget all of session s\?")
            child.sendline(answer)
            child.expect(says)
            child.expect("you> ")
            child.sendline("/why")
            child.expect(left)
            child.expect("you> ")


def test_switches_hold_from_the_next_turn_on(cli: CommandLine) -> None:
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


def test_the_model_can_be_switched_and_one_that_is_not_there_changes_nothing(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, tiny_gguf: Path
) -> None:
    scripted_openai.script("I am the small one.")
    with chatting(cli, OLLAMA_HOST=scripted_openai.base_url.removesuffix("/v1")) as child:
        for words, says in (
            ("/model ollama:scripted", "lite and prime: scripted at http://"),
            ("Hello", "I am the small one."),
            ("/model gpt-x", "'gpt-x' is not a model name: write `openai:gpt-x`"),
            ("/model ollama:other", "no model 'other': write ollama:scripted"),
            ("/model lite", "/model lite takes a model's name"),
            ("/model", "lite and prime: scripted at http://"),
            (f"/model prime llamacpp:{tiny_gguf}?n_ctx=256", "prime: tiny.gguf in llama.cpp"),
            ("/model", "lite: scripted at http://"),
            ("/model reflex", "lite and prime: reflex (no model)"),
            ("Hello", "it takes a language model that answers"),
        ):
            child.sendline(words)
            child.expect_exact(says)
            child.expect("you> ")
        assert leave(child) == 0
    assert len(scripted_openai.requests) == 1


@pytest.mark.parametrize("key", ["Ctrl-C", "Ctrl-D"])
def test_a_question_left_unanswered_is_put_again(cli: CommandLine, key: str) -> None:
    with chatting(cli, "--allow-writes") as child:
        child.sendline('Write "hello" to notes.txt')
        child.expect(r"\[y\]es")
        child.send(KEYS[key])
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


async def test_servers_start_while_the_user_types_and_a_slow_one_delays_no_answer(
    cli: CommandLine, tmp_path: Path
) -> None:
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


def test_rest_shows_all_that_a_tool_returned(cli: CommandLine) -> None:
    lines = [f"line {number} of the log" for number in range(1, 1_001)]
    (cli.folder / "log.txt").write_text("\n".join(lines))
    with chatting(cli, PAGER="cat") as child:
        child.sendline("Read log.txt")
        child.expect("/rest")
        child.expect("you> ")
        child.sendline("/rest")
        child.expect("line 1000 of the log")
        child.expect("you> ")
        assert leave(child) == 0
