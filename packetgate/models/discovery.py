"""Find models on this machine: servers on default ports, GGUF files in common folders, keys of providers.

Discovery downloads nothing, sends no key, and contacts no other machine.
"""

import asyncio
import mmap
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import httpx

from packetgate.models.endpoint import (
    LOCAL_SERVERS,
    PROVIDER_KEYS,
    SERVERS,
    Endpoint,
    base_url_of,
    is_local_url,
    without_credentials,
)
from packetgate.models.llama.loading import check_installed
from packetgate.state.errors import ModelError
from packetgate.state.printing import printable

_CHECK_S, _PROBE_S = 5.0, 2.0
_HEAD = 1 << 26
"""Number of bytes at the beginning of a file that contain all metadata."""
_MAX_FILES, _MAX_DEPTH = 50_000, 6
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$", re.IGNORECASE)


@dataclass(frozen=True)
class ModelOffer:
    """A model that is ready to use."""

    model: str
    where: str
    size: int | None = None
    """Size in bytes; None for a model on a server."""


@dataclass(frozen=True)
class Discovery:
    """The discovered models, API keys and problems."""

    offers: tuple[ModelOffer, ...] = ()
    """Models of servers, then files, the largest file first."""
    keys: tuple[tuple[str, str], ...] = ()
    """Provider prefixes, each with the environment variable that has its key."""
    notes: tuple[str, ...] = ()
    """Messages about models and servers that exist but cannot be used yet."""


async def discover(folders: Iterable[Path] = ()) -> Discovery:
    """Return the models of local servers, common folders and `folders`."""
    answers = await asyncio.gather(*map(_probe_server, LOCAL_SERVERS))
    offers, notes = [one for found, _ in answers for one in found], [note for _, note in answers if note]
    files = await asyncio.to_thread(lambda: [*_gguf_offers([*folders, *gguf_folders()])])
    try:
        check_installed()
        offers += sorted(files, key=lambda one: -(one.size or 0))
    except ModelError as error:
        notes += [f"{len(files)} GGUF files: {error}"] if files else []
    keys = tuple((name, variable) for name, variable in PROVIDER_KEYS.items() if os.environ.get(variable, "").strip())
    return Discovery(tuple(offers), keys, tuple(notes))


async def check_local_server(model: str, endpoint: Endpoint) -> None:
    """Check that a local server runs and has the model.

    Raise ModelError if the server does not run or lacks the model; the message names the start command or another
    model.
    """
    server, where, is_ollama = (
        SERVERS[endpoint.server],
        without_credentials(endpoint.base_url),
        endpoint.server == "ollama",
    )
    try:
        known = await _list_models(endpoint.base_url, endpoint.api_key, _CHECK_S)
    except httpx.HTTPStatusError as error:
        if error.response.status_code in {401, 403}:
            status = error.response.status_code
            raise ModelError(f"{where} refuses the API key (HTTP {status}): check {endpoint.key_variable}") from error
        return  # the server does not list its models: errors appear when the model is used
    except httpx.HTTPError as error:
        variable = "OLLAMA_HOST" if is_ollama else "the role's BASE_URL"
        raise ModelError(
            f"{server.title} does not answer at {where} ({error or type(error).__name__}): "
            f"start it (`{server.start_command}`), or set {variable}"
        ) from error
    except ValueError:
        return
    names = {one.casefold() for one in known}
    if not names.isdisjoint({model.casefold(), f"{model}:latest".casefold()}) or (not known and not is_ollama):
        return
    near = get_close_matches(model, known, n=1, cutoff=0.0)
    write = f"write {endpoint.server}:{printable(near[0])}" if near else ""
    advice = " or ".join(filter(None, [write, f"get it with `ollama pull {model}`" if is_ollama else ""]))
    listed = ", ".join(map(printable, known[:8])) or "none"
    raise ModelError(f"{server.title} at {where} has no model {model!r}: {advice}. It has {listed}")


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


async def _list_models(base_url: str, key: str | None, timeout_s: float) -> list[str]:
    """Return the model names that a server lists. Proxies and redirects are off: only this server gets the key."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(timeout=timeout_s, trust_env=False, headers=headers) as client:
        answer = await client.get(f"{base_url.rstrip('/')}/models")
        listed = answer.raise_for_status().json()
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        raise ValueError(f"{without_credentials(base_url)}: /models did not return a list")  # noqa: TRY004
    names = [one.get("id") for one in entries if isinstance(one, dict)]
    return [one for one in names if isinstance(one, str) and 0 < len(one) <= 300 and one.isprintable()]


async def _probe_server(name: str) -> tuple[list[ModelOffer], str]:
    """Return the models of a local server, and a message if the server cannot be used."""
    base_url = base_url_of(name)
    where = f"server at {without_credentials(base_url)}"
    if not is_local_url(base_url):
        return [], f"{where} is on another machine and was not queried: set its model yourself, as {name}:NAME"
    try:
        async with asyncio.timeout(2 * _PROBE_S):
            known = await _list_models(base_url, None, _PROBE_S)
    except httpx.HTTPStatusError as error:
        wants_key = error.response.status_code in {401, 403}
        note = f"{where} requires a key: set PACKETGATE_LITE_API_KEY, and set its model yourself, as {name}:NAME"
        return [], note if wants_key else ""
    except (httpx.HTTPError, ValueError, TimeoutError):
        return [], ""  # no such server runs
    return [ModelOffer(f"{name}:{one}", where) for one in known if "?" not in one and "embed" not in one.lower()], ""


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
        return data[:4] == b"GGUF" and data.find(b"tokenizer.chat_template", 0, _HEAD) >= 0
