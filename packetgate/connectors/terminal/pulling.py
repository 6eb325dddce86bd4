"""Download GGUF models from the Hugging Face hub."""

import fcntl
import hashlib
import io
import logging
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.state.errors import InputError, ModelError

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

_LISTED = Path(__file__).with_name("hub_models.toml")
_WRITTEN = re.compile(r"(\w[\w.-]*/\w[\w.-]*)/((?:\w[\w.-]*/)*\w[\w.-]*\.gguf)", re.ASCII)
"""OWNER/REPO/FILE.gguf: no part of it leads out of a folder."""
_SHA256 = re.compile("[0-9a-f]{64}")
_ELSEWHERE = (
    "Without the hub: copy a GGUF file from another machine and use --prime llamacpp:FILE, or use Ollama with "
    "--prime ollama:NAME"
)
_HINTS = dict.fromkeys((401, 403), "set HF_TOKEN to a token that may read it") | {404: "check the name"}
_KEPT_FREE = 500_000_000
"""Disk space that a download leaves free, in bytes."""


class HubModel(NamedTuple):
    """A GGUF file on the hub. For a file that is not in the list, the hub states size and checksum."""

    name: str
    repo: str
    file: str
    revision: str = "main"
    sha256: str = ""
    size: int = 0
    memory: int = 0
    """Estimated bytes in use: the file, the context and the buffers."""
    maker: str = ""
    licence: str = ""

    def path_in(self, folder: Path) -> Path:
        """Return the path of the downloaded file."""
        return folder.absolute() / self.repo / self.file

    def problems_in(self, folder: Path, done: int = 0) -> list[str]:
        """Return why the model, of which `done` bytes exist, does not fit this machine; empty if it does."""
        existing = next(one for one in (folder, *folder.absolute().parents) if one.exists())
        free, memory = shutil.disk_usage(existing).free - _KEPT_FREE, _machine_memory()
        return [
            f"needs {_gigabytes(needed)} of {what}, {_gigabytes(here)} here"
            for needed, here, what in (
                (self.size - done, max(free, 0), f"free disk below {existing}"),
                (max(self.memory, self.size), memory, "memory"),
            )
            if needed > here
        ]


def listed_models() -> dict[str, HubModel]:
    """Return the models with a name of their own, the smallest first."""
    listed = tomllib.loads(_LISTED.read_text(encoding="utf-8"))
    return {name: HubModel(name, **fields) for name, fields in listed.items()}


def find_model(name: str) -> HubModel:
    """Return the model with a name of the list, or the file OWNER/REPO/FILE.gguf. Raise InputError for other names."""
    listed = listed_models()
    if written := _WRITTEN.fullmatch(name):
        return HubModel(name, written[1], written[2])
    if name.casefold() not in listed:
        raise InputError(f"{name!r} is not a model of the list: use {', '.join(listed)}, or OWNER/REPO/FILE.gguf")
    return listed[name.casefold()]


def show_models(folder: Path, measured: Mapping[str, str]) -> None:
    """Print the list: size, memory, licence, the results of `evaluate`, and whether each model fits this machine."""
    rows = []
    for name, one in listed_models().items():
        state = "downloaded" if one.path_in(folder).exists() else "; ".join(one.problems_in(folder)) or "fits"
        sizes = _gigabytes(one.size), _gigabytes(one.memory)
        rows.append((name, one.maker, *sizes, one.licence, measured.get(name, "not measured"), state))
    headings = ("name", "maker", "size", "memory", "licence", "packetgate evaluate", "this machine")
    rendering.console().print(rendering.table(headings, rows, right=(2, 3)))


