"""Model servers: check that they answer, and find the models of those on this machine."""

import asyncio
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import httpx

from packetgate.models.kinds import FoundModels, ModelOffer
from packetgate.models.openai.servers import (
    LLAMA_SERVER,
    LOCAL_SERVERS,
    SERVERS,
    Endpoint,
    base_url_of,
    endpoint_of,
    is_local_url,
)
from packetgate.models.transport import as_decision_errors, status_of
from packetgate.state.errors import DecisionError, ModelError
from packetgate.state.printing import without_credentials

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CHECK_TIMEOUT_S, _PROBE_S = 5.0, 2.0


async def find_served_models() -> FoundModels:
    """Return the models of the servers on their usual ports."""
    answers = await asyncio.gather(*map(_probe_server, LOCAL_SERVERS))
    offers = tuple(one for found, _ in answers for one in found)
    return FoundModels(offers, notes=tuple(note for _, note in answers if note))


async def find_decision_models() -> FoundModels:
    """Return the decision models of the reviewing model's endpoint, if it is on this machine."""
    base_url = endpoint_of("prime", server=LLAMA_SERVER).base_url.rstrip("/")
    if not is_local_url(base_url):
        return FoundModels()
    where = f"server at {without_credentials(base_url)}"
    try:
        async with asyncio.timeout(2 * _PROBE_S), httpx.AsyncClient(timeout=_PROBE_S, trust_env=False) as client:
            name, *_ = await _served_names(client, base_url)  # any other is not loaded yet
            body = {
                "model": name,
                "state": "Rain.",
                "questions": {"wet": {"type": "noul", "instructions": "Is it wet?"}},
            }
            answer = (await client.post(f"{base_url}/systemone", json=body)).raise_for_status().json()
            if 0 <= answer["answers"]["wet"]["noul"] <= 1:
                return FoundModels((ModelOffer(f"systemone:{name}", where),))
    except (httpx.HTTPError, ValueError, LookupError, TypeError, TimeoutError):
        pass  # no such server runs, or it has no decision model
    return FoundModels()


async def check_server(model: Any, client: "AsyncOpenAI", name: str, endpoint: Endpoint) -> None:
    """Check that an endpoint answers, for at most `CHECK_TIMEOUT_S`, and that a local server has the model.

    Raise ModelError if nothing answers, the key is refused, the server fails, or a local server lacks the model; the
    message names the start command or another model.
    """
    server, is_ollama = SERVERS.get(endpoint.server), endpoint.server == "ollama"
    advice = f"no answer within {CHECK_TIMEOUT_S:g} s: check the base URL and the server"
    try:
        with as_decision_errors(model, advice):
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                listed = await client.with_options(max_retries=0, timeout=CHECK_TIMEOUT_S).models.list()
            known = _names([{"id": getattr(one, "id", None)} for one in getattr(listed, "data", None) or ()])
    except DecisionError as error:
        problem, status = str(error), status_of(error.__cause__)
        if server and server.start_command and status is None:
            variable = "OLLAMA_HOST" if is_ollama else "the role's BASE_URL"
            problem += f"; start {server.title} (`{server.start_command}`), or set {variable}"
        if status is None or status in {401, 403} or status >= 500:
            raise ModelError(problem) from error.__cause__
        return  # other errors are accepted: not every server lists its models
    if server is None or not server.start_command or (not known and not is_ollama):
        return
    if not {name.casefold(), f"{name}:latest".casefold()}.isdisjoint(map(str.casefold, known)):
        return
    near = get_close_matches(name, known, n=1, cutoff=0.0)
    write = f"write {endpoint.server}:{near[0]}" if near else ""
    advice = " or ".join(filter(None, [write, f"get it with `ollama pull {name}`" if is_ollama else ""]))
    has = ", ".join(known[:8]) or "none"
    where = without_credentials(endpoint.base_url)
    raise ModelError(f"{server.title} at {where} has no model {name!r}: {advice}. It has {has}")


def _names(entries: Any) -> list[str]:
    names = [one.get("id") for one in entries or () if isinstance(one, dict)]
    return [one for one in names if isinstance(one, str) and 0 < len(one) <= 300 and one.isprintable()]


async def _served_names(client: httpx.AsyncClient, base_url: str) -> list[str]:
    answer = await client.get(f"{base_url.rstrip('/')}/models")
    return _names(answer.raise_for_status().json()["data"])


async def _probe_server(name: str) -> tuple[list[ModelOffer], str]:
    """Return the models of a local server, and a message if the server cannot be used."""
    base_url = base_url_of(name)
    where = f"server at {without_credentials(base_url)}"
    if not is_local_url(base_url):
        return [], f"{where} is on another machine and was not queried: set its model yourself, as {name}:NAME"
    try:
        # no proxies: only this server is asked
        async with asyncio.timeout(2 * _PROBE_S), httpx.AsyncClient(timeout=_PROBE_S, trust_env=False) as client:
            known = await _served_names(client, base_url)
    except httpx.HTTPStatusError as error:
        wants_key = error.response.status_code in {401, 403}
        note = f"{where} requires a key: set PACKETGATE_LITE_API_KEY, and set its model yourself, as {name}:NAME"
        return [], note if wants_key else ""
    except (httpx.HTTPError, ValueError, LookupError, TypeError, TimeoutError):
        return [], ""  # no such server runs
    return [ModelOffer(f"{name}:{one}", where) for one in known if "?" not in one and "embed" not in one.lower()], ""
