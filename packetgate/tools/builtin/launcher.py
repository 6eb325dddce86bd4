"""Starts one program confined, waits for it, and ends whatever it left: a script of its own, for Linux.

Run as `python -I -S launcher.py PLAN PROGRAM ARGUMENT...`, the plan as JSON (`Plan`). How the program ended is written
to a file descriptor as a line of JSON: `{"status": 0}`, or first `{"errno": 2}` where it could not be started.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypedDict


class Plan(TypedDict):
    """How to confine."""

    namespaces: bool
    """Whether to enter namespaces of users, processes, mounts, System V objects and, if it is off, the network."""
    landlock: bool
    network: bool
    reads: list[str]
    """Folders and files that may be read and run, with Landlock."""
    writes: list[str]
    """Those that may be changed as well."""
    report: int
    """The file descriptor to report to."""
    through: list[str]
    """A program, with its arguments, that confines what it is given as further arguments: this launcher once more."""


STOP = signal.SIGUSR1
"""Ends the program and all it started; sent by whoever started the launcher, or by the kernel when that is gone."""

_SET_PDEATHSIG, _CAPBSET_DROP, _SET_SUBREAPER, _NO_NEW_PRIVS = 1, 24, 36, 38
_LAST_CAPABILITY = 63
_LOOKING_INTO_OTHERS = (19, 21, 38)
"""The capabilities SYS_PTRACE, SYS_ADMIN and PERFMON, by which root reads the memory of any process."""
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID_NODEV_NOEXEC, _MS_REC_PRIVATE = 0xE, 0x44000
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READING = 0b1101
"""Landlock's rights to execute, to read a file and to read a folder."""
_FILE_RIGHTS = 0b1100_0000_0000_0111
"""Those that a file can have: all others are a folder's."""
_TCP, _SIGNALS_AND_SOCKETS = 0b11, 0b11

_libc = ctypes.CDLL(None, use_errno=True)


class _StoppedError(Exception):
    pass


def main() -> None:
    """Do what the command line says."""
    plan: Plan = json.loads(sys.argv[1])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # that one is for the program, which is in the same process group
    try:
        _die_with_parent(STOP)
        if plan["through"]:
            inner = json.dumps({**plan, "through": []})
            again = [sys.executable, "-I", "-S", __file__, inner, *sys.argv[2:]]
            os.execv(plan["through"][0], [*plan["through"], *again])  # noqa: S606 - no shell is what is wanted
        os.set_inheritable(plan["report"], False)
        signal.signal(STOP, _stop)
        if plan["namespaces"]:
            _enter_namespaces(network=plan["network"])
            _end_with(_forked(lambda: _first_process(plan)))
        else:
            _check(_libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0))
            _supervise(plan)
    except OSError as error:
        _report(plan, errno=error.errno)


def _stop(*_: object) -> NoReturn:
    signal.signal(STOP, signal.SIG_IGN)
    raise _StoppedError


def _forked(child: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        child()
    finally:
        os._exit(127)


def _end_with(first: int) -> None:
    """Wait for the first process of a namespace: with it, everything in there ends."""
    try:
        os.waitpid(first, 0)
    except _StoppedError:
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)


def _first_process(plan: Plan) -> None:
    _die_with_parent(signal.SIGKILL)
    signal.signal(STOP, signal.SIG_IGN)
    with suppress(OSError):  # containers may forbid it, and then the old one shows processes that cannot be reached
        _check(_libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID_NODEV_NOEXEC, None))
    _supervise(plan)


def _supervise(plan: Plan) -> None:
    """Run the program, report how it ended, and end what it left."""
    program = _forked(lambda: _become(plan))
    with suppress(_StoppedError):
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == program:
                _report(plan, status=os.waitstatus_to_exitcode(status))
                break
    signal.signal(STOP, signal.SIG_IGN)
    if not plan["namespaces"]:  # where this is the first process of one, all others end with it
        _end_children()


def _end_children() -> None:
    """Kill children until there are none: those of a killed one become this process's."""
    with suppress(ChildProcessError):
        while True:
            for child in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    found, me = [], str(os.getpid())
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "stat").read_text().rpartition(")")[2].split()[1] == me:
                found.append(int(entry.name))
    return found


def _become(plan: Plan) -> None:
    """Turn into the program; where that fails, report why."""
    try:
        _die_with_parent(signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, STOP):
            signal.signal(number, signal.SIG_DFL)
        os.environ.pop("PWD", None)  # bubblewrap's
        confined = plan["landlock"] or plan["namespaces"]
        for capability in range(_LAST_CAPABILITY + 1) if confined else _LOOKING_INTO_OTHERS:
            _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
        if confined:
            _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        if plan["landlock"]:
            _restrict(plan)
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        _report(plan, errno=error.errno)


def _report(plan: Plan, **said: int | None) -> None:
    with suppress(OSError):
        os.write(plan["report"], f"{json.dumps(said)}\n".encode())


def _die_with_parent(number: int) -> None:
    _check(_libc.prctl(_SET_PDEATHSIG, int(number), 0, 0, 0))


def _enter_namespaces(*, network: bool) -> None:
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWUSER | _NEWNS | _NEWIPC | _NEWPID | (0 if network else _NEWNET)))
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")
    _check(_libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None))
    if not network:
        with suppress(OSError), socket.socket() as any_socket:  # the loopback device is up for what talks to itself
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))


def _restrict(plan: Plan) -> None:
    """Apply Landlock, as much of it as this kernel has.

    Raises:
        OSError: it has none.
    """
    version = _check(_libc.syscall(_CREATE_RULESET, None, 0, 1))
    known = 13 + (version >= 2) + (version >= 3)
    handled = [(1 << known) - 1]
    if version >= 4:
        handled.append(0 if plan["network"] or plan["namespaces"] else _TCP)
    if version >= 6:
        handled.append(_SIGNALS_AND_SOCKETS)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    rules = _check(_libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    for paths, rights in ((plan["reads"], _READING), (plan["writes"], handled[0])):
        for path in paths:
            _allow(rules, path, rights)
    _check(_libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no permission
    if not Path(path).is_dir():
        rights &= _FILE_RIGHTS
    _check(_libc.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, opened), 0))
    os.close(opened)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main()
