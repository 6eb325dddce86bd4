"""The command line for scripts: JSON, pipes, exit statuses."""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine

from packetgate.state.packet import read_packet
from packetgate.state.transitions import ToolExecutionStatus

WRITE = 'Write "hello" to notes.txt'


def chat(cli: CommandLine, *lines: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit status of `chat --json`, and what it said to each line."""
    given = "".join(f"{line}\n" for line in lines).encode()
    done = cli.run("chat", "--json", "--session", "s", "--allow-writes", given=given)
    assert done.err == ""
    return done.status, [json.loads(line) for line in done.out.splitlines()]


def test_chat_answers_each_line_with_an_object(cli: CommandLine) -> None:
    (cli.folder / "notes.txt").write_text("old\n")
    status, told = chat(
        cli,
        "Read plan.txt",
        "",
        'Overwrite notes.txt with "new"',
        '{"decisions": [{"type": "approve"}]}',
        json.dumps("Hello\nthere"),
        "[1]",
    )
    assert status == 0
    assert [one["type"] for one in told] == ["packet", "question", "packet", "packet", "packet"]
    assert {one["session"] for one in told} == {"s"}
    assert "The gate opens at seven." in told[0]["packet"]["response"]["candidate"]
    (request,) = told[1]["question"]["action_requests"]
    assert "-old\n+new" in request["preview"]
    assert read_packet(json.dumps(told[2]["packet"])).routing.execution_status is ToolExecutionStatus.EXECUTED
    assert [one["packet"]["content"]["original_prompt"] for one in told[3:]] == ["Hello\nthere", "[1]"]
    assert (cli.folder / "notes.txt").read_text() == "new"


def test_chat_ends_with_the_status_of_its_last_line(cli: CommandLine) -> None:
    status, told = chat(cli, "x" * 300_000, WRITE)
    assert (status, [one["type"] for one in told]) == (3, ["error", "question"])
    assert "200,000" in told[0]["error"]
    status, told = chat(cli, "no", '"\\u0000"')
    assert (status, [one["type"] for one in told]) == (2, ["packet", "error"])
    assert not (cli.folder / "notes.txt").exists()


def test_slash_commands_are_errors_there(cli: CommandLine) -> None:
    status, told = chat(cli, "/session foo", "Read /etc/hosts", '"/session foo"')
    assert [one["type"] for one in told[:2]] == ["error", "packet"]
    assert "/session foo" in told[0]["error"]
    assert told[0]["code"] == "request-unusable"
    assert told[2]["type"] in {"packet", "question"}, "in quotes it is words, to be read or asked about"
    assert "/session" in json.dumps(told[2])
    assert status in {1, 3}


def test_the_end_of_a_pipe_leaves_the_question_open(cli: CommandLine) -> None:
    done = cli.run("chat", "--session", "s", "--allow-writes", given=f"{WRITE}\n".encode())
    assert done.status == 3
    assert "+hello" in done.out
    assert "left unanswered" in done.out
    answered = cli.run("answer", "yes", "--session", "s", "--json")
    assert read_packet(answered.out).routing.execution_status is ToolExecutionStatus.EXECUTED


@pytest.mark.parametrize("args", [("tools",), ("ask", "Read plan.txt"), ("tools", "--json")])
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


def test_version_and_the_nearest_command(cli: CommandLine) -> None:
    assert cli.run("--version").out == f"packetgate {version('packetgate')}\n"
    done = cli.run("aks", "Hello")
    assert (done.status, "'ask'" in done.err) == (2, True)


def test_help_lists_the_commands_and_the_exit_statuses(cli: CommandLine) -> None:
    words = " ".join(cli.run("--help").out.replace("│", " ").split())
    for word in ("ask", "answer", "chat", "tools", "doctor", "trace", "discord", "Exit status: 0 done", "130"):
        assert word in words
    assert "Exit status 3" in " ".join(cli.run("ask", "--help").out.replace("│", " ").split())
