"""How a call is written between its marks, each way brought into the same plain form.

A body tells by its beginning which way it is: JSON that names the tool, or the tool's name and then the arguments, as
JSON, in tags, or as Python or Gemma would spell them. The first that fits is read to its own end, never to the next
mark, so that marks which a string quotes are part of the string. What breaks off or is not well formed is no call.
"""

import re
from collections.abc import Collection
from typing import Any

from packetgate.models.decoding.call_forms import CALL_KEYS, NativeCall, read_call
from packetgate.models.decoding.formats import MINIMAX, PREFIXES, STEP
from packetgate.models.decoding.values import MAX_DEPTH, Reading, read_loose, read_spelled, read_strict, whole_value

_NAME = r"(?P<name>[\w.:/@-]{1,200}?)"
_TAG_NAME = r"[\"']?(?P<name>[^<>\"'\n]{1,200}?)[\"']?"
_PREFIXES = "|".join(map(re.escape, PREFIXES))
_PREFIX = rf"(?P<prefix>{_PREFIXES})?"
_XTML = r"<\|open\|>call\ tool=\"(?P<name>[^\"<]{1,200})\"[^<>]{0,80}<\|sep\|>"
_FLAGS = re.VERBOSE | re.ASCII

_NAMED_JSON = tuple(
    re.compile(rf"{head} \s*+ (?:```(?:json)?\s*)? (?=\{{)", _FLAGS)
    for head in (
        rf"<function={_TAG_NAME}>",  # Llama 3
        rf"<{_PREFIX}invoke\s+name={_TAG_NAME}>",  # DeepSeek V4.1, where a grammar holds it
        rf"{_XTML}\s*<\|open\|>json[^<>]{{0,80}}<\|sep\|>",  # Kimi K3
        rf"{_NAME}(?:\[CALL_ID\][\w-]{{1,80}})?\[ARGS\]",  # Mistral
        rf"(?!json\b){_NAME}(?=\{{|\n)",
        rf"(?:function<\uff5ctool\u2581sep\uff5c>)?{_NAME}(?:<\uff5ctool\u2581sep\uff5c>|\n)",  # DeepSeek V3
        rf"(?:functions\.)?{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>",  # Kimi K2
        rf"(?:(?:<\|start\|>\w*\s*)?<\|channel\|>\s*\w+|<\|start\|>\w*)?\s*\bto=(?!(?:assistant|user)\b)"
        rf"(?:functions\.)?{_NAME}(?=[\s<])(?:\s|<\|(?:channel|constrain)\|>|\w)*+<\|message\|>",  # gpt-oss
        rf"Action:[ \t]*{_NAME}[ \t]*\n\s*Action\ Input:",  # ReAct
        rf"(?:assistant)?commentary\ to=(?:functions\.)?{_NAME}\s*(?:json|code)",  # gpt-oss without its tokens
        rf":?\s*{_NAME}\s*\u273fARGS\u273f:?",  # Qwen Agent
        rf">>>{_NAME}\n",  # Functionary 3
    )
)
_SPELLED = re.compile(rf"call:\s*{_NAME}\s*(?=\{{)", _FLAGS)
"""Gemma 4, FunctionGemma."""
_PYTHON = re.compile(r"\s*(?P<name>[^\W\d][\w.]{0,199}+)(?=\()")
_TAGGED = tuple(
    (re.compile(rf"{head}\s*", _FLAGS), end)
    for head, end in (
        (rf"<function={_TAG_NAME}>", "</function>"),  # Qwen Coder
        (rf"<{_PREFIX}invoke\s+name={_TAG_NAME}>", "</{prefix}invoke>"),  # Claude, MiniMax M2, DeepSeek V3.2
        (rf"function<\uff5ctool_sep\uff5c>\s*<{STEP}invoke\s+name={_TAG_NAME}>", f"</{STEP}invoke>"),  # Step 3
        (rf"<xai:function_call\s+name={_TAG_NAME}>", "</xai:function_call>"),  # Grok
        (rf"{_NAME}\s*(?=<longcat_arg_key>|</longcat_tool_call>)", "</longcat_tool_call>"),
        (rf"{_NAME}(?:\s|<tool_sep>)*(?=<arg_key>|</tool_call>)", "</tool_call>"),  # GLM 4.5, Hy 3
        (_XTML, "<|close|>call<|sep|>"),  # Kimi K3
    )
)
_PARAMETER = re.compile(
    rf"""\s*(?:
        <(?P<tag>(?:{_PREFIXES})?parameter)(?P<name>=|\ name=)["']?(?P<key>[^<>"'\n]{{1,200}})["']?
            (?:\ string=["'](?P<string>true|false)["'])?>
      | <(?:longcat_)?arg_key>(?P<arg>[^<>\n]{{1,200}})</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>
      | <\|open\|>argument\ key="(?P<attribute>[^"<]{{1,200}})"\ type="(?P<type>\w+)"<\|sep\|>
    )(?P<value>.*?)(?(tag)</(?P=tag)>|(?(arg)</(?:longcat_)?arg_value>|<\|close\|>argument<\|sep\|>))\s*""",
    re.VERBOSE | re.DOTALL,
)
_NESTED = re.compile(
    rf"<(?:{_PREFIXES})?parameter[=\s]|<(?:longcat_)?arg_(?:key|value)>|</(?:longcat_)?arg_value>"
    r"|<\|open\|>argument\s"
)
_M3 = re.escape(MINIMAX)
_M3_CALL = re.compile(rf"{_M3}<invoke\s+name={_TAG_NAME}>", re.ASCII)
_M3_TAG = re.compile(rf"\s*{_M3}<(?P<key>[^<>/\s]{{1,200}})>")
_M3_END = re.compile(rf"(?P<text>.*?){_M3}</(?P<key>[^<>/\s]{{1,200}})>", re.DOTALL)
_CLOSING = re.compile(
    rf"\s*(?:</(?:{_PREFIXES})?(?:function|invoke)>|<\|close\|>json<\|sep\|>\s*<\|close\|>call<\|sep\|>)"
)
_JSON_FOLLOWS = re.compile(r"\{|<\|open\|>json\b")
_NO_TOOL = {*CALL_KEYS["name"], *CALL_KEYS["arguments"], "type", "id", "properties", "required", "error", "result"}


