"""A server: its tools and its state. Tools of this process are served without a protocol."""

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Literal

from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from fastmcp import Client

Keep = Callable[[str | bytes], str]
"""Stores a text or a file, and returns its handle."""


class Server:
    """A server of tools in this process; `Connection` overrides what an MCP server needs in addition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Literal["connecting", "ready", "failed"] = "connecting"
        self.problem = ""
        self.specs: tuple[ToolSpec, ...] = ()
        self.notes: tuple[str, ...] = ()
        """One line for each tool that is not offered, or whose schema was shortened."""
        self.stale = False
        """Whether the tools changed and have not been listed since."""
        self.needs_path_tools = False
        """Whether its tools are offered only if another server takes paths."""
        self.session = 0
        """Number of the session or connection attempt; 0: none yet."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the tools that the server offers change."""
        self.other_changes = 0
        """Number of changes of prompts and resources."""

    def client(self) -> "Client[Any] | None":
        """Return the open MCP session, for prompts and resources; None if there is none."""
        return None

    def health(self) -> ServerHealth:
        """Return the state of the server."""
        return ServerHealth(name=self.name, state=self.state, tools=len(self.specs), problem=self.problem)

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of its tools."""
        raise NotImplementedError

    async def connect(self, instead_of: int) -> None:
        """Replace the session with that number, unless another caller did. `connect` may be called after a failure."""
        self.session = instead_of + 1
        self.specs = tuple(self.tool_specs())
        self.state = "ready"

    def upkeep(self, *, retry: bool) -> Coroutine[Any, Any, None] | None:
        """Return the work that the server needs now: to start, reconnect (with `retry`) or list its tools."""
        return self.connect(0) if self.session == 0 else None

    async def revive(self) -> None:
        """Open a new session if the server is gone."""

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's name for it.

        Raises:
            ServerError: the server is not connected; nothing was sent.
            SessionRefusedError: the server forgot the session; the call did not run.
            LostCallError: the call was sent, but no answer came.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the session, and a server process that was started for it."""

    def fail(self, error: BaseException) -> None:
        """Mark the server as failed, with the error as its problem."""
        self.state, self.problem = "failed", str(error)
        self.on_change()
