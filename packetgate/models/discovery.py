"""The models of this machine: servers on their usual ports, GGUF files in the usual folders, providers' keys.

Nothing is downloaded, no key is sent, and no other machine is asked.
"""

import asyncio
import mmap
import os
import re
import sys
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import httpx

from packetgate.models.endpoint import HOSTED, LOCAL, SERVERS, Endpoint, base_url_of, is_here, shown
from packetgate.models.llama.loading import check_installed
from packetgate.state.errors import ModelError
from packetgate.state.printing import counted, printable

TIMEOUT_S = 5.0
SHOWN = 8


@dataclass(frozen=True)
class Served:
    """A model that a server lists."""

    name: str
    size: int | None = None
    """In bytes."""


async def served(base_url: str, key: str | None = None, timeout_s: float = TIMEOUT_S) -> list[Served]:
    """Return the models that a server lists, without proxies and redirections, so that the key stays there.

    Raises:
        httpx.HTTPError, ValueError: nothing answers, or the answer is no list of models.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(timeout=timeout_s, trust_env=False, headers=headers) as client:
        answer = await client.get(f"{base_url.rstrip('/')}/models")
        listed = answer.raise_for_status().json()
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        raise ValueError(f"{shown(base_url)}: /models holds no list")  # noqa: TRY004
    return [Served(one["id"], _size(one)) for one in entries if isinstance(one, dict) and _is_name(one.get("id"))]


async def check_served(model: str, endpoint: Endpoint) -> None:
    """Check that a named server of this machine runs and has the model.

    Raises:
        ModelError: it does not; the message says what to start or to write.
    """
    server, where = SERVERS[endpoint.server], shown(endpoint.base_url)
    moved = ", or set OLLAMA_HOST" if endpoint.server == "ollama" else ", or set the role's BASE_URL"
    try:
        known = [one.name for one in await served(endpoint.base_url, endpoint.api_key)]
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        if status not in {401, 403}:
            return  # it is there: whether it can answer is seen when it is asked
        raise ModelError(f"{where} refuses the API key (HTTP {status}): check {endpoint.key_variable}") from error
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        raise ModelError(
            f"{server.title} does not answer at {where} ({why}): start it (`{server.start}`){moved}"
        ) from error
    except ValueError:
        return
    if not known or is_among(model, known):
        if known or endpoint.server != "ollama":
            return
        raise ModelError(f"{server.title} at {where} has no model yet: get one with `ollama pull {model}`")
    near = get_close_matches(model, known, n=1, cutoff=0.0)
    names = ", ".join(printable(one) for one in known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
    pull = f", or get it with `ollama pull {model}`" if endpoint.server == "ollama" else ""
    raise ModelError(
        f"{server.title} at {where} has no model {model!r}: "
        f"write {endpoint.server}:{printable(near[0])}{pull}. It has {names}"
    )


def is_among(model: str, known: list[str]) -> bool:
    """Whether a server has a model of this name; Ollama's `:latest` is optional."""
    return not {model.casefold(), f"{model}:latest".casefold()}.isdisjoint(one.casefold() for one in known)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 300 and value.isprintable() and "?" not in value


def _size(entry: dict[str, Any]) -> int | None:
    meta = entry.get("meta")  # of llama.cpp's server
    size = meta.get("size") if isinstance(meta, dict) else None
    return size if isinstance(size, int) else None


PATIENCE_S = 2.0
HEAD = 1 << 26
"""Bytes at the beginning of a file that hold everything but weights."""
MOST_FILES = 50_000
DEPTH = 6
_TEMPLATE = b"tokenizer.chat_template"
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$", re.IGNORECASE)


@dataclass(frozen=True)
class Offer:
    """A model that is ready to use."""

    model: str
    where: str
    size: int | None = None
    """In bytes."""


@dataclass(frozen=True)
class Discovery:
    """The models, keys and problems that were found."""

    offers: tuple[Offer, ...] = ()
    """Servers, then files; within each the largest first among those that fit half of the memory."""
    keys: tuple[tuple[str, str], ...] = ()
    """Provider prefixes, each with the variable that holds its key."""
    notes: tuple[str, ...] = ()
    """What was found and cannot be used as it is."""


async def discover(folders: Iterable[Path] = ()) -> Discovery:
    """Look for models in the usual places and in `folders`."""
    answers = await asyncio.gather(*map(_server, LOCAL))
    files = await asyncio.to_thread(lambda: [*_files([*folders, *gguf_folders()])])
    offers = [*(_by_size(found) for found, _ in answers), _by_size(files)]
    keys = tuple((name, variable) for name, variable in HOSTED.items() if os.environ.get(variable, "").strip())
    notes = [note for _, note in answers if note]
    try:
        check_installed()
    except ModelError as error:
        offers.pop()
        notes += [f"{counted(len(files), 'GGUF file')}: {error}"] if files else []
    return Discovery(tuple(one for found in offers for one in found), keys, tuple(notes))


