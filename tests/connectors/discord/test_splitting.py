"""Long answers in pieces."""

import random
import re

import pytest

from packetgate.connectors.discord.presenting import LIMIT, code_block, split

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def open_at_the_end(piece: str) -> str:
    """Return the fence that a piece leaves open, read as Markdown has it."""
    mark = ""
    for line in piece.split("\n"):
        found = FENCE.fullmatch(line)
        if found and not mark and "`" not in found[2]:
            mark = found[1]
        elif found and mark and found[1].startswith(mark) and not found[2].strip():
            mark = ""
    return mark


@pytest.mark.parametrize("text", ["short", "a\nb", "```py\nx\n```", " indented\n\nlines "])
def test_what_fits_stays_as_it_is(text: str):
    assert split(text) == [text]


def test_it_is_cut_between_lines():
    lines = [f"line {number}" for number in range(20)]
    pieces = split("\n".join(lines), 120)
    assert [line for piece in pieces for line in piece.splitlines()] == lines
    assert len(pieces) > 1


def test_a_long_line_is_cut_between_words_and_a_long_word_anywhere():
    words = "word " * 60
    assert "".join(split(words, 150)) == words
    assert all(piece.endswith(" ") for piece in split(words, 150))
    assert "".join(split("x" * 1_000, 150)) == "x" * 1_000


def test_a_code_block_is_closed_and_opened_again_with_its_language():
    code = [f"x = {number}" for number in range(60)]
    pieces = split("\n".join(["Look:", "```python", *code, "```", "Done."]), 200)
    assert all(piece.startswith("```python\n") for piece in pieces[1:])
    assert all(piece.endswith("\n```") for piece in pieces[:-1])
    assert [line for piece in pieces for line in piece.splitlines() if line.startswith("x")] == code


def test_a_block_is_not_opened_at_the_end_of_a_piece():
    pieces = split("\n".join(["a" * 60, "b" * 50, "```", "c" * 90, "```"]), 200)
    assert pieces == [f"{'a' * 60}\n{'b' * 50}", f"```\n{'c' * 90}\n```"]


def test_a_block_that_nobody_closed_is_closed():
    assert split("```\nx")[0] == "```\nx\n```"


@pytest.mark.parametrize("text", ["", " ", "\n\n \n", " \n" * 3_000])
def test_nothing_is_no_piece(text: str):
    assert split(text) == []


def test_no_piece_is_too_long_none_is_blank_and_all_blocks_are_whole():
    plain = ["word " * 9, "x" * 300, "`a` ``` b", "", "é漢字 " * 9]
    some = [*plain, "```python", "```", "~~~", "````md", f"```{'l' * 90}"]
    for seed in range(100):
        chance = random.Random(seed)
        text = "\n".join(chance.choice(some) for _ in range(chance.randrange(1, 60)))
        limit = chance.choice([150, 200, 500, LIMIT])
        pieces = split(text, limit)
        assert all(piece.strip() and len(piece) <= limit for piece in pieces), seed
        assert [open_at_the_end(piece) for piece in pieces] == [""] * len(pieces), seed
        kept = re.sub(r"[`~\s]|python|md|l+", "", text)
        assert re.sub(r"[`~\s]|python|md|l+", "", "".join(pieces)) == kept, seed


def test_nothing_gets_out_of_a_code_block():
    block = code_block(f"a ``` b {'`' * 7} c `` d", "json")
    assert (block.count("```"), block.startswith("```json\n"), block.endswith("\n```")) == (2, True, True)
