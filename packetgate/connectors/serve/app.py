"""The HTTP endpoint: authenticate clients, run their requests, and answer in OpenAI's formats."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

from fastmcp.server.http import HostOriginGuardMiddleware
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from packetgate.connectors.clients import LOCAL, ServeConfig, client_of
from packetgate.connectors.serve.background import Background, answer_background, background_prompt
from packetgate.connectors.serve.conversing import Conversations, IncomingRequest, Piece, TurnEnd
from packetgate.connectors.serve.forms import ChatRequest, Completion, ResponseFrame, ResponsesRequest
from packetgate.connectors.serve.protocol import (
    MAX_BYTES,
    MODEL,
    ApiError,
    ModelRequest,
    read_request,
    refused,
    spoken,
    system_prompt,
)
from packetgate.connectors.serve.threads import Scope
from packetgate.connectors.sessions import Sessions
from packetgate.models.model import Model
from packetgate.state.base import TokenUsage
from packetgate.state.context import MAX_PERSONA_CHARS, RoutingContext
from packetgate.state.errors import InputError

CONVERSATION_HEADERS = ("x-packetgate-conversation", "x-openwebui-chat-id")
"""Headers that name a conversation; `conversation_id` in the request's `metadata` does as well."""
USER_HEADER = "x-openwebui-user-id"
"""Header with Open WebUI's user; other clients send `user` or `safety_identifier`."""
CLOSED = 499
"""Status of an answer whose client disconnected, as in nginx."""

