"""Ending what threads still do when the program ends: Python waits for their work, however long it takes."""

import threading
from concurrent.futures import Future
from functools import cache
from typing import Any

_unfinished: set[threading.Event] = set()


def cancel_at_exit(work: Future[Any], cancelled: threading.Event) -> None:
    """Set `cancelled` as soon as the program ends, if an executor's thread has not done the work by then."""
    _watch()
    _unfinished.add(cancelled)
    work.add_done_callback(lambda _: _unfinished.discard(cancelled))


@cache
def _watch() -> None:
    # What `atexit` calls comes too late, after that wait. This comes before it, last registered first.
    threading._register_atexit(_cancel_all)  # type: ignore[attr-defined]


def _cancel_all() -> None:
    for cancelled in list(_unfinished):
        cancelled.set()
