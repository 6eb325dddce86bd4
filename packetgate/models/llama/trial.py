"""A first run of a GGUF file in a process of its own, because llama.cpp aborts on damaged files.

Some of its kernels also abort on some machines, such as virtual machines that show matrix units; the file is then
loaded without them. Reading the file instead is no way out: each architecture has its own assertions.
"""

import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from platformdirs import user_cache_path

from packetgate.state.errors import DecisionError, ModelError

PATIENCE_S = 600.0
HEAD = 1 << 26
"""Bytes at the beginning of a file that hold everything but weights, which never abort."""
WAYS: Mapping[str, dict[str, int]] = {"": {}, ".repack-0": {"repack": 0}}
"""Load options to try, by the suffix of the mark for success: the default, and without repacking kernels."""
EVERY_BYTE = "".join(map(chr, (*range(0x800), *range(0x800, 0xD800, 0x40), *range(0xE000, 0x110000, 0x40))))
"""A text of all bytes that UTF-8 has, mostly in rare characters."""
_REASON = re.compile(rb"GGML_ASSERT.*|what\(\):\s*(.*)|\w+(?:Error|Exception): .*")


def try_file(path: str) -> dict[str, int]:
    """Load a file and have it answer in another process, unless that succeeded before; blocks for seconds.

    Returns the load options that the file needs. Errors that a load reports itself are left to that load.

    Raises:
        ModelError: llama.cpp aborts on it.
    """
    mark = user_cache_path("packetgate", appauthor=False) / "gguf" / _digest(path)
    marks = {mark.with_suffix(suffix): options for suffix, options in WAYS.items()}
    if passed := next((one for one in marks if one.exists()), None):
        return marks[passed]
    why = ""
    for passed, options in marks.items():
        done = _run(path, options)
        if done.returncode == 0:
            with suppress(OSError):  # then it is tried again the next time
                passed.parent.mkdir(parents=True, exist_ok=True)
                passed.touch()
            return options
        why = why or _reason(done)
    raise ModelError(
        f"llama.cpp breaks on {path} ({why}): the file is damaged, or unfit for it; download it again, or another one"
    )


def _run(path: str, options: Mapping[str, int]) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-P", "-m", __name__, path, json.dumps(options)]
    quietly = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    try:
        return subprocess.run(command, env=quietly, capture_output=True, timeout=PATIENCE_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise ModelError(
            f"{path} did not answer within {PATIENCE_S:.0f} s when it was tried; is the file whole?"
        ) from error


def _digest(path: str) -> str:
    found = hashlib.sha256(f"{version('llama-cpp-python')} {_processor()}".encode())
    try:
        with Path(path).open("rb") as file:
            found.update(file.read(HEAD))
            found.update(str(file.seek(0, os.SEEK_END)).encode())
    except OSError as error:
        raise ModelError(f"the model file {path} cannot be read: {error}") from error
    return found.hexdigest()


def _processor() -> str:
    with suppress(OSError):
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line for line in about if line.lower().startswith(("flags", "features"))), "")
    return platform.processor()


def _reason(done: "subprocess.CompletedProcess[bytes]") -> str:
    for said in reversed([*_REASON.finditer(done.stderr)]):
        return str((said[1] or said[0]).decode("utf-8", "replace").strip()[:200])
    return signal.Signals(-done.returncode).name if done.returncode < 0 else f"status {done.returncode}"


def _try(path: str, options: Mapping[str, int] = MappingProxyType({})) -> None:
    from packetgate.models.llama.engine import LlamaEngine, Request
    from packetgate.models.schemas import AnswerForm, obj

    with suppress(ModelError, DecisionError):
        engine = LlamaEngine(path, {"n_ctx": 256, "n_gpu_layers": 0, **options})
        engine.weights.tokenize(EVERY_BYTE, special=False)
        form = AnswerForm("trial", obj(works={"type": "boolean"}))
        chat = [{"role": "user", "content": "Hello"}]
        engine.submit(Request(chat, {"max_tokens": 2, "temperature": 0.0}, form)).result()


if __name__ == "__main__":
    _try(sys.argv[1], json.loads(sys.argv[2]))
