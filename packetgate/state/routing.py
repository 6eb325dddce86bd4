"""The tool routing section: a turn's calls, their reviews and their results."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, field_validator

from packetgate.state.base import Confidence, ConfidenceSource, ErrorType, Section, new_id
from packetgate.state.codes import Code
from packetgate.state.errors import PacketError
from packetgate.state.origins import ArgumentRole, FlowLabel, Origin, OriginKind, SessionLabel
from packetgate.state.printing import byte_size
from packetgate.state.transitions import OUTCOMES, STATUSES, Outcome, ToolExecutionStatus

MAX_ATTACHMENTS = 8
"""Maximum number of attachments of one result; the result's text names the others."""


class Risk(StrEnum):
    """The kind of access of a tool, from harmless to dangerous."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"

    @property
    def severity(self) -> int:
        """0 for read, 1 for write, 2 for execute."""
        return list(Risk).index(self)


class ResultAttachment(Section):
    """An image, a sound or a file that a tool returned: its description, not its bytes."""

    kind: Literal["image", "audio", "binary", "resource"]
    """`binary`: the content does not match the declared type."""
    mime_type: str = Field(pattern=r"^[a-z0-9][a-z0-9_.+-]{0,63}/[a-z0-9][a-z0-9_.+-]{0,63}$")
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    name: str = Field(default="", max_length=200)
    """Last part of the resource's URI, which is never fetched."""
    handle: str = Field(default="", pattern=r"^(kept:[0-9a-z]{1,64})?$")
    """Key in the session's result store; empty if the attachment was not stored."""

    @property
    def description(self) -> str:
        """Kind, name, type and size."""
        return self.described_as(self.name)

    def described_as(self, name: str) -> str:
        """Return the description with another name."""
        declared = f"declared as {self.mime_type}" if self.kind == "binary" else self.mime_type
        return f"{self.kind} {name and f'{name}, '}{declared}, {byte_size(self.size)}"


class ToolResult(Section):
    """Result of a tool call."""

    success: bool
    output: str = ""
    """Text of the answer; other parts are named in brackets."""
    structured: dict[str, JsonValue] | None = None
    """Structured content that is not the text; `output` ends with it as JSON, unless the text already states it."""
    structured_in_output: dict[str, JsonValue] | None = None
    output_field: str = ""
    """Name of the only field in the structured content, if the field's value equals the text."""
    parts: tuple[dict[str, JsonValue], ...] = ()
    """Content as the server sent it, for clients of the proxy; empty if `output` holds the complete content.

    Bytes are replaced by the `sha256` of their attachment.
    """
    meta: dict[str, JsonValue] | None = None
    error: str | None = None
    error_type: ErrorType | None = None
    code: Code | None = None
    """Code of the error, or of the rule that refused the call; None for a success."""
    execution_time_ms: float = 0.0
    dry_run: bool = False
    truncated: bool = False
    handle: str = ""
    """Handle by which `ai.read` reads the full result; empty if the result is short or was not stored."""
    server_part: str | None = None
    """The part of output or error that the server wrote; None: the complete text."""
    attachments: tuple[ResultAttachment, ...] = Field(default=(), max_length=MAX_ATTACHMENTS)
    artifact: JsonValue = None
    """Data of a LangChain tool for the caller. No model receives it."""
    is_answer: bool = False
    """Whether the text is the answer to the user, as LangChain's `return_direct` says."""

    @property
    def fields(self) -> dict[str, JsonValue] | None:
        """The structured content, wherever it is stored."""
        if self.output_field:
            return {self.output_field: self.output}
        return self.structured_in_output if self.structured is None else self.structured

    @property
    def server_text(self) -> str:
        """The text that the server wrote."""
        return (self.output or self.error or "") if self.server_part is None else self.server_part


