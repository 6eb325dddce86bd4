"""Loading a GGUF file with llama.cpp, quietly."""

import contextlib
import importlib.util
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from state.errors import ModelError

logger = logging.getLogger("packetgate.llamacpp")

DEFAULTS = {"n_ctx": 8192, "n_gpu_layers": -1}
MAGIC = b"GGUF"
LOG_LEVEL_ERROR = 4  # GGML_LOG_LEVEL_ERROR

_complaints: list[str] = []
_log_callback: list[Any] = []  # llama.cpp keeps a bare pointer to it, so it must stay alive


def check_installed() -> None:
    """Raise `ModelError` when llama-cpp-python is not installed."""
    if importlib.util.find_spec("llama_cpp") is None:
        raise ModelError("llama.cpp models need llama-cpp-python: pip install 'packetgate[local]'")


def check_gguf(path: str) -> None:
    """Look at the file's first bytes. Blocking.

    Raises:
        ModelError: it is missing, unreadable, or not a GGUF file.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(len(MAGIC))
    except FileNotFoundError as error:
        raise ModelError(f"no model file at {path}: check the path after `llamacpp:`") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"the model file {path} cannot be read: {error}") from error
    if start != MAGIC:
        raise ModelError(f"{path} is not a GGUF model: it does not start with {MAGIC.decode()}; download it again")


def load_llama(path: str, options: Mapping[str, int]) -> Any:
    """Return a `llama_cpp.Llama`. Blocking, for seconds.

    Raises:
        ModelError: llama-cpp-python is not installed, or the file cannot be loaded.
    """
    check_installed()
    check_gguf(path)
    _quieten()
    from llama_cpp import Llama

    _complaints.clear()
    settings: dict[str, Any] = {**DEFAULTS, **options}
    try:
        return Llama(path, verbose=False, **settings)
    except (ValueError, RuntimeError) as error:
        why = _complaints[0] if _complaints else error
        raise ModelError(
            f"llama.cpp cannot load {path}: {why}; "
            "download the file again, or try a smaller n_ctx or fewer n_gpu_layers"
        ) from error


def _quieten() -> None:
    """Send llama.cpp's chatter to logging.

    Left alone, llama-cpp-python hides it by pointing the whole process's standard output at the null device while a
    model loads, and what another thread writes meanwhile, such as an MCP reply, is lost.
    """
    if _log_callback:
        return
    from llama_cpp import _internals, llama, llama_log_callback, llama_log_set

    def log(level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace").strip()
        logger.debug("%s", line)
        if level == LOG_LEVEL_ERROR:
            _complaints.append(line)

    _log_callback.append(llama_log_callback(log))
    llama_log_set(_log_callback[0], None)
    for module in (_internals, llama):
        vars(module)["suppress_stdout_stderr"] = lambda **_: contextlib.nullcontext()
