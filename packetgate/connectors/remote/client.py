"""The way to a LangGraph-API server: its client, which of its assistants is meant, and what goes wrong there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError

from httpx import URL, AsyncClient, ConnectError, ConnectTimeout, HTTPError, InvalidURL, Response, Timeout
from langgraph.pregel.remote import RemoteException
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, AuthenticationError, PermissionDeniedError
from pydantic import BaseModel, TypeAdapter, ValidationError

from packetgate.models.endpoint import shown
from packetgate.state import errors
from packetgate.state.errors import ConfigError, PacketgateError

KEY = "LANGGRAPH_API_KEY"
"""The environment variable with the key that a server may ask for."""
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


@contextmanager
def translated_errors(url: str) -> Iterator[None]:
    """Say of what went wrong on the way to the server, or there, what it is.

    Raises:
        ConfigError: nobody can be reached, nobody is let in, or what is asked for is not there.
        PacketgateError: as a run on the server raised it, or that the server went away.
    """
    try:
        yield
    except RemoteException as error:
        raise _as_raised(error) from error
    except (AuthenticationError, PermissionDeniedError) as error:
        raise ConfigError(
            f"{url}: the server lets nobody in with this key, or without one ({_refusal(error)}): set {KEY}"
        ) from error
    except APIStatusError as error:
        raise ConfigError(f"{url}: the server refuses: {_refusal(error)}") from error
    except (ConnectError, ConnectTimeout) as error:
        raise ConfigError(
            f"{url}: no LangGraph-API server can be reached there ({type(error).__name__}): start one, "
            "for example with `make studio`, or leave the address out"
        ) from error
    except HTTPError as error:
        raise PacketgateError(
            f"{url}: the server went away ({type(error).__name__}): what it had done by then is kept there, "
            "and the turn can be continued once it is back"
        ) from error
    except JSONDecodeError as error:
        raise ConfigError(f"{url}: what answers there is no LangGraph-API server: it does not speak JSON") from error


def _as_raised(error: RemoteException) -> PacketgateError:
    data = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    name, message = str(data.get("error", "Exception")), str(data.get("message", error))
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, PacketgateError):
        return known(message)
    return PacketgateError(f"the turn broke on the server: {name}: {message}; its log says more")


def _refusal(error: APIStatusError) -> str:
    reason = " ".join(error.message.split())
    status = str(error.status_code)
    return reason[:300] if reason.startswith(status) else f"{status} {reason}"[:300]
