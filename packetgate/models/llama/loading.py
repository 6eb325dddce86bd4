"""Check a GGUF file, and send llama.cpp's output to the log while loading."""

import hashlib
import importlib.util
import logging
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from packetgate.state.errors import ModelError

_MAGIC = b"GGUF"
_SAMPLES, _SAMPLE_BYTES = 256, 1 << 16
_GGML_LOG_LEVEL_ERROR = 4

_logger = logging.getLogger("packetgate.llamacpp")
_errors: deque[str] = deque(maxlen=16)


def check_installed() -> None:
    """Raise `ModelError` if llama-cpp-python or llguidance is not installed."""
    missing = [module for module in ("llama_cpp", "llguidance") if importlib.util.find_spec(module) is None]
    if missing:
        raise ModelError(
            f"llama.cpp models need {' and '.join(missing).replace('llama_cpp', 'llama-cpp-python')}: "
            "pip install 'packetgate[local]' (this compiles llama.cpp: it needs a C++ compiler and takes some minutes)"
        )


def check_gguf(path: str) -> None:
    """Check the first bytes of a file; blocks.

    Raise ModelError if the file is missing, unreadable, or not a GGUF file.
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
    """Return a digest of a file's length and of samples of its content; blocks for milliseconds."""
    with Path(path).open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        found = hashlib.sha256(str(length).encode())
        for at in range(_SAMPLES):
            file.seek(length * at // _SAMPLES)
            found.update(file.read(_SAMPLE_BYTES))
    return found.hexdigest()


def may_repack() -> bool:
    """Whether llama.cpp may repack weights: on virtual machines that report AMX, its kernels abort the process."""
    with suppress(OSError):
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
        return not {"amx_tile", "hypervisor"} <= flags
    return True


@contextmanager
def logged_loading(path: str) -> Iterator[None]:
    """Log the output of llama.cpp while it loads, and put its first error into the exception.

    Raise ModelError if loading failed (`MemoryError` inside).
    """
    _set_log_callback()
    _errors.clear()
    try:
        yield
    except MemoryError as error:
        why = _errors[0] if _errors else "no reason given"
        raise ModelError(
            f"llama.cpp cannot load {path}: {why}; "
            "download the file again, or try a smaller n_ctx or fewer n_gpu_layers"
        ) from error


@cache
def _set_log_callback() -> Any:
    from llama_cpp import llama_log_callback, llama_log_set

    def log(level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace").strip()
        _logger.debug("%s", line)
        if level == _GGML_LOG_LEVEL_ERROR:
            _errors.append(line)

    callback = llama_log_callback(log)
    llama_log_set(callback, None)
    return callback
