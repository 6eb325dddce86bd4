"""The packet's sections, one per concern, named as in the GAIA Cognition Packet."""

from collections.abc import Collection, Iterable
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from packetgate.state.base import Confidence, ConfidenceSource, Section, TokenUsage, new_id, now
from packetgate.state.channels import WayOut
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketVersionError
from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted
from packetgate.state.routing import Risk

PACKET_VERSION = 12
"""Raised with every change that an older Packetgate could not read."""

DecidedBy = Literal["model", "reflex"]

Shown = Literal["name", "brief", "full"]
"""How a tool stands on the palette: by its name alone, with a brief description, or with its arguments too."""

LEDGER_RESULTS = 5
"""Results that a session remembers."""
MOST_NAMED = 1_000
"""Tools that a packet names as those there are: every checkpoint holds the names."""


class Header(Section):
    """Who this packet is and where it came from."""

    version: int = PACKET_VERSION
    packet_id: str = Field(default_factory=new_id)
    session_id: str = ""
    parent_packet_id: str | None = None
    lineage: tuple[str, ...] = ()
    """Packet ids of this session's earlier turns, oldest first, the last twenty."""
    origin: str = "unknown"
    """The connector the request came through."""
    person: str = ""
    """Who asked, as the connector names them."""
    way_out: WayOut = WayOut()
    created_at: datetime = Field(default_factory=now)

    @field_validator("version")
    @classmethod
    def _refuse_newer(cls, version: int) -> int:
        check_version(version)
        return version


def check_version(version: int) -> None:
    """Raise `PacketVersionError` for a packet this Packetgate is too old to read."""
    if version > PACKET_VERSION:
        raise PacketVersionError(
            f"packet version {version} is newer than version {PACKET_VERSION}, the newest this Packetgate reads: "
            "upgrade Packetgate, or start a new session"
        )


class SystemTask(StrEnum):
    """What the system is about to do with a request.

    The names are those of GAIA's packets, all of them, so that such a packet can be read. Packetgate itself sets intent
    detection, tool routing, tool execution and, for the answer, the draft.
    """

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
    """What kind of access a request asks for."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    MIXED = "mixed"

    @property
    def risks(self) -> frozenset[Risk]:
        """The risks such a request asks for; whatever it wants, it also needs to read."""
        return frozenset(Risk) if self is Access.MIXED else frozenset({Risk.READ, Risk(self.value)})


class Intent(Section):
    """What the user wants, as detected."""

    user_intent: str = ""
    system_task: SystemTask = SystemTask.INTENT_DETECTION
    access: Access = Access.READ
    needs_tool: bool = False
    confidence: Confidence | None = None
    """None where no model judged."""
    confidence_source: ConfidenceSource = ConfidenceSource.RULE

    def without_tool(self, confidence: Confidence | None, source: ConfidenceSource) -> "Intent":
        """Return the section of a request that turned out to need no tool."""
        task = SystemTask.GENERATE_DRAFT
        return self._changed(needs_tool=False, system_task=task, confidence=confidence, confidence_source=source)

    def now_at(self, task: SystemTask) -> "Intent":
        """Return the section with another task at hand."""
        return self._changed(system_task=task)


class PaletteEntry(Section):
    """One tool the turn may use, and why it is there."""

    tool_name: str
    shown: Shown
    reason: Literal["permanent", "recent", "default", "ranked", "widened", "described", "kept", "chain"]
    """`kept`: only to read on in a result that was too long. `chain`: for a step of a chain that was called."""
    risk: Risk
    score: float = 0.0
    """Rank score against the request; higher is better, 0 when not ranked."""

    def by_name(self) -> "PaletteEntry":
        """Return the entry as shown by its name alone."""
        return self._changed(shown="name")


class LedgerEntry(Section):
    """One line of the session's memory of results: what was called, and how it ended."""

    packet_id: str
    tool_name: str
    params: dict[str, JsonValue] = {}
    status: str
    summary: str
    said: str | None = None
    """What of the summary is not in our own words; None: all of it."""
    fields: tuple[str, ...] = ()
    """Addresses that were whole fields of what it returned: later turns may go by them."""
    at: datetime = Field(default_factory=now)


class ServerHealth(Section):
    """How one MCP server stood when its tools were wanted."""

    name: str
    state: Literal["ready", "connecting", "failed"]
    tools: int = 0
    problem: str = ""

    @property
    def trouble(self) -> str:
        """What is amiss with which server; empty when nothing is."""
        amiss = self.problem or ("still starting" if self.state == "connecting" else "")
        return amiss and f"{self.name}: {amiss}"


