"""The packet: the whole state of one turn, and the only thing that flows through the graph."""

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, TypedDict

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.graph.message import add_messages
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from packetgate.state import attachments, base, channels, origins, parked, routing, sections, transitions
from packetgate.state.base import is_storable
from packetgate.state.errors import PacketError, RequestError, first_problem
from packetgate.state.parked import Parked
from packetgate.state.request import TurnRequest, check_request
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Content, Context, Governance, Header, Intent, Metrics, Reasoning, Response, Status


def _readable(given: Any, read: Callable[[Any], Any]) -> Any:
    """Have messages read; some that are none break LangChain's own reading."""
    try:
        return read(given)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not messages: {error}") from error


Messages = Annotated[list[AnyMessage], WrapValidator(_readable), add_messages]

TOLD = "packetgate_told"
"""In a message's `additional_kwargs`: somebody says that it was said, and nobody here heard it."""
WORDS = "packetgate_words"
"""In an answer's `additional_kwargs`: what its model wrote, without the results that are shown below."""


def is_own(message: BaseMessage) -> bool:
    """Whether a message is in the user's own words."""
    return isinstance(message, HumanMessage) and not is_told(message)


def is_told(message: BaseMessage) -> bool:
    """Whether a message was not heard here."""
    return bool(message.additional_kwargs.get(TOLD))


def is_call(message: BaseMessage) -> bool:
    """Whether a message holds tool calls that the user was asked about, or closes one."""
    return isinstance(message, ToolMessage) or (isinstance(message, AIMessage) and bool(message.tool_calls))


class CognitionPacket(BaseModel):
    """One user turn, from the request to the answer. Each field is a channel of the graph; only a node's update does
    change one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    header: Header = Field(default_factory=Header)
    intent: Intent = Field(default_factory=Intent)
    context: Context = Field(default_factory=Context)
    content: Content = Field(default_factory=Content)
    reasoning: Reasoning = Field(default_factory=Reasoning)
    response: Response = Field(default_factory=Response)
    governance: Governance = Field(default_factory=Governance)
    metrics: Metrics = Field(default_factory=Metrics)
    status: Status = Field(default_factory=Status)
    tool_routing: ToolRouting | None = None
    parked: tuple[Parked, ...] = ()
    """Turns whose questions are still open, the latest last: each is gone on with after this one."""
    messages: Messages = Field(default_factory=list)

    @property
    def routing(self) -> ToolRouting:
        """The tool routing section, for the stages that only run when there is one."""
        if self.tool_routing is None:
            raise PacketError(f"packet {self.header.packet_id} has no tool routing: its turn needs no tool")
        return self.tool_routing

    @property
    def spoken(self) -> str:
        """All that the user said in this session."""
        said = [message.text for message in self.messages if is_own(message)]
        return "\n".join([*said, self.content.user_words])

    @property
    def conversation(self) -> list[AnyMessage]:
        """What the user and the assistant said in this session, without calls and their results."""
        return [message for message in self.messages if not is_call(message)]

    @property
    def history(self) -> list[AnyMessage]:
        """What was said before this turn."""
        said = self.conversation
        places = [at for at, one in enumerate(said) if is_own(one) and one.text.strip() == self.content.original_prompt]
        return said[: places[-1]] if places else said[:-1]

    def _repr_html_(self) -> str:
        """Return the packet as notebooks show it."""
        from packetgate.state.html.rendering import card

        return card(self)

    def merged(self, update: "PacketUpdate") -> "CognitionPacket":
        """Return the packet as it stands after a node's update, the way the graph applies it."""
        changed: dict[str, Any] = dict(update)
        if "messages" in changed:
            changed["messages"] = add_messages(self.messages, changed["messages"])  # type: ignore[arg-type]
        return self.model_copy(update=changed)


class PacketUpdate(TypedDict, total=False):
    """The sections a node changed."""

    header: Header
    intent: Intent
    context: Context
    content: Content
    reasoning: Reasoning
    response: Response
    governance: Governance
    metrics: Metrics
    status: Status
    tool_routing: ToolRouting | None
    parked: tuple[Parked, ...]
    messages: list[AnyMessage | RemoveMessage]
    request: TurnRequest


class TurnInput(BaseModel):
    """What starts a turn: the user's message, as chat front ends send it, and what the connector knows about it."""

    messages: Messages = Field(default_factory=list)
    request: TurnRequest = Field(default_factory=TurnRequest)


class OpeningPacket(CognitionPacket):
    """What `open_packet` sees: the session's packet and the new request."""

    request: TurnRequest = Field(default_factory=TurnRequest)


def read_packet(data: str | bytes) -> CognitionPacket:
    """Read a packet from JSON.

    Raises:
        PacketVersionError: the packet was written by a newer Packetgate.
        PacketError: the data is not a packet.
    """
    try:
        return CognitionPacket.model_validate_json(data)
    except ValidationError as error:
        raise PacketError(f"not a packet: {first_problem(error)}") from error


def check_update(values: Any) -> None:
    """Check an update of a packet that comes from outside.

    Raises:
        RequestError: there is no such section, or it does not take that value.
    """
    if values is None:
        return
    if not isinstance(values, dict):
        raise RequestError(f"the update cannot be taken: it must be an object of sections, not {type(values).__name__}")
    if not is_storable(values):
        raise RequestError(
            "a whole number in the update is larger than 64 bits, or a name in it holds half a surrogate pair"
        )
    try:
        if "messages" in values:
            given = values["messages"]
            _readable(given if isinstance(given, list) else [given], convert_to_messages)
        OpeningPacket.model_validate({name: value for name, value in values.items() if name != "messages"})
    except ValidationError as error:
        raise RequestError(f"the update cannot be taken: {first_problem(error, within='values')}") from error
    except (ValueError, NotImplementedError) as error:
        raise RequestError(f"the update cannot be taken: values.messages: {error}") from error


def request_in(messages: Any) -> str:
    """Return the request that messages end with, as they are kept or as they come from outside.

    Raises:
        RequestError: the last one is no user message, or it is not a request.
    """
    last = convert_to_messages(messages if isinstance(messages, list) else [messages])[-1:]
    if not last or not isinstance(last[0], HumanMessage):
        raise RequestError("a turn starts with a user message: send one in `messages`")
    kinds = [] if isinstance(last[0].content, str) else [str(one.get("type")) for one in last[0].content_blocks]
    if other := [kind for kind in kinds if kind != "text"]:
        raise RequestError(f"the message holds a part of type {other[0]!r}, which is not taken on this way")
    return check_request(last[0].text)


def checkpoint_types() -> list[tuple[str, str]]:
    """Return (module, name) of every type of ours that a checkpoint may hold."""
    found: set[tuple[str, str]] = {(one.__module__, one.__name__) for one in (TurnRequest, TurnInput)}
    for module in (attachments, base, channels, origins, parked, routing, sections, transitions):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, BaseModel | Enum) and value.__module__ == module.__name__:
                found.add((value.__module__, value.__name__))
    return sorted(found)
