"""The syntaxes of tool calls between their marks, all parsed into one plain form.

The beginning shows the syntax: JSON that names the tool, or a name and arguments as JSON, in tags, or in the manner of
Python or Gemma. A call is read to its own end, not to the next mark, because strings may quote marks.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from packetgate.models.decoding.values import (
    Reading,
    once_decoded,
    read_loose,
    read_spelled,
    read_strict,
    whole_object,
    whole_value,
)

CALL_KEYS = {
    "name": ("name", "tool", "tool_name", "selected_tool", "function_name", "function"),
    "arguments": ("arguments", "params", "parameters", "args", "input"),
}

_WRAPPERS = ("function", "functionCall", "function_call")
_LANGCHAIN = {"action": "name", "action_input": "arguments"}

_BESIDE = frozenset(
    {
        *CALL_KEYS["name"],
        *("id", "type", "index", "call_id", "tool_call_id", "functionCall", "function_call"),
        *("action", "question", "tools", "alternatives", "reasoning", "confidence"),
    }
)
"""Keys that a call without arguments, or an answer in our own form, may have."""


@dataclass(frozen=True)
class NativeCall:
    """A tool call as a model wrote it; nothing in it is checked."""

    name: str
    arguments: dict[str, Any]
    written: dict[str, str] = field(default_factory=dict, compare=False)
    """The text of arguments that were written without a type, where it was read as more than a text."""

    def as_entry(self) -> dict[str, Any]:
        """Return the call as a JSON object."""
        return {name: value for name, value in asdict(self).items() if value or name != "written"}


def call_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `name` and the `arguments` of an object, under whichever keys it has them.

    Arguments in a string are decoded; null and the empty string mean none.

    Raises:
        ValueError: one is given twice and differently, the string holds no JSON object, other keys may be
            arguments, or the object defines a tool.
    """
    places = _places(entry)
    if any(map(_is_definition, places)):
        raise ValueError("it defines a tool, and calls none")
    fields: dict[str, Any] = {}
    for part, keys in CALL_KEYS.items():
        given = [
            (key, place[key])
            for place in places
            for key in keys
            if key in place and not (key == "function" and len(places) > 1)
        ]
        if any(value != given[0][1] for _, value in given):
            raise ValueError(f"one call gives its {part} twice, and differently: {', '.join(key for key, _ in given)}")
        if given:
            fields[part] = given[0][1]
    if "arguments" in fields:
        fields["arguments"] = _decoded(fields["arguments"])
    elif isinstance(fields.get("name"), str):
        unread = [key for place in places for key in place if key not in _BESIDE]
        if unread:
            raise ValueError(f"a tool call has no arguments, but {unread[0][:60]!r}")
    return fields


