"""Sessions on a LangGraph-API server, through LangGraph's `RemoteGraph`."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from json import JSONDecodeError
from typing import Any, cast
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
from langgraph.store.base import BaseStore, SearchItem
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, AuthenticationError, NotFoundError, PermissionDeniedError

from packetgate.connectors.sessions import AnswerPiece, RunInput, Sessions, SessionState
from packetgate.models.transport import without_credentials
from packetgate.state import errors
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketgateError
from packetgate.state.events import StageEvent
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.attached.parts import text_and_files

KEY = "LANGGRAPH_API_KEY"
"""The environment variable with the server's API key."""
SILENCE_S = 300.0
"""Longest silence of a live server, in seconds. A live server sends a heartbeat every few seconds."""
MAX_ASSISTANTS = 1_000
STORE_PAGE = 500
"""Items of a store requested at once."""


@asynccontextmanager
async def open_remote(url: str, assistant: str) -> AsyncIterator["RemoteSessions"]:
    """Open the sessions of a server for an assistant's id or a graph's name. Raise ConfigError if unusable."""
    address = without_credentials(url)
    async with _client(url) as client:
        with translated_errors(address):
            graph = RemoteGraph(await _assistant(client, assistant, address), client=client)
        yield RemoteSessions(graph, client, address)


class RemoteSessions(Sessions):
    """The sessions of a server. Its threads have UUIDs, derived from the session names."""

    def __init__(self, graph: RemoteGraph, client: LangGraphClient, url: str) -> None:
        super().__init__(graph)
        self._client, self._url = client, url

    @property
    def store(self) -> BaseStore:
        """The server's store with what is learned from turns."""
        return cast("BaseStore", RemoteStore(self._client))

    async def forget(self, session: str) -> None:
        """Delete everything that the server stores of a session."""
        with translated_errors(self._url):
            await super().forget(session)

    def config(self, session: str) -> RunnableConfig:
        """Return the configuration by which the server finds a session's thread."""
        return {"configurable": {"thread_id": thread_id(session)}}

    async def state(self, session: str) -> SessionState:
        """Return the state of a session; blank if the server has no such thread."""
        with translated_errors(self._url):
            try:
                return await super().state(session)
            except NotFoundError:
                return SessionState(CognitionPacket(), None, is_unfinished=False)

    async def stream(
        self, run_input: RunInput, session: str, context: RoutingContext
    ) -> AsyncGenerator[StageEvent | AnswerPiece]:
        """Run the server's graph on a session and yield its events. Closing the stream stops the run.

        Only explicitly set fields of the context are sent; the assistant's apply otherwise.
        """
        with translated_errors(self._url):
            async with aclosing(super().stream(run_input, session, context)) as events:
                async for event in events:
                    yield event

    async def _with_files(self, run_input: TurnInput, session: str) -> TurnInput:
        await asyncio.to_thread(text_and_files, run_input.messages)  # the server stores the attachments
        return run_input

    def _parts(
        self, run_input: object, session: str, context: RoutingContext | dict[str, Any], **options: Any
    ) -> AsyncGenerator[Any]:
        sent = run_input.model_dump(mode="json") if isinstance(run_input, TurnInput) else run_input
        chosen = context.model_dump(mode="json", exclude_unset=True) if isinstance(context, RoutingContext) else context
        return super()._parts(sent, session, chosen, on_disconnect="cancel", **options)

    async def _delete(self, session: str) -> None:
        thread = thread_id(session)
        with suppress(NotFoundError):
            for run in await self._client.runs.list(thread):
                if run["status"] in {"pending", "running"}:
                    with suppress(HTTPStatusError):  # the run has just ended
                        await self._client.runs.cancel(thread, run["run_id"], wait=True)
            await self._client.threads.delete(thread)


