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
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from packetgate.connectors.clients import LOCAL_CLIENT, Clients, client_for_token
from packetgate.connectors.serve.conversations import ChatConversations, IncomingRequest, Piece
from packetgate.connectors.serve.model_answers import answer_background, is_background_prompt
from packetgate.connectors.serve.protocol import (
    MAX_NAME_CHARS,
    SERVED_MODEL,
    AnswerEnd,
    AnswerFormat,
    AnswerRequest,
    ApiError,
    ChatRequest,
    ResponsesRequest,
    read_request,
    unknown_model,
)
from packetgate.connectors.serve.threads import ConversationOwner
from packetgate.connectors.sessions import Sessions
from packetgate.models.model import Model
from packetgate.state.base import TokenUsage
from packetgate.state.context import MAX_PERSONA_CHARS, RoutingContext
from packetgate.state.errors import InputError, ModelError

CONVERSATION_HEADERS = ("x-packetgate-conversation", "x-openwebui-chat-id")
"""Headers that name a conversation."""
USER_HEADER = "x-openwebui-user-id"
"""Header with Open WebUI's user; other clients send `user` or `safety_identifier`."""
CLIENT_CLOSED = 499
"""Status of an answer whose client disconnected, as in nginx."""

log = logging.getLogger(__name__)


