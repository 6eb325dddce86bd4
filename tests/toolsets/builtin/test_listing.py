import os
from datetime import datetime, timedelta

import pytest


def day(ago: int) -> datetime:
    """Return this time `ago` days before today: asked when a test runs, as midnight may pass in a run."""
    return datetime.now() - timedelta(days=ago)


@pytest.fixture
def files(folder):
    (folder / "docs" / "old").mkdir(parents=True)
    (folder / "node_modules" / "x").mkdir(parents=True)
    sizes = {"README.md": 10, "notes.txt": 2_000, "docs/plan.md": 300, "docs/old/plan-2024.md": 5}
    for days, (name, size) in enumerate(sizes.items()):
        (folder / name).write_text("x" * size)
        changed = day(days).timestamp()
        os.utime(folder / name, (changed, changed))
    (folder / "node_modules" / "x" / "index.js").touch()
    (folder / ".hidden").touch()
    (folder / "link.md").symlink_to("README.md")
    return folder


@pytest.fixture
def entries(call):
    async def entries(tool, **arguments):
        result = await call(tool, **arguments)
        assert result.success, result.error
        return [entry["path"] for entry in result.structured["entries"]]

    return entries


async def test_a_list_has_sizes_and_dates(succeed, files):
    answer = await succeed("ai.list")

    assert answer.splitlines()[0] == "3 files and 2 folders in the working folder:"
    assert f"notes.txt  (2,000 bytes, changed {day(1):%Y-%m-%d %H:%M})" in answer
    assert "docs/  (folder" in answer
    assert "link.md  (link" in answer
    assert ".hidden" not in answer


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"path": "docs"}, ["docs/old", "docs/plan.md"]),
        ({"path": "docs", "recursive": True}, ["docs/old", "docs/plan.md", "docs/old/plan-2024.md"]),
        ({"pattern": "*.md"}, ["README.md", "link.md"]),
        ({"pattern": "*.{txt,rst}"}, ["notes.txt"]),
        ({"pattern": "PLAN"}, ["docs/plan.md", "docs/old/plan-2024.md"]),
        ({"pattern": "docs/*.md"}, ["docs/plan.md"]),
        ({"pattern": "docs/**/*.md"}, ["docs/plan.md", "docs/old/plan-2024.md"]),
        ({"pattern": "*.zip"}, []),
        ({"hidden": True, "pattern": ".h*"}, [".hidden"]),
        ({"pattern": "[.md"}, []),
        ({"path": "notes.txt"}, ["notes.txt"]),
        ({"path": "docs", "sort": "newest", "max_results": 1, "recursive": True, "pattern": "*.md"}, ["docs/plan.md"]),
    ],
    ids=str,
)
async def test_sorting_patterns_and_limits_of_lists(entries, files, arguments, found):
    assert await entries("ai.list", **arguments) == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"name": "plan"}, ["docs/plan.md", "docs/old/plan-2024.md"]),
        ({"name": "plan.md"}, ["docs/plan.md"]),
        ({"name": "*.md", "path": "docs/old"}, ["docs/old/plan-2024.md"]),
        ({"name": "old"}, ["docs/old"]),
        ({"name": "markdown", "path": "docs"}, ["docs/plan.md", "docs/old/plan-2024.md"]),
        ({"name": "raedme"}, ["README.md"]),
        ({"name": "nothing-like-it"}, []),
        ({"larger_than": 299, "sort": "largest"}, ["notes.txt", "docs/plan.md"]),
        ({"smaller_than": 10}, ["docs/old/plan-2024.md"]),
        ({"sort": "largest", "max_results": 1}, ["notes.txt"]),
        ({"changed_within_days": 2, "name": "*.t*"}, ["notes.txt"]),
        ({"changed_before": 1}, ["docs/plan.md", "docs/old/plan-2024.md"]),
        ({"changed_after": 0}, ["README.md"]),
        ({"sort": "oldest", "max_results": 1}, ["docs/old/plan-2024.md"]),
        ({"name": "index.js"}, []),
        ({"name": "index.js", "path": "node_modules"}, ["node_modules/x/index.js"]),
    ],
    ids=str,
)
async def test_find_filters_by_name_size_and_date(entries, files, arguments, found):
    dates = {key: f"{day(arguments[key]):%Y-%m-%d}" for key in ("changed_before", "changed_after") if key in arguments}
    arguments = arguments | dates

    assert await entries("ai.find", **arguments) == found


async def test_skipped_folders_are_counted(succeed, files):
    assert "[not shown: 1 folders of built or installed files]" in await succeed("ai.find", name="index.js")


async def test_the_nearest_names_are_shown_if_nothing_is_found(succeed, files):
    answer = await succeed("ai.find", name="plant-2025")

    assert answer.startswith("NOTHING FOUND in the working folder, named like plant-2025.")
    assert "Nearest: docs/old/plan-2024.md" in answer


async def test_wrong_arguments_are_named(fail, files):
    assert "dosc does not exist in the working folder. Nearest: docs" in await fail("ai.list", path="dosc")
    assert "is a file, not a folder" in await fail("ai.find", path="notes.txt")
    assert "changed_after" in await fail("ai.find", changed_after="last Tuesday")


async def test_the_number_of_entries_is_limited(succeed, files, monkeypatch):
    monkeypatch.setattr("packetgate.toolsets.builtin.tree.MAX_ENTRIES", 3)

    assert "beyond the limits" in await succeed("ai.list", recursive=True)
