"""An undo restores files exactly or is refused, even after kills and with other processes."""

import asyncio
import os
import random
import sqlite3
from pathlib import Path

import pytest
from support.undo_desk import UndoDesk

from packetgate.tools.text.result_store import session_results
from packetgate.toolsets.builtin import undo_store
from packetgate.toolsets.builtin.undo_store import History


@pytest.fixture
def desk(tmp_path: Path) -> UndoDesk:
    desk = UndoDesk(tmp_path)
    (desk.root / "plan.txt").write_text("one\ntwo\n")
    (desk.root / "plan.txt").chmod(0o640)
    (desk.root / "photo.bin").write_bytes(b"\0\xff" * 100)
    (desk.root / "link").symlink_to("plan.txt")
    (desk.root / "empty").mkdir(mode=0o750)
    (desk.root / "sub/deep").mkdir(parents=True)
    (desk.root / "sub/deep/note.md").write_text("note\n")
    return desk


CHANGES = {
    "create": ("write", {"path": "new/folder/a.txt", "content": "hello"}),
    "overwrite": ("write", {"path": "plan.txt", "content": "other", "mode": "overwrite"}),
    "append": ("append", {"path": "plan.txt", "text": "three"}),
    "append to a new file": ("append", {"path": "log.txt", "text": "three"}),
    "edit": ("edit", {"path": "plan.txt", "old_text": "two", "new_text": "2"}),
    "move a file": ("move", {"path": "plan.txt", "destination": "far/away/plan.txt"}),
    "rename a folder": ("move", {"path": "sub", "destination": "renamed"}),
    "move a link": ("move", {"path": "link", "destination": "sub/"}),
    "copy": ("copy", {"path": "photo.bin", "destination": "backup/"}),
    "delete a file": ("delete", {"path": "plan.txt"}),
    "delete a binary file": ("delete", {"path": "photo.bin"}),
    "delete a link": ("delete", {"path": "link"}),
    "delete a folder": ("delete", {"path": "empty"}),
    "make folders": ("make_folder", {"path": "a/b/c"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_undone_and_redone(desk: UndoDesk, name: str) -> None:
    tool, arguments = CHANGES[name]
    before = desk.tree()
    changed = desk.do(tool, **arguments)
    after = desk.tree()
    assert after != before
    assert "Would undo" in desk.call("undo", dry_run=True).output
    assert desk.tree() == after
    undone = desk.do("undo")
    assert desk.tree() == before
    assert "already undone" in desk.refused(change=changed)
    assert "no change that can be undone" in desk.refused()
    redone = desk.do("undo", change=undone[:8])
    assert desk.tree() == after
    desk.do("undo", change=redone)
    assert desk.tree() == before


def test_a_restored_file_has_its_permissions_and_time(desk: UndoDesk) -> None:
    os.utime(desk.root / "plan.txt", ns=(10**18, 10**18))
    desk.do("delete", path="plan.txt")
    desk.do("undo")
    status = (desk.root / "plan.txt").stat()
    assert (status.st_mode & 0o777, status.st_mtime_ns) == (0o640, 10**18)


@pytest.mark.parametrize("seed", range(3))
def test_any_chain_of_changes_is_undone(desk: UndoDesk, seed: int) -> None:
    rng, states = random.Random(seed), [desk.tree()]
    names = [f"{folder}{name}" for folder in ("", "x/", "sub/", "x/y/") for name in ("plan.txt", "b.md", "link", "z")]
    while len(states) < 12:
        path, other = rng.choice(names), rng.choice(names)
        tool, arguments = rng.choice(
            [
                ("write", {"path": path, "content": str(rng.random()), "mode": rng.choice(["create", "overwrite"])}),
                ("append", {"path": path, "text": "more"}),
                ("move", {"path": path, "destination": other}),
                ("move", {"path": rng.choice(["x", "sub"]), "destination": rng.choice(["x2", "sub", "sub/"])}),
                ("copy", {"path": path, "destination": other}),
                ("delete", {"path": path}),
                ("delete", {"path": rng.choice(["x", "x/y", "empty"])}),
                ("make_folder", {"path": rng.choice(["x/y", "q/r", "sub/new"])}),
            ]
        )
        if desk.call(tool, **arguments).success:
            states.append(desk.tree())
    for state in reversed(states[:-1]):
        desk.do("undo")
        assert desk.tree() == state


def test_a_named_change_is_undone_after_later_changes_of_its_path(desk: UndoDesk) -> None:
    first = desk.do("edit", path="plan.txt", old_text="one", new_text="1")
    second = desk.do("edit", path="plan.txt", old_text="two", new_text="2")
    aside = desk.do("write", path="other.txt", content="x")
    assert "has other content now" in desk.refused(change=first)
    desk.do("undo", change=second)
    desk.do("undo", change=first)
    assert (desk.root / "plan.txt").read_text() == "one\ntwo\n"
    assert (desk.root / "other.txt").exists()
    desk.do("undo", path="other.txt")
    assert "already undone" in desk.refused(change=aside)


def test_a_moved_folder_returns_with_its_new_files(desk: UndoDesk) -> None:
    moved = desk.do("move", path="sub", destination="new")
    desk.do("write", path="new/deep/later.md", content="x")
    desk.do("undo", change=moved)
    assert (desk.root / "sub/deep/later.md").read_text() == "x"


def _replace(path: Path, by: str) -> None:
    path.unlink()
    if by == "a folder":
        path.mkdir()
    elif by:
        (path.parent / "elsewhere").write_text("two", encoding="utf-8")
        path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("interfere", "says"),
    [
        (lambda path: path.write_text("mine"), "has other content now"),
        (lambda path: _replace(path, ""), "does not exist any more"),
        (lambda path: _replace(path, "a folder"), "is now a folder"),
        (lambda path: _replace(path, "a link"), "is now a link"),
    ],
)
@pytest.mark.parametrize("change", ["create", "edit", "move a file", "copy"])
def test_a_target_that_changed_since_is_refused(desk: UndoDesk, change: str, interfere, says: str) -> None:
    tool, arguments = CHANGES[change]
    desk.do(tool, **arguments)
    interfere(desk.root / desk.history.undoable[0].paths[-1])
    assert says in desk.refused()
    assert says in str(desk.call("undo", dry_run=True).error)


def test_a_new_file_at_the_old_place_is_kept(desk: UndoDesk) -> None:
    desk.do("delete", path="plan.txt")
    (desk.root / "plan.txt").write_text("new")
    assert "exists again" in desk.refused()
    desk.do("move", path="photo.bin", destination="moved.bin")
    (desk.root / "photo.bin").mkdir()
    assert "exists again, as a folder" in desk.refused()


def test_a_folder_with_new_content_is_not_removed(desk: UndoDesk) -> None:
    desk.do("make_folder", path="a/b")
    (desk.root / "a/b/mine.txt").write_text("x")
    assert "is not empty" in desk.refused()
    desk.do("write", path="c/d/new.txt", content="x")
    (desk.root / "c/mine.txt").write_text("x")
    desk.do("undo")
    assert sorted(path.name for path in (desk.root / "c").iterdir()) == ["mine.txt"]


def test_nothing_is_restored_through_a_link_or_into_a_missing_folder(desk: UndoDesk, tmp_path: Path) -> None:
    desk.do("delete", path="sub/deep/note.md")
    (desk.root / "sub/deep").rename(tmp_path / "deep")
    assert "sub/deep does not exist any more" in desk.refused()
    (desk.root / "sub/deep").symlink_to(tmp_path / "deep")
    assert "cannot" in desk.refused()
    assert not (tmp_path / "deep/note.md").exists()
    (desk.root / "sub/deep").unlink()
    (desk.root / "sub/deep").write_text("a file")
    assert "cannot" in desk.refused()


def test_a_file_that_is_too_large_is_not_stored(desk: UndoDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    with (desk.root / "big.bin").open("wb") as file:
        file.truncate(undo_store.MAX_UNDO_BYTES + 1)
    assert "this cannot be undone: files above 10 MB" in desk.call("delete", path="big.bin", dry_run=True).output
    assert "cannot be undone" not in desk.call("delete", path="plan.txt", dry_run=True).output
    desk.do("copy", path="big.bin", destination="copy.bin")
    assert "this cannot be undone" in desk.call("undo", dry_run=True).output
    desk.do("undo")
    desk.do("move", path="big.bin", destination="sub/big.bin")
    desk.do("undo")
    desk.do("delete", path="big.bin")
    assert "files above 10 MB are not stored" in desk.refused()


def test_the_oldest_contents_are_deleted_at_the_size_limit(desk: UndoDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_store, "MAX_TOTAL_BYTES", 250)
    first = desk.do("delete", path="photo.bin")
    (desk.root / "second.bin").write_bytes(b"\1" * 100)
    desk.do("delete", path="second.bin")
    assert "not stored any more" in desk.refused(change=first)
    desk.do("undo")
    assert (desk.root / "second.bin").read_bytes() == b"\1" * 100


def test_sessions_undo_only_their_own_changes(desk: UndoDesk, tmp_path: Path) -> None:
    mine, other = desk.do("delete", path="plan.txt"), UndoDesk(tmp_path, "t")
    assert "this session has no change" in other.refused()
    assert "no recorded change" in other.refused(change=mine)
    other.do("write", path="plan.txt", content="by t")
    assert "exists again" in desk.refused()
    parked, client = UndoDesk(tmp_path, "proxy-0a1b-22"), UndoDesk(tmp_path, "proxy-0a1b")
    parked.do("write", path="p.txt", content="x")
    client.do("undo")
    assert not (desk.root / "p.txt").exists()


def test_forgetting_a_session_erases_its_contents(desk: UndoDesk, tmp_path: Path) -> None:
    (desk.root / "plan.txt").write_text("a very private sentence")
    desk.do("delete", path="plan.txt")
    UndoDesk(tmp_path, "t").do("write", path="t.txt", content="x")
    assert b"very private" in (desk.home / "undo.db").read_bytes()
    desk.store.forget("s")
    assert b"very private" not in (desk.home / "undo.db").read_bytes()
    assert "no change" in desk.refused()
    assert [change.session for change in desk.store.changes()] == ["t"]


def test_the_store_is_private(desk: UndoDesk) -> None:
    desk.do("delete", path="plan.txt")
    assert {file.stat().st_mode & 0o777 for file in desk.home.iterdir()} == {0o600}
    assert desk.home.stat().st_mode & 0o777 == 0o700


def test_a_store_that_cannot_be_written_stops_the_change(desk: UndoDesk) -> None:
    desk.home.mkdir()
    (desk.home / "undo.db").write_bytes(b"no database at all" * 100)
    assert "nothing was changed" in desk.refused("delete", path="plan.txt")
    assert "nothing was changed" in desk.refused("write", path="new.txt", content="x")


def test_secret_files_are_undone_without_showing_them(desk: UndoDesk) -> None:
    (desk.root / ".env").write_text("TOKEN=abcdefgh12345678\n")
    desk.do("append", path=".env", text="A=1")
    shown = desk.call("undo", dry_run=True).output
    assert "no difference shown" in shown
    assert "abcdefgh" not in shown
    desk.do("undo")
    assert (desk.root / ".env").read_text() == "TOKEN=abcdefgh12345678\n"


def test_the_arguments_name_the_change_and_its_paths(desk: UndoDesk) -> None:
    moved = desk.do("move", path="plan.txt", destination="b.txt")
    (spec,) = (spec for spec in desk.server.tool_specs() if spec.upstream_name == "undo")
    complete = {"change": moved, "path": "plan.txt", "destination": "b.txt"}
    assert spec.resolve_arguments is not None
    with session_results("s"):
        assert spec.resolve_arguments({"path": "other.txt"}) == {"path": "other.txt"}
        assert spec.resolve_arguments({"change": moved[:6], "path": "other.txt"}) == complete
        for wrong in ({"change": moved}, {"change": moved, "path": "plan.txt"}):
            assert "is not a change of" in str(asyncio.run(desk.server.call("undo", wrong)).error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "step"),
    [
        ("create", "link"),
        ("overwrite", "replace"),
        ("edit", "replace"),
        ("move a file", "link"),
        ("move a file", "unlink"),
        ("rename a folder", "rename"),
        ("copy", "link"),
        ("delete a file", "unlink"),
        ("delete a folder", "rmdir"),
        ("make folders", "mkdir"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_change_is_undone_or_reported(desk: UndoDesk, change: str, step: str, when: str) -> None:
    earlier = desk.do("write", path="earlier.txt", content="x")
    tool, arguments = CHANGES[change]
    before = desk.tree()
    assert desk.start(tool, call_id="c" * 32, kill=f"{when} {step}", **arguments).wait(60) == -9
    middle, result = desk.tree(), desk.call("undo")
    if not result.success:  # neither the old nor the new state, so nothing is changed
        assert "not known whether it finished" in str(result.error)
        assert desk.tree() == middle
        assert desk.history.undoable[0].status == "unknown"
        return
    is_last = "c" * 8 in result.output
    assert is_last == any(change.call_id == "c" * 32 for change in desk.history.changes)
    assert {**desk.tree(), **({} if is_last else {"earlier.txt": before["earlier.txt"]})}.items() >= before.items()
    assert desk.history.is_undone(desk.history.find(earlier)) is not is_last


@pytest.mark.slow
@pytest.mark.parametrize("kill", ["before replace", "after replace"])
def test_a_killed_undo_destroys_nothing(desk: UndoDesk, kill: str) -> None:
    desk.do("write", path="plan.txt", content="new", mode="overwrite")
    assert desk.start("undo", kill=kill).wait(60) == -9
    result = desk.call("undo")
    assert (desk.root / "plan.txt").read_text() == "one\ntwo\n"
    assert result.success is (kill == "before replace")
    assert "no change that can be undone" in desk.refused()


@pytest.mark.slow
def test_only_one_of_two_processes_undoes_a_change(desk: UndoDesk) -> None:
    for _ in range(3):
        desk.do("append", path="plan.txt", text="more")
        changed = desk.do("append", path="plan.txt", text="most")
        processes = [desk.start("undo", change=changed) for _ in range(2)]
        ends = sorted(process.communicate(timeout=60)[0] for process in processes)
        assert ends[0].startswith("Undid")
        assert "already undone" in ends[1]
        desk.do("undo")
    assert (desk.root / "plan.txt").read_text() == "one\ntwo\n"


def test_a_forked_process_does_not_keep_the_lock(desk: UndoDesk) -> None:
    with desk.store.lock():
        read, write = os.pipe()
        if not (child := os.fork()):
            os.close(write)
            os.read(read, 1)  # ends when the parent closes the pipe
            os._exit(0)
    os.close(read)
    try:
        desk.do("delete", path="plan.txt")
    finally:
        os.close(write)
        os.waitpid(child, 0)


def test_an_old_record_of_another_folder_is_left_alone(desk: UndoDesk, tmp_path: Path) -> None:
    desk.do("delete", path="plan.txt")
    with sqlite3.connect(desk.home / "undo.db") as database:
        database.execute("UPDATE records SET status = 'started'")
    (tmp_path / "other").mkdir()
    other = UndoDesk(tmp_path / "other")
    other.store._path = desk.store._path
    assert "no change" in other.refused()
    assert not History(desk.store.changes(), "s", str(other.root)).changes
    desk.do("undo")


def test_a_change_whose_end_cannot_be_recorded_is_reported_and_undone(desk: UndoDesk) -> None:
    desk.do("append", path="plan.txt", text="three")
    with sqlite3.connect(desk.home / "undo.db") as database:
        database.execute("CREATE TRIGGER full BEFORE UPDATE ON records BEGIN SELECT RAISE(FAIL, 'disk full'); END")
    database.close()
    assert "Appended" in desk.call("append", path="plan.txt", text="four").output, "the file was changed"
    with sqlite3.connect(desk.home / "undo.db") as database:
        database.execute("DROP TRIGGER full")
    database.close()
    desk.do("undo")
    assert (desk.root / "plan.txt").read_text() == "one\ntwo\nthree\n"
