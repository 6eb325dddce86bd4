"""The private names of libraries that this package uses, each because its library has no public one.

No other module uses any. `tests/test_private_names.py` fails when a library drops one or changes its form.
"""

import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

STRICT_RESUME = "__pregel_strict_resume"
"""LangGraph's `configurable` key: it refuses a reply to an interrupt that no longer waits."""

ERROR_WRITES = frozenset({"__error__", "__error_source_node__"})
"""LangGraph's channels of the writes that a failed or cancelled task leaves."""


def allow_checkpoint_types(types: Iterable[tuple[str, str]]) -> None:
    """Let every serializer of LangGraph in this process read these types, given as (module, name).

    A LangGraph server, and a graph that has ours as a subgraph, read our checkpoints by serializers of their own.
    """
    from langgraph.checkpoint.serde import _msgpack

    _msgpack.SAFE_MSGPACK_TYPES |= frozenset(types)


def call_before_threads_end(call: Callable[[], None]) -> None:
    """Have `call` called when the interpreter ends, before it waits for threads; `atexit` calls come after that."""
    threading._register_atexit(call)  # type: ignore[attr-defined]


def connection_of(session: Any) -> Any:
    """Return the MCP `Connection` behind a request's `ServerSession`: it lasts as long as the client is connected."""
    return session._connection


def add_method(server: Any, method: str, params: type[Any], handler: Callable[..., Awaitable[Any]]) -> None:
    """Have a FastMCP server serve a method of the protocol that FastMCP itself does not serve."""
    server._mcp_server.add_request_handler(method, params, handler)
