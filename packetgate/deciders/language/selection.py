"""Select calls with a language model: natively if it calls tools, or as one JSON object."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, model_validator

from packetgate.deciders.language.native_selection import UNMEASURED, placeholder_objections, select_natively
from packetgate.deciders.language.offer import arguments_of
from packetgate.deciders.language.prompting import (
    attached_pictures,
    conversation,
    corrections_of,
    fenced_results,
    fenced_text,
    without_control_tokens,
)
from packetgate.deciders.outcome import ALL_TOOLS
from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.models.decoding import call_fields
from packetgate.models.schemas import AnswerForm, Choice, Schema, object_schema, text_schema
from packetgate.models.source import ModelSource, is_model_of
from packetgate.models.structured import StructuredResult, structured_answer
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ToolsRefusedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, checked_call
from packetgate.tools.palette.choice import palette_text
from packetgate.tools.provenance.sources import source_texts
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import ResultStore

EXAMPLES: tuple[dict[str, Any], ...] = (
    {"action": "call", "calls": [{"tool": "server.tool_name", "params": {"argument": "value"}}], "complete": True},
    {"action": "none", "needs_tool": False},
    {"action": "clarify", "question": "Which of the two do you mean?"},
    {"action": "describe", "tools": ["server.tool_name"]},
)
_QUESTION_CHARS = 300
_MOST_DESCRIBED = 5
_MOST_GROUPS = 64  # most categories and servers that the form lists; with more, only those of the offered tools


class WrittenAnswerCall(BaseModel):
    """A call in the model's answer."""

    tool: str = Field(min_length=1)
    params: dict[str, JsonValue] = {}
    written: dict[str, str] = {}
    """Text of params that a native format leaves untyped; the schema decides their type."""
    reasoning: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_any_form(cls, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        own = {"name": "tool", "arguments": "params"}
        return written | {own[field]: value for field, value in call_fields(written).items()}


class SelectionAnswer(BaseModel):
    """The model's structured answer."""

    action: Literal["call", "none", "clarify", "describe"]
    calls: list[WrittenAnswerCall] = []
    tools: list[str] = []
    question: str = ""
    complete: bool | None = None
    needs_tool: bool = True
    reasoning: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_any_form(cls, written: Any) -> Any:
        """Accept calls without an action, in a list or alone; a null name means none."""
        if not isinstance(written, dict) or "calls" in written:
            return written
        if "tool_calls" in written:
            calls = written["tool_calls"]
        else:
            fields = call_fields(written)
            if "name" not in fields:
                return written
            calls = [] if fields["name"] is None else [written]
        return {"action": "call" if calls else "none"} | written | {"calls": calls}

    @model_validator(mode="after")
    def _complete(self) -> "SelectionAnswer":
        needed = {"call": ("calls", self.calls), "clarify": ("question", self.question.strip())}
        needed |= {"describe": ("tools", self.tools)}
        field, value = needed.get(self.action, ("", True))
        if not value:
            raise ValueError(f'"action" is "{self.action}", but "{field}" is empty')
        return self


async def select_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    store: ResultStore | None = None,
    *,
    prime: ModelSource | None = None,
) -> Selection:
    """Ask the lite model, and correct it once. If the model is also `prime`, its text without a call is the answer.

    Raises:
        DecisionError: The model gave no usable answer, or repeated an invalid call.
    """
    model, max_tokens = await source(), context.selection_max_tokens
    pictures = await attached_pictures(packet, store)
    if model.calls_tools:
        # only the answer's stage knows which pictures the model did not see
        answers = not (pictures or packet.context.earlier_pictures) and await is_model_of(model, prime)
        try:
            return await select_natively(model, packet, catalogue, context, pictures, answers=answers)
        except ToolsRefusedError:
            pass  # it may still answer in JSON
    corrections: list[Correction] = []
    checked: list[CheckedCall] = []
    evidence = source_texts(packet)

    def objection(answer: SelectionAnswer) -> str | None:
        calls = answer.calls if answer.action == "call" else []
        palette = packet.context.palette_names
        checked[:] = [checked_call(one.tool, one.params, palette, catalogue, one.written) for one in calls]
        on_palette = [call for call in checked if not call.misses]  # a miss widens the palette
        found = [
            one for call in on_palette for one in call.problems or placeholder_objections(call, catalogue, evidence)
        ]
        corrections.extend(found)
        return " ".join(correction.message for correction in found) or None

    shown = {one.tool_name: one.shown for one in packet.context.palette if one.tool_name in catalogue}
    tools = [catalogue[name] for name, how in shown.items() if how != "name"]
    user = render(
        "selection_user",
        request=packet.content.user_words,
        results=fenced_results(packet),
        corrections=corrections_of(packet),
    )
    systems = [_system(packet, catalogue, context, briefs=briefs) for briefs in (True, False)]
    answer = await structured_answer(
        model,
        await conversation(model, packet, systems, user, max_tokens, pictures=pictures),
        SelectionAnswer,
        selection_form(tools, context.max_parallel_calls, [*shown, *catalogue.groups]),
        temperature=context.selection_temperature,
        top_p=context.selection_top_p,
        max_tokens=max_tokens,
        validate=objection,
    )
    return _selection(answer, checked, corrections)


