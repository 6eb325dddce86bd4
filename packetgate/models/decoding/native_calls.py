"""Reading the JSON answer and the calls of a model, without its thoughts and made-up tool results.

A complete call counts without its end mark, which servers often cut off as a stop word.
"""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from packetgate.models.decoding import formats
from packetgate.models.decoding.bodies import (
    CALL_KEYS,
    PREFIX,
    NativeCall,
    names_call,
    read_body,
    read_call,
    read_list,
    says_call,
)
from packetgate.models.decoding.values import THOUGHT_END, Reader, Reading, read_loose, read_strict
from packetgate.state.errors import DecisionError
from packetgate.state.printing import shorten

MAX_CHARS = 1_000_000


def decode_json(text: str) -> dict[str, Any]:
    """Return the last complete JSON object: drafts and examples come before the answer.

    Consecutive calls, in native markup or in a list, count as one object in the form
    `{"tool_calls": [{"name": ..., "arguments": {...}}]}`. JSON in the spelling of JavaScript or Python is read only if
    there is no other.

    Raises:
        DecisionError: there is no object, or its calls cannot be read.
    """
    if not text.strip():
        raise DecisionError("the answer is empty: a JSON object was expected")
    if len(text) > MAX_CHARS:
        raise DecisionError(f"the answer is longer than {MAX_CHARS:,} characters: {shorten(text)!r}")
    readings = read_answer(text, read_strict)
    problem = next((reading.problem for reading in reversed(readings) if reading.problem), "")
    values = _values(readings) or _values(read_answer(text, read_loose))
    if any(value != () for value in values):
        return _normal(values)
    raise DecisionError(f"the answer holds no complete JSON object{problem and f' ({problem})'}: {shorten(text)!r}")


def _values(readings: list[Reading]) -> list[Any]:
    return [reading.value for reading in readings if reading.value is not None]


def _normal(values: list[Any]) -> dict[str, Any]:
    if isinstance(values[-1], tuple):
        last_calls = [*takewhile(lambda value: isinstance(value, tuple), reversed(values))][::-1]
        calls = [call for one in last_calls for call in one]
        if () in last_calls[:-1] or not calls:
            raise DecisionError("a tool call of the answer cannot be read, so that none of them counts")
        return {"tool_calls": [call.as_entry() for call in calls]}
    answer: dict[str, Any] = values[-1]
    if says_call(answer) and any(value != answer and (value == () or says_call(value)) for value in values):
        raise DecisionError("the answer holds several tool calls, and text between them: write them in one list")
    if names_call(answer):
        answer = {"tool_calls": [answer]}
    if not isinstance(answer.get("tool_calls"), list):
        return answer
    try:
        return answer | {"tool_calls": [read_call(entry).as_entry() for entry in answer["tool_calls"]]}
    except ValueError as error:
        raise DecisionError(f"the tool calls of the answer cannot be read: {error}") from error


_FLAGS = re.VERBOSE | re.IGNORECASE | re.ASCII


def _any(*marks: str) -> str:
    return "|".join(re.escape(mark) for mark in marks)


