"""Run a server process: messages over pipes, with bounded lines, and a bounded log of its output."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
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

from packetgate.state.redaction import redacted
from packetgate.tools.servers.bounds import MAX_MESSAGE_BYTES
from packetgate.tools.servers.messages import read_aside

MAX_LOG_BYTES = 1_000_000
"""Bytes at which the older half of a log is dropped."""
_GRACE_S = 2.0
"""Seconds that a server may take to end after its input ends, and again after SIGTERM."""


class ServerLog:
    """The log of a server since its last start: a private file without secrets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    @property
    def called(self) -> str:
        """The path within the data folder, for messages to remote users."""
        return f"{self.path.parent.name}/{self.path.name} of Packetgate's data folder"

    def start(self) -> None:
        """Start an empty log. Blocking."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(PermissionError):
            self.path.parent.chmod(0o700)
        self.path.unlink(missing_ok=True)  # not truncated: others may have it open
        os.close(os.open(self.path, os.O_CREAT, 0o600))

    def write(self, printed: bytes) -> None:
        """Append output without secrets; it is lost if the disk is full. Blocking."""
        printed = redacted(printed.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        with self._lock, suppress(OSError), self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) > MAX_LOG_BYTES:
                file.seek(-MAX_LOG_BYTES // 2, os.SEEK_END)
                newer = file.read()
                file.seek(0)
                file.truncate()
                file.write(b"[what was printed before is dropped]\n" + newer)
            file.write(printed)

    @contextmanager
    def pipe(self) -> Iterator[TextIO]:
        """Yield a stream for the standard error of a process; its output is copied to the log."""
        reading, writing = os.pipe()
        Thread(target=self._copy, args=(reading,), daemon=True, name=f"log of {self.path.stem}").start()
        with os.fdopen(writing, "w", encoding="utf-8") as printing:
            yield printing

    def _copy(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as printed:
            rest = b""
            while chunk := printed.read(65_536):
                *whole, rest = (rest + chunk).rpartition(b"\n")
                if len(rest) > 65_536:  # a secret across this cut is not recognized
                    whole, rest = [*whole, rest], b""
                self.write(b"".join(whole))
            self.write(rest)


class NoMessageError(ValueError):
    """A line of a server that is not a message."""

    def __init__(self, printed: bytes) -> None:
        super().__init__(printed[:100])
        self.printed = printed


class LoggedTransport(ClientTransport):
    """A stdio transport that logs standard error, and kills a server that writes an endless line."""

    def __init__(self, command: list[str], cwd: str | None, env: dict[str, str], log: ServerLog) -> None:
        self._command = command
        self._cwd = cwd
        self._env = get_default_environment() | env
        self._log = log
        self.flaw = ""
        """Why the server was killed; empty if it was not."""

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Start the server and open a session; on exit, stop the server and its children."""
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
    messages = await read_aside(line, next(iter(waiting)) if len(waiting) == 1 else None)
    for one in messages:
        if isinstance(one, JSONRPCResponse | JSONRPCError):
            waiting.difference_update([one.id, coerce_request_id(one.id)] if one.id is not None else [])
    if not messages:
        return [NoMessageError(line)] if line.strip() else []
    return [SessionMessage(one) for one in messages]


async def _end(process: Process) -> None:
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
