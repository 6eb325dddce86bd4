"""`ai.write`, `ai.append` and `ai.edit`."""

import asyncio
import os
import stat

import pytest

NEW = {"path": "docs/new/a.txt", "content": "one\ntwo\n"}
TEXT = b"one\ntwo\nthree\ntwo\n"


@pytest.fixture
def file(folder):
    file = folder / "a.txt"
    file.write_bytes(TEXT)
    return file


def names_in(folder):
    return [entry.name for entry in folder.iterdir()]


@pytest.mark.parametrize("mode", ["create", "overwrite"])
async def test_every_mode_creates_a_missing_file(succeed, folder, mode):
    assert (await succeed("ai.write", **NEW, mode=mode)).startswith("Would create docs/new/a.txt: 2 lines, 8 bytes\n")
    assert not (folder / "docs").exists()
    assert await succeed("ai.write", **NEW, mode=mode, dry_run=False) == "Created docs/new/a.txt: 2 lines, 8 bytes"
    assert (folder / "docs/new/a.txt").read_bytes() == b"one\ntwo\n"
    assert names_in(folder / "docs/new") == ["a.txt"]


@pytest.mark.parametrize(
    ("tool", "arguments", "start", "end"),
    [
        ("write", {"content": "new\n", "mode": "overwrite"}, "Would overwrite a.txt: 1 line, 4 bytes", "+new"),
        ("edit", {"old_text": "three", "new_text": "3"}, "Would change 1 place in a.txt", "-three\n+3\n two"),
        ("edit", {"old_text": "two", "new_text": "2", "every": True}, "Would change 2 places in a.txt", "-two\n+2"),
        ("append", {"text": "four"}, "Would append 1 line to a.txt", "+four"),
        ("append", {"text": "four", "path": "new/b.txt"}, "Would create new/b.txt with 1 line", "+four"),
        ("write", {"path": "b.txt", "content": "x\n" * 5000}, "Would create b.txt", "\n+x" * 5000),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_a_dry_run_shows_the_difference_and_the_change_keeps_the_mode(
    succeed, file, folder, tool, arguments, start, end
):
    file.chmod(0o640)
    answer = await succeed(f"ai.{tool}", **{"path": "a.txt", **arguments})
    assert answer.startswith(start)
    assert "\n@@ " in answer
    assert answer.endswith(end)
    assert (names_in(folder), file.read_bytes()) == (["a.txt"], TEXT)
    with file.open("rb") as reader:
        await succeed(f"ai.{tool}", **{"path": "a.txt", **arguments}, dry_run=False)
        assert reader.read() == TEXT, "an open reader still sees the old text"
    assert (file.read_bytes() != TEXT) is ("path" not in arguments)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert len(names_in(folder)) == 1 + ("path" in arguments)


@pytest.mark.parametrize(
    ("path", "content", "end"),
    [
        ("b.txt", "x" * 200_001, "no difference shown"),
        ("a.bin", "x", "no difference shown"),
        ("a.txt", TEXT.decode().rstrip("\n"), "+two\n\\ No newline at end of file"),
        ("a.txt", TEXT.decode(), "[the text stays the same]"),
    ],
    ids=["too long", "no text", "no newline", "the same"],
)
async def test_a_difference_is_complete_or_replaced_by_a_reason(succeed, file, folder, path, content, end):
    (folder / "a.bin").write_bytes(b"\0\1")
    answer = await succeed("ai.write", path=path, content=content, mode="overwrite")
    assert end in answer
    assert answer.endswith(end) or end == "no difference shown"


async def test_only_one_of_concurrent_creations_succeeds(call, folder):
    texts = [f"{number}\n" * 2000 for number in range(12)]

    results = await asyncio.gather(*(call("ai.write", path="a.txt", content=text, dry_run=False) for text in texts))

    winners = [text for text, result in zip(texts, results, strict=True) if result.success]
    assert winners == [(folder / "a.txt").read_text()]
    assert all("already exists" in result.error for result in results if not result.success)
    assert names_in(folder) == ["a.txt"]


async def test_a_link_inside_the_folder_stays_a_link(succeed, file, folder):
    (folder / "link.txt").symlink_to("a.txt")

    await succeed("ai.write", path="link.txt", content="new\n", mode="overwrite", dry_run=False)

    assert (folder / "link.txt").is_symlink()
    assert file.read_text() == "new\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("ai.write", {"content": "new\n"}, "already exists: choose another name, or set mode=overwrite, or add"),
        ("ai.write", {"content": "new\n", "dry_run": True}, "a.txt already exists: choose another name"),
        ("ai.write", {"path": ".", "content": "x", "mode": "overwrite"}, "is a folder"),
        ("ai.write", {"path": "a.txt/b.txt", "content": "x"}, "Not a directory"),
        ("ai.write", {"path": "pipe", "content": "x", "mode": "overwrite"}, "not a regular file"),
        ("ai.append", {"path": "a.bin", "text": "x"}, "not UTF-8 text"),
        ("ai.edit", {"path": "a.bin", "old_text": "a", "new_text": "b"}, "not UTF-8 text"),
        ("ai.edit", {"old_text": "two", "new_text": "y"}, "2 times, first on line 2"),
        ("ai.edit", {"old_text": "xyz", "new_text": "y"}, "a.txt does not contain 'xyz'"),
        ("ai.edit", {"old_text": "Three", "new_text": "y"}, "the most similar line is line 3: 'three'"),
        ("ai.edit", {"old_text": "tree", "new_text": "y"}, "the most similar line is line 3: 'three'"),
        ("ai.edit", {"old_text": "x", "new_text": "y", "path": "b.txt"}, "b.txt does not exist"),
        ("ai.edit", {"old_text": "x", "new_text": "y", "path": "."}, "is a folder"),
    ],
    ids=str,
)
async def test_impossible_changes_are_refused(fail, file, folder, unchanged, tool, arguments, reason):
    (folder / "a.bin").write_bytes(b"a\0b")
    os.mkfifo(folder / "pipe")
    unchanged()

    assert reason in await fail(tool, **{"path": "a.txt", "dry_run": False, **arguments})


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"\xef\xbb\xbfone\ntwo", "one", "1", b"\xef\xbb\xbf1\ntwo"),
        (b"a\r\nb\nc\nd\n", "a\r\nb", "x", b"x\nc\nd\n"),
        ("grüße ☃".encode(), "☃", "❄", "grüße ❄".encode()),
        (b"one\x0ctwo\n", "two", "2", b"one\x0c2\n"),
    ],
)
async def test_an_edit_changes_no_other_byte(succeed, folder, before, old, new, after):
    (folder / "a.txt").write_bytes(before)

    await succeed("ai.edit", path="a.txt", old_text=old, new_text=new, dry_run=False)

    assert (folder / "a.txt").read_bytes() == after


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"one\n", "two", b"one\ntwo\n"),
        (b"one", "two", b"one\ntwo\n"),
        (b"one\r\ntwo\r\n", "three\nfour", b"one\r\ntwo\r\nthree\r\nfour\r\n"),
        (b"\xef\xbb\xbfone", "two", b"\xef\xbb\xbfone\ntwo\n"),
        (None, "milk", b"milk\n"),
    ],
)
async def test_appended_text_begins_on_a_new_line(succeed, folder, before, text, after):
    if before is not None:
        (folder / "a.txt").write_bytes(before)

    await succeed("ai.append", path="a.txt", text=text, dry_run=False)

    assert (folder / "a.txt").read_bytes() == after
