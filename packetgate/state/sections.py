"""The packet's sections, named as in the GAIA Cognition Packet."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from packetgate.state.base import Confidence, ConfidenceSource, Section, TokenUsage, new_id, now
from packetgate.state.channels import SwitchHints
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketVersionError
from packetgate.state.origins import SessionLabel
from packetgate.state.printing import byte_size
from packetgate.state.routing import Risk, ToolCall, ToolRouting

PACKET_VERSION = 16
"""Version of the packet format. A field is added without a new version: older packets get its default, older readers
ignore it. A change that breaks stored packets increments the version, and comes with an upgrade of the earlier one."""

DecidedBy = Literal["model", "reflex"]

PaletteDetail = Literal["name", "brief", "full"]
"""Detail of a tool on the palette: its name, a brief description, or the full description."""

LEDGER_RESULTS = 5
MAX_EARLIER_CALLS = 20
MAX_EARLIER_CHARS = 100_000
"""Maximum number of characters in the calls of earlier turns; the newest call is kept at any length."""
MAX_NAMED_TOOLS = 1_000
"""Maximum number of available tools that a packet names, because every checkpoint holds the names."""


class Header(Section):
    """Identity and origin of a packet."""

    version: int = PACKET_VERSION
    packet_id: str = Field(default_factory=new_id)
    session_id: str = ""
    parent_packet_id: str | None = None
    lineage: tuple[str, ...] = ()
    """Packet ids of the session's last twenty turns, oldest first."""
    origin: str = "unknown"
    person: str = ""
    """The user's name in that connector."""
    switch_hints: SwitchHints = SwitchHints()
    created_at: datetime = Field(default_factory=now)

    @property
    def local_time(self) -> datetime:
        """When the packet was created, in the time zone of this machine."""
        return self.created_at.astimezone()

    @field_validator("version")
    @classmethod
    def _check_version(cls, version: int) -> int:
        check_version(version)
        return version


def check_version(version: int) -> None:
    """Raise `PacketVersionError` for a packet of another version."""
    if version != PACKET_VERSION:
        raise PacketVersionError(
            f"packet version {version} cannot be read; this Packetgate reads version {PACKET_VERSION}: "
            "start a new session, or use the Packetgate that wrote the packet"
        )


class SystemTask(StrEnum):
    """GAIA's tasks. Packetgate sets intent detection, tool routing, tool execution and draft."""

    INTENT_DETECTION = "IntentDetection"
    RESEARCH = "Research"
    GENERATE_DRAFT = "GenerateDraft"
    REFINE = "Refine"
    VALIDATE = "Validate"
    DECISION = "Decision"
    STREAM = "Stream"
    TRIGGER_ACTION = "TriggerAction"
    TOOL_ROUTING = "ToolRouting"
    TOOL_EXECUTION = "ToolExecution"


class Access(StrEnum):
    """Access that a request asks for."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    MIXED = "mixed"

    @property
    def risks(self) -> frozenset[Risk]:
        """Risks of such a request; reads are always among them."""
        return frozenset(Risk) if self is Access.MIXED else frozenset({Risk.READ, Risk(self.value)})


class Intent(Section):
    """The detected intent."""

    user_intent: str = ""
    system_task: SystemTask = SystemTask.INTENT_DETECTION
    access: Access = Access.READ
    needs_tool: bool = False
    confidence: Confidence | None = None
    confidence_source: ConfidenceSource = ConfidenceSource.RULE


class PaletteEntry(Section):
    """A tool that the turn may use."""

    tool_name: str
    detail: PaletteDetail
    reason: Literal[
        "whole", "permanent", "recent", "offered", "default", "ranked", "widened", "described", "kept", "command"
    ]
    """`whole`: the catalogue is small. `offered`: offered in an earlier turn. `kept`: only to read the rest of a long
    result. `command`: the user typed it."""
    risk: Risk
    score: float = 0.0
    """Rank score; higher is better, 0 if not ranked."""


class LedgerEntry(Section):
    """One result in the session's memory."""

    packet_id: str
    tool_name: str
    params: dict[str, JsonValue] = {}
    status: str
    summary: str
    request: str = ""
    """The request that the call was made for."""
    at: datetime = Field(default_factory=now)


