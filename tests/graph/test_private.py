"""Stored files are readable by their owner only, even if they were open to others before."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def kept(home: Path) -> set[int]:
    """Return the modes of all files while the database is open."""
    settings = Settings(home=home)
    async with open_checkpointer(settings), open_store(settings):
        files = await asyncio.to_thread(lambda: [file for file in home.iterdir() if "packetgate.db" in file.name])
        assert {file.name for file in files} >= {"packetgate.db", "packetgate.db-wal"}
        return {mode(file) for file in files}


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Set the usual umask, under which new files are readable by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_new_files_are_private(tmp_path: Path):
    assert asyncio.run(kept(tmp_path / "home")) == {0o600}
    assert mode(tmp_path / "home") == 0o700


def test_existing_files_are_closed_to_others(tmp_path: Path):
    home = tmp_path / "home"
    asyncio.run(kept(home))
    home.chmod(0o755)
    for file in (home / "packetgate.db", home / "packetgate.db-wal"):
        file.touch()
        file.chmod(0o644)
    assert asyncio.run(kept(home)) == {0o600}
    assert mode(home) == 0o700


def test_a_folder_with_other_files_keeps_its_mode(tmp_path: Path):
    (tmp_path / "mine.txt").touch()
    tmp_path.chmod(0o755)
    assert asyncio.run(kept(tmp_path)) == {0o600}
    assert mode(tmp_path) == 0o755
