"""Parse the tool calls in a model's output, without thoughts and invented tool results.

A complete call needs no end mark, because servers often cut it off as a stop word. A call ends where its JSON ends, not
at the next mark, because strings may contain marks.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from packetgate.models.json_text import THOUGHT_BEGIN, THOUGHT_END, JsonReading, read_json_at, whole_json
from packetgate.tools.text.nearly_json import read_arguments, read_nearly_json


class Frame(NamedTuple):
    """The begin mark and end mark of a section of model output."""

    begin: str
    end: str


def any_of(*marks: str) -> str:
    """Return a regular expression that matches any of these texts, the longest first."""
    return "|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True))


THOUGHTS = (
    Frame("<think>", "</think>"),  # Qwen, DeepSeek, Granite, Phi, Hermes, Nemotron
    Frame("<thinking>", "</thinking>"),
    Frame("<thought>", "</thought>"),
    Frame("<reasoning>", "</reasoning>"),
    Frame("[THINK]", "[/THINK]"),  # Mistral
    Frame("<|channel>", "<channel|>"),  # Gemma 4
)
CALLS = (
    Frame("<tool_call>", "</tool_call>"),  # Hermes, Qwen, Granite 4
    Frame("<tool_calls>", "</tool_calls>"),
    Frame("<function_call>", "</function_call>"),
    Frame("<function_calls>", "</function_calls>"),
    Frame("<|tool_call|>", "<|/tool_call|>"),  # Granite 3, Phi 4
    Frame("<|python_tag|>", "<|eom_id|>"),  # Llama 3
    Frame("<|python_start|>", "<|python_end|>"),  # Llama 4
    Frame("<|tool_call_start|>", "<|tool_call_end|>"),  # LFM 2
    Frame("[TOOL_CALLS]", "[/TOOL_CALLS]"),  # Mistral
    Frame("```tool_code\n", "```"),  # Gemma 3
    Frame("<start_function_call>", "<end_function_call>"),  # FunctionGemma
    Frame("<|tool_call>", "<tool_call|>"),  # Gemma 4
    Frame("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),  # DeepSeek V3
    Frame("<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"),
)

ECHOES = (
    Frame("<tool_response>", "</tool_response>"),
    Frame("<start_function_response>", "<end_function_response>"),
    Frame("<|tool_response>", "<tool_response|>"),
    Frame("<|header_start|>", "<|header_end|>"),  # Llama 4
    Frame("<|start_header_id|>", "<|end_header_id|>"),  # Llama 3
)
"""Tool results and turn headers that a model invents."""

CHANNEL = r"<\|(?:start|channel)\|>"
"""gpt-oss: begins a header, which `<|message|>` ends. `analysis` marks a thought, `to=` a call."""
HEADER_END = "<|message|>"
CHANNEL_END = r"<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|(?:start|channel)\|>)"

CONTROL = r"<[|\uff5c][^|\uff5c<>\n]{1,100}[|\uff5c]>|</s>|<(?:start|end)_of_turn>|<\|?turn\|?>"
"""Pattern of a control token of a chat template."""

CALL_KEYS = {
    "name": ("name", "tool", "tool_name", "selected_tool", "function_name", "function"),
    "arguments": ("arguments", "params", "parameters", "args", "input"),
}
_OTHER_KEYS = frozenset({*CALL_KEYS["name"], "id", "type", "index", "call_id", "tool_call_id"})
"""Keys that a call without arguments may have."""


@dataclass(frozen=True)
class WrittenCall:
    """A call as a model wrote it, with the probabilities of its name and arguments."""

    name: str
    arguments: dict[str, Any]
    name_probability: float | None = None
    """Probability of this name among the offered names; None: not measured."""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Probability of each argument's written value: the product over the value's tokens."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The original text of each argument that was parsed from untyped text into another type."""
    invalid_arguments: str = ""
    """The text that the model wrote as arguments, if it is not a JSON object."""


