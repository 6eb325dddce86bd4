"""`ai.move`, `ai.copy`, `ai.delete` and `ai.make_folder`."""

import stat

import pytest


@pytest.fixture
def files(folder):
    (folder / "docs").mkdir()
    (folder / "empty").mkdir()
    (folder / "docs" / "plan.md").write_text("plan\n")
    (folder / "notes.txt").write_text("notes\n")
    (folder / "LICENSE").write_text("free\n")
    (folder / "link").symlink_to("notes.txt")
    return folder


@pytest.mark.parametrize(
    ("tool", "path", "destination", "message", "there"),
    [
        *(
            ("move", path, destination, f"Moved {path} to {there}", there)
            for path, destination, there in (
                ("notes.txt", "docs", "docs/notes.txt"),
                ("notes.txt", "docs/", "docs/notes.txt"),
                ("notes.txt", "archive", "archive/notes.txt"),
                ("notes.txt", "archive/2026/", "archive/2026/notes.txt"),
                ("docs/plan.md", "./roadmap.md", "roadmap.md"),
                ("docs/plan.md", ".", "plan.md"),
                ("docs/plan.md", "plan.md", "plan.md"),
                ("link", "docs/", "docs/link"),
            )
        ),
        ("move", "notes.txt", "ideas.txt", "Renamed notes.txt to ideas.txt", "ideas.txt"),
        ("move", "docs/plan.md", "roadmap.md", "Renamed docs/plan.md to docs/roadmap.md", "docs/roadmap.md"),
        ("move", "LICENSE", "COPYING", "Renamed LICENSE to COPYING", "COPYING"),
        ("move", "docs", "papers", "Renamed docs to papers", "papers/plan.md"),
        ("copy", "notes.txt", "backup/", "Copied notes.txt to backup/notes.txt: 6 bytes", "backup/notes.txt"),
        ("delete", "notes.txt", None, "Deleted notes.txt: 6 bytes", None),
        ("delete", "link", None, "Deleted link", None),
        ("delete", "empty", None, "Deleted ", None),
        ("make_folder", "a/b", None, "Made the folder a/b", "a/b"),
    ],
)
async def test_files_and_folders_are_changed_after_a_dry_run(succeed, files, tool, path, destination, message, there):
    (files / "notes.txt").chmod(0o640)
    arguments = {"path": path, **({"destination": destination} if destination else {})}
    before = sorted(files.rglob("*"))
    dry = await succeed(f"ai.{tool}", **arguments)
    assert dry.startswith("Would ")
    assert dry.split(" ", 2)[2].startswith(message.split(" ", 1)[1])
    assert sorted(files.rglob("*")) == before
    assert (await succeed(f"ai.{tool}", **arguments, dry_run=False)).startswith(message)
    assert there is None or (files / there).is_symlink() or (files / there).exists()
    assert (files / path).exists() is (tool in {"copy", "make_folder"})
    if tool == "copy":
        assert stat.S_IMODE((files / there).stat().st_mode) == 0o640
        assert (files / there).read_text() == "notes\n"
    if path == "link":
        assert (files / "notes.txt").exists()
        assert not (files / "link").is_symlink()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("tool", "path", "destination", "says"),
    [
        ("move", "notes.txt", "docs/plan.md", "docs/plan.md already exists: choose another name, or delete it first"),
        ("copy", "notes.txt", "LICENSE", "LICENSE already exists: choose another name, or delete it first"),
        ("move", "docs", "docs/inner", "cannot be moved into itself"),
        ("move", ".", "docs", "the working folder itself"),
        ("move", "gone.txt", "docs", "gone.txt does not exist"),
        ("move", "notes.txt", "../out.txt", "outside the working folder"),
        ("copy", "notes.txt", "../", "outside the working folder"),
        ("copy", "docs", "papers", "docs is not a file"),
        ("delete", "docs", None, "not empty: first move or delete its content. It contains: plan.md"),
        ("make_folder", "docs", None, "already exists"),
    ],
)
async def test_unsafe_changes_are_refused(fail, files, unchanged, tool, path, destination, says, dry_run):
    unchanged()
    arguments = {"path": path, **({"destination": destination} if destination else {})}
    assert says in await fail(f"ai.{tool}", **arguments, dry_run=dry_run)
