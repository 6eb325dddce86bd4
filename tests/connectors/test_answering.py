"""An answer that is shown while it is written: what stands on the screen in the end."""

import re
from dataclasses import dataclass

import pytest

from packetgate.connectors.sessions import AnswerPiece
from packetgate.connectors.terminal import answering
from packetgate.connectors.terminal.answering import StreamedAnswer

COLUMNS, LINES = 10, 5
_PARTS = re.compile(r"\x1b\[(\d*)([AJ])|(.)", re.DOTALL)


@dataclass(frozen=True)
class Case:
    id: str
    pieces: tuple[str, ...]
    final: str
    screen: list[str]
    """Its rows in the end; the last one is where the cursor is."""


CASES = [
    Case("as it was written", ("one ", "two"), "one two", ["one two", ""]),
    Case("not written before", (), "one", ["one", ""]),
    Case("white space at its end", ("one", " \n"), "one", ["one ", ""]),
    Case("the end was not written", ("one", " "), "one two", ["one two", ""]),
    Case("another one", ("one two",), "three", ["three", ""]),
    Case("another one, over rows", ("1234567890", "1234567890", "12"), "three", ["three", ""]),
    Case("another one, over lines", ("a\n", "\nb\n"), "three", ["three", ""]),
    Case("wide letters", ("\u8aad\u3080" * 3,), "three", ["three", ""]),
    Case("a full row", ("1234567890",), "three", ["three", ""]),
    Case("words stay whole", ("four fi", "ve six seve", "n"), "four five six seven", ["four five ", "six seven", ""]),
    Case("but in a fence", ("```\n1 2 3 4 56",), "```\n1 2 3 4 5678", ["```", "1 2 3 4 56", "78", ""]),
    Case("letters of a long word", ("12345678901234",), "12345678901234", ["1234567890", "1234", ""]),
    Case("control characters", ("a\x1b[2Jb\r",), "a\x1b[2Jb\r", ["a\ufffd[2Jb\ufffd", ""]),
    Case("control characters in two pieces", ("a\x1b", "[2Jb"), "a\x1b[2Jb", ["a\ufffd[2Jb", ""]),
    Case("gone from the screen", ("a\nb\nc\nd\ne\nf",), "three", [*"abcdef", "", "[gone]", "three", ""]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_stands_there_once_and_as_it_was_finished(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", str(LINES))
    monkeypatch.setattr(answering, "WITHDRAWN", "\n\n[gone]\n")
    with StreamedAnswer() as answer:
        for piece in case.pieces:
            answer.add(AnswerPiece(piece))
        answer.finish(case.final)
    assert screen(capsys.readouterr().out) == case.screen


def test_what_was_stopped_stays_and_the_cursor_goes_on_below(capsys: pytest.CaptureFixture[str]) -> None:
    with StreamedAnswer() as answer:
        answer.add(AnswerPiece("The keeper opens"))
    assert capsys.readouterr().out == "The keeper opens\n"


def screen(written: str) -> list[str]:
    """Return the rows of a terminal that is `COLUMNS` wide, after what was written to it."""
    rows, at = [""], 0
    wide = {"\u8aad", "\u3080"}
    for part in _PARTS.finditer(written):
        count, movement, char = part.groups()
        if movement == "A":
            at -= int(count)
        elif movement == "J":
            del rows[at + 1 :]
            rows[at] = ""
        elif char == "\n":
            at += 1
            rows += [""] * (at + 1 - len(rows))
        elif char != "\r":
            width = sum(2 if one in wide else 1 for one in rows[at] + char)
            if width > COLUMNS:
                at += 1
                rows.append("")
            rows[at] += char
    return rows
