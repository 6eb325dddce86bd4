"""The tool routing section: which calls a turn wants, how they were judged, and what became of them."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, JsonValue, computed_field, field_validator, model_validator

from packetgate.state.attachments import MAX_ATTACHMENTS, ResultAttachment
from packetgate.state.base import Confidence, ConfidenceSource, ErrorType, Section, new_id
from packetgate.state.errors import PacketError
from packetgate.state.origins import Origin, OriginKind, Role, origins_of_version_2
from packetgate.state.transitions import OUTCOMES, STATUSES, Outcome, ToolExecutionStatus


class Risk(StrEnum):
    """What a tool may do to the world, from harmless to dangerous."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"

    @property
    def severity(self) -> int:
        """Position on the scale: 0 for read, 2 for execute."""
        return list(Risk).index(self)


class ToolResult(Section):
    """What a tool call came to."""

    success: bool
    output: str = ""
    """The text of the tool's answer; what is not text is named in brackets."""
    structured: dict[str, JsonValue] | None = None
    """The tool's structured content, where it says more than the text of the answer; `output` ends with it as JSON."""
    restated: dict[str, JsonValue] | None = None
    """The tool's structured content, where the text is the same as JSON."""
    wrapped_as: str = ""
    """The only name in the tool's structured content, where its value is the text."""
    parts: tuple[dict[str, JsonValue], ...] = ()
    """The content as its server sent it, for clients of the proxy; empty where `output` is all of it.

    Bytes are named by the `sha256` of their attachment.
    """
    meta: dict[str, JsonValue] | None = None
    """The `_meta` of the answer, as its server sent it."""
    error: str | None = None
    error_type: ErrorType | None = None
    """What kind of failure it is; None where the call succeeded, and in packets of a version before 12."""
    execution_time_ms: float = 0.0
    dry_run: bool = False
    """True when the tool only told what it would do."""
    truncated: bool = False
    handle: str = ""
    """Under which all of it can be read by `ai.read` in this session; empty where it is short, or was not kept."""
    said: str | None = None
    """What of the output or the error is not in our own words; None: all of it."""
    attachments: tuple[ResultAttachment, ...] = Field(default=(), max_length=MAX_ATTACHMENTS)

    @property
    def fields(self) -> dict[str, JsonValue] | None:
        """The tool's structured content, wherever it is kept; None where it has none."""
        if self.wrapped_as:
            return {self.wrapped_as: self.output}
        return self.restated if self.structured is None else self.structured

    @property
    def foreign(self) -> str:
        """What others said, and not we about the call."""
        return (self.output or self.error or "") if self.said is None else self.said

    def as_dry_run(self) -> "ToolResult":
        """Return the result of a tool that was only asked what it would do."""
        return self._changed(dry_run=True)


class ChainStep(Section):
    """Which step of a chain of tools a call is."""

    run: str
    """The `call_id` of the chain's own call."""
    number: int = Field(ge=1)