class RemoteStore:
    """A server's store, as far as deleting a session needs it."""

    def __init__(self, client: LangGraphClient) -> None:
        self._store = client.store

    async def asearch(self, namespace: tuple[str, ...], *, limit: int, **options: Any) -> list[SearchItem]:
        """Return the items below a namespace."""
        items: list[Any] = []
        while len(items) < limit:
            page = await self._store.search_items([*namespace], limit=STORE_PAGE, offset=len(items), **options)
            items += page["items"]
            if len(page["items"]) < STORE_PAGE:
                break
        return [SearchItem(**{**item, "namespace": tuple(item["namespace"])}) for item in items]

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete an item."""
        await self._store.delete_item(namespace, key=key)


def thread_id(session: str) -> str:
    """Return the UUID of a session's thread: its name if the name is a UUID; otherwise a UUID derived from the name."""
    try:
        return str(UUID(session))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"packetgate:{session}"))


def _client(url: str) -> LangGraphClient:
    try:
        base = URL(url.strip())
    except InvalidURL:
        base = URL()
    if base.scheme not in {"http", "https"} or not base.host or not 0 < (base.port or 80) < 2**16:
        raise ConfigError(f"{without_credentials(url)!r} is not the address of a server, such as http://127.0.0.1:2024")
    key = os.environ.get(KEY, "").strip()
    return LangGraphClient(
        AsyncClient(
            base_url=base,
            headers={"x-api-key": key} if key else {},
            timeout=Timeout(SILENCE_S, connect=5, pool=5),
            event_hooks={"response": [_without_location]},
        )
    )


async def _without_location(response: Response) -> None:
    # The server cancels a run whose stream closes, so the stream cannot be rejoined.
    response.headers.pop("location", None)


async def _assistant(client: LangGraphClient, name: str, address: str) -> str:
    try:
        listed: Any = await client.assistants.search(limit=MAX_ASSISTANTS)
        known = [(assistant["assistant_id"], assistant["graph_id"], assistant["name"]) for assistant in listed]
    except (AuthenticationError, PermissionDeniedError):
        raise
    except (APIStatusError, TypeError, KeyError) as error:
        reason = f"{error.status_code}" if isinstance(error, APIStatusError) else "/assistants is missing"
        raise ConfigError(f"{address}: not a LangGraph-API server: {reason}") from error
    if any(name in assistant[:2] for assistant in known):
        return name
    named = [assistant[0] for assistant in known if assistant[2] == name]
    if len(named) == 1:
        return str(named[0])
    if named:
        raise ConfigError(f"{address}: {len(named)} assistants are named {name!r}: use an id")
    names = ", ".join(sorted({str(assistant[2]) for assistant in known})) or "none"
    raise ConfigError(f"{address}: the server has no assistant {name!r}: it has {names}; set PACKETGATE_ASSISTANT")


@contextmanager
def translated_errors(url: str) -> Iterator[None]:
    """Convert errors of the server and of the connection into Packetgate's errors.

    Raises:
        ConfigError: the server cannot be reached, refuses the key, or does not have what is requested.
        PacketgateError: the error of a run on the server, or the connection was lost.
    """
    try:
        yield
    except RemoteException as error:
        raise _local_error(error) from error
    except (AuthenticationError, PermissionDeniedError) as error:
        raise ConfigError(f"{url}: the server refuses the key ({_reason(error)}): set {KEY}") from error
    except APIStatusError as error:
        raise ConfigError(f"{url}: the server refuses: {_reason(error)}") from error
    except (ConnectError, ConnectTimeout) as error:
        raise ConfigError(
            f"{url}: the server cannot be reached ({type(error).__name__}): start one, for example with `make studio`, "
            "or leave the address out",
            Code.SERVER_UNAVAILABLE,
        ) from error
    except HTTPError as error:
        raise PacketgateError(
            f"{url}: the connection was lost ({type(error).__name__}): once it is back, the turn can be continued",
            Code.CONNECTION_LOST,
        ) from error
    except JSONDecodeError as error:
        raise ConfigError(f"{url}: not a LangGraph-API server: its answer is not JSON") from error


def _local_error(error: RemoteException) -> PacketgateError:
    data = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    name, message = str(data.get("error", "Exception")), str(data.get("message", error))
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, PacketgateError):
        return known(message)
    return PacketgateError(f"the turn failed on the server: {name}: {message}; see its log")


def _reason(error: APIStatusError) -> str:
    reason, status = " ".join(error.message.split()), str(error.status_code)
    return reason[:300] if reason.startswith(status) else f"{status} {reason}"[:300]