class ServerHealth(Section):
    """State of an MCP server."""

    name: str
    state: Literal["ready", "connecting", "failed"]
    tools: int = 0
    problem: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether the server is starting, and its tools are not yet known."""
        return self.state == "connecting" and not self.tools

    @property
    def problem_line(self) -> str:
        """The server's name and problem; empty without a problem."""
        problem = self.problem or ("still starting" if self.is_unknown else "")
        return problem and f"{self.name}: {problem}"


class Attachment(Section):
    """A file that the user attached: data, not the user's own words."""

    name: str
    mime_type: str = "text/plain"
    text: str = ""
    size: int = Field(default=0, ge=0)
    sha256: str = ""
    handle: str = Field(default="", pattern=r"^(kept:[0-9a-z]{1,64})?$")
    packet_id: str = ""
    """Id of the packet of the turn that the file was attached to."""

    @property
    def is_picture(self) -> bool:
        """Whether the file is an image, which models with vision can read."""
        return bool(self.handle)

    @property
    def description(self) -> str:
        """Name, type and size."""
        return f"{self.name}, {self.mime_type}, {byte_size(self.size)}"


_SESSION_FIELDS = "context_type subject recent_tools offered_tools result_ledger earlier_pictures labels".split()


class Context(Section):
    """Tools and memory of the turn, and of the session."""

    context_type: str = "general"
    available_mcp_tools: tuple[str, ...] = ()
    """Available tools, at most `MAX_NAMED_TOOLS`."""
    available_more: int = 0
    servers: tuple[ServerHealth, ...] = ()
    palette: tuple[PaletteEntry, ...] = ()
    palette_tokens: int = 0
    palette_left_out: int = 0
    """Number of matching tools that the palette had no room for."""
    subject: tuple[str, ...] = ()
    recent_tools: tuple[str, ...] = ()
    offered_tools: tuple[str, ...] = ()
    """Tools whose parameters the model was shown in this session, in the order of the prompt."""
    result_ledger: tuple[LedgerEntry, ...] = ()
    earlier_calls: tuple[ToolCall, ...] = ()
    """Calls of earlier turns, oldest first: the values of later calls may come from their results."""
    earlier_pictures: tuple[Attachment, ...] = ()
    labels: tuple[SessionLabel, ...] = ()
    """Labels of the session, one of each kind. They are never removed."""

    @property
    def palette_names(self) -> frozenset[str]:
        """Names that may be called this turn."""
        return frozenset([entry.tool_name for entry in self.palette])

    @property
    def of_session(self) -> dict[str, Any]:
        """The fields that belong to the session."""
        return {name: getattr(self, name) for name in _SESSION_FIELDS}

    def with_tool(self, entry: PaletteEntry) -> "Context":
        """Return the section with a tool added to the palette, unless the palette already has it for general use."""
        others = tuple(item for item in self.palette if item.tool_name != entry.tool_name or item.reason != "kept")
        if any(item.tool_name == entry.tool_name for item in others):
            return self
        return self.changed(palette=(*others, entry))


def recent_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the newest of these calls, without the data that only proxy clients need."""
    newest = [*calls][-MAX_EARLIER_CALLS:]
    sizes = accumulate(call.text_size for call in reversed(newest))
    count = max(1, sum(size <= MAX_EARLIER_CHARS for size in sizes))
    return tuple(
        call.changed(result=call.result and call.result.changed(parts=(), meta=None)) for call in newest[-count:]
    )


class DataField(Section):
    """Data of the packet; untrusted unless its source is the user."""

    key: str
    value: JsonValue
    type: str = "text"
    source: str = "user"


class TypedCommand(Section):
    """A typed command: a call, or, if `tool_name` is empty, the text that answers the command."""

    tool_name: str = ""
    params: dict[str, JsonValue] = {}
    text: str = ""
    is_error: bool = False
    """Whether the text says why the command cannot be carried out."""


class Content(Section):
    """Request and data of the turn."""

    original_prompt: str = ""
    typed_command: TypedCommand | None = None
    """The command in `original_prompt`; None if the prompt is not a command."""
    clarifications: tuple[str, ...] = ()
    data_fields: tuple[DataField, ...] = ()
    attachments: tuple[Attachment, ...] = ()

    @property
    def user_words(self) -> str:
        """Everything that the user wrote this turn."""
        return "\n".join((self.original_prompt, *self.clarifications))

    @property
    def command(self) -> TypedCommand | None:
        """The command to carry out; None once the user has answered its question with other text."""
        return None if self.clarifications else self.typed_command

    def with_answers(self, *answers: str) -> "Content":
        """Return the section with more answers of the user."""
        return self.changed(clarifications=self.clarifications + answers)


class Reflection(Section):
    """One stage's decision, as an entry of the trace."""

    step: str
    summary: str
    confidence: Confidence | None = None
    confidence_source: ConfidenceSource | None = None
    decided_by: DecidedBy | None = None
    is_fallback: bool = False
    """Whether reflex decided in place of a model."""
    at: datetime = Field(default_factory=now)
    latency_ms: float = 0.0


