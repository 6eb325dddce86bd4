"""Filling a tool's parameters from the words of a request, by the tool's schema. Nothing is made up."""

import re
import shlex
from typing import Any

from deciders.reflex.reading import SENSES, Mentions, mentions_in, words_in
from tools.spec.tool_spec import ToolSpec
from tools.text.words import words_of

PATH_WORDS = frozenset("path file filename filepath dir directory folder root source destination uri location".split())
CONTENT_WORDS = frozenset("content contents text body data message value note description title name summary".split())
QUERY_WORDS = frozenset(
    "query q search pattern keyword keywords term terms question topic prompt expression regex".split()
)
COMMAND_WORDS = frozenset("command cmd argv args arguments program".split())
COUNT_WORDS = frozenset("count limit top k n num number max head tail lines results size first last".split())
FROM_WORDS = frozenset("source src from origin start old".split())
TO_WORDS = frozenset("destination dest target to end new".split())

_LEAD = re.compile(r"^\s*(?:please\s+|can you\s+|could you\s+|would you\s+)*\w+\s+", re.IGNORECASE)
_QUESTION = re.compile(
    r"^\s*(?:how|what|when|where|which|who|why)\s+(?:do|does|did|is|are|was|were|can|could|should|would)\s+(?:the\s+|an?\s+)?",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:for|about|on|regarding|mention(?:s|ing)?|match(?:es|ing)?|contain(?:s|ing)?|named|called|of)\s+(.+)$",
    re.IGNORECASE | re.DOTALL,
)
_WITH = re.compile(
    r"(?:\bwith(?:\s+the)?(?:\s+(?:content|contents|text))?\b|\bsaying\b|\bcontaining\b|:)\s+(.+)$",
    re.IGNORECASE | re.DOTALL,
)
_QUOTES = re.compile(r"\"[^\"]+\"|'[^']+'|“[^”]+”|`[^`]+`")
_COMMAND = re.compile(
    r"\b(?:run|execute|launch|call|start)\s+(?:the\s+)?(?:command\s+)?(.+)$", re.IGNORECASE | re.DOTALL
)
_FROM = re.compile(r"\bfrom\s+([^\s,?]+)", re.IGNORECASE)
_TO = re.compile(r"\b(?:to|into|as)\s+([^\s,?]+)", re.IGNORECASE)
_IN = re.compile(r"\b(?:in|at|of|for|named|called|to)\s+(?:the\s+)?([^\s,?]+)", re.IGNORECASE)


class _Pool:
    """The mentions of a request, each handed out once."""

    def __init__(self, text: str) -> None:
        self.mentions = mentions_in(text)
        self.paths = [*self.mentions.paths]
        self.quoted = [*self.mentions.quoted]
        self.numbers = [*self.mentions.numbers]


def fill(spec: ToolSpec, text: str) -> tuple[dict[str, Any], list[str]]:
    """Return (arguments found in `text`, names of required parameters that were not found)."""
    pool = _Pool(text)
    params: dict[str, Any] = {}
    required_first = sorted(spec.parameters, key=lambda name: name not in spec.required)
    for name in required_first:
        value = _value(name, spec.parameters[name], pool, required=name in spec.required)
        if value is not None:
            params[name] = value
    return params, [name for name in spec.required if name not in params]


def fill_each(spec: ToolSpec, text: str) -> list[tuple[dict[str, Any], list[str]]]:
    """Like `fill`, once for each path when several are named and the tool takes one at a time."""
    paths = mentions_in(text).paths
    takes = [
        name
        for name, schema in spec.parameters.items()
        if set(words_of(name)) & PATH_WORDS and _kind(schema) != "array"
    ]
    if len(paths) < 2 or len(takes) != 1 or set(spec.required) - set(takes):
        return [fill(spec, text)]
    calls = []
    for path in paths:
        others = "|".join(re.escape(other) for other in paths if other != path)
        calls.append(fill(spec, re.sub(rf"(?<![\w./~-])(?:{others})(?![\w/])", " ", text)))
    return calls


def whole_answer(spec: ToolSpec, name: str, answer: str) -> Any:
    """Return the whole answer, without quotes around all of it, where the parameter asked about takes any words."""
    schema, said = spec.parameters.get(name, {}), answer.strip()
    kind, words = _kind(schema), set(words_of(name))
    if "enum" in schema or words & (PATH_WORDS | {"url", "link"}) or schema.get("format") in {"uri", "url"}:
        return None
    text = said[1:-1] if _QUOTES.fullmatch(said) else said
    if kind == "array" and words & COMMAND_WORDS:
        return _split(text)
    return text if kind == "string" else None


