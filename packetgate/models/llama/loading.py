"""Checking and loading a GGUF file. llama.cpp aborts the process on damaged files: a child process tries them first."""

import hashlib
import importlib.util
import json
import logging
import os
import platform
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from packetgate.state.errors import ModelError

_MAGIC = b"GGUF"
_SAMPLES, _SAMPLE_BYTES = 256, 1 << 16
_HEAD = 1 << 26
"""Bytes at the beginning of a file that hold everything but weights."""
_TRIAL_S = 600.0
_GGML_LOG_LEVEL_ERROR = 4

_logger = logging.getLogger("packetgate.llamacpp")
_errors: deque[str] = deque(maxlen=16)


def check_installed() -> None:
    """Raise `ModelError` if llama-cpp-python or llguidance is not installed."""
    missing = [module for module in ("llama_cpp", "llguidance") if importlib.util.find_spec(module) is None]
    if missing:
        raise ModelError(
            f"llama.cpp models need {' and '.join(missing).replace('llama_cpp', 'llama-cpp-python')}: "
            "pip install 'packetgate[local]' (llama.cpp is compiled then, which takes a C++ compiler and some minutes)"
        )


def check_gguf(path: str) -> None:
    """Check the first bytes of a file; blocks.

    Raises:
        ModelError: it is missing, unreadable, or not a GGUF file.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(len(_MAGIC))
    except FileNotFoundError as error:
        raise ModelError(f"no model file at {path}: check the path after `llamacpp:`") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"the model file {path} cannot be read: {error}") from error
    if start != _MAGIC:
        raise ModelError(f"{path} is not a GGUF model: it does not start with GGUF; download it again")


def sample_digest(path: str) -> str:
    """Return a digest of the length of a file and of samples; blocks for milliseconds."""
    with Path(path).open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        found = hashlib.sha256(str(length).encode())
        for at in range(_SAMPLES):
            file.seek(length * at // _SAMPLES)
            found.update(file.read(_SAMPLE_BYTES))
    return found.hexdigest()


def try_file(path: str) -> dict[str, int]:
    """Load a file and have it answer in a child process, unless that succeeded before; blocks for seconds.

    Returns the load options that the file needs: on some virtual machines llama.cpp's repacked weights abort. Errors
    that a load reports itself are left to that load.

    Raises:
        ModelError: llama.cpp aborts on it.
    """
    mark = user_cache_path("packetgate", appauthor=False) / "gguf" / f"{_trial_digest(path)}.json"
    with suppress(OSError, ValueError, LookupError, TypeError):
        return {"repack": int(json.loads(mark.read_text(encoding="utf-8"))["repack"])}
    for repack in (1, 0):
        command = [sys.executable, "-P", "-m", "packetgate.models.llama.trial", path, str(repack)]
        environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=_TRIAL_S, check=False)  # noqa: S603
        except subprocess.TimeoutExpired as error:
            raise ModelError(f"{path} did not answer within {_TRIAL_S:.0f} s when it was tried") from error
        if done.returncode == 0:
            with suppress(OSError):  # then it is tried again the next time
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.write_text(json.dumps({"repack": repack}), encoding="utf-8")
            return {"repack": repack}
    reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200] or f"status {done.returncode}"
    raise ModelError(f"llama.cpp aborts on {path} ({reason}): the file is damaged; download it again, or another file")


def _trial_digest(path: str) -> str:
    digest = hashlib.sha256(f"{version('llama-cpp-python')} {platform.processor()} {platform.node()}".encode())
    with Path(path).open("rb") as file:
        digest.update(file.read(_HEAD))
        digest.update(str(file.seek(0, os.SEEK_END)).encode())
    return digest.hexdigest()


@contextmanager
def loading(path: str) -> Iterator[None]:
    """Log the output of llama.cpp while it loads, and put its first error into the exception.

    Raises:
        ModelError: loading failed (`MemoryError` inside).
    """
    _listening()
    _errors.clear()
    try:
        yield
    except MemoryError as error:
        why = _errors[0] if _errors else "it gives no reason"
        raise ModelError(
            f"llama.cpp cannot load {path}: {why}; "
            "download the file again, or try a smaller n_ctx or fewer n_gpu_layers"
        ) from error


@cache
def _listening() -> Any:
    from llama_cpp import llama_log_callback, llama_log_set

    def log(level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace").strip()
        _logger.debug("%s", line)
        if level == _GGML_LOG_LEVEL_ERROR:
            _errors.append(line)

    callback = llama_log_callback(log)
    llama_log_set(callback, None)
    return callback
