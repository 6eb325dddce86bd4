"""The command line for scripts: JSON, pipes, exit statuses."""

import os
from importlib.metadata import version
from pathlib import Path

import pytest
from support.command_line import CommandLine

from packetgate.connectors.commands import COMMANDS, load_command
from packetgate.state.packet import read_packet
from packetgate.state.transitions import ToolExecutionStatus

WRITE = 'Write "hello" to notes.txt'


def test_end_of_input_leaves_the_question_open(cli: CommandLine) -> None:
    done = cli.run("chat", "--session", "s", "--allow-writes", given=f"{WRITE}\n".encode())
    assert done.status == 3
    assert "+hello" in done.out
    assert "left unanswered" in done.out
    answered = cli.run("answer", "yes", "--session", "s", "--json")
    assert read_packet(answered.out).routing.execution_status is ToolExecutionStatus.EXECUTED


@pytest.mark.parametrize("said", ["/write new.txt x", "/undo", "yes"])
@pytest.mark.parametrize("args", [("ask", "-"), ("chat",)], ids=" ".join)
def test_a_pipe_holds_neither_commands_nor_replies(cli: CommandLine, args: tuple[str, ...], said: str) -> None:
    assert cli.run("ask", "--session", "s", "--allow-writes", WRITE).status == 3
    done = cli.run(*args, "--session", "s", "--allow-writes", given=f"{said}\n".encode())
    assert ("Standard input holds requests only" in done.out + done.err) is said.startswith("/")
    assert sorted(path.name for path in cli.folder.iterdir()) == ["plan.txt", "todo.txt"]
    cli.run("answer", "yes", "--session", "s")
    assert (cli.folder / "notes.txt").read_text() == "hello"


def test_a_piped_chat_switches_and_attaches_nothing(cli: CommandLine) -> None:
    said = ("/writes on", "/attach plan.txt", WRITE, "yes", "")
    done = cli.run("chat", "--session", "s", given="\n".join(said).encode())
    assert done.err.count("Standard input holds requests only") == 2
    assert "switched off" in done.out
    assert not (cli.folder / "notes.txt").exists()


@pytest.mark.parametrize("args", [("tools",), ("ask", "Hello")])
def test_a_broken_pipe_is_no_error(cli: CommandLine, args: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = cli.run(*args, stdout=writing)
    os.close(writing)
    assert (done.status, done.err) == (141, "")


def test_an_unexpected_error_is_one_line(cli: CommandLine) -> None:
    with Path("/dev/full").open("wb") as full:
        done = cli.run("ask", "Read plan.txt", stdout=full.fileno())
    assert done.status == 1
    assert done.err.count("\n") == 1
    assert "No space left on device" in done.err
    assert "PACKETGATE_DEBUG=1" in done.err


def test_an_unwritable_history_does_not_end_the_chat(tmp_path: Path) -> None:
    from packetgate.connectors.terminal.reading import _history

    (tmp_path / "file").write_text("")
    assert type(_history(tmp_path / "file" / "history")).__name__ == "InMemoryHistory"


def test_the_version_is_printed_and_the_nearest_command_is_suggested(cli: CommandLine) -> None:
    assert cli.run("--version").out == f"packetgate {version('packetgate')}\n"
    done = cli.run("aks", "Hello")
    assert (done.status, "'ask'" in done.err) == (2, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_its_whole_text(name: str) -> None:
    """The help parses brackets as markup, and does not show them."""
    command = load_command(name)
    texts = [command.help, *(getattr(one, "help", None) for one in command.params)]
    assert not [text for text in texts if "[" in (text or "")]


def test_help_lists_the_commands_and_the_exit_statuses(cli: CommandLine) -> None:
    words = " ".join(cli.run("--help").out.replace("│", " ").split())
    for word in ("ask", "answer", "chat", "tools", "doctor", "trace", "discord", "Exit status: 0 done", "130"):
        assert word in words
    assert "Exit status 3" in " ".join(cli.run("ask", "--help").out.replace("│", " ").split())