class ToolCall(Section):
    """One call a turn wants to make."""

    call_id: str = Field(default_factory=new_id)
    tool_name: str
    """Canonical name: `server.tool`."""
    params: dict[str, JsonValue] = {}
    risk: Risk = Risk.WRITE
    """What this very call may do: judged of its tool and of its arguments, the worse of the two."""
    open_world: bool = False
    """Whether it reaches out of the user's own machine and servers."""
    risk_why: tuple[str, ...] = ()
    """Why its risk is what it is, in words."""
    unvouched: bool = False
    """Whether it looks like one that only reads, and counts as more because nothing vouches for its tool."""
    provenance: dict[str, Origin] = {}
    """Where each argument came from."""
    selection_reasoning: str = ""
    selection_confidence: Confidence = 0.0
    selection_confidence_source: ConfidenceSource = ConfidenceSource.RULE
    evidence: dict[str, float] = {}
    """What tells how probably it is right, by name: what was measured as it was written, and what a review found."""
    review_confidence: Confidence = 0.0
    review_confidence_source: ConfidenceSource = ConfidenceSource.RULE
    review_reasoning: str = ""
    status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    result: ToolResult | None = None
    started_at: datetime | None = None
    """When a run of it began that never told its end; the user is asked whether to run it again."""
    chain: ChainStep | None = None
    """None: it was chosen by itself."""

    @field_validator("provenance", mode="before")
    @classmethod
    def _from_version_2(cls, kept: Any) -> Any:
        return origins_of_version_2(kept)

    def role_of(self, name: str) -> Role:
        """Return what an argument is to the tool."""
        origin = self.provenance.get(name)
        return origin.role if origin else Role.OTHER

    def is_said(self, name: str) -> bool:
        """Whether an argument is in the user's own words, or the tool's own default."""
        origin = self.provenance.get(name)
        return origin is not None and origin.is_trusted

    def is_given_back(self, name: str) -> bool:
        """Whether an argument is in a field of what the tool's own server returned, which nobody words as they like."""
        origin, server = self.provenance.get(name), self.tool_name.partition(".")[0]
        if origin is None or origin.kind is not OriginKind.STRUCTURED or origin.worded:
            return False
        return origin.tool.partition(".")[0] == server

    def is_in_text(self, name: str) -> bool:
        """Whether an argument stands only in free text, or in a field that somebody words; so does what is unknown."""
        origin = self.provenance.get(name)
        return origin is None or origin.kind is OriginKind.TEXT or origin.worded

    @property
    def is_loud(self) -> bool:
        """Whether an argument is such that the user must see this very call before it runs, even a read."""
        return any(origin.loud for origin in self.provenance.values())

    @property
    def foreign(self) -> dict[str, Origin]:
        """The arguments that neither the user nor a default gave."""
        return {name: origin for name, origin in self.provenance.items() if not origin.is_trusted}

    def same_call(self, other: "ToolCall") -> bool:
        """Whether both would do the same thing."""
        return self.tool_name == other.tool_name and self.params == other.params

    def selected(
        self, reasoning: str, confidence: float, source: ConfidenceSource, evidence: Mapping[str, float]
    ) -> "ToolCall":
        """Return the call with what its selection says of it."""
        return self._changed(
            selection_reasoning=reasoning,
            selection_confidence=confidence,
            selection_confidence_source=source,
            evidence=dict(evidence),
        )

    def reviewed(
        self,
        status: ToolExecutionStatus,
        confidence: float,
        source: ConfidenceSource,
        reasoning: str,
        evidence: Mapping[str, float] | None = None,
    ) -> "ToolCall":
        """Return the call with the review on it."""
        return self._moved(
            status,
            review_confidence=confidence,
            review_confidence_source=source,
            review_reasoning=reasoning,
            evidence={**self.evidence, **(evidence or {})},
        )

    def decided(self, status: ToolExecutionStatus, why: str = "") -> "ToolCall":
        """Return the call with what came of asking the user; `why` stands in place of the review's reasoning.

        One that may have been run stays unknown where it is not to be run again.
        """
        if self.started_at is not None and status is not ToolExecutionStatus.APPROVED:
            again = f"{self.doubt}; it was not run again" + (f", as {why}" if why else "")
            return self._moved(ToolExecutionStatus.UNKNOWN, review_reasoning=again)
        return self._moved(status, review_reasoning=why or self.review_reasoning)

    @property
    def doubt(self) -> str:
        """What is to be said of a call that may have been run."""
        return f"it was started at {self.started_at:%Y-%m-%d %H:%M:%S} UTC, and nobody knows whether it finished"

    def in_doubt(self, started_at: datetime) -> "ToolCall":
        """Return the call waiting for the user's word, since a run of it began that never told its end."""
        return self._moved(ToolExecutionStatus.AWAITING_APPROVAL, started_at=started_at)

    @property
    def looks(self) -> Risk:
        """What it looks like, a read where only a word for its tool is missing; for what may run, `risk` counts."""
        return Risk.READ if self.unvouched else self.risk

    def rated(self, risk: Risk, *, open_world: bool, why: tuple[str, ...], unvouched: bool = False) -> "ToolCall":
        """Return the call with what it may do, and why that is thought."""
        return self._changed(risk=risk, open_world=open_world, risk_why=why, unvouched=unvouched)

    def reopened(self) -> "ToolCall":
        """Return the call to be judged anew: it, its tool or its server is not what the user was asked about."""
        return self._moved(ToolExecutionStatus.PENDING)

    def filled(
        self, tool_name: str, params: dict[str, JsonValue], provenance: dict[str, Origin], reasoning: str
    ) -> "ToolCall":
        """Return a step of a chain with its arguments."""
        return self._changed(tool_name=tool_name, params=params, provenance=provenance, selection_reasoning=reasoning)

    def edited(self, tool_name: str, params: dict[str, JsonValue], provenance: dict[str, Origin]) -> "ToolCall":
        """Return the call as the user would have it, and approves it by that."""
        return self._moved(ToolExecutionStatus.APPROVED, tool_name=tool_name, params=params, provenance=provenance)

    def ended(self, status: ToolExecutionStatus, result: ToolResult) -> "ToolCall":
        """Return the call with what it came to."""
        return self._moved(status, result=result)

    def _moved(self, status: ToolExecutionStatus, **fields: Any) -> "ToolCall":
        if status is not self.status and status not in STATUSES[self.status]:
            raise PacketError(f"the call of {self.tool_name} is {self.status}: it cannot become {status}")
        return self._changed(status=status, **fields)


