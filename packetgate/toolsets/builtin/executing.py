"""The `ai.execute` tool: run one program, and leave no process behind after its exit, time-out or cancellation."""

import asyncio
import json
import os
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import anyio
from pydantic import Field

from packetgate.state.routing import Risk
from packetgate.toolsets.builtin import launcher
from packetgate.toolsets.builtin.files import Root, ToolFailure
from packetgate.toolsets.builtin.limits import (
    COMMAND_INTERVAL_S,
    MAX_TASKS,
    available_memory,
    excess_of,
    max_memory_bytes,
)
from packetgate.toolsets.builtin.sandbox import HAS_LAUNCHER, Sandbox
from packetgate.toolsets.builtin.tool import BuiltinTool, DryRun

MAX_OUTPUT_BYTES = 45_000
_GRACE_S = 2.0
"""Seconds to wait for a program's exit after SIGTERM, and for the end of its output after SIGKILL."""
_ENVIRONMENT_NAMES = ("PATH", "HOME", "LANG", "TERM", "TMPDIR")
"""Environment variables that a program gets; all others may be secrets. The program also leaves no compiled Python
files: nobody reads them, and they run in place of the sources."""


class _Limits(NamedTuple):
    timeout_s: float
    memory_bytes: int
    is_confined: bool
    """Whether all processes end when the first one ends."""


class _ProgramResult(NamedTuple):
    status: int
    """Exit status; negative signal number if a signal ended it."""
    stopped: str
    """Why it was stopped: a time-out or a limit; empty if it ended by itself."""
    stdout: str
    stderr: str


def executing_tools(root: Root, sandbox: Sandbox) -> tuple[BuiltinTool, ...]:
    """Return the tool that runs programs in `root`, in the sandbox."""

    async def execute(
        argv: Annotated[
            list[str],
            Field(min_length=1, description='The program and its arguments, for example ["git", "status"]. No shell.'),
        ],
        timeout_s: Annotated[float, Field(ge=0.1, le=600, description="Seconds until it is stopped.")] = 30,
        dry_run: DryRun = True,
    ) -> str:
        """Run one program, starting in the working folder.

        It gets no shell (so no pipes, wildcards or variables), no input, and of the environment only PATH, HOME, LANG,
        TERM and TMPDIR. Where the system offers a sandbox, it can change nothing outside the working folder and has no
        network; a dry run says which one there is. Without one, files and network are open to it as to the user.
        Returns its exit status and output; a status other than 0, or the time-out, is an error that carries the
        output. When it ends, its background processes end too. A dry run only says what would run.
        """
        command = shlex.join(argv)
        if not argv[0].strip():
            raise ToolFailure('argv[0] is empty: give the program first, then its arguments, as in ["ls", "-l"]')
        environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"} | {
            name: os.environ[name] for name in _ENVIRONMENT_NAMES if name in os.environ
        }
        folder = await asyncio.to_thread(lambda: root.path)
        if dry_run:
            program = str(folder / argv[0]) if os.sep in argv[0] else argv[0]
            program_path = await asyncio.to_thread(shutil.which, program, path=environment["PATH"])
            which = f"The program is {program_path}." if program_path else f"The program {argv[0]!r} was not found."
            confinement = await sandbox.description()
            return f"Would run: {command}\nIn {folder}, for at most {timeout_s:g} s. {which}\nSandbox: {confinement}."
        try:
            async with sandbox.prepare(argv, folder, environment) as (program_environment, wrapper):
                command_line = wrapper.command if wrapper else []
                limits = _Limits(timeout_s, max_memory_bytes(sandbox.settings.memory_gb), wrapper is not None)
                result = await _run_program(argv, folder, program_environment, limits, command_line)
                left = await asyncio.to_thread(wrapper.left.report, folder) if wrapper else []
        except FileNotFoundError as error:
            raise ToolFailure(
                f"cannot run {argv[0]!r}: no such program, or a script whose interpreter is missing; "
                "argv is one program and its arguments, not a shell command"
            ) from error
        except PermissionError as error:
            raise ToolFailure(
                f"cannot run {argv[0]!r}: it is not executable; put the program that runs it, such as python3, first"
            ) from error
        except (OSError, ValueError) as error:
            raise ToolFailure(f"cannot run {argv[0]!r}: {getattr(error, 'strerror', None) or error}") from error
        report = _report(command, result, left)
        if result.stopped or result.status != 0:
            raise ToolFailure(report)
        return report

    return (BuiltinTool(execute, Risk.EXECUTE, reaches_outside=True),)


