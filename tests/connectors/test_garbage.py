"""Garbage collection: rare during start-up, and unchanged for programs that import Packetgate."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.turn_places import Place

from packetgate.connectors import process
from packetgate.connectors.opening import open_sessions
from packetgate.graph.settings import Settings


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Restore the threshold."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def test_collection_is_restored_when_sessions_are_open(place: Place) -> None:
    process.raise_gc_threshold()
    assert gc.get_threshold()[0] == process.STARTING
    async with open_sessions(place.settings):
        assert gc.get_threshold()[0] == process.STARTED


async def test_a_program_keeps_its_own_threshold(tmp_path: Path) -> None:
    gc.set_threshold(500)
    frozen = gc.get_freeze_count()
    async with open_sessions(Settings(home=tmp_path, root=tmp_path)):
        assert (gc.get_threshold()[0], gc.get_freeze_count()) == (500, frozen)
