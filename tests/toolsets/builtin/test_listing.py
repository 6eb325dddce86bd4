"""`ai.list` and `ai.find`."""

import os
from datetime import datetime, timedelta

import pytest

PLANS = ["docs/plan.md", "docs/old/plan-2024.md"]


def day(ago: int) -> datetime:
    """Return this time `ago` days before today. Tests call it themselves, because midnight may pass during a run."""
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


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("list", {"path": "docs"}, ["docs/old", "docs/plan.md"]),
        ("list", {"path": "docs", "recursive": True}, ["docs/old", *PLANS]),
        ("list", {"pattern": "*.md"}, ["README.md", "link.md"]),
        ("list", {"pattern": "*.{txt,rst}"}, ["notes.txt"]),
        ("list", {"pattern": "PLAN"}, PLANS),
        ("list", {"pattern": "docs/*.md"}, PLANS[:1]),
        ("list", {"pattern": "docs/**/*.md"}, PLANS),
        ("list", {"pattern": "*.zip"}, []),
        ("list", {"hidden": True, "pattern": ".h*"}, [".hidden"]),
        ("list", {"pattern": "[.md"}, []),
        ("list", {"path": "notes.txt"}, ["notes.txt"]),
        ("list", {"path": "docs", "sort": "newest", "max_results": 1, "recursive": True, "pattern": "*.md"}, PLANS[:1]),
        ("find", {"name": "plan"}, PLANS),
        ("find", {"name": "plan.md"}, PLANS[:1]),
        ("find", {"name": "*.md", "path": "docs/old"}, PLANS[1:]),
        ("find", {"name": "old"}, ["docs/old"]),
        ("find", {"name": "markdown", "path": "docs"}, PLANS),
        ("find", {"name": "raedme"}, ["README.md"]),
        ("find", {"name": "nothing-like-it"}, []),
        ("find", {"larger_than": 299, "sort": "largest"}, ["notes.txt", "docs/plan.md"]),
        ("find", {"smaller_than": 10}, PLANS[1:]),
        ("find", {"sort": "largest", "max_results": 1}, ["notes.txt"]),
        ("find", {"changed_within_days": 2, "name": "*.t*"}, ["notes.txt"]),
        ("find", {"changed_before": 1}, PLANS),
        ("find", {"changed_after": 0}, ["README.md"]),
        ("find", {"sort": "oldest", "max_results": 1}, PLANS[1:]),
        ("find", {"name": "index.js"}, []),
        ("find", {"name": "index.js", "path": "node_modules"}, ["node_modules/x/index.js"]),
    ],
    ids=str,
)
async def test_lists_are_filtered_by_name_size_date_and_limit(call, files, tool, arguments, found):
    dates = {key: f"{day(arguments[key]):%Y-%m-%d}" for key in ("changed_before", "changed_after") if key in arguments}
    result = await call(f"ai.{tool}", **arguments | dates)
    assert result.success, result.error
    assert [entry["path"] for entry in result.structured["entries"]] == found


async def test_a_list_has_sizes_and_dates(succeed, files):
    answer = await succeed("ai.list")
    assert answer.splitlines()[0] == "3 files and 2 folders in the working folder:"
    assert f"notes.txt  (2,000 bytes, changed {day(1):%Y-%m-%d %H:%M})" in answer
    assert "docs/  (folder" in answer
    assert "link.md  (link" in answer
    assert ".hidden" not in answer


async def test_the_result_names_files_that_are_not_shown(succeed, files, monkeypatch):
    assert "[not shown: 1 folders of built or installed files]" in await succeed("ai.find", name="index.js")
    answer = await succeed("ai.find", name="plant-2025")
    assert answer.startswith("NOTHING FOUND in the working folder, named like plant-2025.")
    assert "Nearest: docs/old/plan-2024.md" in answer
    monkeypatch.setattr("packetgate.toolsets.builtin.tree.MAX_ENTRIES", 3)
    assert "beyond the limits" in await succeed("ai.list", recursive=True)


async def test_wrong_arguments_are_named(fail, files):
    assert "dosc does not exist in the working folder. Nearest: docs" in await fail("ai.list", path="dosc")
    assert "is a file, not a folder" in await fail("ai.find", path="notes.txt")
    assert "changed_after" in await fail("ai.find", changed_after="last Tuesday")
