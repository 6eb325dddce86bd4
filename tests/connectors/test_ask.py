"""`packetgate ask`, through a real process."""

import json
import re

import pytest
from support.command_line import CommandLine

from packetgate.state.packet import read_packet
from packetgate.state.transitions import ToolExecutionStatus


def test_a_read_is_answered_from_the_file_and_its_journey_is_shown(cli: CommandLine) -> None:
    done = cli.run("ask", "What does plan.txt say?")
    assert done.status == 0
    assert "The gate opens at seven." in done.out
    stages = ["open_packet", "detect_intent", "build_palette", "select_tool", "review_selection", "execute_tool"]
    positions = [done.out.index(stage) for stage in [*stages, "inject_result", "respond"]]
    assert positions == sorted(positions)
    assert re.search(r"review_selection .* (0\.[789]\d|1\.00) ", done.out)
    assert "```" not in done.out
    assert done.err == ""


def test_more_files_than_one_pass_may_read_are_all_read(cli: CommandLine) -> None:
    names = [f"{letter}.txt" for letter in "abcdef"]
    for name in names:
        (cli.folder / name).write_text(f"This is {name}.\n")
    done = cli.run("ask", f"Read {', '.join(names[:-1])} and {names[-1]}")
    assert done.status == 0
    assert [name for name in names if f"This is {name}." not in done.out] == []


def test_what_no_pass_is_left_for_is_named(cli: CommandLine) -> None:
    names = [f"file{number:02}.txt" for number in range(14)]
    for name in names:
        (cli.folder / name).write_text(f"This is {name}.\n")
    done = cli.run("ask", f"Read {', '.join(names)}")
    assert [name for name in names if f"This is {name}." not in done.out] == names[12:]
    assert "The rest was skipped (ai.read(path=file12.txt), ai.read(path=file13.txt))" in " ".join(done.out.split())


def test_json_prints_the_final_packet_and_nothing_else(cli: CommandLine) -> None:
    done = cli.run("ask", "--json", "Read plan.txt")
    packet = read_packet(done.out)
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED
    assert packet.header.origin == "terminal"
    assert packet.response.candidate == "ai.read (path=plan.txt):\nThe gate opens at seven."
    assert packet.messages[-1].text == "ai.read (path=plan.txt):\n```\nThe gate opens at seven.\n```"


def test_a_kept_packet_shows_its_journey_again(cli: CommandLine) -> None:
    kept = cli.folder / "packet.json"
    kept.write_text(cli.run("ask", "--json", "Read plan.txt").out)
    shown = cli.run("trace", "packet.json")
    assert shown.status == 0
    assert "The gate opens at seven." in shown.out
    assert "execute_tool" in shown.out


def test_a_write_is_only_shown_while_writes_are_switched_off(cli: CommandLine) -> None:
    done = cli.run("ask", 'Write "hello" to notes.txt')
    assert done.status == 0
    assert "`--allow-writes` switches them on" in done.out
    assert "Would create notes.txt" in done.out
    assert "--allow-writes" in done.out
    assert not (cli.folder / "notes.txt").exists()


