"""Tool markup that models let slip into text: found, cut out, counted. Done when reading history and when answering."""

import json
import re
from dataclasses import dataclass

_BLOCKS = (
    # A block runs to its end mark, or to the end of the text when the model never closed it.
    re.compile(
        r"<\|\s*start of[^|>]*tool call\s*\|>.*?(?:<\|\s*end of[^|>]*tool call\s*\|>|\Z)", re.IGNORECASE | re.DOTALL
    ),
    re.compile(
        r"<(tool_call|function_call|tool_response|tool_use|invoke)\b[^>]*>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL
    ),
    re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"<function=[^>]*>.*?(?:</function>|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"<\|python_tag\|>.*?(?:<\|eom_id\|>|<\|eot_id\|>|\Z)", re.DOTALL),
    re.compile(r"\[TOOL_CALLS\].*?(?:\[/TOOL_CALLS\]|\Z)", re.DOTALL),
)
_STRAY = re.compile(
    r"<\|[^|>\n]*(?:tool|python_tag|eom_id|eot_id)[^|>\n]*\|>|</?(?:tool_call|function_call|tool_response|tool_use|think|thinking)>",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[ \t]*(\w*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)

_NAME_KEYS = frozenset({"tool", "tool_name", "selected_tool", "name", "function"})
_ARGUMENT_KEYS = frozenset({"params", "parameters", "arguments", "args", "input"})


@dataclass(frozen=True)
class Cleaned:
    """Text without tool markup, and how many pieces had to go."""

    text: str
    violations: int


def strip_markup(text: str) -> Cleaned:
    """Cut every piece of tool markup out of `text`."""
    count = 0
    for pattern in (*_BLOCKS, _STRAY):
        text, found = pattern.subn("", text)
        count += found
    pseudo = 0

    def fenced(match: re.Match[str]) -> str:
        nonlocal pseudo
        if match[1].lower().startswith("tool") or _is_pseudo_call(match[2]):
            pseudo += 1
            return ""
        return match[0]

    text = _FENCE.sub(fenced, text)
    if _is_pseudo_call(text):
        return Cleaned("", count + pseudo + 1)
    cut = count + pseudo
    return Cleaned(re.sub(r"\n{3,}", "\n\n", text).strip() if cut else text.strip(), cut)


def _is_pseudo_call(text: str) -> bool:
    """Whether the whole of `text` is a JSON object, or a list of them, that reads like a tool call."""
    try:
        value = json.loads(text.strip())
    except (ValueError, RecursionError):
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(
        isinstance(call, dict) and bool(_NAME_KEYS & call.keys()) and bool(_ARGUMENT_KEYS & call.keys())
        for call in calls
    )