def _value(name: str, schema: dict[str, Any], pool: _Pool, *, required: bool) -> Any:
    if name in pool.mentions.named:
        return _coerced(pool.mentions.named[name], schema)
    if "enum" in schema:
        return _enum(schema["enum"], pool.mentions.text)
    kind = _kind(schema)
    if kind in {"integer", "number"}:
        return _number(name, kind, pool, required=required)
    if kind == "boolean":
        return True if set(words_of(name)) <= set(words_in(pool.mentions.text)) else None
    if kind == "array":
        return _array(name, schema, pool, required=required)
    if kind == "string":
        return _string(name, schema, pool, required=required)
    return None


def _string(name: str, schema: dict[str, Any], pool: _Pool, *, required: bool) -> str | None:
    words = set(words_of(name))
    text = pool.mentions.text
    if words & PATH_WORDS:
        return _path(words, pool)
    if not required:
        return None
    if schema.get("format") in {"uri", "url"} or words & {"url", "uri", "link"}:
        return pool.mentions.urls[0] if pool.mentions.urls else None
    if words & COMMAND_WORDS:
        return _command(pool.mentions)
    if words & QUERY_WORDS:
        return pool.quoted.pop(0) if pool.quoted else _query(text)
    if words & {"time"} and pool.mentions.clocks:
        return pool.mentions.clocks[0]
    if words & FROM_WORDS and (match := _FROM.search(text)):
        return match[1]
    if words & TO_WORDS and (match := _TO.search(text)):
        return match[1]
    if pool.quoted:
        return pool.quoted.pop(0)
    if words & CONTENT_WORDS:
        match = _WITH.search(text)
        return match[1].strip() if match else None
    match = _IN.search(text)
    return match[1].rstrip(".!?") if match else None


def _path(words: set[str], pool: _Pool) -> str | None:
    if (
        words & {"destination", "dest", "target"}
        and (match := _TO.search(pool.mentions.text))
        and match[1].rstrip(".") in pool.paths
    ):
        pool.paths.remove(match[1].rstrip("."))
        return match[1].rstrip(".")
    return pool.paths.pop(0) if pool.paths else None


def _array(name: str, schema: dict[str, Any], pool: _Pool, *, required: bool) -> list[Any] | None:
    words = set(words_of(name)) | {word.removesuffix("s") for word in words_of(name)}
    items = schema.get("items")
    if _kind(items if isinstance(items, dict) else {}) not in {"string", "any"}:
        return None
    if words & COMMAND_WORDS:
        command = _command(pool.mentions)
        return _split(command) if command else None
    if words & PATH_WORDS and pool.paths:
        taken, pool.paths = pool.paths, []
        return taken
    if required and pool.quoted:
        taken, pool.quoted = pool.quoted, []
        return taken
    return None


def _number(name: str, kind: str, pool: _Pool, *, required: bool) -> int | float | None:
    fitting = [number for number in pool.numbers if kind == "number" or "." not in number]
    near = set(words_of(name)) & COUNT_WORDS and set(words_in(pool.mentions.text)) & (set(words_of(name)) | COUNT_WORDS)
    if not fitting or not (required or near):
        return None
    pool.numbers.remove(fitting[0])
    return int(fitting[0]) if "." not in fitting[0] else float(fitting[0])


def _enum(values: list[Any], text: str) -> Any:
    """Return the enum value that is named, or whose verb is a sense of one that is (`append` for `add ... to`)."""
    words = words_in(text)
    for value in values:
        if isinstance(value, str) and set(words_of(value)) <= set(words):
            return value
    return next((v for v in values if isinstance(v, str) and v == "overwrite" and "replace" in words), None)


def _query(text: str) -> str | None:
    match = _ABOUT.search(text)
    rest = match[1] if match else _QUESTION.sub("", text) if _QUESTION.match(text) else _LEAD.sub("", text)
    return rest.strip(" ?.!") or None


def _command(mentions: Mentions) -> str | None:
    if mentions.ticked:
        return mentions.ticked[0]
    if mentions.quoted:
        return mentions.quoted[0]
    match = _COMMAND.search(mentions.text)
    return match[1].strip(" .") if match else None


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _coerced(text: str, schema: dict[str, Any]) -> Any:
    kind = _kind(schema)
    if kind == "integer" and re.fullmatch(r"-?\d+", text):
        return int(text)
    if kind == "number" and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return float(text)
    if kind == "boolean" and text.lower() in {"true", "false", "yes", "no", "on", "off"}:
        return text.lower() in {"true", "yes", "on"}
    if kind == "array":
        return [part for part in text.split(",") if part]
    return text


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    options = (
        kind
        if isinstance(kind, list)
        else [option.get("type") for option in schema.get("anyOf", ()) if isinstance(option, dict)]
    )
    return next((option for option in options if isinstance(option, str) and option != "null"), "any")


def senses_of(verbs: list[str]) -> list[str]:
    """Return the tool verbs that a user's verbs may stand for, in order, without repeats."""
    return list(
        dict.fromkeys(sense for verb in verbs for sense, words in SENSES.items() if verb in words or verb == sense)
    )
