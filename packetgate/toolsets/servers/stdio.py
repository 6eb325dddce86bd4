"""Run a server process: exchange messages over pipes, limit their length, and log the server's other output."""

import fcntl
import logging
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
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
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from packetgate.state.redaction import redacted
from packetgate.toolsets.builtin.confinement import Confinement, Wrapper, in_thread
from packetgate.toolsets.builtin.left_behind import is_replaced
from packetgate.toolsets.builtin.limits import INTERVAL_S, excess_of, max_memory_bytes
from packetgate.toolsets.servers.confined import HOSTS_HINT, SANDBOX_ERRORS, SANDBOX_HINT, ServerStart
from packetgate.toolsets.servers.host_filter import HostFilter
from packetgate.toolsets.servers.messages import MAX_MESSAGE_BYTES, message_to_json, read_jsonrpc, unreadable_answer

MAX_LOG_BYTES = 1_000_000
"""Size of a log at which its older half is deleted, in bytes."""
NOT_INSTALLED = "the program {!r} is not installed, or not on PATH"
_GRACE_S = 2.0
"""Longest wait for a server to exit after its input is closed, and again after SIGTERM, in seconds."""

_LOGGER = logging.getLogger(__name__)


class ServerLog:
    """The log of a server since its last start. Only its owner can read the file; secrets are redacted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    @property
    def label(self) -> str:
        """The path within the data folder, for messages to remote users."""
        return f"{self.path.parent.name}/{self.path.name} of Packetgate's data folder"

    def start(self) -> None:
        """Replace the log by an empty file. Blocking."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(PermissionError):
            self.path.parent.chmod(0o700)
        self.path.unlink(missing_ok=True)  # not truncated, because another process may have the file open
        os.close(os.open(self.path, os.O_CREAT, 0o600))

    def write(self, output: bytes) -> None:
        """Append output, with secrets redacted. Output that cannot be written is lost. Blocking."""
        output = redacted(output.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        with self._lock, suppress(OSError), self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) > MAX_LOG_BYTES:
                file.seek(-MAX_LOG_BYTES // 2, os.SEEK_END)
                newer = file.read()
                file.seek(0)
                file.truncate()
                file.write(b"[older output was deleted]\n" + newer)
            file.write(output)

    @contextmanager
    def pipe(self) -> Iterator[TextIO]:
        """Yield a stream for the standard error of a process. A thread copies the output to the log."""
        read_end, write_end = os.pipe()
        Thread(target=self._copy, args=(read_end,), daemon=True, name=f"log of {self.path.stem}").start()
        with os.fdopen(write_end, "w", encoding="utf-8") as stream:
            yield stream

    def _copy(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as output:
            rest = b""
            while chunk := output.read(65_536):
                lines, newline, rest = (rest + chunk).rpartition(b"\n")
                if len(rest) > 65_536:  # a secret across this cut is not recognized
                    lines, newline, rest = lines + newline, rest, b""
                self.write(lines + newline)
            self.write(rest)


class LoggedTransport(ClientTransport):
    """A stdio transport that logs all other output than messages, and kills a server that writes too long a line."""

    def __init__(self, start: ServerStart, inherited: dict[str, str], log: ServerLog) -> None:
        """`inherited`: environment variables in addition to those of the start and of every process."""
        self._env = get_default_environment() | inherited | start.environment
        self.log = log
        self.start = start
        self.stop_reason = ""
        """Why the server did not start, or why Packetgate killed it; otherwise empty."""
        self.is_missing = False
        """Whether the program does not exist."""
        self._host_filter: HostFilter | None = None
        self._start_mark: Path | None = None

    def hint(self, error: str = "") -> str:
        """Return a hint if the sandbox may have caused the error, or if there is no error text; otherwise ""."""
        is_refused = self._host_filter is not None and bool(self._host_filter.refused)
        confinement = self.start.confinement
        if confinement is None or not (is_refused or not error or SANDBOX_ERRORS.search(error)):
            return ""
        return f"{HOSTS_HINT}; {SANDBOX_HINT}" if confinement.hosts else SANDBOX_HINT

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Start the server and open a session; on exit, stop the server and its children."""
        options, wrapper = transport_options or TransportOptions(), None
        prefix, env, inherited = list[str](), self._env, list[int]()
        received, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, sent = anyio.create_memory_object_stream[SessionMessage](0)
        self.is_missing = not await anyio.to_thread.run_sync(self._has_program)
        self.stop_reason = ""
        if self.is_missing:
            self.stop_reason = NOT_INSTALLED.format(self.start.command[0])
            raise FileNotFoundError(self.stop_reason)
        async with AsyncExitStack() as stack:
            if (confinement := self.start.confinement) is not None:
                wrapper = await stack.enter_async_context(in_thread(self._wrapper(confinement)))
                prefix = wrapper.command
                if confinement.hosts:
                    hosts = self._host_filter = stack.enter_context(HostFilter(confinement.hosts, self.log.write))
                    prefix, env, inherited = [*prefix, *hosts.command], env | hosts.environment, [hosts.channel]
            with self.log.pipe() as errors:
                process = await anyio.open_process(
                    [*prefix, *self.start.command],
                    stderr=errors,
                    env=env,
                    cwd=self.start.folder,
                    start_new_session=True,
                    pass_fds=inherited,
                )
            async with received, reading, writing, sent, anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, process, received)
                tasks.start_soon(_write, process, sent)
                if wrapper is not None:
                    tasks.start_soon(self._watch, process, wrapper)
                if self._host_filter is not None:
                    tasks.start_soon(self._host_filter.serve)
                try:
                    async with options.session_class(reading, writing, **session) as opened:
                        yield opened
                finally:
                    with anyio.CancelScope(shield=True):
                        await _end_process(process)
                        if wrapper is not None:
                            await anyio.to_thread.run_sync(self._tell_left, wrapper)
                    tasks.cancel_scope.cancel()

    def _has_program(self) -> bool:
        program, folder = self.start.command[0], self.start.folder or "."
        in_folder = os.path.join(folder, program) if os.sep in program else program  # noqa: PTH118 - keeps `./`
        return shutil.which(in_folder, path=self._env.get("PATH")) is not None

    @contextmanager
    def _wrapper(self, confinement: Confinement) -> Iterator[Wrapper]:
        """Yield the wrapper that confines the server. Blocking."""
        with ExitStack() as stack:
            if confinement.home is not None:
                self._start_mark = stack.enter_context(_marked_start(confinement.home))
            yield stack.enter_context(confinement.wrapper(self.start.command[0], self._env))

    async def _read(self, process: Process, messages: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert process.stdout is not None  # noqa: S101
        line = bytearray()
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            async with messages:
                async for chunk in process.stdout:
                    *ends, rest = chunk.split(b"\n")
                    for end in ends:
                        message = await self._message(bytes(line + end))
                        line.clear()
                        if message is not None:
                            await messages.send(message)
                    line += rest
                    if len(line) > MAX_MESSAGE_BYTES:
                        self._stop(process, f"it wrote a line of more than {MAX_MESSAGE_BYTES // 10**6} MB")
                        break
            async for _ in process.stdout:  # otherwise, the pipe stays open
                pass

    async def _message(self, line: bytes) -> SessionMessage | None:
        """Return a line as a message. Log any other line, and return None."""
        if not line.strip():
            return None
        try:
            message = SessionMessage(await read_jsonrpc(line))
        except (ValueError, RecursionError) as error:
            if failure := unreadable_answer(line, error):
                return SessionMessage(failure)
            await anyio.to_thread.run_sync(self.log.write, line + b"\n")
            return None
        if self._start_mark is not None:
            await anyio.to_thread.run_sync(self._start_mark.write_bytes, b"")
            self._start_mark = None
        return message

    async def _watch(self, process: Process, wrapper: Wrapper) -> None:
        """Stop a confined server that exceeds a limit, or whose protected files were replaced."""
        max_memory = max_memory_bytes()

        def reason() -> str:
            wrapper.left.remove_redirections()
            replaced = is_replaced(wrapper.left.protected)
            return excess_of(process.pid, max_memory) or (
                "a file that it may not change was replaced; the next call restarts it" if replaced else ""
            )

        found = ""
        while not found:
            await anyio.sleep(INTERVAL_S)
            found = await anyio.to_thread.run_sync(reason)
        self._stop(process, found)

    def _tell_left(self, wrapper: Wrapper) -> None:
        """Log the files that the server left behind and that run later. Blocking."""
        for line in wrapper.left.report(Path(self.start.folder or "").absolute()):
            self.log.write(f"{line}\n".encode())
            _LOGGER.warning("%s: %s", self.log.path.stem, line)

    def _stop(self, process: Process, reason: str) -> None:
        self.stop_reason = f"the server was stopped: {reason}"
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _marked_start(home: Path) -> Iterator[Path]:
    """Yield a file next to a server's home folder, which is empty once the server has started. Blocking.

    If the last start was interrupted, remove the packages of `npx`: it does not complete a half-installed package.
    """
    mark = home.with_name(f"{home.name}.start")
    mark.touch(0o600)
    with mark.open("r+b") as file:
        with suppress(BlockingIOError):  # another process has started the server
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.read():
                shutil.rmtree(home / ".npm" / "_npx", ignore_errors=True)
            file.write(b"started")
            file.flush()
        yield mark


async def _write(process: Process, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None  # noqa: S101
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async for outgoing in messages:
            await process.stdin.send(message_to_json(outgoing.message) + b"\n")


async def _end_process(process: Process) -> None:
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    with anyio.move_on_after(_GRACE_S):
        await process.wait()
    await terminate_posix_process_tree(process, _GRACE_S)
    with anyio.move_on_after(_GRACE_S):
        await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()