log = logging.getLogger(__name__)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Endpoint:
    """Handlers of the routes."""

    def __init__(
        self,
        sessions: Sessions,
        config: ServeConfig,
        started: RoutingContext,
        tokens: dict[str, str],
        model: Callable[[], Awaitable[Model | None]],
    ) -> None:
        """`model` answers background prompts."""
        self._conversations = Conversations(sessions)
        self._config = config
        self._started = started
        self._tokens = tokens
        self._model = model
        self._running: set[asyncio.Task[None]] = set()
        self._noted: set[str] = set()

    async def models(self, request: Request) -> Response:
        """List the one model, or show it."""
        self.client(request)
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
        name = request.path_params.get("name")
        if name not in {None, MODEL}:
            raise ApiError(f"there is no model {name!r}", status=404, param="model", code="model_not_found")
        return JSONResponse(model if name else {"object": "list", "data": [model]})

    async def chat(self, request: Request) -> Response:
        """Answer the last message of a conversation with a chat completion."""
        return await self._answer(request, ChatRequest)

    async def respond(self, request: Request) -> Response:
        """Answer the last message of a conversation with a response."""
        return await self._answer(request, ResponsesRequest)

    async def _answer(self, request: Request, kind: type[ChatRequest] | type[ResponsesRequest]) -> Response:
        client = self.client(request)
        asked = read_request(kind, await body_of(request))
        asked.check(strict=self._config.strict)
        self._note_tools(client, asked.client_tools)
        background = background_prompt(asked)
        incoming = self._background(background, asked) if background else self._turn(request, client, asked)
        pieces = self._apart(incoming)
        if not asked.stream:
            return await unless_gone(request, _whole(asked.frame(), pieces))
        first = await anext(pieces)
        return StreamingResponse(
            _events(asked.frame(), first, pieces),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    async def _background(self, prompt: Background, asked: ModelRequest) -> AsyncGenerator[Piece]:
        text, usage = await answer_background(prompt, asked.said, self._model)
        yield text
        yield TurnEnd(usage)

    def _turn(self, request: Request, client: str, asked: ModelRequest) -> AsyncGenerator[Piece]:
        messages = asked.said
        said = spoken(messages)
        if not said or said[-1].role != "user":
            raise ApiError("the last of the messages must be the user's", param="messages")
        last = [one for one in messages if one.role == "user"][-1]
        headers = (value for name in CONVERSATION_HEADERS if (value := request.headers.get(name)))
        person = asked.person or request.headers.get(USER_HEADER, "")
        scope = Scope(client, next(headers, asked.conversation_id), person)
        rights = self._config.settings_of(client, self._started)
        persona = "\n\n".join(one for one in (rights.persona.strip(), system_prompt(messages)) if one)
        if len(persona) > MAX_PERSONA_CHARS:
            raise ApiError(f"the system prompt has {len(persona):,} characters: at most {MAX_PERSONA_CHARS:,} are read")
        rights = rights.model_copy(update={"persona": persona})
        return self._conversations.answer(IncomingRequest(scope, said[:-1], said[-1], last.words, last.files, rights))

    def _note_tools(self, client: str, number: int) -> None:
        if number and client not in self._noted:
            self._noted.add(client)
            log.warning(
                "client %s sends %d tools of its own: they are ignored, and so will be those of later requests; "
                "only tools of mcp.json run here. `strict = true` in [serve] of packetgate.toml refuses such requests",
                client,
                number,
            )

    def client(self, request: Request) -> str:
        """Return the client of a request. Raise ApiError if its token is unknown."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        client = client_of(token.strip(), self._tokens) if kind.lower() == "bearer" else None
        if client is None and self._tokens:
            raise ApiError(
                "this endpoint wants a token as the API key, and this is none that it knows",
                status=401,
                code="invalid_api_key",
            )
        return client or LOCAL

    async def _apart(self, incoming: AsyncGenerator[Piece]) -> AsyncGenerator[Piece]:
        """Run an answer in a task of its own and yield its pieces; closing this cancels the task in order."""
        pieces: asyncio.Queue[Piece | Exception | None] = asyncio.Queue()

        async def run() -> None:
            try:
                async with aclosing(incoming) as events:
                    async for piece in events:
                        pieces.put_nowait(piece)
                pieces.put_nowait(None)
            except Exception as error:  # noqa: BLE001  handed to whoever answers the client
                pieces.put_nowait(error)

        task = asyncio.create_task(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            task.cancel()

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """At the end, cancel running answers and wait for them."""
        yield
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


def make_app(endpoint: Endpoint, hosts: list[str], *more: Route) -> Starlette:
    """Return the application."""
    routes = [
        Route("/v1/models", endpoint.models),
        Route("/v1/models/{name:path}", endpoint.models),
        Route("/v1/chat/completions", endpoint.chat, methods=["POST"]),
        Route("/v1/responses", endpoint.respond, methods=["POST"]),
        *more,
    ]
    guard = Middleware(HostOriginGuardMiddleware, allowed_hosts=hosts, mode="strict")
    handlers = {
        ApiError: _error_response,
        InputError: _error_response,
        HTTPException: _error_response,
        Exception: _error_response,
    }
    return Starlette(routes=routes, middleware=[guard], exception_handlers=handlers, lifespan=endpoint.lifespan)


async def body_of(request: Request) -> bytes:
    """Return the body of a request, of at most `MAX_BYTES`. Raise ApiError if it is larger."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise ApiError(f"the request is larger than {MAX_BYTES:,} bytes", status=413)
    return bytes(body)


async def unless_gone(request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
    """Return the answer, or cancel it if its client disconnects."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answering, going = asyncio.create_task(answer), asyncio.create_task(gone())
    try:
        await asyncio.wait([answering, going], return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else Response(status_code=CLOSED)
    finally:
        answering.cancel()
        going.cancel()
        await asyncio.gather(answering, going, return_exceptions=True)


async def _whole(frame: Completion | ResponseFrame, pieces: AsyncGenerator[Piece]) -> Response:
    text, usage = "", TokenUsage()
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, str):
                text += piece
            elif isinstance(piece, TurnEnd):
                usage = piece.usage
    return JSONResponse(frame.whole(text, usage))


async def _events(
    frame: Completion | ResponseFrame, first: Piece, pieces: AsyncGenerator[Piece]
) -> AsyncGenerator[str]:
    usage = TokenUsage()

    def shown(piece: Piece) -> str:
        if isinstance(piece, str):
            return frame.piece(piece) if piece else ""
        return f": {piece.name}\n\n" if not isinstance(piece, TurnEnd) else ""

    async with aclosing(pieces):
        yield frame.begin() + shown(first)
        try:
            async for piece in pieces:
                usage = piece.usage if isinstance(piece, TurnEnd) else usage
                if text := shown(piece):
                    yield text
        except Exception as error:  # noqa: BLE001  the outermost edge: the status is sent already
            yield frame.failed(_api_error(error))
            return
        yield frame.end(usage)


async def _error_response(_request: Request, error: Exception) -> Response:
    answer = _api_error(error)
    headers = {"WWW-Authenticate": "Bearer"} if answer.status == 401 else None
    return JSONResponse(answer.body, status_code=answer.status, headers=headers)


def _api_error(error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case InputError():
            return refused(error)
        case HTTPException():
            return ApiError(f"there is nothing of that here: {error.detail}", status=error.status_code)
    log.error("a turn broke", exc_info=error)
    return ApiError("something went wrong here: the server's log says what", status=500)
