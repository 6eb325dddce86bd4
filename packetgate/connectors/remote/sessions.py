"""Sessions on a running LangGraph-API server, reached through LangGraph's `RemoteGraph`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from httpx import HTTPStatusError
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteGraph
from langgraph.store.base import BaseStore, ListNamespacesOp, MatchCondition, Op, PutOp, Result, SearchItem, SearchOp
from langgraph.types import StateSnapshot
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from packetgate.connectors.remote.client import client_of, find_assistant, translated_errors
from packetgate.connectors.sessions import AnswerPiece, Given, Sessions, SessionState
from packetgate.models.endpoint import shown
from packetgate.state.context import RoutingContext
from packetgate.state.events import StageEvent
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.attached.parts import check_files

STORE_PAGE = 500
"""Items of a store asked for at once."""


class RemoteStore(BaseStore):
    """A server's store, read by prefixes of namespaces, and deleted from."""

    def __init__(self, client: LangGraphClient) -> None:
        self._client = client

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Refuse: a server is only asked on the event loop."""
        raise NotImplementedError("use the store's asynchronous methods")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do one after the other."""
        return [await self._do(op) for op in ops]

    async def _do(self, op: Op) -> Result:
        match op:
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp(match_conditions=(MatchCondition(match_type="prefix", path=path),)):
                return await self._namespaces([str(label) for label in path], op.limit)
            case PutOp(value=None):
                await self._client.store.delete_item(op.namespace, key=op.key)
                return None
            case _:
                raise NotImplementedError(f"{op}: nothing is written into a server's store, and it is read by prefixes")

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[dict[str, Any]] = []
        while len(found) < op.limit:
            size = min(STORE_PAGE, op.limit - len(found))
            answer = await self._client.store.search_items(
                list(op.namespace_prefix), filter=op.filter, limit=size, offset=op.offset + len(found)
            )
            found += [dict(item) for item in answer["items"]]
            if len(answer["items"]) < size:
                break
        return [SearchItem(**{**item, "namespace": tuple(item["namespace"])}) for item in found]

    async def _namespaces(self, prefix: list[str], limit: int) -> list[tuple[str, ...]]:
        answer: Any = await self._client.store.list_namespaces(prefix=prefix, limit=limit)
        return [tuple(one) for one in answer["namespaces"]]


class RemoteSessions(Sessions):
    """The conversations that a server keeps. Its threads are named by UUIDs: a session's is made from its name."""

    def __init__(self, graph: RemoteGraph, client: LangGraphClient, url: str) -> None:
        super().__init__(graph)
        self._client = client
        self._url = url

    @property
    def store(self) -> RemoteStore:
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
        """Return where a session stands; where the server knows no such thread, at its beginning.

        Raises:
            ConfigError: the server cannot be reached, or lets nobody in.
            PacketError: what it keeps is no packet, or a newer Packetgate's.
        """
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
        """Run the server's graph on a session, and tell what happens. Closing the stream stops the run there.

        Of the context only what was set goes along: the rest is the assistant's.

        Raises:
            PacketgateError: as the server's run raised it, or that the server cannot be used, or went away.
        """
        with translated_errors(self._url):
            async with aclosing(super().stream(given, session, context)) as told:
                async for one in told:
                    yield one

    async def _taken(self, given: TurnInput, session: str) -> TurnInput:
        await asyncio.to_thread(check_files, given.messages)
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


def thread_id(session: str) -> str:
    """Return the UUID of a session's thread: its name, where that is one, or one made from it."""
    try:
        return str(UUID(session))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"packetgate:{session}"))


@asynccontextmanager
async def open_remote(url: str, assistant: str) -> AsyncIterator[RemoteSessions]:
    """Open the sessions of the server at `url`, run by one of its assistants, given by name or id, or by its graph's.

    The API key, where one is needed, is in the environment: `LANGGRAPH_API_KEY`.

    Raises:
        ConfigError: this is no address of a server, none answers there, or it has no such assistant.
    """
    address = shown(url)
    async with client_of(url) as client:
        with translated_errors(address):
            found = await find_assistant(client, assistant, address)
        yield RemoteSessions(RemoteGraph(found, client=client), client, address)
