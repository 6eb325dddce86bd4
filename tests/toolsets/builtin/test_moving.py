import stat

import pytest


@pytest.fixture
def files(folder):
    (folder / "docs").mkdir()
    (folder / "docs" / "plan.md").write_text("plan\n")
    (folder / "notes.txt").write_text("notes\n")
    (folder / "LICENSE").write_text("free\n")
    return folder


@pytest.mark.parametrize(
    ("path", "destination", "told", "there"),
    [
        ("notes.txt", "docs", "Moved notes.txt to docs/notes.txt", "docs/notes.txt"),
        ("notes.txt", "docs/", "Moved notes.txt to docs/notes.txt", "docs/notes.txt"),
        ("notes.txt", "archive", "Moved notes.txt to archive/notes.txt", "archive/notes.txt"),
        ("notes.txt", "archive/2026/", "Moved notes.txt to archive/2026/notes.txt", "archive/2026/notes.txt"),
        ("notes.txt", "ideas.txt", "Renamed notes.txt to ideas.txt", "ideas.txt"),
        ("docs/plan.md", "roadmap.md", "Renamed docs/plan.md to docs/roadmap.md", "docs/roadmap.md"),
        ("docs/plan.md", "./roadmap.md", "Moved docs/plan.md to roadmap.md", "roadmap.md"),
        ("docs/plan.md", ".", "Moved docs/plan.md to plan.md", "plan.md"),
        ("docs/plan.md", "plan.md", "Moved docs/plan.md to plan.md", "plan.md"),
        ("LICENSE", "COPYING", "Renamed LICENSE to COPYING", "COPYING"),
        ("docs", "papers", "Renamed docs to papers", "papers/plan.md"),
    ],
)
async def test_files_and_folders_are_moved(succeed, files, path, destination, told, there):
    dry = await succeed("ai.move", path=path, destination=destination)
    assert dry.removeprefix("Would ").split()[1:] == told.split()[1:]
    assert (files / path).exists()

    assert await succeed("ai.move", path=path, destination=destination, dry_run=False) == told
    assert (files / there).exists()
    assert not (files / path).exists()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("tool", "path", "destination", "says"),
    [
        (
            "ai.move",
            "notes.txt",
            "docs/plan.md",
            "docs/plan.md already exists: choose another name, or delete it first",
        ),
        ("ai.copy", "notes.txt", "LICENSE", "LICENSE already exists: choose another name, or delete it first"),
        ("ai.move", "docs", "docs/inner", "cannot be moved into itself"),
        ("ai.move", ".", "docs", "the working folder itself"),
        ("ai.move", "gone.txt", "docs", "gone.txt does not exist"),
        ("ai.move", "notes.txt", "../out.txt", "outside the working folder"),
        ("ai.copy", "notes.txt", "../", "outside the working folder"),
        ("ai.copy", "docs", "papers", "docs is not a file"),
    ],
)
async def test_unsafe_moves_and_copies_are_refused(fail, files, unchanged, tool, path, destination, says, dry_run):
    unchanged()

    assert says in await fail(tool, path=path, destination=destination, dry_run=dry_run)


async def test_files_are_copied(succeed, files):
    (files / "notes.txt").chmod(0o640)

    told = await succeed("ai.copy", path="notes.txt", destination="backup/", dry_run=False)

    assert told == "Copied notes.txt to backup/notes.txt: 6 bytes"
    assert (files / "notes.txt").read_text() == (files / "backup/notes.txt").read_text() == "notes\n"
    assert stat.S_IMODE((files / "backup/notes.txt").stat().st_mode) == 0o640
    assert [entry.name for entry in (files / "backup").iterdir()] == ["notes.txt"]


async def test_files_and_empty_folders_are_deleted(succeed, fail, files):
    assert (await succeed("ai.delete", path="notes.txt")).startswith("Would delete notes.txt: 6 bytes")
    assert (files / "notes.txt").exists()

    assert await succeed("ai.delete", path="notes.txt", dry_run=False) == "Deleted notes.txt: 6 bytes"
    assert not (files / "notes.txt").exists()
    assert "not empty: first move or delete its content. It contains: plan.md" in await fail(
        "ai.delete", path="docs", dry_run=False
    )
    await succeed("ai.delete", path="docs/plan.md", dry_run=False)
    await succeed("ai.delete", path="docs", dry_run=False)
    assert not (files / "docs").exists()


async def test_a_link_is_moved_and_deleted_without_its_target(succeed, files):
    (files / "link").symlink_to("notes.txt")

    await succeed("ai.move", path="link", destination="docs/", dry_run=False)
    assert (files / "docs" / "link").is_symlink()
    await succeed("ai.delete", path="docs/link", dry_run=False)

    assert (files / "notes.txt").exists()
    assert not (files / "docs" / "link").is_symlink()


async def test_folders_are_made(succeed, fail, files):
    assert await succeed("ai.make_folder", path="a/b") == "Would make the folder a/b"
    assert not (files / "a").exists()
    await succeed("ai.make_folder", path="a/b", dry_run=False)
    assert (files / "a" / "b").is_dir()
    assert "already exists" in await fail("ai.make_folder", path="a/b")
