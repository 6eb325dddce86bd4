"""One program run to its end, its time-out or its cancellation, and nothing of it left behind."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import anyio

from packetgate.tools.builtin.launcher import STOP

MAX_OUTPUT_BYTES = 45_000
_MARK = "PACKETGATE_CALL"
_KILL_ROUNDS = 10
"""More than one, because what is being killed may just have started something else."""
_GRACE_S = 2.0
"""How long a program may take to end after SIGTERM, and its output to end after SIGKILL."""


class Captured:
    """What a program wrote to one stream: the first and the last half of `MAX_OUTPUT_BYTES`."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        half = MAX_OUTPUT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(len(self._tail) - half, 0)
        self._cut += excess
        del self._tail[:excess]

    def text(self) -> str:
        """Return the text, with a mark where something was cut."""
        if not self._cut:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        return f"{head}\n[{self._cut:,} bytes cut]\n{tail}"


@dataclass(frozen=True)
class Finished:
    """How a program ended."""

    status: int
    """Exit status; minus the signal's number when a signal ended it."""
    timed_out: bool
    stdout: str
    stderr: str


class _Watch(asyncio.SubprocessProtocol):
    """Collects output and tells ends apart: a background child can hold the pipes open after the program's own end."""

    def __init__(self) -> None:
        self.output = {1: Captured(), 2: Captured()}
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output[fd].add(data)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


async def run_program(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    *,
    launcher: Callable[[int], Sequence[str]] | None = None,
) -> Finished:
    """Run a program without a shell and without input, in its own session.

    `launcher` gives the command that starts it and reports, to the file descriptor that it is told, how it ended.

    Raises:
        OSError: it cannot be started.
        ValueError: an argument holds a NUL byte or a lone surrogate.
    """
    if launcher is None:
        return await _run(argv, folder, environment, timeout_s)
    reading, writing = os.pipe()
    try:
        try:
            finished = await _run([*launcher(writing), *argv], folder, environment, timeout_s, passed=(writing,))
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        try:
            reported = json.loads(os.read(reading, 1_000).partition(b"\n")[0])
        except (BlockingIOError, ValueError):  # it was stopped before it could
            return finished
    finally:
        os.close(reading)
    if "errno" in reported:
        raise OSError(reported["errno"], os.strerror(reported["errno"]))
    return replace(finished, status=reported["status"])


async def _run(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    passed: Sequence[int] = (),
) -> Finished:
    mark = uuid4().hex
    with anyio.CancelScope(shield=True):  # cancelled half way, a started program would have nobody to end it
        transport, watch = await asyncio.get_running_loop().subprocess_exec(
            _Watch,
            *argv,
            cwd=folder,
            env={**environment, _MARK: mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=passed,
        )
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await watch.exited.wait()
    except TimeoutError:
        timed_out = True
    finally:
        with anyio.CancelScope(shield=True):
            await _end(transport, watch, mark, launched=bool(passed))
    status = transport.get_returncode()
    if status is None:
        raise ChildProcessError(f"process {transport.get_pid()} does not end: it is stuck in the system")
    return Finished(status, timed_out, watch.output[1].text(), watch.output[2].text())


async def _end(transport: asyncio.SubprocessTransport, watch: _Watch, mark: str, *, launched: bool) -> None:
    """End the program's process group, and what has left the group."""
    group = transport.get_pid()
    if not watch.exited.is_set():
        _signal_group(group, signal.SIGTERM)
        await _within_grace(watch.exited)
    if launched and not watch.exited.is_set():
        with suppress(ProcessLookupError):
            os.kill(group, STOP)
        await _within_grace(watch.exited)
    _signal_group(group, signal.SIGKILL)
    await asyncio.to_thread(_kill_marked, f"{_MARK}={mark}".encode())
    await _within_grace(watch.exited)
    await _within_grace(watch.closed)
    transport.close()


async def _within_grace(event: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await event.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS answers "not permitted" for a group of zombies
        os.killpg(group, number)


def _kill_marked(mark: bytes) -> None:
    """Kill what started its own session, found on Linux by the mark in the environment that it inherited."""
    for _ in range(_KILL_ROUNDS):
        found = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _has_mark(entry, mark)]
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _has_mark(entry: Path, mark: bytes) -> bool:
    try:
        return mark in (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is not ours
        return False