class Alternative(Section):
    """A tool that could also have served."""

    tool_name: str
    params: dict[str, JsonValue] = {}
    """As the selection would call it, unchecked; empty where it thought of no arguments."""
    reason: str = ""

    @property
    def line(self) -> str:
        """The call and the reason, for people."""
        return f"{_written(self) if self.params else self.tool_name}: {self.reason}"


class Correction(Section):
    """What was wrong with a wanted call, in words a model can act on."""

    tool_name: str
    problem: str
    """`unknown_tool`, `off_palette`, `unknown_parameter`, `missing_parameter`, `invalid_value` or `wrong_kind`; of what
    can be mended, `alias`, `wrapper`, `misspelt_parameter`, `coerced` or `named_nearly`.
    """
    message: str
    mended: bool = False
    """Whether the call was mended so: then nothing is left to object to."""
    better_tool: str = ""
    """Canonical name of the tool to call instead, where one is known."""

    def as_mended(self) -> "Correction":
        """Return the correction of a call that was changed accordingly."""
        return self._changed(mended=True)


class ToolRouting(Section):
    """A turn's tool routing. None on the packet until the turn needs a tool."""

    needs_tool: bool = True
    routing_requested: bool = True
    outcome: Outcome = "pending"
    calls: tuple[ToolCall, ...] = ()
    """The calls of this pass; several when they do not depend on each other."""
    past_calls: tuple[ToolCall, ...] = ()
    """The calls of this turn's earlier passes, oldest first."""
    complete: bool | None = None
    """Whether the selection said that its calls are all that the request takes; None: it did not say."""
    queued_calls: tuple[ToolCall, ...] = ()
    """Calls beyond the most that one pass may make, and steps of chains: later passes make them."""
    step: int = Field(default=0, ge=0)
    """Which step of the request this pass is of; passes that only make queued calls belong to the step before them."""
    step_start: int = Field(default=0, ge=0)
    """The place in `all_calls` of the step's first call."""
    alternative_tools: tuple[Alternative, ...] = ()
    corrections: tuple[Correction, ...] = ()
    objections: tuple[str, ...] = ()
    """The better tools that objections of this turn named; whoever insists on another is let through."""
    suggestions: tuple[str, ...] = ()
    """Canonical names near to what was wanted, when the wanted tool does not exist."""
    missed_tools: tuple[str, ...] = ()
    """Names selected off the palette, oldest first."""
    widened: bool = False
    """Whether a miss has widened the palette: the next one ends the pass."""
    described_tools: tuple[str, ...] = ()
    """Tools whose full description the selection asked for."""
    describe_rounds: int = 0
    question: str | None = None
    """What selection needs to know from the user."""
    asks_for: tuple[str, ...] = ()
    """Where that is one argument: the tool and the parameter."""
    pass_status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    """How a pass without calls ended."""
    note: str = ""
    """Why the pass ended as it did, when no call tells it."""
    reinjection_count: int = Field(default=0, ge=0)
    max_reinjections: int = Field(default=3, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, given: Any) -> Any:
        """Drop what is computed from the calls, and written for those who read the JSON."""
        if not isinstance(given, dict) or given.keys().isdisjoint(cls.model_computed_fields):
            return given
        return {name: value for name, value in given.items() if name not in cls.model_computed_fields}

    @property
    def all_calls(self) -> tuple[ToolCall, ...]:
        """Every call of the turn, oldest first."""
        return self.past_calls + self.calls

    @property
    def attachments(self) -> tuple[ResultAttachment, ...]:
        """What the tools of the turn returned besides text, oldest first."""
        return tuple(one for call in self.all_calls if call.result for one in call.result.attachments)

    @property
    def first_call(self) -> ToolCall | None:
        """The first call of this pass; of the turn where this pass makes none, as the results so far answer it."""
        answered = self.outcome == "none" and not self.note
        calls = self.calls or (self.past_calls if answered else ())
        return calls[0] if calls else None

    @computed_field(repr=False)  # type: ignore[prop-decorator]
    @property
    def selected_tool(self) -> str | None:
        """The first call's tool."""
        return self.first_call.tool_name if self.first_call else None

    @computed_field(repr=False)  # type: ignore[prop-decorator]
    @property
    def execution_status(self) -> ToolExecutionStatus:
        """The first call's status; of a pass without calls, how the pass ended."""
        return self.first_call.status if self.first_call else self.pass_status

    @computed_field(repr=False)  # type: ignore[prop-decorator]
    @property
    def execution_result(self) -> ToolResult | None:
        """The first call's result."""
        return self.first_call.result if self.first_call else None

    @computed_field(repr=False)  # type: ignore[prop-decorator]
    @property
    def review_confidence(self) -> Confidence:
        """The first call's review confidence; 0 where no call was reviewed."""
        return self.first_call.review_confidence if self.first_call else 0.0

    @property
    def capped(self) -> bool:
        """Whether every reinjection is used up."""
        return self.reinjection_count >= self.max_reinjections

    @property
    def step_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the request's current step, oldest first."""
        return self.all_calls[self.step_start :]

    def next_pass(self) -> "ToolRouting":
        """Return the routing of another pass of the turn."""
        step = self.step, self.step_start
        if not self.queued_calls:
            step = self.step + 1, len(self.all_calls)
        return ToolRouting(
            past_calls=self.all_calls,
            complete=self.complete if self.queued_calls else None,
            queued_calls=self.queued_calls,
            step=step[0],
            step_start=step[1],
            objections=self.objections,
            reinjection_count=self.reinjection_count,
            max_reinjections=self.max_reinjections,
        )

    def stopped_at_cap(self) -> "ToolRouting":
        """Return the routing of a turn that wants another pass and may have none, and says what is left undone."""
        rest = f" ({', '.join(map(_written, self.queued_calls))})" if self.queued_calls else ""
        note = f"the rest was skipped{rest}: a turn may use tools {self.max_reinjections} times, and this one has"
        return self._changed(queued_calls=(), pass_status=ToolExecutionStatus.SKIPPED, note=note)

    def selected(
        self, alternatives: tuple[Alternative, ...] = (), corrections: tuple[Correction, ...] = ()
    ) -> "ToolRouting":
        """Return the routing with what another selection brings beside its outcome, which follows."""
        return self._changed(
            past_calls=self.all_calls,
            calls=(),
            queued_calls=(),
            alternative_tools=alternatives,
            corrections=corrections,
            question=None,
        )

    def corrected(self, *corrections: Correction) -> "ToolRouting":
        """Return the routing with more corrections."""
        return self._changed(corrections=self.corrections + corrections)

    def called(
        self, calls: tuple[ToolCall, ...], most: int, note: str = "", *, complete: bool | None = None
    ) -> "ToolRouting":
        """Return the routing with these calls to be made: `most` of them in this pass, the rest in later ones."""
        return self._came_to("call", calls=calls[:most], queued_calls=calls[most:], note=note, complete=complete)

    def asked(self, question: str, asks_for: tuple[str, ...] = ()) -> "ToolRouting":
        """Return the routing with a question for the user."""
        return self._came_to("clarify", question=question, asks_for=asks_for)

    def answered(self) -> "ToolRouting":
        """Return the routing for a selection that has the user's answer, or what they said instead of deciding."""
        return self._came_to("pending", question=None, queued_calls=())

    def described(self, names: tuple[str, ...], suggestions: tuple[str, ...] = ()) -> "ToolRouting":
        """Return the routing for a selection that sees the full descriptions of these tools."""
        return self._came_to(
            "describe",
            described_tools=_once(self.described_tools + names),
            describe_rounds=self.describe_rounds + 1,
            suggestions=suggestions,
        )

    def missed(self, names: tuple[str, ...] = (), suggestions: tuple[str, ...] = ()) -> "ToolRouting":
        """Return the routing for a selection from a wider palette, since these tools, or any that fits, are not on it.

        After the first miss the palette is widened already: the second ends the pass.
        """
        told = self._changed(missed_tools=self.missed_tools + names, suggestions=suggestions or self.suggestions)
        if not self.widened:
            return told._came_to("miss", widened=True)
        return told.ended(f"there is no tool {' or '.join(map(repr, _once(names)))} to use here")

    def objected(self, corrections: tuple[Correction, ...]) -> "ToolRouting":
        """Return the routing for a selection that hears why, and has the better tools on its palette."""
        return self._came_to(
            "miss",
            corrections=self.corrections + tuple(one for one in corrections if one not in self.corrections),
            objections=self.objections + _once(tuple(one.better_tool for one in corrections)),
        )

    def ended(self, note: str) -> "ToolRouting":
        """Return the routing of a pass that makes no call, and why."""
        return self._came_to(
            "none", calls=(), queued_calls=(), question=None, pass_status=ToolExecutionStatus.SKIPPED, note=note
        )

    def with_calls(self, calls: tuple[ToolCall, ...]) -> "ToolRouting":
        """Return the routing with the pass's calls as they stand now."""
        return self._changed(calls=calls)

    def followed_by(self, steps: tuple[ToolCall, ...]) -> "ToolRouting":
        """Return the routing with steps of chains to be made after all other calls."""
        return self._changed(queued_calls=self.queued_calls + steps) if steps else self

    def injected(self) -> "ToolRouting":
        """Return the routing with one more reinjection counted; a chain counts once, with its last step."""
        if self.queued_calls and self.queued_calls[0].chain:
            return self
        return self._changed(reinjection_count=self.reinjection_count + 1)

    def _came_to(self, outcome: Outcome, **fields: Any) -> Self:
        if outcome not in OUTCOMES[self.outcome]:
            raise PacketError(f"the outcome of this pass is {self.outcome!r}: it cannot become {outcome!r}")
        return self._changed(outcome=outcome, **fields)


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _written(call: ToolCall | Alternative) -> str:
    return f"{call.tool_name}({', '.join(f'{name}={value}' for name, value in call.params.items())})"[:200]
