import stat

import pytest

TEXT = b"one\ntwo\nthree\ntwo\n"


@pytest.fixture
def file(folder):
    file = folder / "a.txt"
    file.write_bytes(TEXT)
    return file


async def test_a_passage_is_replaced_and_the_difference_told(succeed, file):
    answer = await succeed("ai.edit", path="a.txt", old_text="three", new_text="3", dry_run=False)

    assert answer.startswith("Changed 1 place in a.txt\n--- a.txt before\n+++ a.txt after\n")
    assert "-three\n+3" in answer
    assert file.read_bytes() == b"one\ntwo\n3\ntwo\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("ai.edit", {"old_text": "three", "new_text": "3"}, "Would change 1 place in a.txt"),
        ("ai.edit", {"old_text": "two", "new_text": "2", "every": True}, "Would change 2 places in a.txt"),
        ("ai.append", {"text": "four"}, "Would append 1 line to a.txt"),
        ("ai.append", {"text": "four", "path": "new/b.txt"}, "Would create new/b.txt with 1 line"),
    ],
    ids=str,
)
async def test_a_dry_run_shows_the_difference_and_changes_nothing(succeed, file, unchanged, tool, arguments, told):
    unchanged()

    answer = await succeed(tool, **{"path": "a.txt", **arguments})

    assert answer.startswith(told)
    assert "\n@@ " in answer


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"old_text": "two"}, "2 times, first on line 2"),
        ({"old_text": "xyz"}, "a.txt does not have 'xyz'"),
        ({"old_text": "Three"}, "nearest is line 3: 'three'"),
        ({"old_text": "tree"}, "nearest is line 3: 'three'"),
        ({"old_text": "x", "path": "b.txt"}, "b.txt does not exist"),
        ({"old_text": "x", "path": "."}, "is a folder"),
    ],
    ids=str,
)
async def test_what_cannot_be_replaced_is_named(fail, file, unchanged, arguments, says):
    unchanged()

    assert says in await fail("ai.edit", **{"path": "a.txt", "new_text": "y", "dry_run": False, **arguments})


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"\xef\xbb\xbfone\ntwo", "one", "1", b"\xef\xbb\xbf1\ntwo"),
        (b"\xef\xbb\xbfa\r\nb", "a\nb", "c\nd", b"\xef\xbb\xbfc\r\nd"),
        (b"a\r\nb\nc\nd\n", "a\r\nb", "x", b"x\nc\nd\n"),
        ("grüße ☃".encode(), "☃", "❄", "grüße ❄".encode()),
        (b"one\x0ctwo\n", "two", "2", b"one\x0c2\n"),
    ],
)
async def test_the_rest_of_a_file_stays_byte_for_byte(succeed, folder, before, old, new, after):
    (folder / "a.txt").write_bytes(before)

    await succeed("ai.edit", path="a.txt", old_text=old, new_text=new, dry_run=False)

    assert (folder / "a.txt").read_bytes() == after


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"one\n", "two", b"one\ntwo\n"),
        (b"one", "two", b"one\ntwo\n"),
        (b"one\r\ntwo\r\n", "three\nfour", b"one\r\ntwo\r\nthree\r\nfour\r\n"),
        (b"", "one\n", b"one\n"),
        (b"\xef\xbb\xbfone", "two", b"\xef\xbb\xbfone\ntwo\n"),
    ],
)
async def test_what_is_appended_stands_on_lines_of_its_own(succeed, folder, before, text, after):
    (folder / "a.txt").write_bytes(before)

    await succeed("ai.append", path="a.txt", text=text, dry_run=False)

    assert (folder / "a.txt").read_bytes() == after


async def test_appending_creates_what_is_not_there(succeed, folder):
    await succeed("ai.append", path="lists/shopping.txt", text="milk", dry_run=False)

    assert (folder / "lists/shopping.txt").read_text() == "milk\n"


async def test_the_file_is_replaced_in_one_step_and_keeps_its_mode(succeed, file):
    file.chmod(0o640)

    with file.open("rb") as reader:
        await succeed("ai.edit", path="a.txt", old_text="one", new_text="1", dry_run=False)
        assert reader.read() == TEXT

    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [entry.name for entry in file.parent.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("tool", ["ai.edit", "ai.append"])
async def test_binary_files_are_not_edited(fail, folder, unchanged, tool):
    (folder / "a.bin").write_bytes(b"a\0b")
    unchanged()
    arguments = {"old_text": "a", "new_text": "b"} if tool == "ai.edit" else {"text": "b"}

    assert "not UTF-8 text" in await fail(tool, path="a.bin", dry_run=False, **arguments)
