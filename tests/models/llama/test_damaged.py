"""No GGUF file ends the process: one clear error, or a model that works."""

import asyncio
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from packetgate.models.llama.loading import try_file
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ModelError

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    id: str
    damage: Callable[[bytes], bytes]
    error: str


def instead(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda whole: whole.replace(old, new, 1)


def behind(name: bytes, value: bytes, skipped: int = 4) -> Callable[[bytes], bytes]:
    """Put a value behind a name and its type."""

    def damage(whole: bytes) -> bytes:
        at = whole.index(name) + len(name) + skipped
        return whole[:at] + value + whole[at + len(value) :]

    return damage


CASES = [
    Case("empty", lambda _: b"", "is not a GGUF model"),
    Case("cut in its weights", lambda whole: whole[:-1000], "cannot load"),
    Case("no tokenizer", instead(b"tokenizer.ggml.model", b"tokenizer.ggml.mudel"), "cannot load|aborts on"),
    Case("no layers", behind(b"llama.block_count", bytes(4)), "aborts on"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_damaged_file_is_one_clear_error(case: Case, tiny_gguf: Path, tmp_path: Path):
    path = tmp_path / "damaged.gguf"
    path.write_bytes(case.damage(tiny_gguf.read_bytes()))
    with pytest.raises(ModelError, match=case.error) as refused:
        asyncio.run(ModelPool(f"llamacpp:{path}").get("lite"))
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_is_tried_once(tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asyncio.run(ModelPool(f"llamacpp:{tiny_gguf}").get("lite"))
    passed = [*tmp_path.glob("packetgate/gguf/*")]
    assert len(passed) == 1
    monkeypatch.setattr("subprocess.run", None)
    asyncio.run(ModelPool(f"llamacpp:{tiny_gguf}").get("lite"))


def test_a_file_that_breaks_only_repacked_is_loaded_as_it_is(
    tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As on a virtual machine that shows matrix units and cannot use them: there, each quantised file ended it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run, asked = subprocess.run, list[str]()

    def aborting(command: list[str], **options: object) -> object:
        asked.append(command[-1])
        return subprocess.CompletedProcess(command, -11, b"", b"") if command[-1] == "1" else run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("subprocess.run", aborting)
    assert try_file(str(tiny_gguf)) == {"repack": 0}
    assert asked == ["1", "0"]
    monkeypatch.setattr("subprocess.run", None)
    assert try_file(str(tiny_gguf)) == {"repack": 0}
