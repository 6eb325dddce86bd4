"""Questions in a terminal are complete, and untrusted text cannot imitate the question."""

import io
import time
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from packetgate.connectors import rendering
from packetgate.state.printing import escaped

BARS = ("  │ ", "  ┆ ", "  ↪ ")
OWN = ("May this run?", "What it changes:")


def shown(preview: str = "", name: str = "ai.write", **args: Any) -> str:
    """Return a rendered question about one call, at 40 columns."""
    request = {"name": name, "args": args, "description": "ai.write (write)", "preview": preview}
    console = Console(file=io.StringIO(), width=40, soft_wrap=True, markup=False)
    with console.capture() as captured:
        console.print(rendering.question({"kind": "approval", "action_requests": [request]}, console.width), end="")
    return captured.get()


def unwrapped(rows: str) -> str:
    """Return the text after the bars, with wrapped lines joined."""
    return "\n".join(row[4:] for row in rows.replace(f"\n{BARS[2]}", "").splitlines())


def test_the_question_about_a_doubtful_local_read_is_short() -> None:
    request = {
        "name": "ai.read",
        "args": {"path": "a.txt head = 3"},
        "about": "confidence 0.3\nlong",
        "is_small": True,
    }
    asked = {"kind": "approval", "action_requests": [request]}
    call = 'ai.read {"path":"a.txt head = 3"}'
    assert rendering.question(asked).plain == f"May this read run?\n  │ {call}\n  │ confidence 0.3\n"
    for changed in ({**asked, "problem": "not clear"}, {**asked, "action_requests": [request, request]}):
        assert "long" in rendering.question(changed).plain


@pytest.mark.parametrize(
    "value",
    [
        " ".join(f"word{number}" for number in range(1_000)) + "; curl evil",
        "\n".join(f"line {number}" for number in range(5_000)),
    ],
    ids=["long", "many lines"],
)
def test_a_value_is_shown_completely(value: str) -> None:
    assert f"content = {value}\n" in unwrapped(shown(content=value))


def test_rows_end_between_words_and_lose_nothing() -> None:
    words = "What should it be? " * 9 + "\n" + "x" * 90 + " 語" * 40
    rows = shown(content=words).splitlines()
    assert f"content = {words}\n" in unwrapped("\n".join(rows))
    assert {row[-1] for row in rows if "What" in row} == {" "}
    assert max(map(cell_len, rows)) <= 40


def test_the_question_shows_the_difference_and_the_value() -> None:
    long = "x" * 1_000
    text = unwrapped(shown(f"--- a now\n+++ a\n@@ -1 +1 @@\n-old\n+{long}", path="a", content=f"{long}; curl evil"))
    assert f"content = {long}; curl evil\n" in text
    assert f"\n-old\n+{long}\n" in text


@pytest.mark.parametrize(
    "hostile",
    [
        "x\nMay this run?\n  │ ai.read\n  │ path = harmless.txt",
        "x" + " " * 30 + "May this run?" + " " * 23 + "  │ ai.read",
        "x\rMay this run?\x1b[2K\x1b[1A",
        "x\u2028May this run?\u0085  │ ai.read\x0b\x0c",
        "x\u202e?nur siht yaM\u2066",
    ],
)
def test_untrusted_text_cannot_imitate_the_question(hostile: str) -> None:
    rows = shown(f"@@\n+{hostile}", hostile, **{"content": hostile, hostile: hostile}).splitlines()
    assert [row for row in rows if not row.startswith(BARS)] == list(OWN)
    assert all(len(row) <= 40 for row in rows)
    assert len([row for row in rows if row.startswith(BARS[0])]) == len(["name", "content", "hostile", "@@", "about"])


def test_control_characters_are_shown_by_name() -> None:
    text = shown("-a\x1b[2J", content="\x1b]0;owned\x07\u202e\r\n", **{"\x1b[31mname": 1})
    assert "-a␛[2J" in text
    assert "content = ␛]0;owned␇<U+202E>␍" in text
    assert not {"\x1b", "\x07", "\u202e", "\r"} & {*text}


def test_values_that_are_not_text_are_shown_as_json() -> None:
    assert unwrapped(shown(a="1", b=True, c=["1", 1], d=None)).splitlines()[2:6] == [
        "a = 1",
        "b = true",
        'c = ["1", 1]',
        "d = null",
    ]


@pytest.mark.parametrize("char", "\u3164\u2800\u115f\uffa0\ufe00\ufe0f\U000e0100\U000e0041\u202e\u200b")
def test_invisible_characters_are_named(char: str):
    assert escaped(f"ann{char}@x.org") == f"ann<U+{ord(char):04X}>@x.org"


def test_visible_characters_are_unchanged():
    assert escaped("I ❤️ café ☀︎ 日本\n") == "I ❤️ café ☀︎ 日本\n"


def test_long_rows_of_blanks_are_written_to_a_pipe_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.perf_counter()
    rendering.say(f"{' ' * 150_000}x  \ny ", "")
    assert capsys.readouterr().out == f"{' ' * 150_000}x\ny\n"
    assert time.perf_counter() - started < 5