def read_call(entry: object) -> NativeCall:
    """Read a call in any of its plain forms.

    Raises:
        ValueError: it is no call.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("a tool call must be a JSON object")  # noqa: TRY004  one error for all that is no call
    fields = call_fields(entry)
    name, arguments = fields.get("name"), fields.get("arguments", {})
    if not isinstance(name, str) or not name.strip():
        raise ValueError("a tool call names no tool")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {name[:60]!r} are no JSON object")  # noqa: TRY004
    return NativeCall(name.strip(), arguments)


def says_call(entry: object) -> bool:
    """Whether a value looks like a call without marks around it."""
    if not isinstance(entry, Mapping):
        return False
    places = _places(entry)
    said = {key for place in places for key in place}
    return all(said & {*keys} for keys in CALL_KEYS.values()) and not any(map(_is_definition, places))


def names_call(entry: Mapping[str, Any]) -> bool:
    """Whether a value has a form that only calls have."""
    return "action_input" in entry or (len(entry) == 1 and not entry.keys().isdisjoint(_WRAPPERS))


def _places(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "action_input" in entry:
        entry = {_LANGCHAIN.get(key, key): value for key, value in entry.items()}
    return [entry, *(entry[key] for key in _WRAPPERS if isinstance(entry.get(key), Mapping))]


def _is_definition(place: Mapping[str, Any]) -> bool:
    schema = place.get("parameters")
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") == "object" and isinstance(schema.get("properties"), Mapping)


def _decoded(arguments: Any) -> Any:
    if isinstance(arguments, str) and arguments.strip():
        return whole_object(once_decoded(arguments))
    return {} if arguments is None or isinstance(arguments, str) else arguments


PREFIX = r"(?:\w{1,12}:|\uff5c\w{1,12}\uff5c[ ]?)?"
"""Pattern of the tag prefixes of Claude, DeepSeek and Step 3."""

_NAME = r"(?P<name>[\w.:/@-]{1,200}?)"
_TAG_NAME = r"[\"']?(?P<name>[^<>\"'\n]{1,200}?)[\"']?"
_FLAGS = re.VERBOSE | re.ASCII

_TAGGED = tuple(
    re.compile(rf"{head}\s*", _FLAGS)
    for head in (
        rf"<(?P<tag>function)={_TAG_NAME}>",  # Llama 3, Qwen Coder
        rf"(?:function<\uff5ctool_sep\uff5c>\s*)?<(?P<tag>{PREFIX}(?:invoke|function_call))\s+name={_TAG_NAME}>",
        rf"{_NAME}(?:\s|<tool_sep>)*(?=<(?:longcat_)?arg_key>|</(?:longcat_)?tool_call>)",  # GLM 4.5
    )
)
_NAMED = tuple(
    re.compile(rf"{head} \s*+ (?:```(?:json)?\s*)? (?=\{{)", _FLAGS)
    for head in (
        rf"{_NAME}(?:\[CALL_ID\][\w-]{{1,80}})?\[ARGS\]",  # Mistral
        rf"(?!json\b){_NAME}(?=\{{|\n)",
        rf"(?:function<\uff5ctool\u2581sep\uff5c>)?{_NAME}(?:<\uff5ctool\u2581sep\uff5c>|\n)",  # DeepSeek V3
        rf"(?:functions\.)?{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>",  # Kimi K2
        rf"(?:(?:<\|start\|>\w*\s*)?<\|channel\|>\s*\w+|<\|start\|>\w*)?\s*\bto=(?!(?:assistant|user)\b)"
        rf"(?:functions\.)?{_NAME}(?=[\s<])(?:\s|<\|(?:channel|constrain)\|>|\w)*+<\|message\|>",  # gpt-oss
        rf"(?:assistant)?commentary\ to=(?:functions\.)?{_NAME}\s*(?:json|code)",  # gpt-oss without its tokens
        rf"Action:[ \t]*{_NAME}[ \t]*\n\s*Action\ Input:",  # ReAct
    )
)
_SPELLED = re.compile(rf"call:\s*{_NAME}\s*(?=\{{)", _FLAGS)
_PYTHON = re.compile(r"\s*(?P<name>[^\W\d][\w.]{0,199}+)(?=\()")
_PARAMETER = re.compile(
    rf"""\s*(?:
        <(?P<tag>{PREFIX}parameter)(?P<name>=|\ name=)["']?(?P<key>[^<>"'\n]{{1,200}})["']?
            (?:\ string=["'](?P<string>true|false)["'])?>
      | <(?:longcat_)?arg_key>(?P<arg>[^<>\n]{{1,200}})</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>
    )(?P<value>.*?)(?(tag)</(?P=tag)>|</(?:longcat_)?arg_value>)\s*""",
    re.VERBOSE | re.DOTALL,
)
_NESTED = re.compile(rf"<{PREFIX}parameter[=\s]|<(?:longcat_)?arg_(?:key|value)>|</(?:longcat_)?arg_value>")
_END_OF_CALL = re.compile(r"</(?:longcat_)?tool_call>")
_NO_TOOL = {*CALL_KEYS["name"], *CALL_KEYS["arguments"], "type", "id", "properties", "required", "error", "result"}
_MISFORMED = "the parameters of its tool call are not well formed"


def read_body(text: str, at: int) -> Reading | None:
    """Read the calls at a position; None if there are none.

    The value is a tuple of calls, empty if they cannot be read, or a dict that is no call.
    """
    if found := _SPELLED.match(text, at):
        return _named(found, read_loose(text, found.end()))
    for head in _TAGGED:
        if found := head.match(text, at):
            tag = found.groupdict().get("tag")
            end = re.compile(rf"\s*</{tag}>") if tag else _END_OF_CALL
            if not text.startswith("{", found.end()):
                return _parameters(found, text, end)
            arguments = read_json(text, found.end())
            closing = end.match(text, arguments.end)
            return _named(found, arguments, end=closing.end() if closing else arguments.end)
    for head in _NAMED:
        if found := head.match(text, at):
            return _named(found, read_json(text, found.end()))
    if text.startswith(("{", "["), at) and not _PYTHON.match(text, at + 1):
        return _json(read_json(text, at))
    return _python(text, at)


def read_list(text: str, at: int) -> Reading | None:
    """Read Pythonic calls in brackets at a position; None if there are none or they are incomplete."""
    reading = _python(text, at)
    return reading if reading and reading.value else None


def read_json(text: str, at: int) -> Reading:
    """Read JSON strictly, or else in the loose spelling of models."""
    strict = read_strict(text, at)
    loose = read_loose(text, at) if strict.value is None else strict
    return strict if loose.value is None else loose


def _named(head: re.Match[str], arguments: Reading, untyped: Collection[str] = (), end: int | None = None) -> Reading:
    if not isinstance(arguments.value, dict):
        return _broken(arguments.problem or "the arguments of its tool call are no object")
    read = {name: _typed(arguments.value[name]) for name in untyped}
    written = {name: arguments.value[name] for name, value in read.items() if not isinstance(value, str)}
    call = NativeCall(_unescaped(head["name"]).strip(), arguments.value | read, written)
    return Reading((call,), arguments.end if end is None else end)


def _json(reading: Reading) -> Reading:
    if reading.value is None:
        return Reading((), reading.end, reading.problem)
    entries = reading.value if isinstance(reading.value, list) else [reading.value]
    try:
        return Reading(tuple(read_call(_unkeyed(entry)) for entry in entries), reading.end)
    except ValueError as error:
        return Reading(reading.value if isinstance(reading.value, dict) else (), reading.end, str(error))


def _unkeyed(entry: Any) -> Any:
    if isinstance(entry, dict) and len(entry) == 1:
        ((name, arguments),) = entry.items()
        if isinstance(arguments, dict) and name not in _NO_TOOL:
            return {"name": name, "arguments": arguments}
    return entry


def _python(text: str, at: int) -> Reading | None:
    """Read `name(key=value)`, alone, as what is printed, or several in brackets: all of them or none."""
    listed = text.startswith("[", at)
    printed = not listed and text.startswith("print(", at)
    at += listed + len("print(") * printed
    calls: list[NativeCall] = []
    while found := _PYTHON.match(text, at):
        arguments = read_spelled(text, found.end())
        if arguments.value is None:
            return _broken(arguments.problem or "its tool call is not spelled as a call with named arguments")
        calls.append(NativeCall(found["name"].removesuffix(".call"), arguments.value))
        more = re.compile(r"\s*,").match(text, arguments.end) if listed else None
        at = more.end() if more else arguments.end
        if not more:
            break
    if not calls:
        return None
    end = re.compile(r"\s*[\])]" if listed or printed else "").match(text, at)
    return Reading(tuple(calls), end.end()) if end else _broken("it breaks off in the middle of a list of calls")


def _parameters(head: re.Match[str], text: str, end: re.Pattern[str]) -> Reading:
    """Read parameters in tags up to the tag that ends the call. The format has no way to quote a tag."""
    arguments: dict[str, Any] = {}
    untyped: list[str] = []
    at = head.end()
    while found := _PARAMETER.match(text, at):
        name, value = _unescaped(found["key"] or found["arg"]).strip(), found["value"]
        if name in arguments or _NESTED.search(value):
            return _broken(_MISFORMED)
        if found["name"] == "=":  # Qwen Coder puts values on lines of their own
            value = value.removeprefix("\n").removesuffix("\n")
        arguments[name] = _typed(value) if found["string"] == "false" else value
        untyped += [] if found["string"] else [name]
        at = found.end()
    if closing := end.match(text, at):
        return _named(head, Reading(arguments, closing.end()), untyped)
    return _broken(_MISFORMED if end.search(text, at) else "it breaks off in the middle of a tool call")


def _unescaped(attribute: str) -> str:
    return attribute.replace("&quot;", '"').replace("&amp;", "&")


def _typed(written: str) -> Any:
    """Return a number, a truth value, a list or an object as such, all else as text: nothing tells the type."""
    try:
        value = whole_value(written)
    except ValueError:
        return written
    return written if isinstance(value, str) else value


def _broken(problem: str) -> Reading:
    """Return that a call cannot be read, and that its end is unknown."""
    return Reading((), -1, problem)
