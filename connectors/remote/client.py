"""The way to a LangGraph-API server: its client, and which of its assistants is meant."""

import os

from httpx import URL, AsyncClient, InvalidURL, Response, Timeout
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, AuthenticationError, PermissionDeniedError
from pydantic import BaseModel, TypeAdapter, ValidationError

from connectors.remote.errors import KEY
from models.endpoint import shown
from state.errors import ConfigError

SILENCE_S = 300.0
"""Longest silence of a server that is alive: it sends a sign of life every few seconds."""
MOST = 1_000
"""Most assistants that a server lists at once."""


class _Assistant(BaseModel):
    assistant_id: str
    graph_id: str
    name: str


_ASSISTANTS = TypeAdapter(list[_Assistant])


def client_of(url: str) -> LangGraphClient:
    """Return the client of the server at `url`, not yet entered. Its key, if it asks for one, is in the environment.

    Raises:
        ConfigError: this is no address of a server.
    """
    nowhere = f"{shown(url)!r} is no address of a server"
    try:
        base = URL(url.strip())
    except InvalidURL as error:
        raise ConfigError(f"{nowhere}: {error}") from error
    if base.scheme not in {"http", "https"} or not base.host or not 0 < (base.port or 80) < 2**16:
        raise ConfigError(f"{nowhere}: give one such as http://127.0.0.1:2024")
    key = os.environ.get(KEY, "").strip()
    return LangGraphClient(
        AsyncClient(
            base_url=base,
            headers={"x-api-key": key} if key else {},
            timeout=Timeout(SILENCE_S, connect=5, pool=5),
            event_hooks={"response": [_nothing_to_rejoin]},
        )
    )


async def find_assistant(client: LangGraphClient, wanted: str, address: str) -> str:
    """Return an assistant's id, or a graph's name, as the server knows it. Wanted is one of these, or a name.

    Raises:
        ConfigError: there is none, or no LangGraph-API server.
        AuthenticationError, PermissionDeniedError: the server asks for another key.
    """
    try:
        there = _ASSISTANTS.validate_python(await client.assistants.search(limit=MOST))
    except (AuthenticationError, PermissionDeniedError):
        raise
    except APIStatusError as error:
        what = f"{error.status_code} {error.response.reason_phrase}"
        raise ConfigError(f"{address}: no LangGraph-API server answers there, or it is not well: {what}") from error
    except ValidationError as error:
        raise ConfigError(
            f"{address}: what answers there is no LangGraph-API server: it knows no assistants"
        ) from error
    if any(wanted in {one.assistant_id, one.graph_id} for one in there):
        return wanted
    named = [one.assistant_id for one in there if one.name == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        raise ConfigError(f"{address}: {len(named)} assistants are named {wanted!r}: give the id of one")
    names = ", ".join(sorted({one.name for one in there})) or "none"
    raise ConfigError(f"{address}: the server has no assistant {wanted!r}: it has {names}; set PACKETGATE_ASSISTANT")


async def _nothing_to_rejoin(response: Response) -> None:
    """Take the offer to rejoin a run out of an answer: a run that loses its listener is cancelled."""
    response.headers.pop("location", None)
