"""Tool selection by a language model, at a low temperature."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, field_validator, model_validator

from packetgate.deciders.language.copying import unfilled
from packetgate.deciders.language.forms import selection_form, tool_of
from packetgate.deciders.language.own_language import select_in_own_language
from packetgate.deciders.language.prompting import (
    attached_pictures,
    conversation,
    corrections_of,
    data,
    harmless,
    results,
)
from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.models.decoding.bodies import call_fields
from packetgate.models.source import ModelSource, is_from
from packetgate.models.structured import Structured, decide
from packetgate.prompts.rendering import render
from packetgate.state.base import Confidence, ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ToolsRefusedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.state.routing import Alternative, Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, checked_call
from packetgate.tools.palette.texts import palette_text
from packetgate.tools.provenance.evidence import evidence_of
from packetgate.tools.text.result_store import ResultStore

FORMS: tuple[dict[str, Any], ...] = (
    {
        "action": "call",
        "calls": [{"tool": "server.tool_name", "params": {"argument": "value"}}],
        "complete": True,
    },
    {"action": "none", "needs_tool": False},
    {"action": "clarify", "question": "Which of the two do you mean?"},
    {"action": "describe", "tools": ["server.tool_name"]},
)
"""What a selection may be, by example."""
WHY = {"reasoning": "it is what the request asks for", "confidence": 0.9}
OTHERS = {"alternatives": [{"tool": "server.other_tool", "params": {}, "reason": "it could also serve"}]}
"""What is written beside a choice where reasons are asked for."""
UNSTATED_CONFIDENCE = 0.5
"""Stands where none was measured or written; it is not shown."""


class CallAnswer(BaseModel):
    """One call, as the model writes it."""

    tool: str = Field(min_length=1)
    params: dict[str, JsonValue] = {}
    written: dict[str, str] = {}
    """The text of params that a native format gives no type, so that their schema decides what they are."""
    reasoning: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_any_form(cls, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        own = {"name": "tool", "arguments": "params"}
        return written | {own[field]: value for field, value in call_fields(written).items()}


class AlternativeAnswer(BaseModel):
    """A tool that could also have served."""

    tool: str
    params: dict[str, JsonValue] = {}
    reason: str = ""

    @field_validator("params", mode="before")
    @classmethod
    def _object(cls, written: Any) -> Any:
        return written if isinstance(written, dict) else {}  # no reason to refuse the selection


class SelectionAnswer(BaseModel):
    """What the model answers."""

    action: Literal["call", "none", "clarify", "describe"]
    calls: list[CallAnswer] = []
    tools: list[str] = []
    question: str = ""
    complete: bool | None = None
    needs_tool: bool = True
    reasoning: str = ""
    confidence: Confidence | None = None
    alternatives: list[AlternativeAnswer] = []

    @model_validator(mode="before")
    @classmethod
    def _from_any_form(cls, written: Any) -> Any:
        """Take calls without an action around them, in a list or alone; null for a name is GAIA's word for none."""
        if not isinstance(written, dict) or "calls" in written:
            return written
        if "tool_calls" in written:
            calls = written["tool_calls"]
        else:
            fields = call_fields(written)
            if "name" not in fields:
                return written
            calls = [] if fields["name"] is None else [written]
        unsaid = {"action": "call" if calls else "none"}
        return (unsaid | written) | {"calls": calls}

    @field_validator("confidence", mode="before")
    @classmethod
    def _number(cls, stated: Any) -> Any:
        if isinstance(stated, bool):
            raise ValueError("it must be a number from 0 to 1")  # noqa: TRY004  pydantic reads ValueErrors
        return stated

    @model_validator(mode="after")
    def _complete(self) -> "SelectionAnswer":
        needed = {"call": self.calls, "clarify": self.question.strip(), "describe": self.tools}
        if self.action in needed and not needed[self.action]:
            field = {"call": "calls", "clarify": "question", "describe": "tools"}[self.action]
            raise ValueError(f'"action" is "{self.action}", but "{field}" is empty')
        return self


