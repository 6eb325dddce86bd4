"""No GGUF file ends the process: one clear error, or a model that works."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from packetgate.models.llama import trial
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ModelError


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
    Case("another kind", lambda whole: b"PK\x03\x04" + whole[4:], "is not a GGUF model"),
    Case("cut in its head", lambda whole: whole[:1000], "cannot load"),
    Case("cut in its weights", lambda whole: whole[:-1000], "cannot load"),
    Case("a future version", lambda whole: whole[:4] + b"\x63\0\0\0" + whole[8:], "cannot load"),
    Case("too many weights", lambda whole: whole[:8] + b"\xff" * 7 + b"\x7f" + whole[16:], "cannot load"),
    Case("too many facts", lambda whole: whole[:16] + b"\xff" * 7 + b"\x7f" + whole[24:], "cannot load"),
    Case("no tokenizer", instead(b"tokenizer.ggml.model", b"tokenizer.ggml.mudel"), "cannot load|breaks on"),
    Case("no vocabulary", instead(b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokans"), "cannot load|breaks on"),
    Case("an architecture not known", instead(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0lxama"), "cannot load"),
    Case("a vocabulary of another size", behind(b"token_embd.weight", b"\x7f", 12), "cannot load"),
    Case("weights beyond the end", behind(b"token_embd.weight", b"\xff" * 7, 24), "cannot load"),
    Case("no layers", behind(b"llama.block_count", bytes(4)), r"breaks on .*n_layer"),
    Case("a norm below zero", behind(b"layer_norm_rms_epsilon", b"\0\0\x80\xbf"), r"breaks on .*eps >= "),
    Case("a byte that is no token", instead(b"<0xE5>", b"<0xZZ>"), "breaks on .*unordered_map"),
    Case("two tokens of one text", instead(b"<0x07>", b"<0x08>"), "breaks on .*token_to_id"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_damaged_file_is_one_clear_error(case: Case, tiny_gguf: Path, tmp_path: Path):
    path = tmp_path / "damaged.gguf"
    path.write_bytes(case.damage(tiny_gguf.read_bytes()))
    with pytest.raises(ModelError, match=case.error) as refused:
        asyncio.run(ModelPool(f"llamacpp:{path}").get("lite"))
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_what_passes_the_trial_never_ends_the_process(tiny_gguf: Path, tmp_path: Path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_gguf.read_bytes())
    command = [sys.executable, "-m", "support.damaged_gguf", str(path), "250", "7"]
    found = {"PYTHONPATH": str(Path(__file__).parents[2]), "GGML_NO_BACKTRACE": "1"}
    done = subprocess.run(
        command, env={**os.environ, **found}, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith("250 files: ")


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

    def breaking(command: list[str], **given: object) -> object:
        asked.append(command[-1])
        return subprocess.CompletedProcess(command, -11, b"", b"") if command[-1] == "{}" else run(command, **given)  # type: ignore[call-overload]

    monkeypatch.setattr("subprocess.run", breaking)
    assert trial.try_file(str(tiny_gguf)) == {"repack": 0}
    assert asked == ["{}", '{"repack": 0}']
    monkeypatch.setattr("subprocess.run", None)
    assert trial.try_file(str(tiny_gguf)) == {"repack": 0}
