"""Tool calls in the markup that models were trained to write, each family's brought into the same plain form.

JSON after a mark: Hermes and Qwen `<tool_call>`, Llama 3 `<|python_tag|>`, Mistral `[TOOL_CALLS]`, Granite and Phi
`<|tool_call|>`, GAIA `<|Start of ... Tool Call|>`. A name in the mark, then the arguments: Llama 3 and Qwen 3 Coder
`<function=name>`, newer Mistral `[TOOL_CALLS]name[ARGS]`, and DeepSeek. A call whose JSON is whole counts without its
end mark too, which servers often cut off as a stop word.
"""

import re
from collections.abc import Callable
from typing import Any

from models.decoding.call_forms import NativeCall, read_call, says_call
from models.decoding.values import THOUGHT_END, Reader, Reading, whole_value

_THOUGHT_BEGIN = r"<(?:think|thinking|reasoning)>|\[THINK\]"

_ASIDES = rf"""
    (?P<thought> {_THOUGHT_BEGIN} )
  | (?P<thought_end> {THOUGHT_END} )
  | (?P<echo> <tool_response> | <<<tool\ output\ (?P<fence>[^:\n]{{1,80}}): )
"""
"""What begins or ends what is not the answer: a thought, or an echo of what a tool returned."""
_FLAGS = re.VERBOSE | re.IGNORECASE | re.ASCII

_THOUGHT = re.compile(_THOUGHT_BEGIN, _FLAGS)

_MARKS = re.compile(
    rf"""{_ASIDES}
  | (?P<json> \{{(?!\{{) | \[(?=\s*\{{) )  # of a template's doubled brace, the inner one
  | (?P<named>
        <function=(?P<function>[^<>\n]{{1,200}})>
      | \[TOOL_CALLS\] \s*+ (?P<mistral>[^\[\]{{}}\n]{{1,200}}) (?:\[CALL_ID\][^\[\]{{}}\n]{{1,80}})? \[ARGS\]
      | <\uff5ctool\u2581call\u2581begin\uff5c> (?:function<\uff5ctool\u2581sep\uff5c>)?
        (?P<deepseek>[^<>\n]{{1,200}}) (?:<\uff5ctool\u2581sep\uff5c>|\n)
    )
  | (?P<unnamed>
        <tool_call> | <function_?call> | <\|tool_call\|> | <\|python_tag\|> | \[TOOL_CALLS\]
      | <\|\s*start\ of[^|>]{{0,80}}tool\ call\s*\|>
    )
    """,
    _FLAGS,
)
_GAP = re.compile(r"(?:[\s;,]|```(?:json)?)*+", _FLAGS)
_END_MARKS = re.compile(
    r"""(?: [\s`]++ | </(?:tool_call|function_?call|function)> | <\|/tool_call\|> | \[/TOOL_CALLS\]
      | <\|eo[mt]_id\|> | <\|\s*end\ of[^|>]{0,80}tool\ call\s*\|> | <\uff5ctool\u2581calls?\u2581end\uff5c> )*+""",
    _FLAGS,
)
_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]{1,200})>\n?(.*?)\n?</parameter>\s*", re.DOTALL)


def read_answer(text: str, read: Reader) -> list[Reading]:
    """Return all that could be the answer, in order, the broken included.

    A value is a dict, or a tuple of calls where they came in native markup or as a list of several.
    """

    def read_at(text: str, mark: re.Match[str]) -> Reading:
        match mark.lastgroup:
            case "unnamed":
                return _calls(text, mark.end(), read)
            case "named":
                return _named_call(text, mark, read)
        return _plain(read(text, mark.start()))

    return _scan(text, _MARKS, read_at)


def _scan(text: str, marks: re.Pattern[str], read_at: Callable[[str, re.Match[str]], Reading]) -> list[Reading]:
    """Return what `read_at` makes of every mark outside asides, in order, the broken included.

    A thought holds drafts, not answers, so what stands in one, or before the end of one whose beginning the chat
    template wrote, does not count. A thought that never ends was either cut off or its end forgotten: a thing counts
    there only as the very last of the text. An echo that never ends holds no answer.
    """
    found: list[Reading] = []
    at = 0
    while mark := marks.search(text, at):
        match mark.lastgroup:
            case "thought" | "echo":
                end = _end_of(mark).search(text, mark.end())
                if end is None:
                    return found + (_last_thing(text, marks, read_at) if mark.lastgroup == "thought" else [])
                at = end.end()
            case "thought_end":
                found.clear()
                at = mark.end()
            case _:
                found.append(read_at(text, mark))
                at = found[-1].end
    return found