def calls_in(text: str, *, if_clear: bool = False) -> tuple[WrittenCall, ...]:
    """Return the calls in a text; none if any of them cannot be parsed.

    Args:
        if_clear: return calls only if marks of a call's syntax surround one, or if calls are the whole text.
    """
    readings = read_answer(text)
    if if_clear and not (any(one.is_marked for one in readings) or (begins_call(text) and is_only_calls(text))):
        return ()
    calls: list[WrittenCall] = []
    for reading in readings:
        if reading.value == ():
            return ()
        if isinstance(reading.value, tuple):
            calls += reading.value
            continue
        entries = (reading.value or {}).get("tool_calls")
        if not isinstance(entries, list):
            entries = [reading.value] if looks_like_call(reading.value) else []
        try:
            calls += map(_call, entries)
        except ValueError:
            return ()
    return tuple(calls)


def unread_problem(text: str) -> str:
    """Return why the last unparsable JSON or call in a text cannot be parsed; empty if there is none."""
    return next((one.problem for one in reversed(read_answer(text)) if one.problem), "")


def names_unread_call(text: str, names: Iterable[str]) -> bool:
    """Return whether a text contains JSON that cannot be parsed, and one of these tools' names in quotes."""
    return any(one.value is None for one in read_answer(text)) and any(f'"{name}"' in text for name in names)


def begins_call(text: str) -> bool | None:
    """Whether an answer that begins with this text is a call; None: not clear yet.

    Models often write calls as bare or fenced JSON, regardless of the syntax in the prompt.
    """
    fence = _FENCE_BEGIN.match(text)
    rest = text[fence.end() :] if fence else text.lstrip()
    if rest[:1] in ("{", "[", "<"):
        return True
    return None if not rest or (not fence and "```".startswith(rest[:3])) else False


