import asyncio
import os
import stat

import pytest

NEW = {"path": "docs/new/a.txt", "content": "one\ntwo\n"}


def names_in(folder):
    return [entry.name for entry in folder.iterdir()]


async def test_create_makes_the_folders_on_the_way(succeed, folder):
    answer = await succeed("ai.write", **NEW, dry_run=False)

    assert answer == "Created docs/new/a.txt: 2 lines, 8 bytes"
    assert (folder / "docs/new/a.txt").read_bytes() == b"one\ntwo\n"
    assert names_in(folder / "docs/new") == ["a.txt"]


@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
async def test_a_dry_run_changes_nothing(succeed, unchanged, mode):
    unchanged()

    answer = await succeed("ai.write", **NEW, mode=mode)

    assert answer.startswith("Would create docs/new/a.txt: 2 lines, 8 bytes\n")
    assert answer.endswith("+one\n+two")


@pytest.mark.parametrize(
    ("mode", "told", "shown"),
    [
        ("overwrite", "Would overwrite a.txt: 1 line, 4 bytes", "-old\n+new"),
        ("append", "Would append 1 line, 4 bytes to a.txt", " old\n+new"),
    ],
)
async def test_a_dry_run_shows_the_difference(succeed, folder, unchanged, mode, told, shown):
    (folder / "a.txt").write_text("old\n")
    unchanged()

    answer = await succeed("ai.write", path="a.txt", content="new\n", mode=mode)

    assert answer.startswith(told)
    assert answer.endswith(shown)


async def test_overwrite_replaces_in_one_step_and_keeps_the_mode(succeed, folder):
    file = folder / "run.sh"
    file.write_text("old\n")
    file.chmod(0o750)
    before = file.stat()

    with file.open() as reader:
        answer = await succeed("ai.write", path="run.sh", content="new\n", mode="overwrite", dry_run=False)
        assert reader.read() == "old\n", "who reads the file now must see the old text whole"

    assert answer == "Overwrote run.sh: 1 line, 4 bytes"
    assert file.read_text() == "new\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert file.stat().st_ino != before.st_ino
    assert names_in(folder) == ["run.sh"]


async def test_append_adds_at_the_end(succeed, folder):
    (folder / "a.txt").write_text("old\n")

    answer = await succeed("ai.write", path="a.txt", content="new\n", mode="append", dry_run=False)

    assert answer == "Appended 1 line, 4 bytes to a.txt"
    assert (folder / "a.txt").read_text() == "old\nnew\n"


@pytest.mark.parametrize("mode", ["overwrite", "append"])
async def test_what_is_not_there_is_created(succeed, folder, mode):
    assert (await succeed("ai.write", **NEW, mode=mode, dry_run=False)).startswith("Created docs/new/a.txt")
    assert (folder / "docs/new/a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("dry_run", [True, False])
async def test_create_keeps_what_is_there(fail, folder, unchanged, dry_run):
    (folder / "a.txt").write_text("old\n")
    unchanged()

    error = await fail("ai.write", path="a.txt", content="new\n", dry_run=dry_run)

    assert error == "a.txt exists already: choose another name, or mode 'overwrite' or 'append'"


async def test_of_many_creators_one_wins_and_its_text_is_whole(call, folder):
    texts = [f"{number}\n" * 2000 for number in range(12)]

    results = await asyncio.gather(*(call("ai.write", path="a.txt", content=text, dry_run=False) for text in texts))

    winners = [text for text, result in zip(texts, results, strict=True) if result.success]
    assert winners == [(folder / "a.txt").read_text()]
    assert all("exists already" in result.error for result in results if not result.success)
    assert names_in(folder) == ["a.txt"]


async def test_a_link_inside_the_folder_stays_a_link(succeed, folder):
    (folder / "a.txt").write_text("old\n")
    (folder / "link.txt").symlink_to("a.txt")

    await succeed("ai.write", path="link.txt", content="new\n", mode="overwrite", dry_run=False)

    assert (folder / "link.txt").is_symlink()
    assert (folder / "a.txt").read_text() == "new\n"


async def test_a_folder_cannot_be_written(fail, folder, unchanged):
    (folder / "docs").mkdir()
    unchanged()

    assert "docs is a folder" in await fail("ai.write", path="docs", content="x", mode="overwrite", dry_run=False)


async def test_a_file_is_no_folder_to_write_in(fail, folder, unchanged):
    (folder / "a.txt").touch()
    unchanged()

    error = await fail("ai.write", path="a.txt/b.txt", content="x", dry_run=False)
    assert error == "cannot write a.txt/b.txt: Not a directory"


async def test_a_pipe_is_not_replaced(fail, folder, unchanged):
    os.mkfifo(folder / "pipe")
    unchanged()

    assert "not a regular file" in await fail("ai.write", path="pipe", content="x", mode="overwrite", dry_run=False)


async def test_nothing_is_appended_to_what_is_not_text(fail, folder, unchanged):
    (folder / "a.bin").write_bytes(b"\0\1")
    unchanged()

    assert "not UTF-8 text" in await fail("ai.write", path="a.bin", content="x", mode="append", dry_run=False)


async def test_without_a_text_to_compare_the_dry_run_says_why(succeed, folder):
    (folder / "a.bin").write_bytes(b"\0\1")

    answer = await succeed("ai.write", path="a.bin", content="x", mode="overwrite")

    assert "[no difference shown: a.bin is not UTF-8 text" in answer


async def test_a_missing_newline_at_the_end_is_a_difference(succeed, folder):
    (folder / "a.txt").write_text("same\n")

    changed = await succeed("ai.write", path="a.txt", content="same", mode="overwrite")
    same = await succeed("ai.write", path="a.txt", content="same\n", mode="overwrite")

    assert changed.endswith("+same\n\\ No newline at end of file")
    assert same.endswith("[the text stays the same]")


async def test_the_difference_is_whole_or_not_there(succeed):
    many = await succeed("ai.write", path="a.txt", content="x\n" * 5000)
    wide = await succeed("ai.write", path="a.txt", content="x" * 5000)
    huge = await succeed("ai.write", path="a.txt", content="x" * 200_001)

    assert many.count("\n+x") == 5000
    assert wide.endswith("+" + "x" * 5000 + "\n\\ No newline at end of file")
    assert "[no difference shown: the new text has more than 200,000 bytes]" in huge
