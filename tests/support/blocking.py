"""The detector of `langgraph dev`: a blocking call on the event loop raises BlockingError."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def blocking_refused() -> Iterator[None]:
    """Detect blocking calls in this process with the development server's own set-up."""
    for name, value in {"DATABASE_URI": ":memory:", "REDIS_URI": "fake", "LANGGRAPH_RUNTIME_EDITION": "inmem"}.items():
        os.environ.setdefault(name, value)  # the server's modules ask for them when they are imported
    from langgraph_runtime_inmem.queue import _enable_blockbuster

    blockbuster = _enable_blockbuster()
    try:
        yield
    finally:
        blockbuster.deactivate()
