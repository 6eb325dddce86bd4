"""This process: how signals end it, with every program started here, and how often it collects garbage.

Ctrl-C and SIGTERM end the process at once. An open session may first say how it stands. What Ctrl-C merely stops, such
as a turn of a chat, SIGTERM ends. This is imported before all else, so it imports next to nothing itself.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STATUS = 130
"""Exit status of a command that Ctrl-C stopped; after SIGTERM it is 143, as shells count."""
GRACE_S = 1.0
"""How long programs may take to end after SIGTERM, and to be gone after SIGKILL."""
PATIENCE_S = 5.0
"""How long an open session may take to stop; pressed again, Ctrl-C does not wait for it."""

_running: set[int] = set()
"""Process ids of programs started here, each the leader of its own group: a terminal's Ctrl-C does not reach them."""
_stops: list[Callable[[], object]] = []
"""What Ctrl-C does, the innermost last."""
_ends: list[Callable[[], object]] = []
"""Those of them that end the process: what SIGTERM does."""
_heeded = [signal.SIGINT]
"""The signals that came; the first is the one whose exit status counts where none did."""


def heed_signals() -> None:
    """Take both from here on; Ctrl-C stays ignored where it is, as in the background, except at our own terminal."""
    signal.signal(signal.SIGTERM, _pressed)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN or _in_foreground():
        signal.signal(signal.SIGINT, _pressed)


@contextmanager
def on_ctrl_c(stop: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C do this instead of ending the process."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.pop()


@contextmanager
def stopped_by_ctrl_c(stop: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C stop what runs within, once: the process ends when that is left, or after `PATIENCE_S`."""
    pressed = False

    def press() -> None:
        nonlocal pressed
        if pressed:
            end()
        pressed = True
        stop()
        _end_later()

    _ends.append(press)
    with on_ctrl_c(press):
        try:
            yield
        finally:
            _ends.pop()
            if pressed:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                end()


def started(pid: int) -> None:
    """Note a program that must not outlive this process."""
    _running.add(pid)


def end() -> None:
    """End the process and every program that it started: asked first, killed if that is not enough."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        for pid in tuple(_running):
            _signal(pid, how)
        until = time.monotonic() + GRACE_S
        while time.monotonic() < until and any(_runs(pid) for pid in tuple(_running)):
            time.sleep(0.01)
    os._exit(128 + _heeded[-1])


def _pressed(number: int, _frame: object) -> None:
    _heeded.append(signal.Signals(number))
    heard = _ends if number == signal.SIGTERM else _stops
    if heard:
        heard[-1]()
    else:
        end()


def _end_later() -> None:
    import threading

    timer = threading.Timer(PATIENCE_S, end)
    timer.daemon = True
    timer.start()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _runs(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _in_foreground() -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


STARTING, STARTED = 1_000_000, 100_000
"""New objects after which it is looked for; Python's own figure is 700."""


def raise_gc_threshold() -> None:
    """Collect less often during start-up: it saves about 20 % of the time that imports take."""
    gc.set_threshold(STARTING)


def restore_gc() -> None:
    """Collect again after `raise_gc_threshold`, but not among the objects that exist by now."""
    if gc.get_threshold()[0] == STARTING:
        gc.freeze()
        gc.set_threshold(STARTED)
