"""`packetgate ask` and `packetgate answer`."""

import json
import re
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.plain_server import Folder, configure, entry
from support.scripted_openai import ScriptedOpenAI

from packetgate.state.packet import read_packet
from packetgate.state.transitions import ToolExecutionStatus

WRITE = ("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt')


def test_a_read_prints_the_answer_and_one_line_about_the_call(cli: CommandLine) -> None:
    done = cli.run("ask", "What does plan.txt say?")
    assert (done.status, done.err) == (0, "")
    assert "The gate opens at seven." in done.out
    assert "```" not in done.out
    (last,) = done.out.splitlines()[-1:]
    assert re.fullmatch(r"ai\.read plan\.txt · chosen by the rules, reviewed (0\.[789]\d|1\.00)", last)
    assert cli.run("ask", "Hello").out.splitlines() == ["Hello! I route requests to tools."]


def test_the_trace_is_shown_on_request(cli: CommandLine) -> None:
    done = cli.run("ask", "--trace", "What does plan.txt say?")
    stages = ["open_packet", "detect_intent", "build_palette", "select_tool", "review_selection", "execute_tool"]
    positions = [done.out.index(stage) for stage in [*stages, "inject_result", "respond"]]
    assert positions == sorted(positions)
    assert re.search(r"review_selection .* (0\.[789]\d|1\.00) ", done.out)
    assert "chosen by" not in done.out


@pytest.mark.parametrize("request_", ["help", "what can you do?"])
def test_a_question_about_the_tools_is_answered_in_the_first_turn(cli: CommandLine, request_: str) -> None:
    done = cli.run("ask", request_)
    assert "- ai.read: Read a text file" in done.out
    assert "`/help` lists them" in done.out


def test_json_is_the_final_packet_and_nothing_else(cli: CommandLine) -> None:
    packet = read_packet(cli.run("ask", "--json", "Read plan.txt").out)
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED
    assert packet.header.origin == "terminal"
    assert packet.response.candidate == "ai.read (path=plan.txt):\nThe gate opens at seven."


@pytest.mark.parametrize("model", ["reflex", "openai:scripted"])
@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        ("/read plan.txt", 0, "The gate opens at seven."),
        ("/search gate in plan.txt", 0, "plan.txt, line 1"),
        ('/ai.write new.txt "two\\nlines"', 0, "Would create new.txt: 2 lines"),
        ("/", 0, "`/write PATH CONTENT`"),
        ("/raed plan.txt", 2, "Did you mean `/read`?"),
        ("/list sort=size", 2, "Example: `/list sort=name`"),
    ],
)
def test_a_command_asks_no_model(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, model: str, line: str, status: int, says: str
) -> None:
    done = cli.run("ask", "--prime", model, line, OPENAI_BASE_URL=scripted_openai.base_url)
    assert [*scripted_openai.requests, *scripted_openai.reviews] == []
    assert (done.status, done.err) == (status, "")
    assert says in done.out
    assert {file.name for file in cli.folder.iterdir()} == {"plan.txt", "todo.txt"}


def test_values_of_a_command_come_from_the_user(cli: CommandLine) -> None:
    done = cli.run("ask", "--json", '/write new.txt "say \\"hi\\"\\nC:\\\\new"')
    (call,) = read_packet(done.out).routing.all_calls
    assert call.params["content"] == 'say "hi"\nC:\\new'
    assert {name: origin.kind for name, origin in call.provenance.items()} == dict.fromkeys(call.params, "user")


def test_a_typed_change_waits_for_approval(cli: CommandLine) -> None:
    asked = cli.run("ask", "--session", "s", "--allow-writes", "/write new.txt x\\y")
    assert (asked.status, "Warning" in asked.out) == (3, False)
    aside = cli.run("ask", "--session", "s", "/read plan.txt")
    assert "The gate opens at seven." in aside.out
    assert cli.run("answer", "yes", "--session", "s").status == 0
    assert (cli.folder / "new.txt").read_text() == "x\\y"


def test_an_unclear_request_offers_commands_that_are_picked_by_number(cli: CommandLine) -> None:
    offer = cli.run("ask", "--session", "s", "compare plan.txt with the tide tables")
    assert "Nothing was done" in offer.out
    assert "1. `/read plan.txt`" in offer.out
    picked = cli.run("ask", "--session", "s", "1")
    assert "The gate opens at seven." in picked.out
    assert picked.out.splitlines()[-1] == "ai.read plan.txt · typed by you"
    assert "The gate" not in cli.run("ask", "--session", "s", "1").out  # the session offers no commands any more


def test_a_long_result_names_the_session_that_shows_all_of_it(cli: CommandLine) -> None:
    (cli.folder / "log.txt").write_text("".join(f"line {number} of the log\n" for number in range(1_000)))
    shown = cli.run("ask", "Read log.txt").out
    (session,) = re.findall(r"`/rest` in `\S.* chat --session (\w+)` shows all of it", shown)
    assert f", session {session}:" in cli.run("trace", "last").out


def test_writes_are_dry_runs_by_default(cli: CommandLine) -> None:
    done = cli.run("ask", WRITE[-1])
    assert done.status == 0
    assert "--allow-writes" in done.out
    assert "Would create notes.txt" in done.out
    assert not (cli.folder / "notes.txt").exists()


