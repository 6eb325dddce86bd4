"""Private names of libraries without a public counterpart; no other module uses private names.

`tests/test_private_names.py` fails if a library changes one.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

STRICT_RESUME = "__pregel_strict_resume"
"""LangGraph's `configurable` key that refuses replies to closed interrupts."""

CHECKPOINTER = "__pregel_checkpointer"
"""LangGraph's `configurable` key of the checkpointer that a run uses; None: no checkpointer."""

ERROR_WRITES = frozenset({"__error__", "__error_source_node__"})
"""LangGraph's channels for writes of failed or cancelled tasks."""


def allow_checkpoint_types(types: Iterable[tuple[str, str]]) -> None:
    """Allow all LangGraph serializers of this process to read these (module, name) types.

    LangGraph servers and parent graphs read Packetgate's checkpoints with their own serializers.
    """
    from langgraph.checkpoint.serde import _msgpack

    _msgpack.SAFE_MSGPACK_TYPES |= frozenset(types)


def is_nested(configurable: Mapping[str, Any]) -> bool:
    """Whether LangGraph runs a graph as a node of another graph. Its mark is a function, which no client can send."""
    return callable(configurable.get("__pregel_read"))


def runs_in_parent(execution: Any) -> bool:
    """Whether a run of a node (LangGraph's `ExecutionInfo`) is in a graph that is a node of another graph."""
    return execution is not None and "|" in execution.checkpoint_ns


def is_streaming_handler(handler: object) -> bool:
    """Whether a callback handler streams to users, such as those of LangGraph's message stream and `astream_events`."""
    from langchain_core.tracers._streaming import _StreamingCallbackHandler

    return isinstance(handler, _StreamingCallbackHandler)


def checkpointer_of(config: Mapping[str, Any] | None) -> object:
    """Return the checkpointer that stores a run, whichever graph brought it; None without one."""
    return (config or {}).get("configurable", {}).get(CHECKPOINTER)


def call_before_threads_end(call: Callable[[], None]) -> None:
    """Register a call for the end of the interpreter, before the interpreter joins threads; `atexit` runs later."""
    threading._register_atexit(call)  # type: ignore[attr-defined]


def environment_state() -> tuple[Any, ...]:
    """Return the raw data of `os.environ`. It is equal only if no variable has changed, and faster than decoding."""
    return tuple(os.environ._data.items())  # type: ignore[attr-defined]


def log_level_of(session: Any) -> Any:
    """Return the least severe level that an MCP client asked for with `logging/setLevel`; None if it set none."""
    from fastmcp.server import context

    return context._get_client_log_level(session)


def connection_of(session: Any) -> Any:
    """Return the MCP `Connection` of a request's `ServerSession`; it lasts while the client is connected."""
    return session._connection
