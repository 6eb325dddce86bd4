"""Sessions on a running LangGraph-API server, reached through LangGraph's `RemoteGraph`."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from httpx import HTTPError
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, NotFoundError

from connectors.sessions import AnswerPiece, Given, Sessions, SessionState
from state import errors
from state.context import RoutingContext
from state.errors import ConfigError, PacketgateError
from state.events import StageEvent
from state.packet import CognitionPacket, TurnInput


class RemoteSessions(Sessions):
    """The conversations that a server keeps. Its threads are named by UUIDs: a session's is made from its name."""

    def __init__(self, graph: RemoteGraph, client: LangGraphClient, url: str) -> None:
        super().__init__(graph)
        self._client = client
        self._url = url

    def config(self, session: str) -> RunnableConfig:
        """Return the configuration by which the server finds a session's thread."""
        return {"configurable": {"thread_id": thread_id(session)}}

    async def state(self, session: str) -> SessionState:
        """Return where a session stands; where the server knows no such thread, at its beginning.

        Raises:
            ConfigError: the server cannot be reached, or lets nobody in.
            PacketVersionError: a newer Packetgate wrote it.
        """
        with self._named_errors():
            try:
                return await super().state(session)
            except NotFoundError:
                return SessionState(CognitionPacket(), None, is_unfinished=False)

    async def stream(
        self, given: Given, session: str, context: RoutingContext
    ) -> AsyncGenerator[StageEvent | AnswerPiece]:
        """Run the server's graph on a session, and tell what happens. Closing the stream stops the run there.

        Of the context only what was set goes along: the rest is the assistant's.

        Raises:
            PacketgateError: as the server's run raised it, or that the server cannot be used.
        """
        with self._named_errors():
            async with aclosing(super().stream(given, session, context)) as told:
                async for one in told:
                    yield one

    def _parts(
        self, given: object, session: str, context: RoutingContext | dict[str, Any], **options: Any
    ) -> AsyncGenerator[Any]:
        sent = given.model_dump(mode="json") if isinstance(given, TurnInput) else given
        chosen = context.model_dump(mode="json", exclude_unset=True) if isinstance(context, RoutingContext) else context
        return super()._parts(sent, session, chosen, on_disconnect="cancel", **options)

    async def forget(self, session: str) -> None:
        """Remove all that the server keeps of a session's conversation."""
        with self._named_errors(), suppress(NotFoundError):
            await self._client.threads.delete(thread_id(session))

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Say of what went wrong on the way or on the server what it is."""
        try:
            yield
        except NotFoundError:
            raise
        except RemoteException as error:
            raise _as_raised(error) from error
        except APIStatusError as error:
            raise ConfigError(f"{self._url}: the server refuses: {error.status_code} {_detail(error)}") from error
        except HTTPError as error:
            raise ConfigError(
                f"{self._url}: no LangGraph-API server can be reached there ({type(error).__name__}): start one, "
                "for example with `make studio`, or leave --url out"
            ) from error


def thread_id(session: str) -> str:
    """Return the UUID of a session's thread: its name, where that is one, or one made from it."""
    try:
        return str(UUID(session))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"packetgate:{session}"))


@asynccontextmanager
async def open_remote(url: str, assistant: str) -> AsyncIterator[RemoteSessions]:
    """Open the sessions of the server at `url`, run by one of its assistants: a graph's name, or an assistant's id.

    The API key, where one is needed, is in the environment: `LANGGRAPH_API_KEY`.

    Raises:
        ConfigError: this is no address of a server.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is no address of a server: give one that begins with http:// or https://")
    async with get_client(url=url) as client:
        yield RemoteSessions(RemoteGraph(assistant, client=client), client, url)


def _as_raised(error: RemoteException) -> PacketgateError:
    """Return the error that a run on the server ended with, as its own class where it is one of ours."""
    data = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    name, message = str(data.get("error", "Exception")), str(data.get("message", error))
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, PacketgateError):
        return known(message)
    return PacketgateError(f"the turn broke on the server: {name}: {message}; its log says more")


def _detail(error: APIStatusError) -> str:
    return str(error.body.get("detail", error.message) if isinstance(error.body, dict) else error.message)[:300]