async def _server(name: str) -> tuple[list[Offer], str]:
    """Return the models of a server, or why it has none."""
    base_url = base_url_of(name)
    where = f"server at {shown(base_url)}"
    if not is_here(base_url):
        return [], f"{where}, another machine, was not asked: name its model yourself, as {name}:NAME"
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            found = await served(base_url, timeout_s=PATIENCE_S)
    except httpx.HTTPStatusError as error:
        wants_key = error.response.status_code in {401, 403}
        key = "set PACKETGATE_LITE_API_KEY and name its model yourself"
        return [], f"{where} wants a key: {key}, as {name}:NAME" if wants_key else ""
    except (httpx.HTTPError, ValueError, TimeoutError):
        return [], ""  # no such server runs
    if name == "ollama":
        with suppress(httpx.HTTPError, ValueError, TimeoutError):  # then no sizes are told
            async with asyncio.timeout(2 * PATIENCE_S):
                found = await _ollama(base_url, found)
    return [Offer(f"{name}:{one.name}", where, one.size) for one in found], "" if found else f"{where} has no model"


async def _ollama(base_url: str, found: list[Served]) -> list[Served]:
    """Return Ollama's models with sizes, without those that only embed."""
    root = base_url.rstrip("/").removesuffix("/v1")
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:

        async def answer(asked: Awaitable[httpx.Response]) -> dict[str, Any]:
            told = (await asked).json()
            return told if isinstance(told, dict) else {}

        listed = (await answer(client.get(f"{root}/api/tags"))).get("models")
        names = [{"model": one.name} for one in found]
        described = await asyncio.gather(*(answer(client.post(f"{root}/api/show", json=name)) for name in names))
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    sizes = {one.get("name"): one["size"] for one in entries if isinstance(one.get("size"), int)}
    able = [one.get("capabilities") for one in described]
    return [
        Served(one.name, sizes.get(one.name, one.size))
        for one, can in zip(found, able, strict=True)
        if not isinstance(can, list) or "completion" in can
    ]


def gguf_folders(home: Path | None = None) -> list[Path]:
    """Return the folders in which people and programs keep GGUF files."""
    home = home or Path.home()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    hub = Path(os.environ.get("HF_HOME") or cache / "huggingface") / "hub"
    support = home / "Library" / "Application Support"
    of_llama = home / "Library" / "Caches" if sys.platform == "darwin" else cache
    return [
        home / "models",
        home / "Downloads",
        Path(os.environ.get("HF_HUB_CACHE") or hub),
        Path(os.environ.get("LLAMA_CACHE") or of_llama / "llama.cpp"),
        home / ".lmstudio" / "models",
        cache / "lm-studio" / "models",
        *(base / "nomic.ai" / "GPT4All" for base in (data, support)),
        *(base / "Jan" / "data" / "llamacpp" / "models" for base in (data, home / ".config", support)),
        Path(),
    ]


def _files(folders: Iterable[Path]) -> Iterator[Offer]:
    seen: set[Path] = set()
    for path in _named_gguf(folders):
        part = _PART.search(path.name)
        try:
            if (real := path.resolve()) in seen or (part and part[1] != "00001") or not _chats(real):
                continue
            seen.add(real)
            parts = path.parent.glob(_PART.sub("-*.gguf", path.name)) if part else [path]
            yield Offer(f"llamacpp:{path.absolute()}", "GGUF file", sum(one.stat().st_size for one in parts))
        except (OSError, ValueError, RuntimeError):
            continue  # it vanished, is empty, may not be read, or is a link to itself


def _named_gguf(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(one.absolute() for one in folders):
        left = MOST_FILES
        for at, inner, names in os.walk(folder):
            left -= len(names) + len(inner)
            if left < 0:
                break
            if len(Path(at).relative_to(folder).parts) >= DEPTH:
                inner.clear()
            inner[:] = [one for one in inner if one not in {"node_modules", ".git", ".venv", "blobs"}]
            yield from (Path(at, name) for name in sorted(names) if name.lower().endswith(".gguf") and "?" not in name)


def _chats(path: Path) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data[:4] == b"GGUF" and data.find(_TEMPLATE, 0, HEAD) >= 0


def _by_size(offers: list[Offer]) -> list[Offer]:
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 1 << 34
    return sorted(offers, key=lambda one: ((one.size or 0) > half, -(one.size or 0)))