def pull(model: HubModel, folder: Path) -> Path:
    """Download a file, verify its checksum, and return its path. An interrupted download continues. Blocking.

    Raises:
        ModelError: the hub cannot be reached or refuses the file, the machine is too small, or the file is wrong.
    """
    path = model.path_in(folder)
    if path.exists():
        if model.size and path.stat().st_size != model.size:
            sizes = f"{path.stat().st_size:,} bytes, not {model.size:,}"
            raise ModelError(f"{path} has {sizes}: it is another file. Delete it, and pull the model again")
        _say(f"{path} is already here")
        return path
    try:
        import httpx2
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.file_download import http_get
    except ImportError as error:
        raise ModelError("huggingface_hub is not installed: in a clone of Packetgate, pip install '.[hub]'") from error
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its warnings contain signed addresses
    url = hf_hub_url(model.repo, model.file, revision=model.revision)
    token = os.environ.get("HF_TOKEN") or False  # not the one that another program stored
    headers = {"authorization": f"Bearer {token}"} if token else {}
    where = f"{model.repo}/{model.file} at {urlsplit(url).netloc.rpartition('@')[2]}"
    try:
        found = _checked(model, get_hf_file_metadata(url, token=token), where)
        part = path.with_name(f"{path.name}.{found.sha256[:12]}.part")
        done = part.stat().st_size if part.exists() else 0
        if problems := found.problems_in(folder, done):
            raise ModelError(f"{model.name} does not fit this machine: {'; '.join(problems)}; choose a smaller model")
        part.parent.mkdir(parents=True, exist_ok=True)
        with _Part(part, found.size) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists():  # another process has just downloaded it
                part.unlink(missing_ok=True)
                return path
            if done > found.size:
                file.truncate(0)
            _say(f"downloading {where}, {_gigabytes(found.size)}, to {path}")
            options: dict[str, Any] = {"expected_size": found.size, "tqdm_class": _Progress, "headers": headers}
            http_get(url, file, resume_size=file.seek(0, os.SEEK_END), **options)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != found.sha256:
                part.unlink()
                raise ModelError(
                    f"{where}: the checksum is {digest}, not {found.sha256}, so the file was deleted: download it again"
                )
            _say(f"{path.name}: the checksum (SHA-256) is right")
            return part.replace(path)
    except BlockingIOError as error:
        raise ModelError(f"another process is downloading {where}: wait until it has ended, and try again") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        hint = _HINTS.get(status, "the same command continues later")
        raise ModelError(f"the hub refuses {where} with status {status}: {hint}. {_ELSEWHERE}") from error
    except (httpx2.HTTPError, OSError) as error:
        raise ModelError(
            f"{where} cannot be downloaded: {error}. The same command continues where it stopped. {_ELSEWHERE}"
        ) from error


def _checked(model: HubModel, found: "HfFileMetadata", where: str) -> HubModel:
    """Return the model with the hub's size and checksum. Raise ModelError if they are missing or wrong."""
    if not found.size or found.size < 0 or not found.etag or not _SHA256.fullmatch(found.etag):
        raise ModelError(f"{where}: the hub states no size or no checksum, so the file cannot be verified")
    if model.sha256 not in {"", found.etag}:
        raise ModelError(f"{where}: its checksum is {found.etag}, and {model.sha256} is expected: it is another file")
    return model._replace(size=found.size, sha256=found.etag)


class _Part(io.BufferedRandom):
    """A file that takes at most `size` bytes, whatever the hub sends."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(io.FileIO(path, "a+"))
        self._size = size

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._size:
            raise OSError(f"the hub sends more than the {self._size:,} bytes that it states")
        return super().write(data)


class _Progress:
    """Shows a download: one line that is rewritten at a terminal, otherwise a line for each tenth."""

    def __init__(self, *, total: int, initial: int = 0, **_: Any) -> None:
        self._out = rendering.console(stderr=True)
        self._total, self._done, self._shown = total, initial, -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._out.is_terminal:
            self._out.print()

    def update(self, count: int) -> None:
        self._done += count
        percent = 100 * self._done // self._total
        if percent >= self._shown + (1 if self._out.is_terminal else 10) or percent == 100:
            self._shown = percent
            line = f"{percent} %: {_gigabytes(self._done)} of {_gigabytes(self._total)}"
            self._out.print(Text(line.ljust(40), style="dim"), end="\r" if self._out.is_terminal else "\n")


def _machine_memory() -> float:
    """Return the bytes of memory of this machine, or of its container; infinite if unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
    with suppress(OSError, ValueError):  # the file may be missing, or say "max"
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8")))
    return memory


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


_say = partial(rendering.say, style="")