def _call_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `name` and the `arguments` of an object, under any of the known key names.

    Arguments in a string are decoded; null and the empty string mean no arguments.

    Raise ValueError if a field has two different values, the string is not a JSON object, unknown keys may be
    arguments, or the object defines a tool.
    """
    places = _places(entry)
    if any(map(_is_definition, places)):
        raise ValueError("the object defines a tool instead of calling a tool")
    fields: dict[str, Any] = {}
    for part, keys in CALL_KEYS.items():
        given = [place[key] for place in places for key in keys if key in place and place[key] is not places[-1]]
        if any(value != given[0] for value in given):
            raise ValueError(f"a tool call has two different values for {part}")
        if given:
            fields[part] = given[0]
    if "arguments" in fields:
        arguments = fields["arguments"]
        if isinstance(arguments, str):
            arguments = read_arguments(arguments)
        fields["arguments"] = {} if arguments is None else arguments
    elif isinstance(fields.get("name"), str):
        unread = [key for place in places for key in place if key not in _OTHER_KEYS]
        if unread:
            raise ValueError(f"a tool call has no arguments, only the unknown field {unread[0][:60]!r}")
    return fields


def looks_like_call(entry: object) -> bool:
    """Whether a JSON value without call marks has the fields of a call."""
    if not isinstance(entry, Mapping):
        return False
    places = _places(entry)
    keys = {key for place in places for key in place}
    return all(keys & {*names} for names in CALL_KEYS.values()) and not any(map(_is_definition, places))


def is_only_calls(text: str) -> bool:
    """Whether a text contains only calls, or an object with `tool_calls`."""
    text = text.strip()
    readings = read_answer(text)
    if len(readings) != 1 or text[readings[0].end :].strip("`\n"):
        return False
    value = readings[0].value
    if isinstance(value, tuple):
        return bool(value)
    return isinstance(value, dict) and (looks_like_call(value) or isinstance(value.get("tool_calls"), list))


def _places(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    inner = entry.get("function")
    return [entry, inner] if isinstance(inner, Mapping) else [entry]


def _is_definition(place: Mapping[str, Any]) -> bool:
    schema = place.get("parameters")
    return isinstance(schema, Mapping) and schema.get("type") == "object" and "properties" in schema


def _call(entry: object) -> WrittenCall:
    if not isinstance(entry, Mapping):
        raise ValueError("a tool call must be a JSON object")  # noqa: TRY004
    fields = _call_fields(entry)
    name, arguments = fields.get("name"), fields.get("arguments", {})
    if not isinstance(name, str) or not name.strip():
        raise ValueError("a tool call has no tool name")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {name[:60]!r} are not a JSON object")  # noqa: TRY004
    return WrittenCall(name.strip(), arguments)


_FLAGS = re.VERBOSE | re.IGNORECASE | re.ASCII
_NAME = r"(?P<name>[\w.:/@-]{1,200}?)"
_CALL_BEGIN = (
    rf"{any_of(*(one.begin for one in CALLS))}|<(?:tool|function)_calls?\s[^<>]*>"
    r"|<\|\s*start\ of[^|>]{0,80}tool\ call\s*\|>"
)
_HEADER = r"(?:<\|start\|>\w*\s*)?(?:<\|channel\|>\s*\w+)?\s*\bto=(?!(?:assistant|user)\b)"
_MARKS = re.compile(
    rf"""(?P<thought> {THOUGHT_BEGIN} | <\|channel\|>\s*analysis\s*<\|message\|> )
  | (?P<thought_end> {THOUGHT_END} )
  | (?P<echo> {any_of(*(one.begin for one in ECHOES))} | <\|start\|>[\w.]+\s+to=assistant\b
      | <<<tool\ output\ (?P<fence>[^:\n]{{1,80}}): )
  | (?P<stray> </parameter> | </function> )
  | (?P<frame> {_CALL_BEGIN} )
  | (?P<body> <function=(?=[^<>\n]{{1,200}}>) | {_HEADER} )
  | (?P<json> \{{(?!\{{) | \[(?=\s*\{{) )  # the inner of two braces, which a template doubles
    """,
    _FLAGS,
)
_ECHO_ENDS = {one.begin.lower(): re.compile(re.escape(one.end), re.IGNORECASE) for one in ECHOES}
_THOUGHT_END, _CHANNEL_END = re.compile(THOUGHT_END, re.IGNORECASE), re.compile(CHANNEL_END)
_NEVER = re.compile(r"(?!)")
_GAP = re.compile(rf"(?:[\s;,]|```(?:json|python)?|{_CALL_BEGIN})*+", _FLAGS)
_END_MARKS = re.compile(
    rf"(?:[\s`]++|{any_of(*(one.end for one in CALLS))}|<\|\s*end\ of[^|>]{{0,80}}tool\ call\s*\|>"
    rf"|(?!{_CALL_BEGIN})(?:{CONTROL}))*+",
    _FLAGS,
)
_ARGUMENT_OF = re.compile(
    r"""(?: (?<![\w.])(?!json\b)[\w.]+\(?
      | <[|\uff5c](?!/|[^|\uff5c]*end)[^|\uff5c<>]{0,60}(?:tool|call|arg)[^|\uff5c<>]{0,60}[|\uff5c]>\s*+
      | <(?!end)[\w:-]{0,40}(?:tool|call|func|invoke|action)[\w:-]{0,40}(?:\s[^<>]{0,80})?>\s*+ )\Z""",
    _FLAGS,
)
"""Pattern of text that marks the following JSON as the arguments of a call in an unknown format."""
_FENCE, _WORDS_AFTER = re.compile(r"(?m:^)[ \t]*```[\w-]*[ \t]*\n\s*\Z"), re.compile(r"\s*```\s*(?=[^\s`\[{<])")
_FENCE_BEGIN = re.compile(r"\s*```[\w-]*[ \t]*\n\s*")
_BETWEEN = re.compile(r"(?:[\s;,]|```(?:json)?|\band\b|\bthen\b)*+", re.IGNORECASE)


def read_answer(text: str) -> list[JsonReading]:
    """Return all values that may be the answer, in order, including invalid values.

    A value is a dict or a tuple of calls. An empty tuple means a call that cannot be parsed.
    """
    readings: list[JsonReading] = []
    at = 0
    while mark := _MARKS.search(text, at):
        kind = mark.lastgroup
        if kind in {"thought", "echo", "fence"}:
            end = _end_of(mark).search(text, mark.end())
            if end is None:
                broken = JsonReading(None, len(text), "the answer breaks off within a thought")
                return [*readings, broken] if kind == "thought" else readings
            at = end.end()
        elif kind == "thought_end":  # the chat template opened the thought
            readings.clear()
            at = mark.end()
        elif kind == "stray":
            if any(isinstance(reading.value, tuple) for reading in readings):
                return [JsonReading((), len(text), "a tool call contains tags that end the call too early")]
            at = mark.end()
        else:
            is_marked = kind != "json"
            reading = replace(_calls(text, mark) if is_marked else _plain(text, mark.start()), is_marked=is_marked)
            readings.append(_unless_example(text, mark.start(), reading))
            at = max(reading.end, mark.end())
    return readings


def _end_of(mark: re.Match[str]) -> re.Pattern[str]:
    if mark["fence"] is not None:
        return re.compile(re.escape(f"<<<end of tool output {mark['fence']}>>>"), re.IGNORECASE)
    if mark.lastgroup == "echo":
        return _ECHO_ENDS.get(mark[0].lower(), _NEVER)
    return _CHANNEL_END if mark[0].startswith(("<|channel|>", "<|CHANNEL|>")) else _THOUGHT_END


def _unless_example(text: str, at: int, reading: JsonReading) -> JsonReading:
    is_call = isinstance(reading.value, tuple) or looks_like_call(reading.value)
    if not is_call or not _FENCE.search(text, max(0, at - 80), at):
        return reading
    end = len(text[: reading.end].rstrip("` \t\r\n"))
    if _WORDS_AFTER.match(text, end):
        return JsonReading((), reading.end, "the tool call may be an example, because text follows it")
    return reading


def _plain(text: str, at: int) -> JsonReading:
    """Read JSON without call marks: an object, a list of calls, or consecutive calls."""
    reading = read_json_at(text, at)
    if reading.value is not None and _ARGUMENT_OF.search(text[max(0, at - 200) : at]):
        return JsonReading((), reading.end, "the format of the tool call is unknown")
    if isinstance(reading.value, list) and not all(map(looks_like_call, reading.value)):
        alone = reading.value[0] if len(reading.value) == 1 and isinstance(reading.value[0], dict) else None
        return JsonReading(alone, reading.end, "" if alone else "the list contains values that are not tool calls")
    entries: list[Any] = []
    while isinstance(reading.value, list) or looks_like_call(reading.value):
        entries += reading.value if isinstance(reading.value, list) else [reading.value]
        end, following = reading.end, _after(_BETWEEN, text, reading.end)
        if not text.startswith(("{", "["), following):
            break
        reading = read_json_at(text, following)
    if len(entries) < 2:
        return JsonReading(entries[0], end) if entries else reading
    return _entries(entries, end)


def _entries(entries: list[Any], end: int) -> JsonReading:
    try:
        return JsonReading(tuple(map(_call, entries)), end)
    except ValueError as error:
        return JsonReading((), end, str(error))


def _calls(text: str, mark: re.Match[str]) -> JsonReading:
    """Read the consecutive calls after a mark; each call may have any syntax."""
    calls: list[WrittenCall] = []
    end = mark.end() if mark.lastgroup == "frame" else mark.start()
    while (body := _body(text, _after(_GAP, text, end))) is not None:
        if isinstance(body.value, dict):  # not a call
            return JsonReading(tuple(calls), end) if calls else body
        if not body.value:
            is_open = body.end < 0
            return JsonReading(() if is_open else tuple(calls), len(text) if is_open else body.end, body.problem)
        calls += body.value
        end = body.end
    if not calls:
        return JsonReading((), _after(_GAP, text, end), "the tool call is not JSON with a tool name")
    return JsonReading(tuple(calls), _after(_END_MARKS, text, end))


_TAGGED = re.compile(r"<function=[\"']?(?P<name>[^<>\"'\n]{1,200}?)[\"']?>\s*", re.IGNORECASE)
_FUNCTION_END = re.compile(r"\s*</function>", re.IGNORECASE)
_NAMED = tuple(
    re.compile(rf"{head} \s*+ (?:```(?:json)?\s*)? (?=\{{)", _FLAGS)
    for head in (
        rf"{_NAME}(?:\[CALL_ID\][\w-]{{1,80}})?\[ARGS\]",  # Mistral
        rf"(?:function<\uff5ctool\u2581sep\uff5c>)?{_NAME}(?:<\uff5ctool\u2581sep\uff5c>|\n)",  # DeepSeek V3
        rf"{_HEADER}(?:functions\.)?{_NAME}(?=[\s<])(?:\s|<\|(?:channel|constrain)\|>|\w)*+<\|message\|>",  # gpt-oss
    )
)
_PARAMETER = re.compile(
    r"\s*<parameter=[\"']?(?P<key>[^<>\"'\n]{1,200}?)[\"']?>(?P<value>.*?)</parameter>\s*", re.DOTALL | re.IGNORECASE
)


def _body(text: str, at: int) -> JsonReading | None:
    """Read calls at a position; None if there are none.

    The value is a tuple of calls, which is empty if the calls cannot be parsed, or a dict that is not a call. A
    negative end means that the end is unknown.
    """
    if found := _TAGGED.match(text, at):
        if not text.startswith("{", found.end()):
            return _parameters(found["name"], text, found.end())
        arguments = read_json_at(text, found.end(), read_nearly_json)
        return _named(found["name"], JsonReading(arguments.value, _after(_FUNCTION_END, text, arguments.end)))
    for head in _NAMED:
        if found := head.match(text, at):
            return _named(found["name"], read_json_at(text, found.end(), read_nearly_json))
    if not text.startswith(("{", "["), at):
        return None
    reading = read_json_at(text, at, read_nearly_json)
    if reading.value is None:
        return JsonReading((), reading.end, reading.problem)
    calls = _entries(reading.value if isinstance(reading.value, list) else [reading.value], reading.end)
    is_call = calls.value or not isinstance(reading.value, dict) or reading.value.keys() & {*CALL_KEYS["name"]}
    return calls if is_call else JsonReading(reading.value, reading.end, calls.problem)


def _named(name: str, arguments: JsonReading) -> JsonReading:
    if not isinstance(arguments.value, dict):
        return JsonReading((), -1, arguments.problem or "the arguments of the tool call are not a JSON object")
    return JsonReading((WrittenCall(name.strip(), arguments.value),), arguments.end)


def _parameters(name: str, text: str, at: int) -> JsonReading:
    """Read parameters in tags up to the tag that ends the call. The format has no way to quote a tag."""
    arguments: dict[str, Any] = {}
    written: dict[str, str] = {}
    while found := _PARAMETER.match(text, at):
        key, value = found["key"].strip(), found["value"].removeprefix("\n").removesuffix("\n")
        if key in arguments or re.search(r"<parameter[=\s]", value):
            return JsonReading((), -1, "the parameters of the tool call are not well formed")
        try:  # a number, boolean, list or object; any other text stays
            arguments[key] = whole_json(value)
        except ValueError:
            arguments[key] = value
        if isinstance(arguments[key], str):
            arguments[key] = value
        else:
            written[key] = value
        at = found.end()
    closing = _FUNCTION_END.match(text, at)
    if not closing:
        return JsonReading((), -1, "the tool call breaks off, or its parameters are not well formed")
    return JsonReading((WrittenCall(name.strip(), arguments, written=written),), closing.end())


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
