"""Any command line succeeds, is refused in one line, or waits. No command crashes or loses data."""

import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import CommandLine, Outcome
from support.fuzzing import as_json, fuzzed, mutated, texts, values

pytestmark = pytest.mark.slow

ASKS = ("ask", "--session", "s", "--allow-writes", 'Write "hello" to notes.txt')
COMMANDS = ("ask", "answer", "chat", "tools", "policy", "audit", "trace")
OPTIONS = (
    *("--json", "--session", "--context", "--mcp-config", "--lite", "--prime", "--allow-writes", "--no-commands"),
    *("--edit", "--question", "--revoke"),
    *("-s", "--session=s", "--json=1", "-"),
)
REPLY = {"decisions": [{"type": "edit", "edited_action": {"name": "ai.write", "args": {"path": "b.txt"}}}]}

words = texts.map(lambda text: os.fsdecode(text.replace("\0", "?").encode("utf-8", "surrogatepass"))[:5_000])
"""Every string that the operating system accepts as an argument."""
arguments = st.lists(st.sampled_from(OPTIONS) | words | st.sampled_from(["s", "last", "ai.read", "x.json"]), max_size=4)
lines = st.lists(
    values.map(as_json)
    | mutated(REPLY).map(as_json)
    | st.binary(max_size=20)
    | texts.map(lambda one: as_json(one)[1:-1]),
    max_size=8,
)


def check(done: Outcome) -> str:
    """Check that a command's outcome is allowed, and return it."""
    assert done.status in {0, 1, 2, 3}, done
    assert "Traceback" not in done.err
    assert "shows where" not in done.err, done.err
    if done.status == 2:
        assert done.err.strip()
    return f"exit status {done.status}"


def test_any_arguments_and_input_end_with_a_documented_exit_status(
    cli: CommandLine, capsys: pytest.CaptureFixture[str]
):
    counts = Counter[str]()
    assert cli.run(*ASKS).status == 3

    @fuzzed(25, 500)
    @given(command=st.sampled_from(COMMANDS), more=arguments, fed=st.binary(max_size=30) | values.map(as_json))
    def run(command: str, more: list[str], fed: bytes) -> None:
        counts[check(cli.run(command, *more, given=fed, NO_COLOR="1"))] += 1

    run()
    with capsys.disabled():
        print(f"\narguments: {dict(counts)}")  # noqa: T201  the figures are the point
    assert cli.run("trace", "last", "--json").status == 0
    assert cli.run("audit", "--json").status == 0


def test_any_lines_to_a_chat_are_answered(cli: CommandLine):
    @fuzzed(12, 200)
    @given(messages=lines)
    def chat(messages: list[bytes]) -> None:
        check(cli.run("chat", "--session", "chat", "--allow-writes", given=b"\n".join([*messages, b"Hello"])))

    chat()
    assert cli.run("trace", "last", "--json").status == 0