def read_body(text: str, at: int) -> Reading | None:
    """Read the calls that begin at a place of a text; None where none does.

    The value is a tuple of calls, an empty one where they cannot be read, or the dict that is no call.
    """
    if found := _SPELLED.match(text, at):
        return _named(found, read_loose(text, found.end()))
    if found := _M3_CALL.match(text, at):
        values = _children(text, found.end(), "invoke")
        return _named(found, values, {name for name, value in (values.value or {}).items() if isinstance(value, str)})
    for head, end in _TAGGED:
        if (found := head.match(text, at)) and not _JSON_FOLLOWS.match(text, found.end()):
            prefix = found.groupdict().get("prefix") or ""
            return _parameters(found, text, end.replace("{prefix}", prefix))
    for head in _NAMED_JSON:
        if found := head.match(text, at):
            arguments = _read(text, found.end())
            closing = _CLOSING.match(text, arguments.end) if found[0][0] == "<" else None
            end_at = closing.end() if closing else arguments.end
            return _named(found, Reading(arguments.value, end_at, arguments.problem))
    if text.startswith(("{", "["), at) and not _PYTHON.match(text, at + 1):
        return _json(_read(text, at))
    return _python(text, at)


def read_list(text: str, at: int) -> Reading | None:
    """Read the Pythonic calls in brackets at a place of a text; None where there are none, or they are not whole."""
    reading = _python(text, at)
    return reading if reading and reading.value else None


def _named(head: re.Match[str], arguments: Reading, untyped: Collection[str] = ()) -> Reading:
    if not isinstance(arguments.value, dict):
        return _broken(arguments.problem or "the arguments of its tool call are no object")
    read = {name: _typed(arguments.value[name]) for name in untyped}
    written = {name: arguments.value[name] for name, value in read.items() if not isinstance(value, str)}
    return Reading((NativeCall(_unescaped(head["name"]).strip(), arguments.value | read, written),), arguments.end)


def _json(reading: Reading) -> Reading:
    entries = reading.value if isinstance(reading.value, list) else [reading.value]
    if reading.value is None:
        return Reading((), reading.end, reading.problem)
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


def _parameters(head: re.Match[str], text: str, end: str) -> Reading:
    arguments: dict[str, Any] = {}
    untyped: list[str] = []
    at = head.end()
    while found := _PARAMETER.match(text, at):
        name = _unescaped(found["key"] or found["arg"] or found["attribute"]).strip()
        value = found["value"]
        if name in arguments or _NESTED.search(value):
            return _broken("the parameters of its tool call are not well formed")
        if found["name"] == "=":  # Qwen Coder puts values on lines of their own
            value = value.removeprefix("\n").removesuffix("\n")
        said = found["string"] or found["type"]
        arguments[name] = value if said in {None, "true", "string"} else _typed(value)
        untyped += [] if said else [name]
        at = found.end()
    if not text.startswith(end, at):
        cut = end not in text[at:]
        return _broken(
            "it breaks off in the middle of a tool call"
            if cut
            else "the parameters of its tool call are not well formed"
        )
    return _named(head, Reading(arguments, at + len(end)), untyped)


def _children(text: str, at: int, key: str, depth: int = 0) -> Reading:
    values: list[tuple[str, Any]] = []
    while (found := _M3_TAG.match(text, at)) and depth < MAX_DEPTH:
        inner = _children(text, found.end(), found["key"], depth + 1)
        if inner.problem:
            return inner
        values.append((found["key"], inner.value))
        at = inner.end
    end = _M3_END.match(text, at)
    names = {name for name, _ in values}
    is_list = names == {"item"}
    is_twice = len(names) < len(values) and not is_list
    if end is None or end["key"] != key or is_twice or ((values or not depth) and end["text"].strip()):
        return _broken("the tags of its tool call are not well formed, or it breaks off")
    if not depth or (values and not is_list):
        return Reading(dict(values), end.end())
    return Reading([value for _, value in values] if is_list else end["text"], end.end())


def _unescaped(attribute: str) -> str:
    return attribute.replace("&quot;", '"').replace("&amp;", "&")


def _typed(written: str) -> Any:
    try:
        value = whole_value(written)
    except ValueError:
        return written
    return written if isinstance(value, str) else value


def _read(text: str, at: int) -> Reading:
    strict = read_strict(text, at)
    loose = read_loose(text, at) if strict.value is None else strict
    return strict if loose.value is None else loose


def _broken(problem: str) -> Reading:
    return Reading((), -1, problem)
