"""The models that a server of this machine has, as it lists them."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import httpx

from packetgate.models.endpoint import Endpoint, shown
from packetgate.models.servers import SERVERS
from packetgate.state.errors import ModelError
from packetgate.state.printing import printable

TIMEOUT_S = 5.0
SHOWN = 8
"""Most names in a message."""


@dataclass(frozen=True)
class Served:
    """One model of a server."""

    name: str
    size: int | None = None
    """Bytes, where the server tells them."""


async def served(base_url: str, key: str | None = None, timeout_s: float = TIMEOUT_S) -> list[Served]:
    """Return the models that a server lists. No proxy is used, and no redirection followed: the key stays there.

    Raises:
        httpx.HTTPError, ValueError: nothing answers, or what answers lists no models.
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
    """Make sure that a named server of this machine runs, and has the model.

    Raises:
        ModelError: it does not; the message says what to write, or to start, instead.
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
    """Whether a server knows a model by this name; Ollama's `:latest` may be left out."""
    return not {model.casefold(), f"{model}:latest".casefold()}.isdisjoint(one.casefold() for one in known)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 300 and value.isprintable() and "?" not in value


def _size(entry: dict[str, Any]) -> int | None:
    meta = entry.get("meta")  # of llama.cpp's server
    size = meta.get("size") if isinstance(meta, dict) else None
    return size if isinstance(size, int) else None
