"""The interface between the hub and a server."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from fastmcp import Client


class Server:
    """A server: its tools and its state. `connect` may be called again after a failure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Literal["connecting", "ready", "failed"] = "connecting"
        self.problem = ""
        self.specs: tuple[ToolSpec, ...] = ()
        self.notes: tuple[str, ...] = ()
        """One line for each tool that is not offered, or whose schema was shortened."""
        self.stored: tuple[ToolSpec, ...] = ()
        """The tools that an earlier process stored."""
        self.needs_path_tools = False
        """Whether its tools are offered only if another server takes paths."""
        self.session = 0
        """Number of the session or connection attempt; 0: none yet."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the tools that the server offers change."""
        self.other_changes = 0
        """Number of changes of prompts and resources."""

    @property
    def is_first_start(self) -> bool:
        """Whether the first connection attempt is pending."""
        return self.state == "connecting" and self.session <= 1

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools to list: during the first start, the stored ones."""
        return self.stored if self.is_first_start else self.specs

    @property
    def stale(self) -> bool:
        """Whether the tools changed and have not been listed since."""
        return False

    @property
    def suspected(self) -> bool:
        """Whether a call timed out, so that the server may hang."""
        return False

    @property
    def may_retry(self) -> bool:
        """Whether a failed server may be tried again now."""
        return False

    def client(self) -> "Client[Any] | None":
        """Return the open MCP session, for prompts and resources; None if there is none."""
        return None

    def health(self) -> ServerHealth:
        """Return the state of the server."""
        return ServerHealth(name=self.name, state=self.state, tools=len(self.specs), problem=self.problem)

    async def recall(self) -> None:
        """Load the tools that an earlier process stored."""

    async def connect(self, instead_of: int) -> None:
        """Replace the session with that number, unless another caller did."""
        raise NotImplementedError

    async def revive(self) -> None:
        """Open a new session if the server is gone."""

    async def refresh(self) -> None:
        """List the changed tools."""

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
