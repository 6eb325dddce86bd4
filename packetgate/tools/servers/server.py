"""What the hub asks of a server, wherever that runs."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.spec.tool_spec import Listing, ToolSpec

if TYPE_CHECKING:
    from fastmcp import Client


class Server:
    """A server's tools, and how it is doing. `connect` may be called again after a failure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Literal["connecting", "ready", "failed"] = "connecting"
        self.problem = ""
        self.specs: tuple[ToolSpec, ...] = ()
        self.notes: tuple[str, ...] = ()
        """A line for each tool that is not offered, or whose schema is not used as it stands."""
        self.stored: tuple[ToolSpec, ...] = ()
        """The tools as an earlier process saw them."""
        self.listing = Listing()
        self.beside_paths = False
        """Whether its tools are offered only beside those of a server that takes paths."""
        self.session = 0
        """Number of the session, or of the attempt to open one; 0 before the first."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the server said that something it offers has changed."""
        self.other_changes = 0
        """How often it said so of what is no tool."""

    @property
    def is_first_start(self) -> bool:
        """Whether the server has not yet been ready, and has not yet failed, in this process."""
        return self.state == "connecting" and self.session <= 1

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools to show: those that are there, and during the first start those that an earlier process saw."""
        return self.stored if self.is_first_start else self.specs

    @property
    def stale(self) -> bool:
        """Whether the tools have changed, and are not known yet."""
        return False

    @property
    def suspected(self) -> bool:
        """Whether the server may hang."""
        return False

    @property
    def may_retry(self) -> bool:
        """Whether a failed server has rested long enough for another attempt."""
        return False

    def client(self) -> "Client[Any] | None":
        """Return the open MCP session, for what is no tool; None where there is none."""
        return None

    def health(self) -> ServerHealth:
        """Return how the server is doing."""
        return ServerHealth(name=self.name, state=self.state, tools=len(self.specs), problem=self.problem)

    async def recall(self) -> None:
        """Read what an earlier process stored of the tools."""

    async def connect(self, instead_of: int) -> None:
        """Open a session in place of the one with that number, unless another caller did already."""
        raise NotImplementedError

    async def revive(self) -> None:
        """Open a new session where the server is gone."""

    async def refresh(self) -> None:
        """List the tools again after the server said that they changed."""

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by the server's own name for it.

        Raises:
            ServerError: the server is not there; nothing was sent.
            SessionRefusedError: the server forgot the session; the call did not run.
            LostCallError: the call was sent, and the connection broke or the time ran out.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End the session; a server that was started here ends with it."""

    def listed(self, specs: Iterable[ToolSpec], *, holds: bool = True) -> None:
        """Take tools as just listed: nothing that was read before is used again."""
        self.listing = Listing(holds=holds)
        self.specs = tuple(replace(spec, listing=self.listing) for spec in specs)

    def fail(self, error: BaseException) -> None:
        """Count the server as failed, with what went wrong as its problem."""
        self.state, self.problem = "failed", str(error)
        self.on_change()
