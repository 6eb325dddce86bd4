"""Decisions are the same on every processor, native or emulated without newer instructions."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.programs import require

ROOT = Path(__file__).parents[2]
DECIDED = ROOT / "tests" / "support" / "decided.py"
PROCESSORS = ("Haswell", "Nehalem")
"""Haswell: AVX2 without VNNI, so that 16-bit sums saturate. Nehalem: no AVX and no fused multiplication."""
REQUESTS = 60
MAX_DIFFERENCES = 1
"""Number of requests whose decisions may differ."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def native() -> list[list[Any]]:
    return _decided()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_an_emulated_processor_decides_the_same(processor: str, native: list[list[Any]]) -> None:
    emulated = _decided(require("qemu-x86_64"), "-cpu", processor)
    differences = [(here, there) for here, there in zip(native, emulated, strict=True) if here != there]
    assert len(differences) <= MAX_DIFFERENCES, differences


def _decided(*emulator: str) -> list[list[Any]]:
    # the environment must not override the emulated processor
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    done = subprocess.run(
        [*emulator, sys.executable, str(DECIDED), str(REQUESTS)],
        env={**inherited, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[Any]] = json.loads(done.stdout)
    assert len({one[0] for one in found}) > 3
    return found