def test_a_write_waits_and_is_answered_by_another_process(cli: CommandLine) -> None:
    asked = cli.run(*WRITE)
    assert asked.status == 3
    assert re.search(r"\(yes, no, skip\): .*packetgate answer yes --question [0-9a-f]{8} --session s\n", asked.out)
    assert not (cli.folder / "notes.txt").exists()
    assert cli.run("answer", "yes", "--session", "s").status == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"
    for reply, code in ((["yes"], "question-not-open"), ([], "nothing-to-continue")):
        again = cli.run("answer", *reply, "--session", "s")
        assert (again.status, f"[{code}]" in again.err) == (2, True)


def test_denied_writes_do_not_run_and_edited_writes_run_as_edited(cli: CommandLine) -> None:
    cli.run(*WRITE)
    denied = cli.run("answer", "no", "--session", "s", "--json")
    assert read_packet(denied.out).routing.execution_status is ToolExecutionStatus.USER_DENIED
    cli.run(*WRITE)
    edit = json.dumps({"path": "other.txt"})
    assert cli.run("answer", "--session", "s", "--edit", edit).status == 0
    assert (cli.folder / "other.txt").read_text() == "hello", "the other argument is unchanged"
    assert not (cli.folder / "notes.txt").exists()


def test_an_edit_of_several_calls_decides_each(cli: CommandLine) -> None:
    asked = cli.run("ask", "--session", "s", "--allow-writes", 'Write "x" to a.txt and write "y" to b.txt')
    assert asked.status == 3
    assert cli.run("answer", "--session", "s", "--edit", '[{"path": "a.txt"}, "no"]').status == 0
    assert (cli.folder / "a.txt").read_text() == "x"
    assert not (cli.folder / "b.txt").exists()


def test_an_answer_without_a_session_needs_exactly_one_open_question(cli: CommandLine) -> None:
    assert cli.run("answer", "yes").status == 2
    cli.run(*WRITE)
    assert cli.run("answer", "yes").status == 0
    assert (cli.folder / "notes.txt").read_text() == "hello"
    for session in ("b", "c"):
        cli.run("ask", "--session", session, "--allow-writes", 'Write "hello" to more.txt')
    several = cli.run("answer", "yes")
    assert several.status == 2
    assert "c, b" in several.err


def test_a_request_can_be_standard_input_or_a_bare_sentence(cli: CommandLine) -> None:
    assert "The gate opens at seven." in cli.run("ask", "-", given=b"Read plan.txt\n").out
    assert "The gate opens at seven" in cli.run("Read plan.txt").out
    assert "The gate opens at seven" in cli.run("ask", "read", "plan.txt").out
    assert cli.run("nonsense").status == 2


def test_a_failed_tool_sets_the_exit_status(cli: CommandLine) -> None:
    done = cli.run("ask", "Read missing.txt")
    assert (done.status, "missing.txt does not exist" in done.out) == (1, True)


@pytest.mark.parametrize("request_", ["Get the weather of Oslo", "Read plan.txt"])
def test_a_dead_server_is_named_with_the_answer(cli: CommandLine, request_: str) -> None:
    servers = {"weather": {"command": "no-such-program"}}
    (cli.folder / "mcp.json").write_text(json.dumps({"builtin": True, "mcpServers": servers}))
    done = cli.run("ask", request_)
    assert "weather: " in done.out
    assert "no-such-program" in done.out
    assert ("The gate opens" in done.out) is (request_ == "Read plan.txt")


HARBOUR = """
import time
folder.note("starts", os.getpid())
for _ in range(100 * 60 if (folder / "hangs").exists() else 200 if (folder / "is_slow").exists() else 0):
    time.sleep(0.01)
async def harbour_depth(harbour):
    "Get the depth of a harbour."
    folder.note("calls", harbour)
    return f"The depth of {harbour} is nine metres."
(server.tool if (folder / "changes").exists() else server.reading)(harbour_depth)
"""
DEPTH = "Get the depth of the harbour Brest"


@pytest.mark.parametrize(
    ("now", "request_", "says", "calls"),
    [
        ("hangs", "Read plan.txt", "The gate opens", 1),
        ("is_slow", DEPTH, "The depth of Brest is nine metres", 2),
        ("is_slow changes", DEPTH, "harbour.harbour_depth", 1),
        ("hangs", DEPTH, "harbour: still starting", 1),
    ],
)
def test_only_the_server_of_a_call_must_be_up(
    cli: CommandLine, tmp_path: Path, now: str, request_: str, says: str, calls: int
) -> None:
    folder = Folder(tmp_path)
    configure(cli.folder / "mcp.json", builtin=True, harbour=entry(HARBOUR, tmp_path))
    assert "nine metres" in cli.run("ask", DEPTH).out
    for name in now.split():
        (folder / name).touch()
    done = cli.run("ask", request_, PACKETGATE_PATIENCE_S="5")
    assert says in done.out
    assert ("still starting" in done.out) is ("still starting" in says)
    assert len(folder.lines("starts")) == 2
    assert len(folder.lines("calls")) == calls, "a tool that is no longer a known read does not run unasked"