def _report(command: str, result: _ProgramResult, left: Sequence[str]) -> str:
    if result.stopped:
        end = f"Stopped {result.stopped}"
    elif result.status < 0:
        end = f"Ended by signal {-result.status} ({signal.strsignal(-result.status)})"
    else:
        end = f"Exit status {result.status}"
    streams = (("stdout", result.stdout), ("stderr", result.stderr))
    outputs = [f"--- {name}\n{text.rstrip()}" for name, text in streams if text.strip()]
    return "\n".join([f"{end}: {command}", *left, *(outputs or ["(no output)"])])


class _Output:
    """Captured output: at most MAX_OUTPUT_BYTES, half from the start and half from the end."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        half = MAX_OUTPUT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(len(self._tail) - half, 0)
        self._cut += excess
        del self._tail[:excess]

    def text(self) -> str:
        if not self._cut:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        return f"{head}\n[{self._cut:,} bytes cut]\n{tail}"


class _ProgramProtocol(asyncio.SubprocessProtocol):
    """Collects the output, and reports the program's exit. A background child may keep the pipes open longer."""

    def __init__(self) -> None:
        self.output = {1: _Output(), 2: _Output()}
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output[fd].add(data)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


async def _run_program(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], limits: _Limits, wrapper: Sequence[str]
) -> _ProgramResult:
    """Run the program, through the launcher if the system has one. Raise `OSError` if the program cannot be started."""
    if not HAS_LAUNCHER:
        return await _run_process(argv, folder, environment, limits)
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    with os.fdopen(read_fd, "rb") as report:
        try:
            most = MAX_TASKS * 5 // 4 if wrapper else 0
            plan = launcher.Plan(wrapper=[*wrapper], report_fd=write_fd, max_tasks=most)
            command = launcher.command_line(plan, argv)
            result = await _run_process(command, folder, environment, limits, inherited_fds=(write_fd,))
        finally:
            os.close(write_fd)
        lines = (report.read() or b"").splitlines()
    if not lines:  # the launcher was stopped before it could report
        return result
    reported = json.loads(lines[0])
    if "errno" in reported:
        raise OSError(reported["errno"], os.strerror(reported["errno"]))
    return result._replace(status=reported["status"])


async def _run_process(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    limits: _Limits,
    inherited_fds: Sequence[int] = (),
) -> _ProgramResult:
    with anyio.CancelScope(shield=True):  # a cancelled start would leave the program running
        transport, protocol = await asyncio.get_running_loop().subprocess_exec(
            _ProgramProtocol,
            *argv,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=inherited_fds,
        )
    group, stopped = transport.get_pid(), ""
    stop = (launcher.STOP,) if inherited_fds else ()
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM, *stop)
    try:
        stopped = await _reason_to_stop(protocol.exited, group, limits)
        if stopped.startswith("because"):
            signals = () if limits.is_confined else stop
    finally:
        with anyio.CancelScope(shield=True):
            for number in signals:
                if not protocol.exited.is_set():
                    with suppress(ProcessLookupError, PermissionError):
                        (os.kill if number is launcher.STOP else os.killpg)(group, number)
                    await _wait_for(protocol.exited, _GRACE_S)
            with suppress(ProcessLookupError, PermissionError):  # macOS answers "not permitted" for zombies
                os.killpg(group, signal.SIGKILL)
            await _wait_for(protocol.exited, _GRACE_S)
            await _wait_for(protocol.closed, _GRACE_S)
            transport.close()
            await asyncio.to_thread(launcher.remove_group, group)
    status = transport.get_returncode()
    if status is None:
        raise ChildProcessError(f"process {group} cannot be killed: it is blocked in a system call")
    return _ProgramResult(status, stopped, protocol.output[1].text(), protocol.output[2].text())


async def _reason_to_stop(exited: asyncio.Event, pid: int, limits: _Limits) -> str:
    """Wait for a program's exit; return an empty string, or the limit that the program exceeded."""
    loop = asyncio.get_running_loop()
    end_s, available = loop.time() + limits.timeout_s, await asyncio.to_thread(available_memory)
    while not await _wait_for(exited, min(COMMAND_INTERVAL_S, end_s - loop.time())):
        if loop.time() >= end_s:
            return f"after {limits.timeout_s:g} s (time-out)"
        if HAS_LAUNCHER and (excess := await asyncio.to_thread(excess_of, pid, limits.memory_bytes, available)):
            return f"because {excess}"
    return ""


async def _wait_for(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