async def select_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    kept: ResultStore | None = None,
    *,
    prime: ModelSource | None = None,
) -> Selection:
    """Ask the lite model, show it the palette, and correct it once.

    Args:
        prime: what answers the turn; where that is the same model, what it says without a call is the answer.

    Raises:
        DecisionError: the model gave no usable answer, or insisted on a call that its tool does not take.
    """
    corrections: list[Correction] = []
    checked: list[CheckedCall] = []
    evidence = evidence_of(packet)

    def objection(answer: SelectionAnswer) -> str | None:
        """Object to what the model must mend itself. A tool off the palette it cannot: that widens the palette."""
        calls = answer.calls if answer.action == "call" else []
        palette = packet.context.palette_names
        checked[:] = [checked_call(one.tool, one.params, palette, catalogue, one.written) for one in calls]
        sound = [call for call in checked if not call.misses]
        found = [problem for call in sound for problem in call.problems or unfilled(call, catalogue, evidence)]
        corrections.extend(found)
        return " ".join(correction.message for correction in found) or None

    model, max_tokens = await source(), context.selection_max_tokens
    pictures = await attached_pictures(packet, kept)
    if model.calls_tools:
        # what the selection's words say about pictures that it was not shown, only the answer's stage tells
        seen = bool(pictures or packet.context.earlier_pictures)
        answers = not seen and await is_from(model, prime)
        try:
            return await select_in_own_language(model, packet, catalogue, context, pictures, answers=answers)
        except ToolsRefusedError:
            pass  # asked in a form, it may answer
    shown = {one.tool_name: one.shown for one in packet.context.palette if one.tool_name in catalogue}
    tools = [catalogue[name] for name, how in shown.items() if how != "name"]
    systems = [_system(packet, catalogue, context, briefs=briefs) for briefs in (True, False)]
    answer = await decide(
        model,
        await conversation(model, packet, systems, _user(packet), max_tokens, pictures=pictures),
        SelectionAnswer,
        selection_form(tools, context.max_parallel_calls, [*shown, *catalogue.groups], explain=context.explain),
        temperature=context.selection_temperature,
        top_p=context.selection_top_p,
        max_tokens=max_tokens,
        validate=objection,
    )
    called = {call.tool for call in answer.value.calls}
    only_validated = tuple(name for name in (tool_of(part, tools) for part in answer.widened) if name in called)
    return _selection(answer, checked, corrections, only_validated)


def _selection(
    answer: Structured[SelectionAnswer],
    checked: Sequence[CheckedCall],
    corrections: Sequence[Correction],
    only_validated: tuple[str, ...],
) -> Selection:
    value = answer.value
    calls = tuple(
        WantedCall(
            tool_name=call.tool,
            params=call.params,
            reasoning=call.reasoning or value.reasoning,
            confidence=answer.probability("calls", index, "tool"),
            checked=checked[index],
        )
        for index, call in enumerate(value.calls if value.action == "call" else ())
    )
    measured = [call.confidence for call in calls] if calls else [answer.probability("action")]
    known = [probability for probability in measured if probability is not None]
    sure, source = UNSTATED_CONFIDENCE, ConfidenceSource.UNJUDGED
    if len(known) == len(measured):
        sure, source = min(known), ConfidenceSource.MEASURED
    elif value.confidence is not None:
        sure, source = value.confidence, ConfidenceSource.STATED
    return Selection(
        action=value.action,
        calls=calls,
        tool_names=tuple(value.tools) if value.action == "describe" else (),
        question=value.question.strip() if value.action == "clarify" else "",
        alternatives=tuple(
            Alternative(tool_name=one.tool, params=one.params, reason=one.reason) for one in value.alternatives[:5]
        ),
        corrections=tuple(corrections),
        only_validated=only_validated,
        confidence=sure,
        confidence_source=source,
        complete=value.complete if value.action == "call" else None,
        needs_tool=value.needs_tool if value.action == "none" else True,
        reasoning=value.reasoning,
        decided_by="model",
        usage=answer.usage,
    )


def _examples(*, explain: bool) -> Iterator[str]:
    for form in FORMS:
        more = {**WHY, **(OTHERS if form["action"] == "call" else {})} if explain else {}
        yield compact_json({**form, **more})


def _system(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext, *, briefs: bool) -> str:
    return render(
        "selection_system",
        ledger=harmless(catalogue.long_ledger),
        palette=data(palette_text(packet.context.palette, catalogue, briefs=briefs)),
        max_calls=str(context.max_parallel_calls),
        forms="\n".join(_examples(explain=context.explain)),
    )


def _user(packet: CognitionPacket) -> str:
    return render(
        "selection_user",
        request=packet.content.user_words,
        results=results(packet),
        corrections=corrections_of(packet),
    )