def _selection(
    answer: StructuredResult[SelectionAnswer],
    checked: Sequence[CheckedCall],
    corrections: Sequence[Correction],
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
    is_measured = len(known) == len(measured)
    return Selection(
        action=value.action,
        calls=calls,
        tool_names=tuple(value.tools) if value.action == "describe" else (),
        question=value.question.strip() if value.action == "clarify" else "",
        corrections=tuple(corrections),
        confidence=min(known) if is_measured else UNMEASURED,
        confidence_source=ConfidenceSource.MEASURED if is_measured else ConfidenceSource.UNJUDGED,
        complete=value.complete if value.action == "call" else None,
        needs_tool=value.needs_tool if value.action == "none" else True,
        reasoning=value.reasoning,
        decided_by="model",
        usage=answer.usage,
    )


def _system(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext, *, briefs: bool) -> str:
    return render(
        "selection_system",
        ledger=without_control_tokens(catalogue.long_ledger),
        palette=fenced_text(palette_text(packet.context.palette, catalogue, briefs=briefs)),
        max_calls=str(context.max_parallel_calls),
        forms="\n".join(map(compact_json, EXAMPLES)),
    )


def selection_form(tools: Sequence[ToolSpec], max_calls: int, groups: Sequence[str] = ()) -> AnswerForm:
    """Return the form of a selection: only these tools can be called, each with its own arguments.

    `groups` are categories and servers that can be described.
    """
    names = [tool.name for tool in tools]
    if len(groups) > _MOST_GROUPS:
        groups = sorted({spec.category for spec in tools if spec.category} | {spec.server for spec in tools})
    ways = {
        "none": object_schema(action={"const": "none"}, needs_tool={"type": "boolean"}),
        "clarify": object_schema(
            action={"const": "clarify"}, question={**text_schema(_QUESTION_CHARS), "minLength": 1}
        ),
    }
    if names:
        calls = [
            object_schema(tool={"const": name}, params={"$ref": f"#/$defs/tool_{at}"}) for at, name in enumerate(names)
        ]
        call = object_schema(
            action={"const": "call"}, calls=_list({"anyOf": calls}, max_calls), complete={"type": "boolean"}
        )
        described = _list({"enum": list(dict.fromkeys([*names, *groups, ALL_TOOLS]))}, _MOST_DESCRIBED)
        ways = {"call": call, **ways, "describe": object_schema(action={"const": "describe"}, tools=described)}
    return AnswerForm(
        "selection",
        {"anyOf": list(ways.values())},
        parts={f"tool_{at}": arguments_of(tool) for at, tool in enumerate(tools)},
        choices=(
            Choice.among("action", values=ways),
            Choice.among("calls", "*", "tool", values=names),
            Choice.among("needs_tool", values=[True, False]),
        ),
    )


def _list(items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}
