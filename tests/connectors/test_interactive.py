"""The command line at a real terminal: questions, replies, chat."""

import json

import pexpect
import pytest
from support.command_line import CommandLine
from support.plain_server import configure, entry
from support.prompts import NO_TOOL
from support.scripted_openai import ScriptedOpenAI, verdict
from support.scripted_replies import Stall
from support.terminals import KEYS, chatting, ended, printed, terminal


def test_a_call_is_edited_in_place(cli: CommandLine) -> None:
    with terminal(cli, "ask", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect(r"\[y\]es")
        child.sendline("edit {")
        child.expect("an edit is a JSON object")
        child.sendline('edit {"path": "other.txt"}')
        child.expect("Created other.txt")
        child.expect(pexpect.EOF)
    assert (cli.folder / "other.txt").read_text() == "hello"


def test_the_arguments_of_a_call_are_edited_one_per_line(cli: CommandLine) -> None:
    with terminal(cli, "ask", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect(r"\[e\]dit")
        for answers in (("", ""), ("other.txt", "")):
            child.sendline("e")
            child.expect(r"path \[notes.txt\]: ")
            child.sendline(answers[0])
            child.expect(r"content \[hello\]: ")
            child.sendline(answers[1])
            child.expect("Created other.txt" if answers[0] else "nothing was changed")
        child.expect(pexpect.EOF)
    assert (cli.folder / "other.txt").read_text() == "hello"


def test_a_write_shows_its_difference(cli: CommandLine) -> None:
    (cli.folder / "plan.txt").write_text("one\ntwo\x1b[2J\n")
    with terminal(cli, "ask", "--allow-writes", 'Overwrite plan.txt with "three"') as child:
        child.expect(r"\[y\]es")
        shown = [line.lstrip(" │┆") for line in printed(child).splitlines()]
        at = shown.index("--- plan.txt (before)")
        assert shown[at : at + 6] == [
            "--- plan.txt (before)",
            "+++ plan.txt (after)",
            "@@ -1,2 +1 @@",
            "-one",
            "-two␛[2J",
            "+three",
        ]
        assert "\x1b[31m-one" in (child.before or "")
        assert "\x1b[32m+three" in (child.before or "")
        child.sendline("n")
        child.expect(pexpect.EOF)
    assert (cli.folder / "plan.txt").read_text() == "one\ntwo\x1b[2J\n"


def test_enter_accepts_a_doubtful_read_and_nothing_else(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    read, write = (
        json.dumps({"action": "call", "calls": [{"tool": tool, "params": params}], "complete": True})
        for tool, params in (
            ("ai.read", {"path": "plan.txt"}),
            ("ai.write", {"path": "notes.txt", "content": "hello"}),
        )
    )
    scripted_openai.script(read, "No list.", write, "Nothing was written.")
    scripted_openai.verdict = verdict(0.3)
    model = {"OPENAI_BASE_URL": scripted_openai.base_url, "NO_PROXY": "127.0.0.1"}
    with chatting(cli, "--allow-writes", "--lite", "openai:scripted", **model) as child:
        child.sendline("list the plan")
        child.expect("May this read run")
        child.expect("or Enter")
        child.sendline("")
        child.expect("you> ")
        child.sendline('Write "hello" to notes.txt')
        child.expect(r"\[y\]es")
        child.sendline("")
        child.expect(r"\[y\]es")
        assert not (cli.folder / "notes.txt").exists()
        child.sendline("no")
        child.expect("you> ")
        child.sendline("/quit")
        assert ended(child) == 0


def test_commands_and_requests_work_during_a_question(cli: CommandLine) -> None:
    with chatting(cli, "--allow-writes") as child:
        child.sendline('Write "hello" to notes.txt')
        child.expect(r"\[y\]es")
        for words, says in (
            ("/help", "Ctrl.C stops"),
            ("what does it do?", "Write text to a file"),
            ("Read plan.txt", "The gate opens at seven.*Waiting for your decision"),
            ("hmm, not sure", "This is not a clear answer"),
        ):
            child.sendline(words)
            child.expect(f"(?s){says}")
            child.expect(r"\[y\]es")
        assert not (cli.folder / "notes.txt").exists()
        child.sendline("\U0001f44d")
        child.expect("Created notes.txt")
        child.expect("you> ")
        child.sendline("Read the file")
        child.expect("I need `path`")
        for words, says in (
            ("/help", "Ctrl.C stops"),
            ("plan.txt", "The gate opens at seven"),
            ("/read todo.txt", "Buy milk"),
            ("Read the file", "I need `path`"),
            ("Count the words in plan.txt", "was not answered.*5 words"),
        ):
            child.sendline(words)
            child.expect(f"(?s){says}")
            child.expect("> ")
        child.sendline("/quit")
        assert ended(child) == 0


@pytest.mark.parametrize(("key", "status"), [("Ctrl-C", 130), ("Ctrl-D", 3)])
def test_leaving_a_question_prints_no_traceback(cli: CommandLine, key: str, status: int) -> None:
    with terminal(cli, "ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect(r"\[y\]es")
        child.send(KEYS[key])
        child.expect(r"left unanswered \(yes, no or skip\): .*packetgate answer yes --session s")
        assert ended(child) == status
        assert "Traceback" not in (child.before or "")
    assert not (cli.folder / "notes.txt").exists()


def test_an_answer_in_another_terminal_runs_where_the_question_was_asked(cli: CommandLine) -> None:
    with terminal(cli, "ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect(r"\[y\]es")
        assert cli.run("answer", "yes", "--session", "s").status == 0
        assert (cli.folder / "notes.txt").read_text() == "hello"
        assert "recorded, for the process that asked" in cli.run("audit").out
        child.sendline("yes")
        child.expect("no pending question")
        assert ended(child) == 2


def test_a_stopped_turn_prints_how_to_continue(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(NO_TOOL, Stall("The keeper opens it, "), "The keeper does.")
    models = {"OPENAI_BASE_URL": scripted_openai.base_url, "NO_PROXY": "127.0.0.1"}
    models |= {"PACKETGATE_PRIME_ENABLE_THINKING": "false"}
    with terminal(cli, "ask", "--session", "s", "--lite", "openai:scripted", "Who opens?", **models) as child:
        child.expect("The keeper opens")
        child.send(KEYS["Ctrl-C"])
        child.expect("stopped: .*packetgate answer --session s --lite openai:scripted continues it")
        assert ended(child) == 130
    done = cli.run("answer", "--session", "s", "--lite", "openai:scripted", **models)
    assert "The keeper does." in done.out


def test_without_a_sandbox_an_unknown_server_is_confirmed_once(cli: CommandLine) -> None:
    configure(cli.folder / "mcp.json", it=entry("@server.tool\nasync def look() -> str: return 'x'", sandbox=None))
    no_programs = {"PATH": str(cli.folder)}
    refused = cli.run("tools", **no_programs)
    assert "NO SANDBOX works" in refused.err
    assert "it: no sandbox works on this machine, and the server is unknown" in refused.out + refused.err
    for answer in ("n", "y", None):
        with terminal(cli, "tools", **no_programs) as child:
            child.expect("NO SANDBOX works")
            if answer:
                child.expect("it is unknown, and would run with all your permissions")
                child.sendline(answer)
            child.expect("does not start" if answer == "n" else "it.look")
            child.expect(pexpect.EOF)
    assert "NO SANDBOX works" in cli.run("doctor", **no_programs).err
