"""Sessions on a running LangGraph-API server, reached through LangGraph's `RemoteGraph`."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from json import JSONDecodeError
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from httpx import (
    URL,
    AsyncClient,
    ConnectError,
    ConnectTimeout,
    HTTPError,
    HTTPStatusError,
    InvalidURL,
    Response,
    Timeout,
)
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.store.base import BaseStore, ListNamespacesOp, MatchCondition, Op, PutOp, Result, SearchItem, SearchOp
from langgraph.types import StateSnapshot
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, AuthenticationError, NotFoundError, PermissionDeniedError

from packetgate.connectors.sessions import AnswerPiece, Given, Sessions, SessionState
from packetgate.models.endpoint import shown
from packetgate.state import errors
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketgateError
from packetgate.state.events import StageEvent
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.attached.parts import check_files

KEY = "LANGGRAPH_API_KEY"
"""The environment variable with the key that a server may ask for."""
SILENCE_S = 300.0
"""Longest silence of a live server in seconds; it sends a heartbeat every few seconds."""
MOST = 1_000
"""Most assistants that a server lists at once."""
STORE_PAGE = 500
"""Items of a store requested at once."""


@asynccontextmanager
async def open_remote(url: str, assistant: str) -> AsyncIterator["RemoteSessions"]:
    """Open the sessions of the server at `url`, run by one of its assistants, given by name or id, or by its graph's.

    The API key, where one is needed, is in the environment: `LANGGRAPH_API_KEY`.

    Raises:
        ConfigError: this is no address of a server, none answers there, or it has no such assistant.
    """
    address = shown(url)
    async with _client(url) as client:
        with translated_errors(address):
            found = await _assistant(client, assistant, address)
        yield RemoteSessions(RemoteGraph(found, client=client), client, address)


class RemoteSessions(Sessions):
    """The sessions of a server. Its threads have UUIDs, derived from the session names."""

    def __init__(self, graph: RemoteGraph, client: LangGraphClient, url: str) -> None:
        super().__init__(graph)
        self._client, self._url = client, url

    @property
    def store(self) -> "RemoteStore":
        """Where the server keeps records."""
        return RemoteStore(self._client)

    async def forget(self, session: str) -> None:
        """Remove all that the server keeps of a session."""
        with translated_errors(self._url):
            await super().forget(session)

    def config(self, session: str) -> RunnableConfig:
        """Return the configuration by which the server finds a session's thread."""
        return {"configurable": {"thread_id": thread_id(session)}}

    async def state(self, session: str) -> SessionState:
        """Return the state of a session; a blank one where the server knows no such thread."""
        with translated_errors(self._url):
            try:
                return await super().state(session)
            except NotFoundError:
                return SessionState(CognitionPacket(), None, is_unfinished=False)

    async def history(self, session: str) -> AsyncGenerator[StateSnapshot]:
        """Yield the states of a session, the newest first; none where the server knows no such thread."""
        with suppress(NotFoundError):
            async for state in super().history(session):
                yield state

    async def newest(self) -> str:
        """Return the thread in which something happened last; empty where the server keeps none."""
        with translated_errors(self._url):
            found = await self._client.threads.search(limit=1, sort_by="updated_at", sort_order="desc")
        return str(found[0]["thread_id"]) if found else ""

    async def stream(
        self, given: Given, session: str, context: RoutingContext
    ) -> AsyncGenerator[StageEvent | AnswerPiece]:
        """Run the server's graph on a session, and yield its events. Closing the stream stops the run there.

        Only explicitly set fields of the context are sent: the rest is the assistant's.
        """
        with translated_errors(self._url):
            async with aclosing(super().stream(given, session, context)) as events:
                async for event in events:
                    yield event

    async def _taken(self, given: TurnInput, session: str) -> TurnInput:
        await asyncio.to_thread(check_files, given.messages)  # the server keeps what is attached
        return given

    def _parts(
        self, given: object, session: str, context: RoutingContext | dict[str, Any], **options: Any
    ) -> AsyncGenerator[Any]:
        sent = given.model_dump(mode="json") if isinstance(given, TurnInput) else given
        chosen = context.model_dump(mode="json", exclude_unset=True) if isinstance(context, RoutingContext) else context
        return super()._parts(sent, session, chosen, on_disconnect="cancel", **options)

    async def _delete(self, session: str) -> None:
        thread = thread_id(session)
        with suppress(NotFoundError):
            for run in await self._client.runs.list(thread):
                if run["status"] in {"pending", "running"}:  # without its thread it could not be stopped any more
                    with suppress(HTTPStatusError):  # it has just ended
                        await self._client.runs.cancel(thread, run["run_id"], wait=True)
            await self._client.threads.delete(thread)