_CALL_BEGIN = _any(*(one.begin for one in formats.CALLS)) + r"|<(?:tool_use|(?:tool|function)_?calls?)\s[^<>]*>"
_THOUGHT_BEGIN = (
    rf"{_any(*(one.begin for one in formats.THOUGHTS))}|<\|channel\|>\s*analysis\s*<\|message\|>"
    rf"|\A\s*{formats.GLUED.begin}(?=[^\W_])"
)
_THOUGHT = re.compile(_THOUGHT_BEGIN, _FLAGS)
_ENDS = {
    one.begin.lower(): re.compile(re.escape(one.end), re.IGNORECASE) for one in (*formats.THOUGHTS, *formats.ECHOES)
}
_ENDS |= {formats.GLUED.begin: re.compile(rf"{formats.GLUED.end}|(?=assistantcommentary\s+to=)")}
_CHANNEL_END, _NEVER = re.compile(formats.CHANNEL_END), re.compile(r"(?!)")
_MARKS = re.compile(
    rf"""(?P<thought> {_THOUGHT_BEGIN} )
  | (?P<thought_end> {THOUGHT_END} )
  | (?P<echo> {_any(*(one.begin for one in formats.ECHOES))} | (?m:^)Observation:
      | <\|start\|>[\w.]*\s+to=assistant\b
      | <<<tool\ output\ (?P<fence>[^:\n]{{1,80}}): )
  | (?P<stray> </{PREFIX}(?:parameter|invoke)> | </function> | </?(?:longcat_)?arg_(?:key|value)> )
  | (?P<frame> {_CALL_BEGIN} | <\|\s*start\ of[^|>]{{0,80}}tool\ call\s*\|> | \bfunctools(?=\[)
      | (?m:^)Action:\s*(?=```|(?:\[\s*)?\{{) | (?:{_any(*(one.begin for one in formats.BARE))})(?=\s*[\[{{]) )
  | (?P<body> <function=(?=[^<>\n]{{1,200}}>) | <{PREFIX}(?:invoke|function_call)\s
      | (?m:^)Action:[^\n]*\n\s*Action\ Input:
      | (?:(?:<\|start\|>\w*\s*)?<\|channel\|>\s*\w+|<\|start\|>\w*|\A)\s*\bto=
      | (?:\A\s*|assistant)commentary\ to= )
  | (?P<list> (?m:^)\[(?=\s*[^\W\d][\w.]{{0,199}}\() )
  | (?P<json> \{{(?!\{{) | \[(?=\s*\{{) )  # of a template's doubled brace, the inner one
    """,
    _FLAGS,
)
_GAP = re.compile(rf"(?:[\s;,]|```(?:json|python)?|<\|plugin\|>|{_CALL_BEGIN})*+", _FLAGS)
_WORD_TAGS = rf"</?(?:{'|'.join(formats.WORDS)})>"
_ENDS_OF_CALLS = _any(*(one.end for one in (*formats.CALLS, *formats.BARE)), *formats.TOKENS)
_END_MARKS = re.compile(
    rf"(?: [\s`]++ | {_ENDS_OF_CALLS} | (?!{_CALL_BEGIN}){formats.CONTROL} | {_WORD_TAGS}"
    r" | <\|\s*end\ of[^|>]{0,80}tool\ call\s*\|> )*+",
    _FLAGS,
)
_LED = re.compile(
    r"""(?: (?<![\w.])(?!json\b)[\w.]+\(? | [|\uff5c]>[\s`]*+ | <[^<>]{1,80}\sname\s?=[^<>]{1,80}>\s*+
      | <[\w:-]{0,40}(?:tool|call|func|invoke|action)[\w:-]{0,40}(?:\s[^<>]{0,80})?>\s*+ )\Z""",
    _FLAGS,
)
"""What makes JSON behind it the arguments of a call, but for the marks that are known."""
_FRAMES = (*formats.THOUGHTS, *formats.CALLS, *formats.ECHOES)
_KNOWN = re.compile(
    rf"(?:{_any(*(mark for frame in _FRAMES for mark in frame), *formats.TOKENS)}"
    rf"|{_any(*(one.end for one in formats.OPENINGS))}|{_WORD_TAGS}"
    r"|<\|(?:im_start|begin\w*|START_\w+|message|constrain|assistant|end_of_role)\|>)[`\s]*\Z",
    re.IGNORECASE,
)
_NUMBERED = re.compile(rf"(</?(?:think|tool_calls?|arg_key|arg_value)){formats.NUMBER}>")
_FENCE, _WORDS = re.compile(r"(?m:^)[ \t]*```[\w-]*[ \t]*\n\s*\Z"), re.compile(r"\s*```\s*(?=[^\s`\[{<])")
_FENCE_BEGIN = re.compile(r"\s*```[\w-]*[ \t]*\n\s*")
_LINE_END = re.compile(rf"[ \t]*(?:\n|\Z|{_any(*formats.TOKENS)}|{formats.CONTROL}|{_WORD_TAGS})")
_BETWEEN = re.compile(r"(?:[\s;,]|```(?:json)?|\band\b|\bthen\b)*+", _FLAGS)


def read_answer(text: str, read: Reader) -> list[Reading]:
    """Return everything that may be the answer, in order, broken parts included.

    A value is a dict, or a tuple of calls; the tuple is empty where marks announce a call that cannot be read.
    """

    def read_at(text: str, mark: re.Match[str]) -> Reading:
        match mark.lastgroup:
            case "frame":
                return _calls(text, mark.end())
            case "body":
                calls = _calls(text, mark.start())
                return Reading(calls.value, max(calls.end, mark.end()), calls.problem)
            case "list":
                listed = _list(text[mark.start() :].partition("\n")[0])
                return Reading(listed.value, mark.start() + listed.end) if listed else Reading(None, mark.end())
        reading = _plain(text, mark.start(), read)
        before = text[max(0, mark.start() - 200) : mark.start()]
        if reading.value is not None and _LED.search(before) and not _KNOWN.search(before):
            return Reading((), reading.end, "its tool call is in a format that is not known")
        return reading

    return _scan(_NUMBERED.sub(r"\1>", text), read_at)


def calls_in(text: str) -> tuple[NativeCall, ...]:
    """Return the calls in a text; none if one of them cannot be read."""
    found = [reading for reading in read_answer(text, read_strict) if isinstance(reading.value, tuple | dict)]
    calls: list[NativeCall] = []
    for reading in found:
        if isinstance(reading.value, tuple):
            calls += reading.value
        elif says_call(reading.value):
            try:
                calls.append(read_call(reading.value))
            except ValueError:
                return ()
    return () if any(reading.value == () for reading in found) else tuple(calls)