def _end_of(mark: re.Match[str]) -> re.Pattern[str]:
    """Return what ends the aside. A tool's text may hold ends too, but not its fence's id."""
    if mark["fence"] is not None:
        return re.compile(re.escape(f"<<<end of tool output {mark['fence']}>>>"), re.IGNORECASE)
    return re.compile(re.escape(f"{mark[0][0]}/{mark[0][1:]}"), re.IGNORECASE)


def _last_thing(text: str, marks: re.Pattern[str], read_at: Callable[[str, re.Match[str]], Reading]) -> list[Reading]:
    """Return what a thought that never ends has for its last thing."""
    *_, opening = _THOUGHT.finditer(text)
    thought = text[opening.end() :].rstrip("` \t\r\n")
    last = _scan(thought, marks, read_at)[-1:]
    if last and last[0].value is not None and last[0].end == len(thought):
        return last
    return [Reading(None, len(text), "it breaks off while it is still thinking")]


def _plain(reading: Reading) -> Reading:
    """Of a list, take its one element, or its elements where all of them are calls."""
    if not isinstance(reading.value, list):
        return reading
    if len(reading.value) == 1 and isinstance(reading.value[0], dict):
        return Reading(reading.value[0], reading.end)
    calls = _as_calls(reading.value) if all(map(says_call, reading.value)) else None
    return Reading(calls, reading.end, "" if calls else "it is a list, but not one of tool calls only")


def _calls(text: str, at: int, read: Reader) -> Reading:
    """Read the calls behind a mark: in a list, or one object after the other."""
    calls: list[NativeCall] = []
    end = at
    while text.startswith(("{", "["), _after(_GAP, text, end)):
        reading = read(text, _after(_GAP, text, end))
        if reading.value is None:
            return Reading(tuple(calls) or None, reading.end, reading.problem)
        more = _as_calls(reading.value if isinstance(reading.value, list) else [reading.value])
        if more is None:
            break  # a plain answer
        calls += more
        end = reading.end
    if not calls:
        return Reading(None, at, "its tool call is no JSON that names a tool")
    return Reading(tuple(calls), _after(_END_MARKS, text, end))


def _named_call(text: str, mark: re.Match[str], read: Reader) -> Reading:
    start = _after(_GAP, text, mark.end())
    if text.startswith("{", start):
        arguments = read(text, start)
    elif mark["function"]:
        arguments = _parameters(text, mark.end())
    else:
        arguments = Reading(None, mark.end(), "its tool call has no arguments")
    if arguments.value is None:
        return arguments
    name = (mark["function"] or mark["mistral"] or mark["deepseek"]).strip()
    return Reading((NativeCall(name, arguments.value),), _after(_END_MARKS, text, arguments.end))


def _parameters(text: str, at: int) -> Reading:
    """Read `<parameter=name>value</parameter>` as often as it comes, up to `</function>`."""
    stop = text.find("</function>", at)
    if stop == -1:
        return Reading(None, len(text), "it breaks off in the middle of a tool call")
    arguments: dict[str, Any] = {}
    while parameter := _PARAMETER.match(text, at, stop):
        name, value = parameter.groups()
        if name in arguments or "<parameter=" in value:
            break
        arguments[name] = _typed(value)
        at = parameter.end()
    if text[at:stop].strip():
        return Reading(None, stop, "the parameters of its tool call are not well formed")
    return Reading(arguments, stop)


def _typed(written: str) -> Any:
    """Return a number, a truth value, a list or an object as such, all else as text: nothing tells the type."""
    try:
        value = whole_value(written)
    except ValueError:
        return written
    return written if isinstance(value, str) else value


def _as_calls(entries: list[Any]) -> tuple[NativeCall, ...] | None:
    try:
        return tuple(map(read_call, entries)) or None
    except ValueError:
        return None


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
