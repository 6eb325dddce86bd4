"""The forms that the stages' answers take. Keys stand in the order in which a model writes them."""

from collections.abc import Sequence
from typing import Any

from packetgate.deciders.language.turn import arguments_of
from packetgate.deciders.outcome import ALL
from packetgate.models.schemas import CONFIDENCE, AnswerForm, Choice, Schema, obj, text
from packetgate.tools.spec.tool_spec import ToolSpec

REASON_CHARS = 200
QUESTION_CHARS = 300
MAX_DESCRIBED = 5
MAX_GROUPS = 64
"""Most categories and servers that a selection may ask for by name; above, it has those of its tools."""
MAX_ALTERNATIVES = 3


def selection_form(
    tools: Sequence[ToolSpec],
    max_calls: int,
    groups: Sequence[str] = (),
    *,
    explain: bool = False,
) -> AnswerForm:
    """Return the form of a selection from these tools: it can call no other, and give each only its own arguments.

    Args:
        groups: categories and servers whose tools it may ask to see.
        explain: whether reasons, alternatives and a confidence are written as well.
    """
    names = [tool.name for tool in tools]
    asked = list(dict.fromkeys([*names, *_groups(tools, groups), ALL]))
    why: Schema = {"reasoning": text(REASON_CHARS), "confidence": CONFIDENCE} if explain else {}
    ways = {
        "none": _way("none", needs_tool={"type": "boolean"}, **why),
        "clarify": _way("clarify", question={**text(QUESTION_CHARS), "minLength": 1}, **why),
    }
    if names:
        wanted = [
            {"tool": {"const": name}, "params": {"$ref": f"#/$defs/{_part(at)}"}} for at, name in enumerate(names)
        ]
        calls = [obj(**one) for one in wanted]
        others = _list({"anyOf": [obj(**one, reason=text(REASON_CHARS)) for one in wanted]}, 0, MAX_ALTERNATIVES)
        more = {**why, "alternatives": others} if explain else {}
        call = _way("call", calls=_list({"anyOf": calls}, 1, max_calls), complete={"type": "boolean"}, **more)
        ways = {
            "call": call,
            **ways,
            "describe": _way("describe", tools=_list({"enum": asked}, 1, MAX_DESCRIBED), **why),
        }
    return AnswerForm(
        "selection",
        {"anyOf": list(ways.values())},
        parts={_part(at): arguments_of(tool) for at, tool in enumerate(tools)},
        choices=(
            Choice.among("action", values=ways),
            Choice.among("calls", "*", "tool", values=names),
            Choice.among("needs_tool", values=[True, False]),
        ),
    )


def review_form(calls: int, *, explain: bool = False) -> AnswerForm:
    """Return the form of a review of this many calls: a verdict for each number, and why where it is no plain yes."""
    reasoned = obj(approved={"type": "boolean"}, confidence=CONFIDENCE, reasoning=text(REASON_CHARS))
    plain = obj(approved={"const": True}, confidence=CONFIDENCE)
    verdict: Schema = reasoned if explain else {"anyOf": [plain, reasoned]}
    numbers = numbers_of(calls)
    return AnswerForm(
        "review",
        obj(reviews=obj(**dict.fromkeys(numbers, verdict))),
        choices=tuple(Choice.among("reviews", number, "approved", values=[True, False]) for number in numbers),
    )


def numbers_of(calls: int) -> list[str]:
    """Return the numbers under which a review judges this many calls."""
    return [str(number) for number in range(1, calls + 1)]


def tool_of(part: str, tools: Sequence[ToolSpec]) -> str:
    """Return the name of the tool whose arguments a selection form's part describes."""
    return tools[int(part.removeprefix("tool_"))].name


def _groups(tools: Sequence[ToolSpec], groups: Sequence[str]) -> Sequence[str]:
    own = {spec.category for spec in tools if spec.category} | {spec.server for spec in tools}
    return groups if len(groups) <= MAX_GROUPS else sorted(own)


def _part(at: int) -> str:
    return f"tool_{at}"


def _way(action: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return obj(action={"const": action}, **properties)


def _list(items: dict[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}