class ServeEndpoint:
    """Handlers of the routes."""

    def __init__(
        self,
        sessions: Sessions,
        config: Clients,
        context: RoutingContext,
        tokens: dict[str, str],
        model_source: Callable[[], Awaitable[Model | None]],
    ) -> None:
        """`model_source` returns the model for background prompts."""
        self._conversations = ChatConversations(sessions)
        self._config, self._context, self._tokens, self._model_source = config, context, tokens, model_source
        self._running: set[asyncio.Task[None]] = set()
        self._clients_with_tools: set[str] = set()

    async def models(self, request: Request) -> Response:
        """Return the list of models, which has one entry, or the named model."""
        self._client_of(request)
        model = {"id": SERVED_MODEL, "object": "model", "created": 0, "owned_by": SERVED_MODEL}
        name = request.path_params.get("name", SERVED_MODEL)
        if name != SERVED_MODEL:
            raise unknown_model(name)
        return JSONResponse(model if request.path_params else {"object": "list", "data": [model]})

    async def chat(self, request: Request) -> Response:
        """Answer the last message of a conversation with a chat completion."""
        return await self._answer(request, ChatRequest)

    async def respond(self, request: Request) -> Response:
        """Answer the last message of a conversation with a response."""
        return await self._answer(request, ResponsesRequest)

    async def _answer(self, request: Request, request_type: type[AnswerRequest]) -> Response:
        client = self._client_of(request)
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            # a web page may send other types to this server without asking it first
            raise ApiError(f"the content type is {media_type or 'missing'}: send application/json", status=415)
        parsed = read_request(request_type, await request.body())
        parsed.check_supported()
        self._log_client_tools(client, len(parsed.tools or ()))
        is_task = is_background_prompt(parsed)
        pieces = self._run_in_task(
            self._background_answer(parsed) if is_task else self._turn_answer(request, client, parsed)
        )
        if not parsed.stream:
            return await _cancel_on_disconnect(request, _complete_response(parsed.answer_format(), pieces))
        first = await anext(pieces)
        return StreamingResponse(
            _events(parsed.answer_format(), first, pieces),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    async def _background_answer(self, parsed: AnswerRequest) -> AsyncGenerator[Piece]:
        limit = parsed.answer_limit()
        text, usage = await answer_background(parsed.wire_messages, self._model_source)
        yield limit.close(text)
        yield AnswerEnd(usage, limit.is_cut)

    def _turn_answer(self, request: Request, client: str, parsed: AnswerRequest) -> AsyncGenerator[Piece]:
        history = parsed.history
        if not history or history[-1].role != "user":
            raise ApiError("the last message must be from the user", param="messages")
        last = [message for message in parsed.wire_messages if message.role == "user"][-1]
        names = (value for name in CONVERSATION_HEADERS if (value := request.headers.get(name)))
        user = parsed.user or parsed.safety_identifier or request.headers.get(USER_HEADER, "")
        owner = ConversationOwner(client, next(names, "")[:MAX_NAME_CHARS], user)
        rights = self._config.client_settings(client, self._context)
        persona = "\n\n".join(filter(None, (rights.persona.strip(), parsed.system_prompt)))
        if len(persona) > MAX_PERSONA_CHARS:
            raise ApiError(f"the system prompt has {len(persona):,} characters; the limit is {MAX_PERSONA_CHARS:,}")
        rights = rights.model_copy(update={"persona": persona})
        limit = parsed.answer_limit()
        incoming = IncomingRequest(owner, history[:-1], history[-1], last.words, last.files, rights, limit)
        return self._conversations.answer(incoming)

    def _log_client_tools(self, client: str, count: int) -> None:
        if count and client not in self._clients_with_tools:
            self._clients_with_tools.add(client)
            log.warning(
                "client %s sent %d tools of its own: Packetgate ignores them, also in later requests, and runs only "
                "the tools of mcp.json",
                client,
                count,
            )

    def _client_of(self, request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        client = client_for_token(token.strip(), self._tokens) if scheme.lower() == "bearer" else None
        if client is None and self._tokens:
            raise ApiError(
                "unknown token: use a token of this server as the API key", status=401, code="invalid_api_key"
            )
        return client or LOCAL_CLIENT

    async def _run_in_task(self, answer: AsyncGenerator[Piece]) -> AsyncGenerator[Piece]:
        """Generate an answer in its own task and yield its chunks. Closing the generator cancels the task once."""
        pieces: asyncio.Queue[Piece | Exception] = asyncio.Queue()

        async def run() -> None:
            try:
                async with aclosing(answer):
                    async for piece in answer:
                        pieces.put_nowait(piece)
                pieces.put_nowait(StopAsyncIteration())
            except Exception as error:  # noqa: BLE001  raised again below
                pieces.put_nowait(error)

        task = asyncio.create_task(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            while not isinstance(piece := await pieces.get(), StopAsyncIteration):
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


def make_app(endpoint: ServeEndpoint, hosts: list[str]) -> Starlette:
    """Return the application; `hosts` are additional host names by which clients may reach it."""
    routes = [
        Route("/v1/models", endpoint.models),
        Route("/v1/models/{name:path}", endpoint.models),
        Route("/v1/chat/completions", endpoint.chat, methods=["POST"]),
        Route("/v1/responses", endpoint.respond, methods=["POST"]),
    ]
    guard = Middleware(HostOriginGuardMiddleware, allowed_hosts=hosts, mode="strict")
    handlers = dict.fromkeys((ApiError, InputError, HTTPException, ClientDisconnect, Exception), _error_response)
    return Starlette(routes=routes, middleware=[guard], exception_handlers=handlers, lifespan=endpoint.lifespan)


async def _cancel_on_disconnect(request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
    """Return the answer. If the client disconnects, cancel the answer."""

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answering, waiting = asyncio.create_task(answer), asyncio.create_task(wait_for_disconnect())
    try:
        await asyncio.wait([answering, waiting], return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else Response(status_code=CLIENT_CLOSED)
    finally:
        answering.cancel()
        waiting.cancel()
        await asyncio.gather(answering, waiting, return_exceptions=True)


async def _complete_response(answer: AnswerFormat, pieces: AsyncGenerator[Piece]) -> Response:
    text, end = "", AnswerEnd(TokenUsage())
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, str):
                text += piece
            elif piece is not None:
                end = piece
    return JSONResponse(answer.complete(text, end))


async def _events(answer: AnswerFormat, first: Piece, pieces: AsyncGenerator[Piece]) -> AsyncGenerator[str]:
    async with aclosing(pieces):
        yield answer.begin() + _event_for(answer, first)
        try:
            async for piece in pieces:
                if text := _event_for(answer, piece):
                    yield text
        except Exception as error:  # noqa: BLE001  the status is already sent
            yield answer.failed(_api_error(error))


def _event_for(answer: AnswerFormat, piece: Piece) -> str:
    match piece:
        case str():
            return answer.piece(piece) if piece else ""
        case None:
            return ": the turn continues\n\n"
    return answer.end(piece)


async def _error_response(_request: Request, error: Exception) -> Response:
    answer = _api_error(error)
    headers = {"WWW-Authenticate": "Bearer"} if answer.status == 401 else None
    return JSONResponse(answer.body, status_code=answer.status, headers=headers)


def _api_error(error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case ModelError():
            return ApiError(" ".join(str(error).split()), code=error.code, status=502)
        case InputError():
            return ApiError(" ".join(str(error).split()), code=error.code)
        case HTTPException():
            return ApiError(error.detail, status=error.status_code)
        case ClientDisconnect():
            return ApiError("the request did not arrive", status=CLIENT_CLOSED)
    log.error("a turn failed", exc_info=error)
    return ApiError("internal error: see the server's log", status=500)
