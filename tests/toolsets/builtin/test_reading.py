import os

import pytest

from packetgate.toolsets.builtin.files import MAX_READ_BYTES


@pytest.mark.parametrize(
    "text", ["one\ntwo\n", "no newline at the end", "grüße ☃\n", "\r\nwindows\r\n", "\x0cform\u2028feed\n"]
)
async def test_a_file_is_read_unchanged(succeed, folder, text):
    (folder / "a.txt").write_bytes(text.encode())

    assert await succeed("ai.read", path="a.txt") == text


async def test_a_byte_order_mark_is_removed(succeed, folder):
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbftext")

    assert await succeed("ai.read", path="a.txt") == "text"


async def test_an_empty_file_is_reported(succeed, folder):
    (folder / "a.txt").touch()

    assert await succeed("ai.read", path="a.txt") == "[a.txt is empty]"


async def test_a_range_says_how_to_read_on(succeed, folder):
    (folder / "a.txt").write_text("one\ntwo\nthree\nfour\n")

    cut = await succeed("ai.read", path="a.txt", first_line=2, max_lines=2)
    rest = await succeed("ai.read", path="a.txt", first_line=4)

    assert cut == "two\nthree\n[lines 2 to 3 of 4 lines in a.txt; read on with first_line=4]"
    assert rest == "four\n[lines 4 to 4 of 4 lines in a.txt]"


async def test_long_files_are_cut_at_two_thousand_lines(succeed, folder):
    (folder / "a.txt").write_text("x\n" * 2001)

    text = await succeed("ai.read", path="a.txt")

    assert text.endswith("[lines 1 to 2000 of 2,001 lines in a.txt; read on with first_line=2001]")


async def test_a_line_beyond_the_end_is_refused(fail, folder):
    (folder / "a.txt").write_text("one\n")

    assert await fail("ai.read", path="a.txt", first_line=2) == "a.txt has 1 line: first_line=2 is beyond its end"


@pytest.mark.parametrize("data", ["text".encode("utf-16"), "grüße".encode("latin-1"), b"ab\0cd"])
async def test_data_other_than_utf8_is_refused(fail, folder, data):
    (folder / "a.txt").write_bytes(data)

    assert (await fail("ai.read", path="a.txt")).startswith("a.txt is not UTF-8 text")


async def test_the_error_for_reading_a_folder_names_its_files(fail, folder):
    (folder / "docs").mkdir()
    for number in range(25):
        (folder / "docs" / f"{number:02}.md").touch()

    error = await fail("ai.read", path="docs")

    assert error.startswith("docs is a folder, not a file. It contains: 00.md, 01.md,")
    assert error.endswith("19.md, and 5 more")


async def test_the_error_for_a_missing_file_names_similar_files(fail, folder):
    (folder / "README.md").touch()

    assert await fail("ai.read", path="readme.txt") == (
        "readme.txt does not exist in the working folder. Nearest: README.md"
    )
    assert await fail("ai.read", path="zzz/a") == "zzz does not exist in the working folder. It contains: README.md"


async def test_a_path_below_a_file_is_refused(fail, folder):
    (folder / "a.txt").touch()

    assert await fail("ai.read", path="a.txt/b") == "cannot read a.txt/b: Not a directory"


async def test_a_too_large_file_is_refused(fail, folder):
    with (folder / "big.txt").open("wb") as file:
        file.truncate(MAX_READ_BYTES + 1)

    assert "big.txt is too large" in await fail("ai.read", path="big.txt")


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        ({"head": 1}, ["1"]),
        ({"head": 2, "first_line": 2}, ["2", "3"]),
        ({"tail": 2}, ["4", "5"]),
        ({"tail": 9}, ["1", "2", "3", "4", "5"]),
        ({"first_line": 2, "last_line": 4}, ["2", "3", "4"]),
        ({"last_line": 99}, ["1", "2", "3", "4", "5"]),
        ({"first_line": 2, "last_line": 5, "max_lines": 2}, ["2", "3"]),
    ],
    ids=str,
)
async def test_ranges_and_ends_of_a_file_are_read(succeed, folder, wanted, lines):
    (folder / "a.txt").write_text("1\n2\n3\n4\n5\n")

    told = (await succeed("ai.read", path="a.txt", **wanted)).splitlines()

    assert [line for line in told if not line.startswith("[")] == lines


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"first_line": 4, "last_line": 2}, "last_line=2 is before first_line=4"),
        ({"tail": 2, "head": 2}, "leave out head"),
        ({"tail": 2, "first_line": 2}, "leave out head"),
        ({"first_line": 9}, "beyond its end"),
    ],
    ids=str,
)
async def test_contradicting_ranges_are_refused(fail, folder, wanted, says):
    (folder / "a.txt").write_text("1\n2\n3\n4\n5\n")

    assert says in await fail("ai.read", path="a.txt", **wanted)


async def test_a_pipe_does_not_block(fail, folder):
    os.mkfifo(folder / "pipe")

    assert "not a regular file" in await fail("ai.read", path="pipe")
