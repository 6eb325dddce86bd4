"""The JSON object in which a model without native tool calls writes a selection."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, model_validator

from packetgate.deciders.language.prompting import arguments_schema, fenced_text, without_control_tokens
from packetgate.deciders.outcome import ALL_TOOLS
from packetgate.models.decoding import call_fields
from packetgate.models.schemas import AnswerForm, Schema, object_schema, text_schema
from packetgate.prompts.rendering import render
from packetgate.ranking.choice import palette_text
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

_QUESTION_CHARS = 300
_MAX_DESCRIBED = 5
_MAX_GROUPS = 64  # with more categories and servers, the form lists only those of the offered tools
EXAMPLES: tuple[dict[str, Any], ...] = (
    {"action": "call", "calls": [{"tool": "server.tool_name", "params": {"argument": "value"}}], "complete": True},
    {"action": "none", "needs_tool": False},
    {"action": "clarify", "question": "Which of the two do you mean?"},
    {"action": "describe", "tools": ["server.tool_name"]},
)


class WrittenAnswerCall(BaseModel):
    """A call in the model's answer."""

    tool: str = Field(min_length=1)
    params: dict[str, JsonValue] = {}
    written: dict[str, str] = {}  # the original text of params whose call format has no types
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

    @property
    def selected_calls(self) -> list[WrittenAnswerCall]:
        """The calls; empty if `action` is not `call`."""
        return self.calls if self.action == "call" else []

    @model_validator(mode="before")
    @classmethod
    def _from_any_form(cls, written: Any) -> Any:
        # calls without an action are accepted, also a single call; a null name means no call
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
    def _check_required_field(self) -> "SelectionAnswer":
        needed = {"call": ("calls", self.calls), "clarify": ("question", self.question.strip())}
        needed |= {"describe": ("tools", self.tools)}
        field, value = needed.get(self.action, ("", True))
        if not value:
            raise ValueError(f'"action" is "{self.action}", but "{field}" is empty')
        return self


def selection_system(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext, *, briefs: bool) -> str:
    """Return the system prompt of a selection in this form, with brief descriptions or without."""
    return render(
        "selection_system",
        ledger=without_control_tokens(catalogue.long_ledger),
        palette=fenced_text(palette_text(packet.context.palette, catalogue, briefs=briefs)),
        max_calls=str(context.max_parallel_calls),
        forms="\n".join(map(compact_json, EXAMPLES)),
    )


def selection_form(tools: Sequence[ToolSpec], max_calls: int, groups: Sequence[str] = ()) -> AnswerForm:
    """Return the output form of a selection from these tools.

    Args:
        groups: categories and servers whose tools the model can ask to see.
    """
    names = [tool.name for tool in tools]
    if len(groups) > _MAX_GROUPS:
        groups = sorted({spec.category for spec in tools if spec.category} | {spec.server for spec in tools})
    actions = {
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
            action={"const": "call"}, calls=_list_schema({"anyOf": calls}, max_calls), complete={"type": "boolean"}
        )
        described = _list_schema({"enum": list(dict.fromkeys([*names, *groups, ALL_TOOLS]))}, _MAX_DESCRIBED)
        actions = {"call": call, **actions, "describe": object_schema(action={"const": "describe"}, tools=described)}
    return AnswerForm(
        "selection",
        {"anyOf": list(actions.values())},
        parts={f"tool_{at}": arguments_schema(tool) for at, tool in enumerate(tools)},
    )


def _list_schema(items: Schema, max_items: int) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": max_items}
