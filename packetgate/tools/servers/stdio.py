"""A server that is started here and spoken to over pipes: lines of bounded length, in any encoding."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession
from mcp.client.stdio import get_default_environment
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from packetgate.tools.servers.bounds import MAX_MESSAGE_BYTES
from packetgate.tools.servers.messages import read_aside
from packetgate.tools.servers.server_log import ServerLog

_GRACE_S = 2.0
"""How long a server may take to end once its input has, and then after SIGTERM."""


class NoMessageError(ValueError):
    """A line that a server printed between its messages."""

    def __init__(self, printed: bytes) -> None:
        super().__init__(printed[:100])
        self.printed = printed


class LoggedTransport(ClientTransport):
    """Prints a server's errors to its log, and ends a server that writes a line without an end."""

    def __init__(self, command: list[str], cwd: str | None, env: dict[str, str], log: ServerLog) -> None:
        self._command = command
        self._cwd = cwd
        self._env = get_default_environment() | env
        self._log = log
        self.flaw = ""
        """Why it was ended, if it was."""

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Start the server and open a session; on leaving, it is ended, and what it started with it."""
        options = transport_options or TransportOptions()
        self.flaw = ""
        with self._log.pipe() as errors:
            process = await self._started(errors)
        received, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, sent = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            waiting: set[RequestId] = set()
            tasks.start_soon(self._read, process, received, waiting)
            tasks.start_soon(_write, process, sent, waiting)
            try:
                async with options.session_class(reading, writing, **session) as opened:
                    yield opened
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                tasks.cancel_scope.cancel()
                for stream in (received, reading, writing, sent):
                    stream.close()

    async def _started(self, errors: TextIO) -> Process:
        return await anyio.open_process(
            self._command, stderr=errors, env=self._env, cwd=self._cwd, start_new_session=True
        )

    async def _read(
        self,
        process: Process,
        messages: MemoryObjectSendStream[SessionMessage | Exception],
        waiting: set[RequestId],
    ) -> None:
        assert process.stdout is not None  # noqa: S101
        line = bytearray()
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            async with messages:
                async for chunk in process.stdout:
                    *ends, rest = chunk.split(b"\n")
                    for end in ends:
                        for one in await _parsed(bytes(line + end), waiting):
                            await messages.send(one)
                        line.clear()
                    line += rest
                    if len(line) > MAX_MESSAGE_BYTES:
                        self.flaw = f"it was ended, for a line of more than {MAX_MESSAGE_BYTES // 1_000_000} MB"
                        _signal(process, signal.SIGKILL)
                        return


async def _write(
    process: Process, messages: MemoryObjectReceiveStream[SessionMessage], waiting: set[RequestId]
) -> None:
    assert process.stdin is not None  # noqa: S101
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async for one in messages:
            _note_sent(one.message, waiting)
            text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(f"{text}\n".encode(errors="replace"))


def _note_sent(message: JSONRPCMessage, waiting: set[RequestId]) -> None:
    match message:
        case JSONRPCRequest(id=request):
            waiting.add(request)
        case JSONRPCNotification(method="notifications/cancelled", params={"requestId": request}):
            waiting.discard(request)


async def _parsed(line: bytes, waiting: set[RequestId]) -> list[SessionMessage | Exception]:
    """Return a line as messages, or as the error that it is none: then it belongs into the log."""
    messages = await read_aside(line, next(iter(waiting)) if len(waiting) == 1 else None)
    for one in messages:
        if isinstance(one, JSONRPCResponse | JSONRPCError):
            waiting.difference_update([one.id, coerce_request_id(one.id)] if one.id is not None else [])
    if not messages:
        return [NoMessageError(line)] if line.strip() else []
    return [SessionMessage(one) for one in messages]


async def _end(process: Process) -> None:
    """End a server as the protocol says: its input ends, then SIGTERM, then SIGKILL, to all that it started."""
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(_GRACE_S):
            await process.wait()
            break
        _signal(process, number)
    _signal(process, signal.SIGKILL)
    with anyio.move_on_after(_GRACE_S):
        await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
