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
    re.compile(r"<\uff5ctool\u2581calls?\u2581begin\uff5c>.*?(?:<\uff5ctool\u2581calls\u2581end\uff5c>|\Z)", re.DOTALL),
    re.compile(r"\[TOOL_CALLS\].*?(?:\[/TOOL_CALLS\]|\Z)", re.DOTALL),
)
# Some chat templates open the thought themselves, so that only its end is in the text.
_THOUGHT_UP_TO_HERE = re.compile(r"\A.*?</(?:think|thinking|reasoning)>(?=\s*\S)", re.IGNORECASE | re.DOTALL)
_STRAY = re.compile(
    r"<\|[^|>\n]*(?:tool|python_tag|eom_id|eot_id)[^|>\n]*\|>|</?(?:tool_call|function_call|tool_response|tool_use|invoke|think|thinking|reasoning)>",
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
    """Cut every piece of tool markup out of `text`, and what cutting uncovers."""
    count = 0
    while True:
        text, found = _cut(text)
        if not found:
            return Cleaned(re.sub(r"\n{3,}", "\n\n", text).strip() if count else text.strip(), count)
        count += found


def _cut(text: str) -> tuple[str, int]:
    """Cut once, stray marks only where no block is left; return what remains, and how many pieces went."""
    count = 0
    for pattern in (*_BLOCKS, _THOUGHT_UP_TO_HERE):
        text, found = pattern.subn("", text)
        count += found
    if not count:
        text, count = _STRAY.subn("", text)

    def fenced(match: re.Match[str]) -> str:
        nonlocal count
        if match[1].lower().startswith("tool") or _is_pseudo_call(match[2]):
            count += 1
            return ""
        return match[0]

    text = _FENCE.sub(fenced, text)
    return ("", count + 1) if _is_pseudo_call(text) else (text, count)


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
