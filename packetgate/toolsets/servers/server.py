"""A server of tools, and its state. Tools of this process are called directly, without MCP."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from fastmcp import Client


@dataclass
class ClientAbilities:
    """The clients' capabilities for servers with one session for all clients, when the session opens."""

    passed: dict[str, Any] = field(default_factory=dict)
    """The capabilities that pass, as MCP writes them."""
    use_handshake: bool | None = None
    """Whether the first client opened a session, as in protocols before 2026-07-28; None without a client.

    Some servers can ask only in such a session, others only without.
    """


class Server:
    """A server of tools in this process. The subclass `Connection` is an MCP server."""

    requires_path_server = False
    """Whether the server's tools are offered only if another server has a tool that takes paths."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Literal["connecting", "ready", "failed"] = "connecting"
        self.problem = ""
        self.specs: tuple[ToolSpec, ...] = ()
        self.rights = ""
        """One line: whether the server process is registered, and what it may use."""
        self.remembered_specs: tuple[ToolSpec, ...] = ()
        """The tools that the server listed at its last start, until it has started, failed, or takes too long."""
        self.is_recalled = asyncio.Event()
        """Set once a start has read the server's list from its last start."""
        self.instructions = ""
        """The server's instructions for clients."""
        self.tool_notes: tuple[str, ...] = ()
        """One line for each tool that is not offered, or whose schema was shortened."""
        self.stale = False
        """Whether the server announced changed tools that have not been listed yet."""
        self.session = 0
        """Number of the session or connection attempt; 0: none yet."""
        self.client_abilities = ClientAbilities()
        """The clients' capabilities that servers may see; the hub sets the same object for all servers."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the tools that the server offers change."""

    @property
    def listed_specs(self) -> tuple[ToolSpec, ...]:
        """The server's tools; while it starts, those of its last start."""
        return self.specs or self.remembered_specs

    def client(self) -> "Client[Any] | None":
        """Return the open MCP session, for prompts and resources; None if there is none."""
        return None

    async def offered_names(self, kind: Literal["prompts", "resources"]) -> tuple[str, ...]:
        """Return the names of the server's prompts, or the addresses of its resources."""
        return ()

    def health(self) -> ServerHealth:
        """Return the state of the server."""
        return ServerHealth(name=self.name, state=self.state, tools=len(self.listed_specs), problem=self.problem)

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of the server's tools."""
        raise NotImplementedError

    async def connect(self, old_session: int = -1) -> None:
        """Open a session if there is none, if the server disconnected, or to replace `old_session`."""
        if self.session == 0:
            self.session, self.specs, self.state = 1, tuple(self.tool_specs()), "ready"
            self.is_recalled.set()

    def maintenance(self, *, retry: bool) -> Coroutine[Any, Any, None] | None:
        """Return the work that the server needs now: to start, to reconnect after a failure (with `retry`), or to
        list its tools. Return None if it needs none.
        """
        return self.connect() if self.session == 0 else None

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's name for it.

        Raises:
            ServerError: the server is not connected; nothing was sent.
            SessionRefusedError: the server forgot the session; the call did not run.
            LostCallError: the call was sent, but no usable answer came.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the session, and a server process that was started for it."""

    def fail(self, error: BaseException) -> None:
        """Mark the server as failed, with the error as its problem."""
        self.state, self.problem = "failed", str(error)
        self.is_recalled.set()
        self.on_change()


@runtime_checkable
class Toolset(Protocol):
    """A source of tools, which a plug-in registers."""

    def servers(self, root: Path) -> Sequence[Server]:
        """Return new servers, which a router with files below `root` opens and closes."""
        ...
