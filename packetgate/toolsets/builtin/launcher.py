"""Run one program, report how it ended, and kill all processes that it started: a script for Linux.

Run as `python -I -S launcher.py PLAN PROGRAM ARGUMENT...`, the plan as JSON (`Plan`). It writes one line of JSON to a
file descriptor: `{"status": 0}`, or `{"errno": 2}` if the program cannot be started.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypedDict


class Plan(TypedDict):
    """Options of the program's run."""

    wrapper: list[str]
    """Command line that confines the command appended to it; empty: no confinement."""
    report_fd: int
    """File descriptor to report to."""
    max_tasks: int
    """Processes and threads, so that a fork bomb cannot outrun its watcher; 0: no limit."""


STOP = signal.SIGUSR1
"""Signal that ends the program and all its processes. The parent sends it, or the kernel when the parent dies."""

_COUNTS_IN_SANDBOX = (5, 14)
"""Version of Linux from which a sandbox counts its own processes, and not all of the user's."""
_SET_PDEATHSIG, _CAPBSET_DROP, _SET_SUBREAPER = 1, 24, 36
_MEMORY_CAPABILITIES = (19, 21, 38)
"""Capabilities SYS_PTRACE, SYS_ADMIN and PERFMON: root needs one to read the memory of other processes."""
_GROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")

_libc = ctypes.CDLL(None, use_errno=True)


class _StoppedError(Exception):
    pass


def command_line(plan: Plan, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs a program through the launcher."""
    return [sys.executable, "-I", "-S", __file__, json.dumps(plan), *argv]


def main() -> None:
    """Run the program that the command line names."""
    plan: Plan = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SIGTERM ends the program, which is in the same process group
    try:
        _die_with_parent(STOP)
        if plan["wrapper"]:
            _join_group(plan["max_tasks"])
            inner = command_line(Plan({**plan, "wrapper": []}), sys.argv[2:])
            os.execv(plan["wrapper"][0], [*plan["wrapper"], *inner])  # noqa: S606 - no shell is wanted
        os.set_inheritable(plan["report_fd"], False)
        signal.signal(STOP, _stop)
        _prctl(_SET_SUBREAPER, 1)
        _supervise(plan)
    except OSError as error:
        _report(plan, errno=error.errno)


def _stop(*_: object) -> NoReturn:
    signal.signal(STOP, signal.SIG_IGN)
    raise _StoppedError


def _supervise(plan: Plan) -> None:
    program = os.fork()
    if not program:
        try:
            _exec_program(plan)
        finally:
            os._exit(127)
    with suppress(_StoppedError):
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == program:
                _report(plan, status=os.waitstatus_to_exitcode(status))
                break
    signal.signal(STOP, signal.SIG_IGN)
    with suppress(ChildProcessError):  # the children of a killed child become children of this process
        while True:
            for child in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:  # finding the children takes long, so reap all that have ended
                pass


def remove_group(pid: int) -> None:
    """Remove the control group of a launcher that has ended. Blocking, for at most half a second."""
    group = _group(pid)
    for _ in range(50):
        if not group.is_dir():
            break
        try:
            group.rmdir()
        except OSError:  # its last processes are ending
            time.sleep(0.01)


def _group(pid: int) -> Path:
    """Return the control group of a program that runs as root, because resource limits do not bound root."""
    return Path(next((base for base in _GROUPS if Path(base).is_dir()), _GROUPS[-1]), f"packetgate-{pid}")


def _join_group(max_tasks: int) -> None:
    group = _group(os.getpid())
    if max_tasks and not os.getuid():
        for old in group.parent.glob("packetgate-*"):  # left by a killed Packetgate
            if not Path("/proc", old.name.rpartition("-")[2]).exists():
                with suppress(OSError):
                    old.rmdir()
        with suppress(OSError):  # a container may not create groups
            group.mkdir()
            (group / "pids.max").write_text(str(max_tasks))
            (group / "cgroup.procs").write_text("0")


def _children() -> list[int]:
    children, own_id = [], str(os.getpid())
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "stat").read_text().rpartition(")")[2].split()[1] == own_id:
                children.append(int(entry.name))
    return children


def _exec_program(plan: Plan) -> None:
    try:
        _die_with_parent(signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, STOP):
            signal.signal(number, signal.SIG_DFL)
        os.environ.pop("PWD", None)  # set by bubblewrap
        kernel = tuple(map(int, os.uname().release.split(".")[:2]))
        if plan["max_tasks"] and os.getuid() and kernel >= _COUNTS_IN_SANDBOX:
            resource.setrlimit(resource.RLIMIT_NPROC, (plan["max_tasks"],) * 2)
        for capability in _MEMORY_CAPABILITIES:
            _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is wanted
    except OSError as error:
        _report(plan, errno=error.errno)


def _report(plan: Plan, **result: int | None) -> None:
    with suppress(OSError):
        os.write(plan["report_fd"], f"{json.dumps(result)}\n".encode())


def _die_with_parent(number: int) -> None:
    _prctl(_SET_PDEATHSIG, int(number))


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
