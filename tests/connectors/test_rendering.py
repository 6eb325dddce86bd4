"""How a question looks in a terminal: all that is decided about is there, and nothing steers the terminal."""

import io
from typing import Any

from rich.console import Console

from connectors import rendering


def shown(preview: str = "", **args: Any) -> str:
    """Return a question about one call, as a terminal of 40 columns shows it."""
    request = {"name": "ai.write", "args": args, "description": "ai.write (write)", "preview": preview}
    console = Console(file=io.StringIO(), width=40, soft_wrap=True, markup=False)
    with console.capture() as captured:
        console.print(rendering.question({"kind": "approval", "action_requests": [request]}))
    return captured.get()


def test_a_long_value_is_folded_and_not_cut_off() -> None:
    value = " ".join(f"word{number}" for number in range(100))
    assert value.replace(" ", "") in "".join(shown(content=value).split())


def test_a_value_of_many_lines_is_bounded() -> None:
    lines = shown(content="x\n" * 1_000).split("\n")
    assert len(lines) < 210
    assert "… 801 more lines" in "\n".join(lines)


def test_what_a_preview_shows_is_not_shown_twice() -> None:
    text = shown("--- a now\n+++ a\n@@ -1 +1 @@\n-old\n+one\n+two", path="a", content="one\ntwo\n")
    assert "content = 8 characters: see what they" in text
    assert [line.strip() for line in text.split("\n")].count("+one") == 1
    assert "path = a" in text


def test_control_characters_are_shown_as_such() -> None:
    text = shown("-a\x1b[2J", content="\x1b]0;owned\x07\u202e", **{"\x1b[31mname": 1})
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
