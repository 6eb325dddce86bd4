"""The link of a call to its client, for progress, log messages and questions of the call's server."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any, TypeAlias, get_args

import anyio
import mcp_types
from fastmcp import Context
from fastmcp.server.dependencies import get_http_headers
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from packetgate.state.base import new_id
from packetgate.state.private_names import connection_of, log_level_of
from packetgate.toolsets.servers.callers import Caller, Question, passed_capabilities

LOG_LEVELS = get_args(mcp_types.LoggingLevel)
"""MCP's log levels, from the least to the most severe."""
CANCEL_PATIENCE_S = 5.0
"""Seconds that a cancelled call waits for its server."""

Response = mcp_types.ElicitResult | mcp_types.CreateMessageResult | mcp_types.CreateMessageResultWithTools
Work = Callable[["ClientLink"], Coroutine[Any, Any, ToolResult]]
"""Runs a call with its link."""
AskingCalls: TypeAlias = "MutableMapping[str, ClientLink]"
"""Running calls that wait for an answer of the client's user, by request state."""


def is_sessionless(ctx: Context) -> bool:
    """Whether the request's protocol has no sessions."""
    request = ctx.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


async def run_linked(asking_calls: AskingCalls, ctx: Context, work: Work) -> ToolResult:
    """Run a call with a link to its client, or continue the call that waits for a request's responses.

    Return the call's result, or a result that asks the client.
    """
    link = asking_calls.pop(ctx.request_state, None) if ctx.request_state else None
    if link is None:
        link = ClientLink(ctx, asking_calls)
        link.work = asyncio.create_task(work(link))
    else:
        link.answer(ctx)
    return await link.next_result()


class ClientLink:
    """The link of one call.

    In a protocol without sessions, a question ends the request: the call waits, and the client's next request continues
    it.
    """

    def __init__(self, ctx: Context, asking_calls: AskingCalls) -> None:
        self.work: asyncio.Task[ToolResult]
        self._asking_calls = asking_calls
        self._questions: dict[str, tuple[Question, asyncio.Future[Response]]] = {}
        """The open questions, by name."""
        self._bind(ctx)
        session = ctx.session
        capabilities, headers = passed_capabilities(session.client_capabilities), get_http_headers(include_all=True)
        self.caller = Caller(connection_of(session), headers, self._report, self._pass_log, capabilities, self._ask)

    def _bind(self, ctx: Context) -> None:
        # read now: the asking task may have the context of a server in this process
        self._ctx, self._session, self._here = ctx, ctx.session, contextvars.copy_context()
        self._request_id, self._is_sessionless = ctx.request_id, is_sessionless(ctx)
        self._has_question: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answer(self, ctx: Context) -> None:
        """Answer questions with the responses in a request, which receives the next result."""
        self._bind(ctx)
        for name, response in (ctx.input_responses or {}).items():
            if isinstance(response, Response) and name in self._questions:
                self._questions.pop(name)[1].set_result(response)
        if self._questions:
            self._has_question.set_result(None)

    async def next_result(self) -> ToolResult:
        """Return the call's result, or the result that asks the client."""
        either: list[asyncio.Future[Any]] = [self.work, self._has_question]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # the framework cancels a request repeatedly; only one cancellation lets the server be told
            self.work.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self.work], timeout=CANCEL_PATIENCE_S)
            raise
        if self.work.done():
            return self.work.result()
        # FastMCP encrypts the state and binds it to this request.
        self._asking_calls[state := new_id()] = self
        requests = {name: question for name, (question, _) in self._questions.items()}
        return InputRequiredToolResult(mcp_types.InputRequiredResult(input_requests=requests, request_state=state))

    async def _ask(self, question: Question) -> Response:
        """Return the client's answer to a question of the server."""
        if self._is_sessionless:
            name = f"question-{new_id()[:8]}"
            answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            self._questions[name] = question, answer
            if not self._has_question.done():
                self._has_question.set_result(None)
            try:
                return await answer
            finally:
                self._questions.pop(name, None)
        form: type[Response] = mcp_types.ElicitResult
        if isinstance(question, mcp_types.CreateMessageRequest):
            with_tools = question.params.tools
            form = mcp_types.CreateMessageResultWithTools if with_tools else mcp_types.CreateMessageResult
        elif isinstance(question.params, mcp_types.ElicitRequestURLParams) and not question.params.elicitation_id:
            question.params.elicitation_id = new_id()  # protocols with sessions require it
        return await self._session.send_request(
            question, form, metadata=ServerMessageMetadata(related_request_id=self._request_id)
        )

    async def _report(self, done: float, total: float | None, message: str | None) -> None:
        await asyncio.create_task(self._ctx.report_progress(done, total, message), context=self._here.copy())

    async def _pass_log(self, message: mcp_types.LoggingMessageNotificationParams) -> None:
        wanted = log_level_of(self._session)
        if wanted is None or LOG_LEVELS.index(message.level) >= LOG_LEVELS.index(wanted):
            notification = mcp_types.LoggingMessageNotification(params=message)
            await asyncio.create_task(self._ctx.send_notification(notification), context=self._here.copy())
