import os
import stat
import time
from pathlib import Path

import pytest

from packetgate.tools.text import result_store
from packetgate.tools.text.result_store import (
    _LINE_CHARS,
    HANDLE_PREFIX,
    MAX_RESULTS,
    MAX_STORED_BYTES,
    RESULT_AGE_S,
    ResultStore,
    session_results,
)
from packetgate.toolsets.builtin.files import NotTextError
from packetgate.toolsets.builtin.reading import LineRange, read_stored


@pytest.fixture
def kept(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "home" / "kept")


def test_a_session_reads_only_its_own_results(kept: ResultStore, tmp_path: Path):
    with session_results("one"):
        handle = kept.keep("first\n" + "x" * (_LINE_CHARS + 5))
        assert handle.startswith(HANDLE_PREFIX)
        assert kept.read(handle) == "first\n" + "x" * _LINE_CHARS + "\nxxxxx"
    with session_results("two"):
        assert kept.read(handle) is None
        assert kept.read(f"{HANDLE_PREFIX}../{handle.removeprefix(HANDLE_PREFIX)}") is None
    assert kept.read(handle) is None
    assert kept.keep("of nobody") == ""
    files = [file for file in (tmp_path / "home" / "kept").rglob("*") if file.is_file()]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600]
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700


def test_the_number_of_results_is_limited(kept: ResultStore):
    with session_results("one"):
        handles = [kept.keep(f"text {number}") for number in range(MAX_RESULTS + 5)]
        left = [handle for handle in handles if kept.read(handle) is not None]
    assert len(left) == MAX_RESULTS
    assert handles[-1] in left


def test_old_and_excess_results_are_removed(kept: ResultStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with session_results("old"):
        kept.keep("old")
    (old,) = (tmp_path / "home" / "kept").glob("*/*")
    os.utime(old, (0, time.time() - RESULT_AGE_S - 60))
    with session_results("new"):
        handle = kept.keep("new")
        assert kept.read(handle) == "new"
    assert not old.exists()
    monkeypatch.setattr(result_store, "_MAX_TOTAL_BYTES", 0)
    with session_results("newer"):
        last = kept.keep("newer")
        assert kept.read(last) == "newer"
    with session_results("new"):
        assert kept.read(handle) is None


def test_a_file_is_stored_unchanged_and_not_read_as_text(kept: ResultStore):
    data = b"\x89PNG\r\n\x1a\n\xff"
    with session_results("one"):
        handle = kept.keep(data)
        file = kept.file(handle, "one")
        assert file is not None
        assert file.read_bytes() == data
        with pytest.raises(NotTextError, match=f"{handle} is not text"):
            read_stored(kept, handle, LineRange())
        assert kept.keep(bytes(MAX_STORED_BYTES + 1)) == ""
    assert kept.file(handle, "two") is None
    assert kept.file(f"{HANDLE_PREFIX}{'a' * 5_000}", "one") is None