class Attachment(Section):
    """Something the user handed over with the request: data, and none of it their own words."""

    name: str
    mime_type: str = "text/plain"
    """By its content, not by its name."""
    text: str = ""
    """Of a text; of a picture there is only where it is kept, never its bytes."""
    size: int = Field(default=0, ge=0)
    """In bytes."""
    sha256: str = ""
    handle: str = Field(default="", pattern=r"^(kept:[0-9a-z]{1,64})?$")
    """Under which the session keeps a picture."""
    packet_id: str = ""
    """The packet that it came with."""

    @property
    def is_picture(self) -> bool:
        """Whether a model that sees can be shown it."""
        return bool(self.handle)

    @property
    def told(self) -> str:
        """What it is, in words."""
        return f"{self.name}, {self.mime_type}, {byte_size(self.size)}"

    def taken_by(self, packet_id: str) -> "Attachment":
        """Return it as a packet holds it, without secrets in its text."""
        return self._changed(text=redacted(self.text), packet_id=packet_id)


class Context(Section):
    """What the turn can draw on. Type, subject, recent tools and result ledger belong to the session."""

    context_type: str = "general"
    available_mcp_tools: tuple[str, ...] = ()
    """What there was to choose from; where that is very many, the first of them."""
    available_more: int = 0
    """How many more there were."""
    servers: tuple[ServerHealth, ...] = ()
    palette: tuple[PaletteEntry, ...] = ()
    palette_tokens: int = 0
    """Of the palette's texts."""
    palette_left_out: int = 0
    """How many tools fit the request and had no room on it."""
    subject: tuple[str, ...] = ()
    """Words that the session was last about."""
    shift: str = ""
    """How the conversation's type or subject has changed with this turn; empty when neither has."""
    recent_tools: tuple[str, ...] = ()
    result_ledger: tuple[LedgerEntry, ...] = ()
    earlier_pictures: tuple[Attachment, ...] = ()
    """What the user attached to the last few turns before this one."""

    @property
    def palette_names(self) -> frozenset[str]:
        """The names that may be called this turn."""
        return frozenset([entry.tool_name for entry in self.palette])

    @property
    def available_count(self) -> int:
        """How many tools there were to choose from."""
        return len(self.available_mcp_tools) + self.available_more

    def offering(self, entry: PaletteEntry) -> "Context":
        """Return the section with a tool on the palette, where it was not, or only to read on."""
        others = tuple(one for one in self.palette if one.tool_name != entry.tool_name or one.reason != "kept")
        if any(one.tool_name == entry.tool_name for one in others):
            return self
        return self._changed(palette=(*others, entry))

    def is_only_to_read_on(self, tool_name: str) -> bool:
        """Whether a tool is on the palette for nothing but to read on in a long result."""
        return any(one.tool_name == tool_name and one.reason == "kept" for one in self.palette)

    def with_palette(
        self,
        palette: tuple[PaletteEntry, ...],
        *,
        tokens: int,
        left_out: int,
        available: Collection[str],
        servers: tuple[ServerHealth, ...],
        subject: tuple[str, ...],
        shift: str,
    ) -> "Context":
        """Return the section with another palette in place of the last, and what it was chosen from."""
        return self._changed(
            palette=palette,
            palette_tokens=tokens,
            palette_left_out=left_out,
            available_mcp_tools=tuple(islice(available, MOST_NAMED)),
            available_more=max(0, len(available) - MOST_NAMED),
            servers=servers,
            subject=subject or self.subject,
            shift=self.shift or shift,
        )

    def of_session(self, newer: "Context") -> "Context":
        """Return the section with what belongs to the session as it stands by now."""
        names = ("context_type", "subject", "recent_tools", "result_ledger", "earlier_pictures")
        return self._changed(**{name: getattr(newer, name) for name in names})

    def having_seen(self, servers: tuple[ServerHealth, ...]) -> "Context":
        """Return the section with how the servers stand."""
        return self._changed(servers=servers)

    def remembering(self, recent_tools: tuple[str, ...], results: tuple[LedgerEntry, ...]) -> "Context":
        """Return the section with other recent tools, and more results, of which the last few are kept."""
        return self._changed(recent_tools=recent_tools, result_ledger=(self.result_ledger + results)[-LEDGER_RESULTS:])


class DataField(Section):
    """A piece of data that came into the packet. Untrusted unless its source is the user."""

    key: str
    value: JsonValue
    type: str = "text"
    source: str = "user"


class Content(Section):
    """What the turn is about."""

    original_prompt: str = ""
    clarifications: tuple[str, ...] = ()
    """The user's answers to questions asked during this turn."""
    data_fields: tuple[DataField, ...] = ()
    attachments: tuple[Attachment, ...] = ()

    @property
    def user_words(self) -> str:
        """All the user said this turn, and nothing else."""
        return "\n".join((self.original_prompt, *self.clarifications))

    def clarified(self, *answers: str) -> "Content":
        """Return the section with more that the user said."""
        return self._changed(clarifications=self.clarifications + answers)

    def with_data(self, *fields: DataField) -> "Content":
        """Return the section with more data."""
        return self._changed(data_fields=self.data_fields + fields)