class Sketch(Section):
    """A slot of working memory."""

    slot: str
    content: str
    content_type: str = "text"


class Evaluation(Section):
    """A judgement of a call."""

    name: str
    subject: str
    """`call_id` of the call."""
    score: Confidence
    label: Literal["approved", "not_approved"]
    explanation: str = ""
    stated: Confidence | None = None
    """The score before calibration."""
    kind: str = ""
    """Decider and kind of confidence. There is one calibration curve for each kind."""


class Reasoning(Section):
    """Log of the turn's decisions."""

    reflection_log: tuple[Reflection, ...] = ()
    sketchpad: tuple[Sketch, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    def with_reflections(self, *entries: Reflection) -> "Reasoning":
        """Return the section with more log entries."""
        return self.changed(reflection_log=self.reflection_log + entries)

    def with_summary(self, step: str, summary: str) -> "Reasoning":
        """Return the section with a log entry that is only a summary."""
        return self.with_reflections(Reflection(step=step, summary=summary))

    def with_duration(self, entry: int, latency_ms: float) -> "Reasoning":
        """Return the section with the duration of a log entry, if it exists."""
        if entry >= len(self.reflection_log):
            return self
        log = [*self.reflection_log]
        log[entry] = log[entry].model_copy(update={"latency_ms": latency_ms})
        return self.model_copy(update={"reflection_log": tuple(log)})


class Response(Section):
    """The answer."""

    candidate: str = ""
    message_id: str | None = None
    """Id of the message under which the selection's text was streamed, if that text is the answer."""
    confidence: Confidence | None = None


class ApprovalOutcome(StrEnum):
    """A decision on a call."""

    APPROVED = "approved"
    EDITED = "edited"
    DENIED = "denied"
    ANSWERED = "answered"
    """The user wrote something else; selection receives that text."""
    SKIPPED = "skipped"
    EXPIRED = "expired"


Remember = Literal["", "session", "always", "trust"]
"""How long an approval holds: for this call, for similar calls in this session or always, or, for unconfirmed reads, as
long as the tool and its server stay the same."""


class AskedCall(Section):
    """A call in a question."""

    call_id: str
    digest: str
    """Digest of arguments, tool definition and server. An approval is valid only for this digest."""
    preview: str = ""
    """Output of the call's dry run; empty if there is none to show."""
    remember: dict[str, str] = {}
    """Maps `session`, `always`, `trust` and `never` to a line that describes the calls that the answer would cover."""


class OpenQuestion(Section):
    """A question to the user. Exactly one answer is accepted."""

    question_id: str = Field(default_factory=new_id)
    expires_at: datetime
    calls: tuple[AskedCall, ...] = ()
    """Empty: the answer is text."""
    problem: str = ""
    """Why the question is repeated."""
    reply: str = ""
    """The answer, if the user sent it as a message."""

    @classmethod
    def within(cls, seconds: float, **fields: Any) -> "OpenQuestion":
        """Return a new question that expires after this number of seconds."""
        return cls(expires_at=now() + timedelta(seconds=seconds), **fields)

    @property
    def has_expired(self) -> bool:
        """Whether the question has expired."""
        return now() > self.expires_at

    def repeat(self, problem: str) -> "OpenQuestion":
        """Return a new question about the same calls."""
        return OpenQuestion(expires_at=self.expires_at, calls=self.calls, problem=problem)


class Approval(Section):
    """A decision on exactly one call: these arguments, this tool definition, this server."""

    call_id: str
    tool_name: str
    params: dict[str, JsonValue]
    outcome: ApprovalOutcome
    comment: str = ""
    question_id: str = ""
    digest: str = ""
    """The same digest as in `AskedCall`."""
    expires_at: datetime | None = None
    """Latest start of the call; None means that the call may not start."""
    remember: Remember = ""
    by: str = ""
    """The policy rule or grant that decided; empty: the user decided."""
    grant_id: str = ""
    at: datetime = Field(default_factory=now)

    @property
    def is_by_rule(self) -> bool:
        """Whether a policy rule decided: the rule must still exist when the call runs."""
        return bool(self.by) and not self.grant_id

    @property
    def goes_to_selection(self) -> bool:
        """Whether selection receives the user's comment: another request, or the reason for a rejection."""
        has_reason = self.outcome is ApprovalOutcome.DENIED and bool(self.comment)
        return has_reason or self.outcome is ApprovalOutcome.ANSWERED


class AuditEntry(Section):
    """An event of the audit trail."""

    event: str
    detail: str
    call_id: str | None = None
    at: datetime = Field(default_factory=now)


DROPPED = "question_dropped"
"""Event of a question that the user did not answer."""


class Governance(Section):
    """Settings, approvals and audit trail of the turn."""

    dry_run: bool = True
    """True if neither write nor execute tools are switched on."""
    settings: RoutingContext = RoutingContext()
    """Settings of the run that opened the packet; they apply until the turn's answer."""
    approvals: tuple[Approval, ...] = ()
    question: OpenQuestion | None = None
    audit: tuple[AuditEntry, ...] = ()

    @property
    def dropped_notes(self) -> tuple[str, ...]:
        """Notes on questions without an answer and on interrupted changes that this turn closed."""
        return tuple(entry.detail for entry in self.audit if entry.event == DROPPED)

    @field_validator("settings", mode="before")
    @classmethod
    def _only_known_settings(cls, settings: Any) -> Any:
        """Ignore settings of a newer version, as sections do. Unknown settings from a user are refused elsewhere."""
        known = RoutingContext.model_fields
        return {key: settings[key] for key in settings if key in known} if isinstance(settings, dict) else settings


class StageError(Section):
    """An error that did not end the turn."""

    stage: str
    message: str


class Metrics(Section):
    """Cost of the turn."""

    token_usage: dict[str, TokenUsage] = {}
    latency_ms: dict[str, float] = {}
    errors: tuple[StageError, ...] = ()
    violations: int = 0
    """Pieces of tool markup removed from answers."""

    def with_tokens(self, stage: str, usage: TokenUsage) -> "Metrics":
        """Return the section with a stage's tokens added."""
        total = self.token_usage.get(stage, TokenUsage()) + usage
        return self.changed(token_usage={**self.token_usage, stage: total})

    def with_time(self, stage: str, milliseconds: float) -> "Metrics":
        """Return the section with a stage's time added."""
        total = round(self.latency_ms.get(stage, 0.0) + milliseconds, 3)
        return self.model_copy(update={"latency_ms": {**self.latency_ms, stage: total}})

    def with_server_problems(self, stage: str, servers: Iterable[ServerHealth]) -> "Metrics":
        """Return the section with the problems of servers."""
        return self.with_errors(
            *(StageError(stage=stage, message=server.problem_line) for server in servers if server.problem_line)
        )

    def with_errors(self, *errors: StageError) -> "Metrics":
        """Return the section with these errors. An error that occurs twice is listed once."""
        new = tuple([error for error in errors if error not in self.errors])
        return self.changed(errors=self.errors + new) if new else self


class PacketState(StrEnum):
    """State of the turn."""

    INITIALIZED = "initialized"
    PROCESSING = "processing"
    AWAITING_USER = "awaiting_user"
    COMPLETED = "completed"


class Status(Section):
    """State of the turn, and the next stages."""

    state: PacketState = PacketState.INITIALIZED
    next_steps: tuple[str, ...] = ()


class ParkedTurn(Section):
    """Sections of a packet with an open question, while the user asks for something else."""

    header: Header
    intent: Intent
    context: Context
    content: Content
    reasoning: Reasoning
    response: Response
    governance: Governance
    metrics: Metrics
    tool_routing: ToolRouting | None