class RemoteStore(BaseStore):
    """A server's store: searched by prefixes of namespaces, and deleted from."""

    def __init__(self, client: LangGraphClient) -> None:
        self._store = client.store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Raise NotImplementedError: a server is only asked on the event loop."""
        raise NotImplementedError("use the store's asynchronous methods")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run one operation after the other."""
        return [await self._run(op) for op in ops]

    async def _run(self, op: Op) -> Result:
        match op:
            case SearchOp(namespace_prefix=prefix, filter=wanted, limit=limit, offset=offset):
                found: list[Any] = []
                while len(found) < limit:
                    size = min(STORE_PAGE, limit - len(found))
                    page = await self._store.search_items(
                        [*prefix], filter=wanted, limit=size, offset=offset + len(found)
                    )
                    found += page["items"]
                    if len(page["items"]) < size:
                        break
                return [SearchItem(**{**item, "namespace": tuple(item["namespace"])}) for item in found]
            case ListNamespacesOp(match_conditions=(MatchCondition(match_type="prefix", path=path),), limit=limit):
                answer: Any = await self._store.list_namespaces(prefix=[*map(str, path)], limit=limit)
                return [tuple(one) for one in answer["namespaces"]]
            case PutOp(value=None):
                await self._store.delete_item(op.namespace, key=op.key)
                return None
        raise NotImplementedError(f"{op}: nothing is written into a server's store, and it is read by prefixes")


def thread_id(session: str) -> str:
    """Return the UUID of a session's thread: its name if that is a UUID, or one derived from it."""
    try:
        return str(UUID(session))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"packetgate:{session}"))


def _client(url: str) -> LangGraphClient:
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


async def _assistant(client: LangGraphClient, wanted: str, address: str) -> str:
    try:
        listed: Any = await client.assistants.search(limit=MOST)
        rows: list[Any] = listed if isinstance(listed, list) else [None]
        there = [(one["assistant_id"], one["graph_id"], one["name"]) for one in rows]
    except (AuthenticationError, PermissionDeniedError):
        raise
    except APIStatusError as error:
        what = f"{error.status_code} {error.response.reason_phrase}"
        raise ConfigError(f"{address}: no LangGraph-API server answers there, or it is not well: {what}") from error
    except (TypeError, KeyError) as error:
        raise ConfigError(
            f"{address}: no LangGraph-API server answers there: /assistants lists no assistants"
        ) from error
    if any(wanted in one[:2] for one in there):
        return wanted
    named = [one[0] for one in there if one[2] == wanted]
    if len(named) == 1:
        return str(named[0])
    if named:
        raise ConfigError(f"{address}: {len(named)} assistants are named {wanted!r}: give the id of one")
    names = ", ".join(sorted({str(one[2]) for one in there})) or "none"
    raise ConfigError(f"{address}: the server has no assistant {wanted!r}: it has {names}; set PACKETGATE_ASSISTANT")


async def _nothing_to_rejoin(response: Response) -> None:
    response.headers.pop("location", None)  # a run that loses its listener is cancelled: it cannot be rejoined


@contextmanager
def translated_errors(url: str) -> Iterator[None]:
    """Raise our own errors for those of the server, and of the way to it.

    Raises:
        ConfigError: the server cannot be reached, refuses the key, or has not what is requested.
        PacketgateError: as a run on the server raised it, or the connection was lost.
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
    reason, status = " ".join(error.message.split()), str(error.status_code)
    return reason[:300] if reason.startswith(status) else f"{status} {reason}"[:300]
