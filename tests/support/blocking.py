"""What `langgraph dev` watches the event loop with: a call on it that blocks raises BlockingError."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def blocking_refused() -> Iterator[None]:
    """Watch this process's event loops as the development server does, with its own set-up."""
    for name, value in {"DATABASE_URI": ":memory:", "REDIS_URI": "fake", "LANGGRAPH_RUNTIME_EDITION": "inmem"}.items():
        os.environ.setdefault(name, value)  # the server's modules ask for them when they are imported
    from langgraph_runtime_inmem.queue import _enable_blockbuster

    blockbuster = _enable_blockbuster()
    try:
        yield
    finally:
        blockbuster.deactivate()
