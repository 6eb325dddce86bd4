"""Classify the errors of calls: whether the call ran, and whether the server forgot the session."""

import asyncio
from typing import Any

import anyio
import httpx2
from fastmcp import Client
from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from packetgate.state.errors import LostCallError, ServerError
from packetgate.tools.servers.bounds import BoundedTransport
from packetgate.tools.servers.messages import Failure, failure_of

LOST = (
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    httpx2.HTTPError,
    OSError,
    RuntimeError,
)
"""Exceptions of a broken connection, including `TimeoutError`."""

_REFUSED = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 428, 429, 431, 451})
"""Statuses of requests that were refused before they ran."""
_AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which a read is retried."""
_AGAIN_S = 0.5
"""Shortest wait before a retry, in seconds."""
_PING_S = 5.0
"""Time-out of a ping, in seconds."""


def unanswered(server: str, failure: Failure, cause: str) -> ServerError | None:
    """Return the error for a call that the server did not answer; None if it did."""
    match failure.kind:
        case "answer":
            return None
        case "unsent":
            return ServerError(f"server {server!r} cannot be reached: {cause}", cause, again_in_s=0)
        case "unreadable":
            return LostCallError(f"server {server!r} gave no usable answer: {cause}", cause)
    again_in_s = max(_AGAIN_S, failure.retry_after_s or 0) if failure.status in _AGAIN else None
    kind = ServerError if failure.status in _REFUSED else LostCallError
    return kind(f"server {server!r} answered {cause}", cause, again_in_s=again_in_s)


async def forgot_session(client: Client[BoundedTransport], error: MCPError, wait_s: float) -> bool:
    """Whether the server refused the session, and so did not run the call: then it refuses a ping as well.

    The ping must get the same error, unless the error names the session or has the status for it.
    """
    failure = failure_of(error)
    if failure is None or client.initialize_result is None or error.error.code == METHOD_NOT_FOUND:
        return False
    by_status = 400 <= failure.status < 500 and failure.status not in _AGAIN
    if failure.kind not in {"answer", "http"} or not (failure.status == 200 or by_status):
        return False
    try:
        refusal = await pinged(client, wait_s)
    except LOST:
        return False
    speaks_of_it = "session" in error.error.message.lower() or (
        failure.status in {404, 410} and _has_session(client.transport)
    )
    return refusal is not None and (speaks_of_it or refusal == _told_by(error))


async def pinged(client: Client[Any], wait_s: float) -> tuple[int, int, str] | None:
    """Ping the server and return its error; None if it answers.

    Raises:
        TimeoutError: no answer in time.
    """
    try:
        async with asyncio.timeout(min(wait_s, _PING_S)):
            await client.session.send_ping()
    except MCPError as error:
        return _told_by(error)
    return None


def _has_session(transport: BoundedTransport) -> bool:
    return transport.legacy_only or transport.get_session_id() is not None


def _told_by(error: MCPError) -> tuple[int, int, str]:
    failure = failure_of(error)
    return failure.status if failure else 0, error.error.code, error.error.message
