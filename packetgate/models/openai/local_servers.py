"""Local model servers: whether they run, and which models they have. Sends no key to another machine."""

import asyncio
from difflib import get_close_matches

import httpx

from packetgate.models.kinds import FoundModels, ModelOffer
from packetgate.models.openai.servers import LOCAL_SERVERS, SERVERS, Endpoint, base_url_of, is_local_url
from packetgate.models.transport import without_credentials
from packetgate.state.errors import ModelError
from packetgate.state.printing import printable

_CHECK_S, _PROBE_S = 5.0, 2.0


async def find_served_models() -> FoundModels:
    """Return the models of the servers on their usual ports."""
    answers = await asyncio.gather(*map(_probe_server, LOCAL_SERVERS))
    offers = tuple(one for found, _ in answers for one in found)
    return FoundModels(offers, notes=tuple(note for _, note in answers if note))


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
