"""End this process and its child processes on signals.

Ctrl-C and SIGTERM end the process as soon as an open session has stopped. Where Ctrl-C stops
only a turn, as in a chat, SIGTERM ends the process. This module is imported first, so it imports little.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CTRL_C_STATUS = 130
"""Exit status after Ctrl-C. The exit status after SIGTERM is 143."""
KILL_GRACE_S = 1.0
"""Seconds that child processes have to end after SIGTERM, and again after SIGKILL."""
STOP_S = 5.0
"""Seconds that an open session has to stop; a second Ctrl-C does not wait."""

_children: set[int] = set()
"""Process ids of child processes, each a group leader, so that a terminal's Ctrl-C does not reach it."""
_on_sigint: list[Callable[[], object]] = []
_on_sigterm: list[Callable[[], object]] = []
"""Handlers of SIGTERM; only the last handler is called."""
_received = [signal.SIGINT]
"""Received signals. The first entry is a default that gives the exit status if no signal was received."""


def install_signal_handlers() -> None:
    """Handle both signals. If Ctrl-C is ignored, as in a background job, it stays ignored."""
    signal.signal(signal.SIGTERM, _handle)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN or _in_foreground():
        signal.signal(signal.SIGINT, _handle)


@contextmanager
def on_ctrl_c(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on Ctrl-C instead of ending the process."""
    _on_sigint.append(stop)
    try:
        yield
    finally:
        _on_sigint.pop()


@contextmanager
def stopped_by_ctrl_c(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on the first Ctrl-C or SIGTERM. The process then ends when the block ends, or after `STOP_S`."""
    pressed = False

    def press() -> None:
        nonlocal pressed
        if pressed:
            end_process()
        pressed = True
        stop()
        _end_later()

    _on_sigterm.append(press)
    with on_ctrl_c(press):
        try:
            yield
        finally:
            _on_sigterm.pop()
            if pressed:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                end_process()


def register_child(pid: int) -> None:
    """Register a child process that must not outlive this one; forget those whose group has ended.

    The system may give their ids to other programs.
    """
    _children.difference_update([one for one in _children if not _has_group(one)])
    _children.add(pid)


def end_process() -> None:
    """End the process and its children, with SIGTERM first and then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in tuple(_children):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)
        until = time.monotonic() + KILL_GRACE_S
        while time.monotonic() < until and any(_runs(pid) for pid in tuple(_children)):
            time.sleep(0.01)
    os._exit(128 + _received[-1])


def _handle(number: int, _frame: object) -> None:
    _received.append(signal.Signals(number))
    handlers = _on_sigterm if number == signal.SIGTERM else _on_sigint
    (handlers[-1] if handlers else end_process)()


def _end_later() -> None:
    import threading

    timer = threading.Timer(STOP_S, end_process)
    timer.daemon = True
    timer.start()


def _has_group(pid: int) -> bool:
    with suppress(PermissionError):
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return False
    return True


def _runs(pid: int) -> bool:
    try:
        if hasattr(os, "waitid"):  # leaves the exit status to asyncio, which warns if it is missing
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _in_foreground() -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False