def test_a_write_waits_for_the_user_and_the_question_survives_the_process(cli: CommandLine) -> None:
    asked = cli.run("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt')
    assert asked.status == 3
    assert re.search(r"packetgate answer yes\|no\|skip --question [0-9a-f]{8} --session s\n", asked.out)
    assert not (cli.folder / "notes.txt").exists()
    answered = cli.run("answer", "yes", "--session", "s")
    assert answered.status == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"
    again = cli.run("answer", "yes", "--session", "s")
    assert again.status == 2
    assert "no pending question" in again.err


def test_nobody_is_asked_about_a_write_that_can_only_fail(cli: CommandLine) -> None:
    for path in ("plan.txt", "../outside.txt"):  # one is there already, the other lies outside the working folder
        done = cli.run("ask", "--allow-writes", f'Write "hello" to {path}')
        assert done.status == 1
        assert "ai.write" in done.out
        assert "failed" in done.out
        assert "packetgate answer" not in done.out
    assert (cli.folder / "plan.txt").read_text() == "The gate opens at seven.\n"


def test_a_denied_write_is_not_done(cli: CommandLine) -> None:
    cli.run("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt')
    denied = cli.run("answer", "no", "--session", "s", "--json")
    assert read_packet(denied.out).routing.execution_status is ToolExecutionStatus.USER_DENIED
    assert not (cli.folder / "notes.txt").exists()


def test_an_edited_write_is_done_as_edited(cli: CommandLine) -> None:
    cli.run("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt')
    edit = json.dumps({"path": "other.txt", "content": "good day"})
    assert cli.run("answer", "--session", "s", "--edit", edit).status == 0
    assert (cli.folder / "other.txt").read_text() == "good day"
    assert not (cli.folder / "notes.txt").exists()


def test_a_session_remembers_its_turns(cli: CommandLine) -> None:
    first = read_packet(cli.run("ask", "--json", "--session", "s", "Read plan.txt").out)
    second = read_packet(cli.run("ask", "--json", "--session", "s", "Read todo.txt").out)
    assert second.header.parent_packet_id == first.header.packet_id
    assert second.context.recent_tools == ("ai.read",)
    assert [entry.params["path"] for entry in second.context.result_ledger] == ["plan.txt", "todo.txt"]
    assert len(second.messages) == 4


def test_the_request_may_come_from_standard_input(cli: CommandLine) -> None:
    assert "The gate opens at seven." in cli.run("ask", given=b"Read plan.txt\n").out
    assert "The gate opens at seven." in cli.run("ask", "-", given=b"Read plan.txt\n").out


def test_control_characters_of_a_file_do_not_reach_the_terminal(cli: CommandLine) -> None:
    (cli.folder / "sly.txt").write_text("harmless\x1b]0;owned\x07 \x1b[2J end\n")
    done = cli.run("ask", "Read sly.txt")
    assert "harmless" in done.out
    assert "\x1b" not in done.out
    assert "\x07" not in done.out


def test_a_failed_tool_shows_in_the_exit_status(cli: CommandLine) -> None:
    done = cli.run("ask", "Read missing.txt")
    assert done.status == 1
    assert "missing.txt does not exist" in done.out
    assert cli.run("chat", "--json", given=b"Read plan.txt\nRead missing.txt\n").status == 1


@pytest.mark.parametrize("request_", ["Get the weather of Oslo", "Tell me what the owls do", "Read plan.txt"])
def test_a_dead_server_is_named(cli: CommandLine, request_: str) -> None:
    (cli.folder / "mcp.json").write_text('{"mcpServers": {"weather": {"command": "no-such-program"}}}')
    done = cli.run("ask", request_)
    assert "Not everything was reachable: weather: " in done.out
    assert "no-such-program" in done.out


@pytest.mark.parametrize(
    ("answer", "content"),
    [('print("hello")', 'print("hello")'), ('"hello"', "hello"), ("say 'a' and 'b'", "say 'a' and 'b'")],
)
def test_the_whole_answer_to_a_question_is_kept(cli: CommandLine, answer: str, content: str) -> None:
    asked = cli.run("ask", "Write to notes.txt", "--session", "s", "--allow-writes")
    assert (asked.status, "I need `content`" in asked.out) == (3, True)
    waits = read_packet(cli.run("answer", answer, "--session", "s", "--json").out)
    assert [call.params["content"] for call in waits.routing.calls] == [content]


def test_a_file_with_other_ends_of_lines_is_read_as_it_is(cli: CommandLine) -> None:
    (cli.folder / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    done = cli.run("ask", "Read dos.txt")
    assert "one\ntwo\n" in done.out
    assert "\ufffd" not in done.out


def test_a_sentence_in_place_of_a_command_is_asked(cli: CommandLine) -> None:
    done = cli.run("Read plan.txt")
    assert (done.status, "The gate opens at seven" in done.out) == (0, True)
    assert cli.run("nonsense").status == 2


def test_an_answer_goes_to_the_one_question_that_is_open(cli: CommandLine) -> None:
    none = cli.run("answer", "yes")
    assert (none.status, "no question that was shown here is open" in none.err) == (2, True)
    cli.run("ask", "--session", "a", "--allow-writes", 'Write "hello" to notes.txt')
    assert cli.run("answer", "yes").status == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"
    for session in ("b", "c"):
        cli.run("ask", "--session", session, "--allow-writes", 'Write "hello" to more.txt')
    several = cli.run("answer", "yes")
    assert (several.status, "these wait: c, b; name the session" in several.err) == (2, True)


@pytest.mark.parametrize(
    "reply", [("1 yes 2 no",), ("only a.txt",), ("--edit", '[{"path": "a.txt", "content": "x"}, "no"]')]
)
def test_some_of_several_calls_are_approved(cli: CommandLine, reply: tuple[str, ...]) -> None:
    asked = cli.run("ask", "--session", "s", "--allow-writes", 'Write "x" to a.txt and write "y" to b.txt')
    assert asked.status == 3
    assert cli.run("answer", "--session", "s", *reply).status == 0
    assert (cli.folder / "a.txt").read_text() == "x"
    assert not (cli.folder / "b.txt").exists()
