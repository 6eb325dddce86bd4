"""`ai.read`: whole files, ranges, and unreadable files."""

import os

import pytest

from packetgate.toolsets.builtin.files import MAX_READ_BYTES

FOUR, FIVE = b"one\ntwo\nthree\nfour\n", b"1\n2\n3\n4\n5\n"
UNCHANGED = ("one\ntwo\n", "no newline at the end", "grüße ☃\n", "\r\nwindows\r\n", "\x0cform\u2028feed\n")


@pytest.mark.parametrize(
    ("data", "wanted", "output"),
    [
        *((text.encode(), {}, text) for text in UNCHANGED),
        (b"\xef\xbb\xbftext", {}, "text"),
        (b"", {}, "[a.txt is empty]"),
        (FOUR, {"first_line": 2, "head": 2},
         "two\nthree\n[lines 2 to 3 of 4 lines in a.txt; read on with first_line=4]"),
        (FOUR, {"first_line": 4}, "four\n[lines 4 to 4 of 4 lines in a.txt]"),
        (b"x\n" * 2001, {}, "x\n" * 2000 + "[lines 1 to 2000 of 2,001 lines in a.txt; read on with first_line=2001]"),
    ],
)  # fmt: skip
async def test_a_file_is_read_and_a_cut_names_the_next_call(succeed, folder, data, wanted, output):
    (folder / "a.txt").write_bytes(data)
    assert await succeed("ai.read", path="a.txt", **wanted) == output


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        ({"head": 1}, "1"),
        ({"tail": 2}, "45"),
        ({"tail": 9}, "12345"),
        ({"first_line": 2, "last_line": 4}, "234"),
        ({"last_line": 99}, "12345"),
        ({"first_line": 2, "last_line": 5, "head": 2}, "23"),
    ],
    ids=str,
)
async def test_ranges_and_ends_of_a_file_are_read(succeed, folder, wanted, lines):
    (folder / "a.txt").write_bytes(FIVE)
    shown = (await succeed("ai.read", path="a.txt", **wanted)).splitlines()
    assert "".join(line for line in shown if not line.startswith("[")) == lines


@pytest.mark.parametrize(
    ("data", "wanted", "says"),
    [
        (b"one\n", {"first_line": 2}, "a.txt has 1 line: first_line=2 is beyond its end"),
        (FIVE, {"first_line": 4, "last_line": 2}, "last_line=2 is before first_line=4"),
        (FIVE, {"tail": 2, "head": 2}, "leave out head"),
        *((data, {}, "a.txt is not UTF-8 text") for data in ("text".encode("utf-16"), b"gr\xfc\xdfe", b"ab\0cd")),
        (bytes(MAX_READ_BYTES + 1), {}, "a.txt is too large"),
        (b"", {"path": "a.txt/b"}, "cannot read a.txt/b: Not a directory"),
        (b"", {"path": "pipe"}, "not a regular file"),
        (b"", {"path": "readme.txt"}, "readme.txt does not exist in the working folder. Nearest: README.md"),
        (b"", {"path": "zzz/a"}, "zzz does not exist in the working folder. "),
        (b"", {"path": "docs"}, "docs is a folder, not a file. It contains: 00.md, 01.md,"),
        (b"", {"path": "docs"}, "19.md, and 5 more"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_unreadable_files_are_refused(fail, folder, data, wanted, says):
    (folder / "a.txt").write_bytes(data)
    (folder / "README.md").touch()
    os.mkfifo(folder / "pipe")
    (folder / "docs").mkdir()
    for number in range(25):
        (folder / "docs" / f"{number:02}.md").touch()
    assert says in await fail("ai.read", **{"path": "a.txt", **wanted})