def begins_call(text: str) -> bool | None:
    """Whether an answer that begins so is a call; None: not clear yet.

    Models often write calls as bare or fenced JSON, whatever syntax they were shown.
    """
    fence = _FENCE_BEGIN.match(text)
    rest = text[fence.end() :] if fence else text.lstrip()
    if rest[:1] in ("{", "[", "<"):
        return True
    return None if not rest or (not fence and "```".startswith(rest[:3])) else False


def is_list_of_calls(line: str) -> bool:
    """Whether a line is a list of Pythonic calls and nothing else."""
    return _list(line) is not None


def _list(line: str) -> Reading | None:
    listed = read_list(line, 0)
    return listed if listed and _LINE_END.match(line, listed.end) else None


def _scan(text: str, read_at: Callable[[str, re.Match[str]], Reading]) -> list[Reading]:
    found: list[Reading] = []
    at = 0
    while mark := _MARKS.search(text, at):
        match mark.lastgroup:
            case "thought" | "echo":
                end = _end_of(mark).search(text, mark.end())
                if end is None:
                    return found + (_last_thing(text, read_at) if mark.lastgroup == "thought" else [])
                at = end.end()
            case "thought_end":
                found.clear()
                at = mark.end()
            case "stray":
                if any(isinstance(reading.value, tuple) for reading in found):
                    return [Reading((), len(text), "its tool call holds tags that end it too early")]
                at = mark.end()
            case _:
                found.append(_unless_example(text, mark.start(), read_at(text, mark)))
                at = found[-1].end
    return found


def _unless_example(text: str, at: int, reading: Reading) -> Reading:
    is_call = isinstance(reading.value, tuple) or says_call(reading.value)
    if not is_call or not _FENCE.search(text, max(0, at - 80), at):
        return reading
    end = len(text[: reading.end].rstrip("` \t\r\n"))
    return Reading((), reading.end, "it may be an example: words follow it") if _WORDS.match(text, end) else reading


def _end_of(mark: re.Match[str]) -> re.Pattern[str]:
    if mark["fence"] is not None:
        return re.compile(re.escape(f"<<<end of tool output {mark['fence']}>>>"), re.IGNORECASE)
    if mark.lastgroup == "thought":
        return _ENDS.get(mark[0].lower(), _CHANNEL_END)
    return _ENDS.get(mark[0].lower(), _NEVER)


def _last_thing(text: str, read_at: Callable[[str, re.Match[str]], Reading]) -> list[Reading]:
    *_, opening = _THOUGHT.finditer(text)
    thought = text[opening.end() :].rstrip("` \t\r\n")
    last = _scan(thought, read_at)[-1:]
    if last and last[0].value and last[0].end == len(thought):
        return last
    return [Reading(None, len(text), "it breaks off while it is still thinking")]


def _plain(text: str, at: int, read: Reader) -> Reading:
    reading = read(text, at)
    if reading.value is None:
        return reading
    if isinstance(reading.value, list) and not all(map(says_call, reading.value)):
        alone = reading.value[0] if len(reading.value) == 1 and isinstance(reading.value[0], dict) else None
        problem = "" if alone is not None else "it is a list, but not one of tool calls only"
        return Reading(alone, reading.end, problem)
    entries, end = [], reading.end
    while isinstance(reading.value, list) or says_call(reading.value):
        entries += reading.value if isinstance(reading.value, list) else [reading.value]
        end, following = reading.end, _after(_BETWEEN, text, reading.end)
        if not text.startswith(("{", "["), following):
            break
        reading = read(text, following)
    if len(entries) < 2:
        return Reading(entries[0] if entries else reading.value, end)
    try:
        return Reading(tuple(map(read_call, entries)), end)
    except ValueError as error:
        return Reading((), end, str(error))


def _calls(text: str, at: int) -> Reading:
    calls: list[NativeCall] = []
    end = at
    while (body := read_body(text, _after(_GAP, text, end))) is not None:
        if isinstance(body.value, dict):
            if calls:
                break  # a plain answer
            names_tool = body.value.keys() & {*CALL_KEYS["name"]}
            return Reading((), body.end, body.problem) if names_tool else Reading(None, at, body.problem)
        if not body.value:
            if body.end < 0:
                return Reading((), len(text), body.problem)
            return Reading(tuple(calls), body.end, body.problem)
        calls += body.value
        end = body.end
    if not calls:
        return Reading((), _after(_GAP, text, at), "its tool call is no JSON that names a tool")
    return Reading(tuple(calls), _after(_END_MARKS, text, end))


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
