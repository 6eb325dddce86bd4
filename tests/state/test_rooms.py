"""A foreign distribution that brings a package called `state` or `graph` must not stand before ours."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ROOMS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


def test_there_are_eight():
    assert len(ROOMS) == 8


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_this_checkouts(room: str):
    assert Path(import_module(room).__file__ or "").resolve() == CHECKOUT / room / "__init__.py"


def test_they_are_also_found_from_elsewhere(tmp_path: Path):
    show = "; ".join(f"import {room}; print({room}.__file__)" for room in ROOMS)
    found = subprocess.run([sys.executable, "-c", show], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [str(CHECKOUT / room / "__init__.py") for room in ROOMS]
