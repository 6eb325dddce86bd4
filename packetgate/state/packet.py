"""The packet: the complete state of one turn."""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Annotated, Any, TypedDict

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from packetgate.state import base, channels, codes, origins, routing, sections, transitions
from packetgate.state.base import is_storable
from packetgate.state.errors import PacketError, RequestError, first_problem
from packetgate.state.origins import FlowLabel, SessionLabel, merged_labels
from packetgate.state.request import TurnRequest, check_request
from packetgate.state.routing import Risk, ToolCall, ToolRouting
from packetgate.state.sections import (
    Content,
    Context,
    Governance,
    Header,
    Intent,
    Metrics,
    ParkedTurn,
    Reasoning,
    Response,
    Status,
)


def _readable(value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except (AttributeError, KeyError, TypeError) as error:  # LangChain raises these errors for some invalid messages
        raise ValueError(f"not messages: {error}") from error


def _merged(messages: list[AnyMessage], changes: list[AnyMessage | RemoveMessage]) -> list[AnyMessage]:
    """Return the messages after the changes, as LangGraph merges them."""
    from langgraph.graph.message import add_messages  # slow to load, and a packet can be used without a graph

    return add_messages(messages, changes)  # type: ignore[arg-type, return-value]


Messages = Annotated[list[AnyMessage], WrapValidator(_readable), _merged]

_CONTINUING_WORDS = 3
"""A message of at most this many words, such as "Go on.", continues the message before it."""
CLIENT_SUPPLIED = "packetgate_told"
"""Key in `additional_kwargs` of messages that the client supplied as history, or that another person wrote.

They are not the user's own words. The value is the other person, or True.
"""
_MADE_BY = "lc_source"
"""LangChain's key in `additional_kwargs` of messages that a program made, such as a summary of the conversation."""
RESULT_LABELS = "packetgate_labels"
"""Key in `additional_kwargs` of a router's tool messages: the labels that the text sets."""
MODEL_TEXT = "packetgate_words"
"""Key in an answer's `additional_kwargs`: the model's text without the results that are shown below it."""


def is_client_supplied(message: BaseMessage) -> bool:
    """Whether a client supplied the message as history, or a program of the client made it."""
    return bool(message.additional_kwargs.get(CLIENT_SUPPLIED) or message.additional_kwargs.get(_MADE_BY))


def is_user_message(message: BaseMessage) -> bool:
    """Whether a message is in the user's own words."""
    return isinstance(message, HumanMessage) and not is_client_supplied(message)


class CognitionPacket(BaseModel):
    """One user turn, from the request to the answer. Each field is a channel of the graph."""

    model_config = ConfigDict(extra="ignore", frozen=True)  # LangGraph's v2 and v3 streams pass all channels

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
    parked_turns: tuple[ParkedTurn, ...] = ()
    """Turns with open questions, the latest last. These turns continue after the current turn."""
    messages: Messages = Field(default_factory=list)

    @property
    def routing(self) -> ToolRouting:
        """The tool routing section; raises `PacketError` without one."""
        if self.tool_routing is None:
            raise PacketError(f"packet {self.header.packet_id} has no tool routing: its turn needs no tool")
        return self.tool_routing

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the turn, in order."""
        return self.tool_routing.all_calls if self.tool_routing else ()

    @property
    def session_words(self) -> str:
        """Everything that the user wrote in this session."""
        words = [message.text for message in self.messages if is_user_message(message)]
        return "\n".join([*words, self.content.user_words])

    @property
    def request_words(self) -> str:
        """The user's words of this turn, after the messages that a short message such as "Go on." continues."""
        words = [self.content.user_words]
        earlier = [message.text for message in self.history if is_user_message(message)]
        while earlier and len(words[0].split()) <= _CONTINUING_WORDS:
            words.insert(0, earlier.pop())
        return "\n".join(words)

    @property
    def calls_with_results(self) -> tuple[ToolCall, ...]:
        """The session's calls that have a result, oldest first."""
        calls = (*self.context.earlier_calls, *self.calls)
        return tuple({call.call_id: call for call in calls if call.result is not None}.values())

    @property
    def labels(self) -> tuple[SessionLabel, ...]:
        """Labels of the session, with those of the results and attachments of this turn."""
        results = (label for call in self.calls for label in call.labels)
        supplied = ["a message that the client supplied"] if any(map(is_client_supplied, self.messages)) else []
        sources = [f"the attached {attachment.name}" for attachment in self.content.attachments] + supplied
        others = (SessionLabel(label=label, source=source) for source in sources for label in FlowLabel)
        return merged_labels([*self.context.labels, *results, *others, *self._message_labels])

    @property
    def _message_labels(self) -> Iterator[SessionLabel]:
        """The labels of tool messages."""
        for message in self.messages:
            if isinstance(message, ToolMessage):
                for label in _labels_in(message):
                    yield SessionLabel(label=label, source=message.name or "a tool of another agent")

    @property
    def conversation(self) -> list[AnyMessage]:
        """Messages of the session without the tool calls of questions, and without the messages that close them."""
        return [one for one in self.messages if not (isinstance(one, ToolMessage) or getattr(one, "tool_calls", None))]

    @property
    def history(self) -> list[AnyMessage]:
        """Messages before this turn."""
        messages = self.conversation
        places = [
            index
            for index, message in enumerate(messages)
            if is_user_message(message) and message.text.strip() == self.content.original_prompt
        ]
        return messages[: places[-1]] if places else messages[:-1]

    def _repr_html_(self) -> str:
        """Return the packet as HTML, for notebooks."""
        from packetgate.state.card import packet_card

        return packet_card(self)

    @property
    def is_parked(self) -> bool:
        """Whether this turn is also parked: its calls continue unless selection replaces them."""
        return bool(self.parked_turns) and self.parked_turns[-1].header.packet_id == self.header.packet_id

    @property
    def asks_about_reads(self) -> bool:
        """Whether the open question is only about reads: about calls, or about an argument of a tool."""
        routing = self.tool_routing or ToolRouting()
        waiting = [call for call in routing.calls if call.status.awaits_user]
        risks = {Risk.WRITE if call.started_at else call.apparent_risk for call in waiting}
        if routing.outcome == "clarify":
            risks = {entry.risk for entry in self.context.palette if entry.tool_name in routing.asked_argument}
        return risks == {Risk.READ}

    @property
    def parked_for_new_turn(self) -> tuple[ParkedTurn, ...]:
        """The parked turns for the next turn, including this turn if its question is open and not only about reads."""
        question = self.governance.question
        if question is None or question.has_expired or self.asks_about_reads:
            return self.parked_turns
        return (*self.parked_turns, ParkedTurn(**{name: getattr(self, name) for name in ParkedTurn.model_fields}))

    def continued_by(self, person: str) -> "CognitionPacket":
        """Return the packet for a session of `person`: the messages of others are no longer the user's own words."""

        def marked(message: AnyMessage) -> AnyMessage:
            values = {**message.additional_kwargs}
            author = values.pop(CLIENT_SUPPLIED, self.header.person)
            if author != person:
                values[CLIENT_SUPPLIED] = author or True
            return message.model_copy(update={"additional_kwargs": values})

        messages = [marked(one) if isinstance(one, HumanMessage) else one for one in self.messages]
        return self.model_copy(update={"messages": messages, "parked_turns": ()})

    def with_update(self, update: "PacketUpdate") -> "CognitionPacket":
        """Return the packet with a node's update applied, as the graph does."""
        changed: dict[str, Any] = {name: value for name, value in update.items() if name != "entries"}
        if "messages" in changed:
            changed["messages"] = _merged(self.messages, changed["messages"])
        return self.model_copy(update=changed)


class PacketUpdate(TypedDict, total=False):
    """Sections that a node changed."""

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
    parked_turns: tuple[ParkedTurn, ...]
    messages: list[AnyMessage | RemoveMessage]
    request: TurnRequest
    entries: tuple[Any, ...]
    """Journal entries of the node's effects; the stage writes them before the next stage starts."""


class TurnInput(BaseModel):
    """Input of a turn: messages as chat front ends send them, and the connector's request data."""

    messages: Messages = Field(default_factory=list)
    request: TurnRequest = Field(default_factory=TurnRequest)


class OpeningPacket(CognitionPacket):
    """Input of `open_packet`: the session's packet and the new request."""

    request: TurnRequest = Field(default_factory=TurnRequest)


def _labels_in(message: ToolMessage) -> Iterable[FlowLabel]:
    """Return the labels that a tool message lists; all labels if it has no list or an unknown label."""
    try:
        return [FlowLabel(label) for label in message.additional_kwargs.get(RESULT_LABELS, FlowLabel)]
    except (TypeError, ValueError):
        return FlowLabel


def read_packet(data: str | bytes) -> CognitionPacket:
    """Read a packet from JSON; fields of a newer version are ignored.

    Raises:
        PacketVersionError: another version of Packetgate wrote the packet.
        PacketError: the data is not a packet.
    """
    try:
        return CognitionPacket.model_validate_json(data)
    except ValidationError as error:
        raise PacketError(f"not a packet: {first_problem(error)}") from error


def check_update(values: Any) -> None:
    """Check an external update of the packet.

    Raises:
        RequestError: a section does not exist, or does not accept its value.
    """
    if values is None:
        return
    if not isinstance(values, dict):
        raise RequestError(f"invalid update: it must be an object of packet sections, not {type(values).__name__}")
    if not is_storable(values):
        raise RequestError(
            "invalid update: an integer exceeds 64 bits, or a key has an unpaired surrogate; send such values as text"
        )
    try:
        if "messages" in values:
            messages = values["messages"]
            _readable(messages if isinstance(messages, list) else [messages], convert_to_messages)
        sections = {name: value for name, value in values.items() if name != "messages"}
        OpeningPacket.model_validate(sections, extra="forbid")
    except ValidationError as error:
        raise RequestError(f"invalid update: {first_problem(error, within='values')}") from error
    except (ValueError, NotImplementedError) as error:
        raise RequestError(f"invalid update: values.messages: {error}") from error


def request_in(messages: Any, *, of_parent: bool = False) -> str:
    """Return the text of the last message.

    Args:
        of_parent: whether the messages are a parent graph's: return the text of the last user message, which other
            nodes may have followed, such as the handoff of a supervisor or a summary.

    Raises:
        RequestError: there is no user message, another message is the last, or the message is not a valid request.
    """
    messages = convert_to_messages(messages if isinstance(messages, list) else [messages])
    last = [message for message in messages if is_user_message(message) or not of_parent][-1:]
    if not last or not is_user_message(last[0]):
        raise RequestError("a turn starts with a user message: send one in `messages`")
    kinds = [] if isinstance(last[0].content, str) else [str(part.get("type")) for part in last[0].content_blocks]
    if other := [kind for kind in kinds if kind != "text"]:
        raise RequestError(f"message parts of type {other[0]!r} are not supported here: send text")
    return check_request(last[0].text)


def checkpoint_types() -> list[tuple[str, str]]:
    """Return (module, name) of every Packetgate type that a checkpoint may contain."""
    types: set[tuple[str, str]] = {(model.__module__, model.__name__) for model in (TurnRequest, TurnInput)}
    for module in (base, channels, codes, origins, routing, sections, transitions):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, BaseModel | Enum) and value.__module__ == module.__name__:
                types.add((value.__module__, value.__name__))
    return sorted(types)
