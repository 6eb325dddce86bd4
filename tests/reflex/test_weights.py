"""If a shipped file of learned weights is missing or broken, one clear error names the file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.packets import tool

from packetgate.reflex import signals
from packetgate.reflex.judge import judge
from packetgate.reflex.meaning.encoder import static_encoder, vector_of
from packetgate.reflex.weights import load_arrays, load_session, load_tokenizer
from packetgate.state.errors import WeightsError
from packetgate.tools.learned import load_json


@pytest.mark.parametrize("content", [None, b"", b"broken", b"\xff\xfe{"])
@pytest.mark.parametrize("read", [load_session, load_tokenizer, load_arrays, lambda path: load_json(path, dict)])
def test_missing_or_broken_weights_raise_one_error(read: Callable[[Path], Any], content: bytes | None, tmp_path: Path):
    path = tmp_path / "learned"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WeightsError, match="learned: these weights are missing or broken; reinstall Packetgate"):
        read(path)


def test_a_session_starts_no_thread_that_reports_its_use():
    """ONNX Runtime does not report in CI, so the process must not see that it runs in CI."""
    program = (
        "import os, numpy\n"
        "from packetgate.reflex.meaning.encoder import WEIGHTS\n"
        "from packetgate.reflex.weights import load_session\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "session = load_session(WEIGHTS / 'encoder.onnx')\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n"
    )
    reporting = {"CI", "GITHUB_ACTIONS", "TF_BUILD", "ORT_DISABLE_TELEMETRY"}
    env = {name: value for name, value in os.environ.items() if name not in reporting}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_no_array_is_unpickled(tmp_path: Path):
    np.savez(tmp_path / "learned.npz", evil=np.array([{}], dtype=object))
    with pytest.raises(WeightsError):
        load_arrays(tmp_path / "learned.npz")


@pytest.mark.parametrize("held", ["{}", "[]", '{"serving": {"foreign": 1}, "sureness": {}}'])
def test_weights_of_another_form_are_the_same_error(held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "serving.json"
    path.write_text(held)
    monkeypatch.setattr(signals, "SIGNALS_FITTED", path)
    with pytest.raises(WeightsError, match=r"serving\.json"):
        signals.load_signal_weights.__wrapped__()


@pytest.mark.parametrize("text", ["read \ud800 a.txt", "\udfff", "\x00", "", " ", "?" * 5_000, "火车"])
def test_encoders_accept_any_text(text: str):
    assert vector_of(text).shape
    (likely,) = judge.judge(text, [tool("f.read_file", "path", path="string")])
    assert 0 <= likely <= 1
    assert static_encoder().vectors([text]).shape[0] == 1
