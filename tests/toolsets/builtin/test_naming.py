"""Files named by base name, without suffix or with a typo are resolved before a call is checked."""

import pytest
from support.builtin_tools import ALL

from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_and_validate
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.builtin.paths import matching_paths
from packetgate.toolsets.servers.opening import builtin_servers

FILES = (
    "README.md data/budget.csv data/prices.csv notes/meeting-notes.txt notes/todo.txt src/app/main.py plan_1.md"
    " plan_2.md a/same.txt b/same.txt docs/Guide.md .hidden.txt .env keys/server.pem chapter_a.txt"
).split()


@pytest.fixture
def files(folder):
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.fixture
async def checked(files):
    servers = builtin_servers(files)
    for server in servers.values():
        await server.connect(old_session=0)
    catalogue = Catalogue([spec for server in servers.values() for spec in server.specs])
    return lambda name, **params: repair_and_validate(name, params, frozenset(ALL), catalogue, words="")


FOUND = {
    "budget.csv": "data/budget.csv",
    "BUDGET.CSV": "data/budget.csv",
    "budget": "data/budget.csv",
    "the readme": "README.md",
    "readme file": "README.md",
    "my meeting notes": "notes/meeting-notes.txt",
    "meeting_notes": "notes/meeting-notes.txt",
    "app/main.py": "src/app/main.py",
    "other/main.py": "src/app/main.py",
    "todos": "notes/todo.txt",
    "bugdet.csv": "data/budget.csv",
    "meetng notes": "notes/meeting-notes.txt",
    "docs/guide": "docs/Guide.md",
    "guide.md": "docs/Guide.md",
    "budget data": "data/budget.csv",
    "notes of the meeting": "notes/meeting-notes.txt",
    "to-do list": "notes/todo.txt",
}
UNCLEAR = ["same.txt", "plan_3.md", "plan", "chapter_b.txt", "hidden.txt", "env", "server.pem", "xyz", "", "../x", "*"]


async def test_a_file_is_found_by_an_inexact_name(checked):
    calls = {name: checked("ai.read", path=name) for name in FOUND}

    assert {name: call.params["path"] for name, call in calls.items()} == FOUND
    assert {one.problem for call in calls.values() for one in call.repairs} == {"named_nearly"}
    assert not any(call.problems for call in calls.values())


async def test_an_ambiguous_or_unknown_name_stays_unchanged(checked):
    assert [checked("ai.read", path=name).params["path"] for name in UNCLEAR] == UNCLEAR


async def test_an_existing_path_is_never_replaced(checked, files):
    (files / "budget").write_text("its own file")

    assert checked("ai.read", path="budget").params == {"path": "budget"}
    assert checked("ai.read", path="./notes/../budget").params == {"path": "budget"}
    assert checked("ai.read", path=str(files / "data" / "budget.csv")).params == {"path": "data/budget.csv"}


MEANT = [
    ("ai.list", {"path": "Data"}, "data"),
    ("ai.count", {"path": "budget.csv"}, "data/budget.csv"),
    ("ai.search", {"query": "x", "path": "todo"}, "notes/todo.txt"),
    ("ai.append", {"path": "todo", "text": "x"}, "notes/todo.txt"),
    ("ai.delete", {"path": "todo"}, "notes/todo.txt"),
    ("ai.move", {"path": "todo", "destination": "x/"}, "notes/todo.txt"),
    ("ai.write", {"path": "todo", "content": "x"}, "todo"),
    ("ai.make_folder", {"path": "dat"}, "dat"),
    ("ai.write", {"path": "the readme", "content": "x", "mode": "overwrite"}, "README.md"),
    # strict, because the path of a move or deletion is never guessed
    ("ai.delete", {"path": "bugdet.csv"}, "bugdet.csv"),
    ("ai.delete", {"path": "other/main.py"}, "other/main.py"),
    ("ai.delete", {"path": "DATA/budget.csv"}, "data/budget.csv"),
    ("ai.copy", {"path": "redme", "destination": "x/"}, "redme"),
]


async def test_every_tool_resolves_its_paths(checked):
    for tool, params, path in MEANT:
        assert checked(tool, **params).params == {**params, "path": path}, tool


async def test_a_resolved_destination_keeps_its_slashes(checked, files):
    def destination(name):
        return checked("ai.move", path="README.md", destination=name).params["destination"]

    assert destination("new.md") == "new.md"
    assert destination(f"{files}/new.md") == "./new.md"
    assert destination(f"{files}/old/") == "./old/"


async def test_a_link_is_read_as_its_target_but_deleted_itself(checked, files):
    (files / "link").symlink_to("data/budget.csv")
    (files / "innocent.txt").symlink_to(".env")

    assert checked("ai.read", path="link").params == {"path": "data/budget.csv"}
    assert checked("ai.read", path="innocent.txt").params == {"path": ".env"}
    assert checked("ai.delete", path="link").params == {"path": "link"}


async def test_a_failure_names_the_candidates(fail, files):
    assert (
        await fail("ai.read", path="same.txt")
        == "same.txt may be one of: a/same.txt, b/same.txt. Name one of these paths"
    )
    assert await fail("ai.read", path="budget") == (
        "budget does not exist in the working folder. Nearest: data/budget.csv"
    )


def test_files_and_folders_are_distinguished(files):
    root = Root(files)

    assert matching_paths(root, "note", "folder").names == ("notes",)
    assert matching_paths(root, "notes", "file").names == ("notes/meeting-notes.txt",)
    assert matching_paths(root, "app", "file").names == ()