class Verdict(Section):
    """The decision of a check, or of the strictest check, about a call."""

    effect: Literal["refuse", "dry_run", "ask", "allow"]
    """Strictest first. `allow` overrides an `ask` whose `may_be_allowed` is true."""
    why: str = ""
    """The reason. A refusal is a complete sentence without its full stop."""
    may_be_allowed: bool = False
    """For `ask`: whether a rule or a grant may allow the call without a question."""
    or_dry_run: bool = False
    """For `ask`: whether an unapproved call becomes a dry run, because its risk is switched off."""
    by: str = ""
    """For `allow`: the rule or grant."""
    grant_id: str = ""
    code: Code | None = None
    """For `refuse`: the code of the refusal."""


NO_OBJECTION = Verdict(effect="allow")
"""The verdict of a call that no check objects to."""


class ToolCall(Section):
    """One call of a turn."""

    call_id: str = Field(default_factory=new_id)
    tool_name: str
    """Canonical name: `server.tool`."""
    params: dict[str, JsonValue] = {}
    risk: Risk = Risk.WRITE
    """The risk of this call with these arguments (`judge_call`)."""
    open_world: bool = False
    """Whether the call reaches outside: beyond the user's machine, accounts and own servers."""
    risk_reasons: tuple[str, ...] = ()
    is_unconfirmed_read: bool = False
    """Whether this is an unconfirmed read: it looks like a read, but nothing that the user trusts confirms that."""
    provenance: dict[str, Origin] = {}
    result_labels: tuple[FlowLabel, ...] = tuple(FlowLabel)
    """Labels that a successful result sets; both, if nothing is known of the tool."""
    selection_reasoning: str = ""
    selection_confidence: Confidence = 0.0
    selection_confidence_source: ConfidenceSource = ConfidenceSource.RULE
    evidence: dict[str, float] = {}
    """Measurements from which the review's confidence is computed, by name."""
    review_confidence: Confidence = 0.0
    review_confidence_source: ConfidenceSource = ConfidenceSource.RULE
    review_reasoning: str = ""
    verdict: Verdict | None = None
    """The strictest verdict of the gate's checks."""
    verdict_digest: str = ""
    """Digest of call, tool definition and settings of `verdict`; for any other, the checks run again."""
    status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    result: ToolResult | None = None
    started_at: datetime | None = None
    """Start of a run whose end was not recorded; the user is asked whether to run the call again."""
    traced_for: str = ""
    """Digest of the tool definition for which `provenance` was traced; for any other, the gate traces again."""

    def changed(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced.

        Raises:
            PacketError: the status may not follow the current one.
        """
        status = fields.get("status", self.status)
        if status is not self.status and status not in STATUSES[self.status]:
            raise PacketError(f"the call of {self.tool_name} is {self.status}: it cannot become {status}")
        return super().changed(**fields)

    def role_of(self, name: str) -> ArgumentRole:
        """Return an argument's role."""
        origin = self.provenance.get(name)
        return origin.role if origin else ArgumentRole.OTHER

    def is_from_user(self, name: str) -> bool:
        """Whether an argument is in the user's own words, or the tool's default."""
        origin = self.provenance.get(name)
        return origin is not None and origin.kind.is_user_or_default

    def is_from_server(self, name: str) -> bool:
        """Whether an argument is a structured field that the tool's own server returned, and not free text."""
        origin, server = self.provenance.get(name), self.tool_name.partition(".")[0]
        if origin is None or origin.kind is not OriginKind.STRUCTURED or origin.is_free_text:
            return False
        return origin.tool.partition(".")[0] == server

    def is_in_text(self, name: str) -> bool:
        """Whether an argument comes only from free text, or has an unknown origin."""
        origin = self.provenance.get(name)
        return origin is None or origin.kind is OriginKind.TEXT or origin.is_free_text

    @property
    def is_flagged(self) -> bool:
        """Whether an argument is flagged: the user must see this call before it runs."""
        return any(origin.is_flagged for origin in self.provenance.values())

    @property
    def unstated_origins(self) -> dict[str, Origin]:
        """The origins of the arguments that come neither from the user nor from a default."""
        return {name: origin for name, origin in self.provenance.items() if not origin.kind.is_user_or_default}

    @property
    def label_kinds(self) -> tuple[FlowLabel, ...]:
        """The labels that the result sets. An error or a dry run is untrusted, even if the tool's results are
        trusted."""
        result = self.result
        if result is None or not (result.server_text or result.fields or result.attachments):
            return ()
        is_plain = result.success and not result.dry_run
        labels = self.result_labels if is_plain else {FlowLabel.UNTRUSTED: None, **dict.fromkeys(self.result_labels)}
        return tuple(labels)

    @property
    def labels(self) -> tuple[SessionLabel, ...]:
        """The labels that the result sets, with the tool as their source."""
        return tuple(SessionLabel(label=label, source=self.tool_name) for label in self.label_kinds)

    @property
    def text_size(self) -> int:
        """Number of characters in the arguments and the result."""
        result = self.result
        return len(str(self.params)) + (len(result.server_text) + len(str(result.fields or "")) if result else 0)

    @property
    def apparent_risk(self) -> Risk:
        """The risk, with an unconfirmed read taken as a read. Permission uses only `risk`."""
        return Risk.READ if self.is_unconfirmed_read else self.risk

    @property
    def unfinished_run_text(self) -> str:
        """Description of a run whose end was not recorded."""
        return f"it was started at {self.started_at:%Y-%m-%d %H:%M:%S} UTC, and it is not known whether it finished"

    @property
    def result_text(self) -> str:
        """The output of the call, or the reason why it has none."""
        result = self.result
        if result is not None and self.status is ToolExecutionStatus.EXECUTED:
            return result.output
        if result is not None and result.dry_run:
            return f"{self.tool_name} was NOT run (dry run only): {result.output}"
        error = result.error if result and result.error else self.review_reasoning
        return f"{self.tool_name} has no result: it is {self.status.replace('_', ' ')}. {error}".strip()

    def is_same_call(self, other: "ToolCall") -> bool:
        """Whether both have the same tool and arguments."""
        return self.tool_name == other.tool_name and self.params == other.params

    def with_decision(self, status: ToolExecutionStatus, why: str = "") -> "ToolCall":
        """Return the call with the user's decision; `why` replaces the review's reasoning.

        A call that may have run becomes `unknown` if the decision does not run it again.
        """
        if self.started_at is not None and status is not ToolExecutionStatus.APPROVED:
            again = f"{self.unfinished_run_text}; it was not run again" + (f", as {why}" if why else "")
            return self.changed(status=ToolExecutionStatus.UNKNOWN, review_reasoning=again)
        return self.changed(status=status, review_reasoning=why or self.review_reasoning)

    def with_unfinished_run(self, started_at: datetime) -> "ToolCall":
        """Return the call with status `awaiting_approval`, because an earlier run has no recorded end."""
        return self.changed(status=ToolExecutionStatus.AWAITING_APPROVAL, started_at=started_at)

    def with_result(self, status: ToolExecutionStatus, result: ToolResult) -> "ToolCall":
        """Return the call with its result."""
        return self.changed(status=status, result=result)


class Alternative(Section):
    """A tool that could also have been selected."""

    tool_name: str
    params: dict[str, JsonValue] = {}
    reason: str = ""

    @property
    def line(self) -> str:
        """The call and the reason, as one line."""
        return f"{_written(self) if self.params else self.tool_name}: {self.reason}"


class Correction(Section):
    """An error in a requested call, described so that a model can correct the call."""

    tool_name: str
    problem: str
    """`unknown_tool`, `off_palette`, `unknown_parameter`, `missing_parameter`, `invalid_value` or `placeholder`; if
    it can be repaired, `alias`, `wrapper`, `misspelt_parameter`, `coerced` or `named_nearly`.
    """
    message: str
    is_repaired: bool = False
    """Whether the call was repaired without another answer of the model."""


class ToolRouting(Section):
    """A turn's tool routing. None on the packet until the turn needs a tool."""

    needs_tool: bool = True
    routing_requested: bool = True
    outcome: Outcome = "pending"
    calls: tuple[ToolCall, ...] = ()
    """Calls of this pass; several if they do not depend on each other."""
    past_calls: tuple[ToolCall, ...] = ()
    complete: bool | None = None
    """Whether the selection declared its calls sufficient; None: the selection did not say."""
    queued_calls: tuple[ToolCall, ...] = ()
    """Calls for later passes: those beyond the limit of a pass."""
    step: int = Field(default=0, ge=0)
    """Number of the selection that this pass belongs to; passes of queued calls belong to the previous selection."""
    step_start: int = Field(default=0, ge=0)
    """Index in `all_calls` of the step's first call."""
    alternative_tools: tuple[Alternative, ...] = ()
    offered_calls: tuple[Alternative, ...] = ()
    """Calls that were not made because the request was not clear enough. The user may pick one by its number."""
    corrections: tuple[Correction, ...] = ()
    suggestions: tuple[str, ...] = ()
    """Canonical names near to a requested tool that does not exist."""
    missed_tools: tuple[str, ...] = ()
    """Selected names that are not on the palette, oldest first."""
    palette_widened: bool = False
    """Whether a miss has widened the palette: the next miss ends the pass."""
    described_tools: tuple[str, ...] = ()
    """Tools whose full description the selection requested."""
    describe_rounds: int = 0
    question: str | None = None
    asked_argument: tuple[str, ...] = ()
    """Tool and parameter, if the question is about one argument."""
    pass_status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    note: str = ""
    """The reason why the pass ended, if no call shows the reason."""
    reinjection_count: int = Field(default=0, ge=0)
    max_reinjections: int = Field(default=3, ge=0)

    @field_validator("queued_calls", mode="before")
    @classmethod
    def _without_chain_steps(cls, queued: Any) -> Any:
        """Drop the chain steps of an earlier version: they cannot run."""
        if not isinstance(queued, list | tuple):
            return queued
        return [call for call in queued if not (isinstance(call, dict) and call.get("chain"))]

    def changed(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced.

        Raises:
            PacketError: the outcome may not follow the current one.
        """
        if "outcome" in fields and fields["outcome"] not in OUTCOMES[self.outcome]:
            raise PacketError(f"the outcome of this pass is {self.outcome!r}: it cannot become {fields['outcome']!r}")
        return super().changed(**fields)

    @property
    def all_calls(self) -> tuple[ToolCall, ...]:
        """Every call of the turn, oldest first."""
        return self.past_calls + self.calls

    @property
    def attachments(self) -> tuple[ResultAttachment, ...]:
        """Attachments of all results of the turn, oldest first."""
        return tuple(attachment for call in self.all_calls if call.result for attachment in call.result.attachments)

    @property
    def direct_answer(self) -> str:
        """The text of this pass if its results are the answer to the user; otherwise empty."""
        results = [call.result for call in self.calls]
        is_answer = not self.queued_calls and all(result and result.is_answer for result in results)
        return "\n\n".join(result.output for result in results if result) if is_answer else ""

    @property
    def first_call(self) -> ToolCall | None:
        """The first call of this pass; if the pass has none because earlier results answer, of the turn."""
        answered = self.outcome == "none" and not self.note
        calls = self.calls or (self.past_calls if answered else ())
        return calls[0] if calls else None

    @property
    def selected_tool(self) -> str | None:
        """The first call's tool."""
        return self.first_call.tool_name if self.first_call else None

    @property
    def execution_status(self) -> ToolExecutionStatus:
        """The first call's status; `pass_status` without one."""
        return self.first_call.status if self.first_call else self.pass_status

    @property
    def execution_result(self) -> ToolResult | None:
        """The first call's result."""
        return self.first_call.result if self.first_call else None

    @property
    def review_confidence(self) -> Confidence:
        """The first call's review confidence; 0 without one."""
        return self.first_call.review_confidence if self.first_call else 0.0

    @property
    def is_at_reinjection_limit(self) -> bool:
        """Whether all reinjections are used."""
        return self.reinjection_count >= self.max_reinjections

    @property
    def step_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the current step, oldest first."""
        return self.all_calls[self.step_start :]

    def next_pass(self) -> "ToolRouting":
        """Return the routing of the turn's next pass."""
        queued = self.queued_calls
        return ToolRouting(
            past_calls=self.all_calls,
            complete=self.complete if queued else None,
            queued_calls=queued,
            step=self.step if queued else self.step + 1,
            step_start=self.step_start if queued else len(self.all_calls),
            reinjection_count=self.reinjection_count,
            max_reinjections=self.max_reinjections,
        )

    def stopped_at_limit(self) -> "ToolRouting":
        """Return the routing of a turn that may have no further pass; the note names the calls that were not made."""
        rest = f" ({', '.join(map(_written, self.queued_calls))})" if self.queued_calls else ""
        note = f"the rest was skipped{rest}: the limit is {self.max_reinjections} rounds of tool calls per turn"
        return self.changed(queued_calls=(), pass_status=ToolExecutionStatus.SKIPPED, note=note)

    def for_new_selection(
        self, alternatives: tuple[Alternative, ...] = (), corrections: tuple[Correction, ...] = ()
    ) -> "ToolRouting":
        """Return the routing prepared for the result of another selection: its calls move to `past_calls`."""
        return self.changed(
            past_calls=self.all_calls,
            calls=(),
            queued_calls=(),
            alternative_tools=alternatives,
            corrections=corrections,
            question=None,
        )

    def with_calls(
        self, calls: tuple[ToolCall, ...], limit: int, note: str = "", *, complete: bool | None = None
    ) -> "ToolRouting":
        """Return the routing with these calls: the first `limit` in this pass, the others in later passes."""
        return self.changed(
            outcome="call", calls=calls[:limit], queued_calls=calls[limit:], note=note, complete=complete
        )

    def with_question(self, question: str, asked_argument: tuple[str, ...] = ()) -> "ToolRouting":
        """Return the routing with a question for the user."""
        return self.changed(outcome="clarify", question=question, asked_argument=asked_argument)

    def after_answer(self) -> "ToolRouting":
        """Return the routing for a selection after the user's answer."""
        return self.changed(outcome="pending", question=None, queued_calls=())

    def with_described_tools(self, names: tuple[str, ...], suggestions: tuple[str, ...] = ()) -> "ToolRouting":
        """Return the routing for a selection that receives the full descriptions of these tools."""
        return self.changed(
            outcome="describe",
            described_tools=_unique(self.described_tools + names),
            describe_rounds=self.describe_rounds + 1,
            suggestions=suggestions,
        )

    def after_miss(self, names: tuple[str, ...] = (), suggestions: tuple[str, ...] = ()) -> "ToolRouting":
        """Return the routing for a selection from a wider palette; the second miss ends the pass."""
        missed = self.changed(missed_tools=self.missed_tools + names, suggestions=suggestions or self.suggestions)
        if not self.palette_widened:
            return missed.changed(outcome="miss", palette_widened=True)
        return missed.ended_without_call(
            f"unknown tool: {', '.join(map(repr, _unique(names)))}" if names else "no tool fits"
        )

    def ended_without_call(self, note: str) -> "ToolRouting":
        """Return the routing of a pass that makes no call, with the reason."""
        skipped = ToolExecutionStatus.SKIPPED
        return self.changed(outcome="none", calls=(), queued_calls=(), question=None, pass_status=skipped, note=note)


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _written(call: ToolCall | Alternative) -> str:
    return f"{call.tool_name}({', '.join(f'{name}={value}' for name, value in call.params.items())})"[:200]
