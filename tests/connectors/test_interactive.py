"""The command line at a real terminal: questions, replies, chat."""

from collections.abc import Iterator
from contextlib import contextmanager

import pexpect
from support.command_line import COMMAND, CommandLine

TIMEOUT_S = 90


@contextmanager
def terminal(cli: CommandLine, *args: str) -> Iterator[pexpect.spawn]:
    child = pexpect.spawn(
        str(COMMAND),
        list(args),
        cwd=str(cli.folder),
        env={**cli.environment, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"},
        dimensions=(40, 120),
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    try:
        yield child
    finally:
        child.close(force=True)


def test_a_question_is_put_and_answered_in_place(cli: CommandLine) -> None:
    with terminal(cli, "ask", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect("May this run")
        child.expect(r"\[y\]es")
        assert not (cli.folder / "notes.txt").exists()
        child.sendline("y")
        child.expect("Created notes.txt")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"


def test_a_call_is_edited_in_place(cli: CommandLine) -> None:
    with terminal(cli, "ask", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect(r"\[y\]es")
        child.sendline("e")
        child.expect("new arguments as JSON")
        child.sendline('{"path": "other.txt", "content": "bye"}')
        child.expect("Created other.txt")
        child.expect(pexpect.EOF)
    assert (cli.folder / "other.txt").read_text() == "bye"


def test_a_missing_argument_is_asked_for(cli: CommandLine) -> None:
    with terminal(cli, "ask", "Read the file") as child:
        child.expect("I need `path`")
        child.expect(">")
        child.sendline("plan.txt")
        child.expect("The gate opens at seven")
        child.expect(pexpect.EOF)


def test_chat_keeps_a_session_and_comes_back_to_its_pending_question(cli: CommandLine) -> None:
    with terminal(cli, "chat", "--session", "s", "--allow-writes") as child:
        child.expect("you>")
        child.sendline("Read plan.txt")
        child.expect("The gate opens at seven")
        child.expect("you>")
        child.sendline('Write "hello" to notes.txt')
        child.expect("May this run")
        child.expect(r"\[y\]es")
        child.close(force=True)
    with terminal(cli, "chat", "--session", "s", "--allow-writes") as child:
        child.expect("May this run")
        child.expect(r"\[y\]es")
        child.sendline("yes")
        child.expect("Created notes.txt")
        child.expect("you>")
        child.sendline("/quit")
        child.expect(pexpect.EOF)
    assert (cli.folder / "notes.txt").read_text() == "hello"


def test_chat_reads_a_pipe(cli: CommandLine) -> None:
    done = cli.run("chat", given=b"Hello\nRead plan.txt\n\n/nonsense\n")
    assert done.status == 0
    assert "Hello! I route requests to tools" in done.out
    assert "The gate opens at seven." in done.out
    assert "there is no /nonsense" in done.out


def test_ctrl_c_ends_ask_without_a_traceback(cli: CommandLine) -> None:
    with terminal(cli, "ask", "--allow-writes", 'Write "hello" to notes.txt') as child:
        child.expect(r"\[y\]es")
        child.sendintr()
        child.expect(pexpect.EOF)
        assert "Traceback" not in (child.before or "")
        child.wait()
        assert child.exitstatus == 130
    assert not (cli.folder / "notes.txt").exists()