class Reflection(Section):
    """One stage's decision, as the journey shows it."""

    step: str
    summary: str
    confidence: Confidence | None = None
    confidence_source: ConfidenceSource | None = None
    decided_by: DecidedBy | None = None
    is_fallback: bool = False
    """True when a model should have decided and the reflex decider did."""
    at: datetime = Field(default_factory=now)
    latency_ms: float = 0.0


class Sketch(Section):
    """A slot of working memory."""

    slot: str
    content: str
    content_type: str = "text"


class Evaluation(Section):
    """A judgement on a call, such as its review."""

    name: str
    subject: str
    """The call id judged."""
    score: Confidence
    label: Literal["approved", "not_approved"]
    explanation: str = ""
    stated: Confidence | None = None
    """The score before it was calibrated; None where it was not stated."""
    kind: str = ""
    """Who judged, and by what kind of confidence."""


class Reasoning(Section):
    """How the turn came to its decisions."""

    reflection_log: tuple[Reflection, ...] = ()
    sketchpad: tuple[Sketch, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    def noted(self, *entries: Reflection) -> "Reasoning":
        """Return the section with more entries in its log."""
        return self._changed(reflection_log=self.reflection_log + entries)

    def timed(self, entry: int, latency_ms: float) -> "Reasoning":
        """Return the section with the time of its log's entry of this index; itself where there is none."""
        if entry >= len(self.reflection_log):
            return self
        log = [*self.reflection_log]
        log[entry] = log[entry].model_copy(update={"latency_ms": latency_ms})
        return self.model_copy(update={"reflection_log": tuple(log)})

    def sketched(self, *sketches: Sketch) -> "Reasoning":
        """Return the section with more slots of working memory filled."""
        return self._changed(sketchpad=self.sketchpad + sketches)

    def evaluated(self, *judgements: Evaluation) -> "Reasoning":
        """Return the section with more judgements."""
        return self._changed(evaluations=self.evaluations + judgements)


class Response(Section):
    """The answer."""

    candidate: str = ""
    message_id: str | None = None
    """Under which a selection's words were streamed that are the answer."""
    confidence: Confidence | None = None
    """None: it was not measured."""


class ApprovalOutcome(StrEnum):
    """What came of asking the user about a call."""

    APPROVED = "approved"
    EDITED = "edited"
    DENIED = "denied"
    ANSWERED = "answered"
    """The user said something instead: it goes back to selection as their own words."""
    SKIPPED = "skipped"
    EXPIRED = "expired"


Remember = Literal["", "session", "always"]
"""How far the user's word on a call is to hold for calls like it: for this one alone, this session, or for good."""


class AskedCall(Section):
    """A call that the user is asked about."""

    call_id: str
    digest: str
    """Of its arguments, its tool's definition and its server: what an approval will hold for."""
    preview: str = ""
    """The output of its dry run; empty where it has none."""
    remember: dict[str, str] = {}
    """What a remembered answer would stand for, as a line, by the word that gives it: session, always, never."""


class Question(Section):
    """What the user is asked. One answer to it is taken, once, whoever gives it and wherever."""

    question_id: str = Field(default_factory=new_id)
    expires_at: datetime
    calls: tuple[AskedCall, ...] = ()
    """None where it wants words for an answer."""
    problem: str = ""
    """Why it is put again."""
    reply: str = ""
    """The answer, where it came as a message."""

    @property
    def has_lapsed(self) -> bool:
        """Whether it is too late to answer."""
        return now() > self.expires_at

    def answered(self, reply: str) -> "Question":
        """Return the question with the answer that came as a message."""
        return self._changed(reply=reply)

    def again(self, problem: str) -> "Question":
        """Return the question as a new one, which wants an answer of its own."""
        return Question(expires_at=self.expires_at, calls=self.calls, problem=problem)

    def named(self, question_id: str) -> "Question":
        """Return the question under an id that it has whenever it is put: an answer to it counts once."""
        return self._changed(question_id=question_id)


class Approval(Section):
    """The user's word on exactly one call: these arguments, this definition of the tool, this server."""

    call_id: str
    tool_name: str
    params: dict[str, JsonValue]
    outcome: ApprovalOutcome
    comment: str = ""
    question_id: str = ""
    """The question that it answers."""
    digest: str = ""
    """What it holds for, as in `AskedCall`."""
    expires_at: datetime | None = None
    """Until when the call may begin; None: it may not."""
    remember: Remember = ""
    by: str = ""
    """The rule or remembered grant that stands for the user's word; empty: they gave it themselves."""
    grant_id: str = ""
    """The remembered grant; empty where none stands for it."""
    at: datetime = Field(default_factory=now)

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule stands for the user's word: then it must still stand when the call runs."""
        return bool(self.by) and not self.grant_id

    @property
    def says_instead(self) -> bool:
        """Whether it is words for selection: something else instead, or a refusal that says more than no."""
        says_more = self.outcome is ApprovalOutcome.DENIED and bool(self.comment)
        return says_more or self.outcome is ApprovalOutcome.ANSWERED


class AuditEntry(Section):
    """Something that must be traceable later."""

    event: str
    detail: str
    call_id: str | None = None
    at: datetime = Field(default_factory=now)


DROPPED = "question_dropped"
"""The event of a question that the user went on without answering."""


class Governance(Section):
    """What may happen, what was allowed by whom, and the trail of it."""

    dry_run: bool = True
    """True while neither write nor execute tools are switched on."""
    settings: RoutingContext = RoutingContext()
    """Of the run that opened the packet; they hold until its answer, whoever replies or goes on with it."""
    approvals: tuple[Approval, ...] = ()
    question: Question | None = None
    """The one that waits for an answer."""
    audit: tuple[AuditEntry, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_version_1(cls, fields: Any) -> Any:
        """Read what an earlier Packetgate kept: its question is put anew."""
        if not isinstance(fields, dict) or "ask_expires_at" not in fields:
            return fields
        return {name: value for name, value in fields.items() if name != "ask_expires_at"}

    @property
    def dropped(self) -> tuple[str, ...]:
        """What an earlier turn asked, and the user went on without answering."""
        return tuple(entry.detail for entry in self.audit if entry.event == DROPPED)

    def asking(self, question: Question | None) -> "Governance":
        """Return the section with this question waiting, or none."""
        return self._changed(question=question)

    def rehearsing(self) -> "Governance":
        """Return the section with writes and commands switched off."""
        off = self.settings.model_copy(update={"allow_write_tools": False, "allow_execute_tools": False})
        return self._changed(settings=off)

    def audited(self, *entries: AuditEntry) -> "Governance":
        """Return the section with more entries in its trail."""
        return self._changed(audit=self.audit + entries)

    def decided(self, *approvals: Approval) -> "Governance":
        """Return the section with the user's word on calls on record."""
        trail = (
            AuditEntry(event=f"call_{one.outcome}", detail=f"{one.tool_name} {one.comment}", call_id=one.call_id)
            for one in approvals
        )
        return self._changed(approvals=self.approvals + approvals).audited(*trail)


class StageError(Section):
    """Something that went wrong without ending the turn."""

    stage: str
    message: str


class Metrics(Section):
    """What the turn cost."""

    token_usage: dict[str, TokenUsage] = {}
    """By stage."""
    latency_ms: dict[str, float] = {}
    """By stage, summed over the turn, in milliseconds."""
    errors: tuple[StageError, ...] = ()
    violations: int = 0
    """How often tool markup had to be cut out of an answer."""

    def spent(self, stage: str, usage: TokenUsage) -> "Metrics":
        """Return the section with a stage's tokens added."""
        total = self.token_usage.get(stage, TokenUsage()) + usage
        return self._changed(token_usage={**self.token_usage, stage: total})

    def took(self, stage: str, milliseconds: float) -> "Metrics":
        """Return the section with a stage's time added."""
        total = round(self.latency_ms.get(stage, 0.0) + milliseconds, 3)
        return self.model_copy(update={"latency_ms": {**self.latency_ms, stage: total}})

    def unreached(self, stage: str, servers: Iterable[ServerHealth]) -> "Metrics":
        """Return the section with what was amiss with servers at a stage."""
        return self.failed(*(StageError(stage=stage, message=one.trouble) for one in servers if one.trouble))

    def failed(self, *errors: StageError) -> "Metrics":
        """Return the section with errors added, none of them twice."""
        new = tuple([error for error in errors if error not in self.errors])
        return self._changed(errors=self.errors + new) if new else self

    def violated(self, times: int) -> "Metrics":
        """Return the section with more markup counted that had to be cut out."""
        return self._changed(violations=self.violations + times) if times else self


class PacketState(StrEnum):
    """Where the turn stands."""

    INITIALIZED = "initialized"
    PROCESSING = "processing"
    AWAITING_USER = "awaiting_user"
    COMPLETED = "completed"


class Status(Section):
    """Where the turn stands, and what comes next."""

    state: PacketState = PacketState.INITIALIZED
    next_steps: tuple[str, ...] = ()
