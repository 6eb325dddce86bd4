"""GGUF files in this process, by the prefix `llamacpp`."""

import asyncio
import hashlib
import importlib.util
import mmap
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from packetgate.models.kinds import FoundModels, ModelKind, ModelOffer, ModelSetup
from packetgate.models.options import COMMON, LOADING, ModelOptions, Role
from packetgate.plugins import Plugin
from packetgate.state.errors import ModelError

if TYPE_CHECKING:
    from packetgate.models.llama.chat import LlamaCppModel

_MAGIC = b"GGUF"
_SAMPLES, _SAMPLE_BYTES = 256, 1 << 16
"""Number and length of the samples that identify a file."""
_HEAD = 1 << 26
"""Number of bytes at the beginning of a file that contain all metadata."""
_MAX_FILES, _MAX_DEPTH = 50_000, 6
_COMPILERS = ("c++", "g++", "clang++", "cl")
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$", re.IGNORECASE)


class GgufKind(ModelKind):
    """GGUF files. Roles with the same file and loading options share its weights."""

    forms = ("llamacpp:/path/model.gguf",)
    prefixes = ("llamacpp",)
    takes = (*COMMON, *LOADING)

    def __init__(self) -> None:
        self._loaded: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self._lock = threading.Lock()

    def parse(self, prefix: str, name: str, role: Role, options: ModelOptions) -> ModelSetup:
        """Return the setup of the file at a path."""
        path = Path(name).expanduser()
        return ModelSetup(prefix, str(path), f"{path.name} in llama.cpp", options)

    async def check(self, setup: ModelSetup) -> None:
        """Check the file and the packages."""
        await asyncio.to_thread(check_gguf, setup.name)
        await asyncio.to_thread(check_installed)

    def open(self, setup: ModelSetup) -> "LlamaCppModel":
        """Load the file, unless its weights are loaded already."""
        check_installed()
        check_gguf(setup.name)
        from packetgate.models.llama.chat import LlamaCppChat, LlamaCppModel
        from packetgate.models.llama.engine import LlamaEngine

        loading = setup.options.loading
        key = (setup.name, Path(setup.name).stat().st_mtime_ns, *loading.items())
        with self._lock:
            chat = self._loaded.get(key)
            if chat is None:
                chat = self._loaded[key] = LlamaCppChat(LlamaEngine(setup.name, loading))
        return LlamaCppModel(chat, setup.options)

    def identity(self, setup: ModelSetup) -> Sequence[str]:
        """Return a digest of the file's length and of samples of its content; takes milliseconds."""
        with Path(setup.name).open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            found = hashlib.sha256(str(length).encode())
            for at in range(_SAMPLES):
                file.seek(length * at // _SAMPLES)
                found.update(file.read(_SAMPLE_BYTES))
        return (found.hexdigest(),)

    async def find(self, folders: Sequence[Path]) -> FoundModels:
        """Return the GGUF files in the usual folders, the largest first."""
        files = await asyncio.to_thread(lambda: [*_gguf_offers([*folders, *gguf_folders()])])
        try:
            check_installed()
        except ModelError as error:
            return FoundModels(notes=(f"{len(files)} GGUF files: {error}",) if files else ())
        return FoundModels(tuple(sorted(files, key=lambda one: -(one.size or 0))))


def check_installed() -> None:
    """Raise `ModelError` if llama-cpp-python or llguidance is not installed."""
    missing = [module for module in ("llama_cpp", "llguidance") if importlib.util.find_spec(module) is None]
    if missing:
        message = (
            f"llama.cpp models need {' and '.join(missing).replace('llama_cpp', 'llama-cpp-python')}: "
            "in a clone of Packetgate, pip install '.[local]', which compiles llama.cpp once, for some minutes"
        )
        if not any(map(shutil.which, _COMPILERS)):
            message += (
                ". No C++ compiler was found, which this needs: Ollama (ollama:NAME) and llama-server "
                "(llama-server:NAME) need neither"
            )
        raise ModelError(message)


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


def gguf_folders(home: Path | None = None) -> list[Path]:
    """Return the folders where users and programs usually store GGUF files."""
    home = home or Path.home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    hub = Path(os.environ.get("HF_HOME") or cache / "huggingface") / "hub"
    llama_cache = home / "Library" / "Caches" if sys.platform == "darwin" else cache
    return [
        home / "models",
        home / "Downloads",
        Path(os.environ.get("HF_HUB_CACHE") or hub),
        Path(os.environ.get("LLAMA_CACHE") or llama_cache / "llama.cpp"),
        home / ".lmstudio" / "models",
        Path(),
    ]


def _gguf_offers(folders: Iterable[Path]) -> Iterator[ModelOffer]:
    seen: set[Path] = set()
    for path in _gguf_paths(folders):
        part = _PART.search(path.name)
        try:
            if (real := path.resolve()) in seen or (part and part[1] != "00001") or not _has_template(real):
                continue
            seen.add(real)
            parts = path.parent.glob(_PART.sub("-*.gguf", path.name)) if part else [path]
            yield ModelOffer(f"llamacpp:{path.absolute()}", "GGUF file", sum(one.stat().st_size for one in parts))
        except (OSError, ValueError, RuntimeError):
            continue  # the file vanished, is empty, may not be read, or is a link to itself


def _gguf_paths(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(one.absolute() for one in folders):
        left = _MAX_FILES
        for at, inner, names in os.walk(folder):
            left -= len(names) + len(inner)
            if left < 0:
                break
            if len(Path(at).relative_to(folder).parts) >= _MAX_DEPTH:
                inner.clear()
            inner[:] = [one for one in inner if one not in {"node_modules", ".git", ".venv", "blobs"}]
            yield from (Path(at, name) for name in sorted(names) if name.lower().endswith(".gguf") and "?" not in name)


def _has_template(path: Path) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data[:4] == _MAGIC and data.find(b"tokenizer.chat_template", 0, _HEAD) >= 0


PLUGIN = Plugin("llamacpp", model_kinds=[GgufKind()])
