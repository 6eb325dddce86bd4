"""Parse and write typed calls: `/read notes.txt`, `/search smtp in src`, `/fs.write path=a.txt text="x"`.

A line is `/`, the name of a tool and its arguments. `name=value` gives a parameter by its name. Other values fill the
required parameters in the schema's order, or the first parameter of a tool without required ones. If the last of
them is a text, its value is the rest of the line. Quotes keep a text together; lists and objects are JSON.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from packetgate.state.errors import RequestError
from packetgate.state.printing import shorten
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_params, coerce_params, invalid_names, value_errors
from packetgate.tools.spec.tool_spec import ToolSpec, canonical_json, types_of
from packetgate.tools.text.words import words_of

RESERVED = frozenset("attach commands continue help quit reset rest trace undo why writes".split())
"""Commands of the program and of its chat. A tool with such a name is called by its full name."""
LINE = re.compile(r"/(?P<name>[\w.:-]*\w)?(?P<arguments>\s.*)?", re.DOTALL)
"""A line that may be a command; a path such as `/etc/hosts` is not."""
_CLOSE = 0.65
"""Least similarity of a mistyped name to a command."""
_PLACES = frozenset("destination dir directory file filename filepath folder path source target".split())
_SEPARATORS = frozenset({"in", "into", "to", "from"})
_NAME = re.compile(r"[A-Za-z_][\w.-]*(?==)")
_TOKEN = re.compile(r"\"(?P<double>(?:[^\"\\]|\\.)*)\"(?!\S)|'(?P<single>[^']*)'(?!\S)|(?P<bare>\S*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\\"ntr])")
_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class TypedCall:
    """A call as the user typed it, valid by the tool's schema."""

    tool_name: str
    params: dict[str, Any]


class _Token(NamedTuple):
    space: str  # before it
    name: str  # of `name=value`
    raw: str
    quoted: str | None  # the text inside quotes

    @property
    def separates(self) -> bool:
        return self.raw in _SEPARATORS and not self.name


def parse_call(text: str, catalogue: Catalogue, others: Collection[str] = ()) -> TypedCall | None:
    """Return the call that a line consists of; None if the line does not name a tool. May block.

    Args:
        others: names of commands that are not tools, which a mistyped name may mean.

    Raises:
        RequestError: the name means no tool or several, or an argument is wrong.
    """
    line = LINE.fullmatch(text.strip())
    if line is None or not (name := line["name"]):
        return None
    tools = tools_named(name, catalogue)
    if len(tools) == 1:
        return TypedCall(tools[0], _arguments(line["arguments"] or "", catalogue[tools[0]], name))
    names = {*catalogue, *command_names(catalogue).values(), *others}
    near = tools or difflib.get_close_matches(name.casefold(), sorted(names), n=3, cutoff=_CLOSE)
    if not near and (name.casefold() in RESERVED or line["arguments"]):  # arguments may follow a path
        return None
    problem = f"`/{name}` means several tools" if tools else f"Unknown command `/{name}`"
    meant = f"Did you mean {' or '.join(f'`/{one}`' for one in near[:5])}?" if near else "`/help` lists the commands."
    raise RequestError(f"{problem}. {meant}")


def tools_named(name: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the tools that a typed name means: by name, with or without the server, or by words of the name.

    `/search` means `files.search_files` if no tool is called `search`, and no other tool has this word.
    """
    if name.casefold() in RESERVED:
        return ()
    if exact := catalogue.canonical(name):
        return (exact,)
    server, _, own = name.rpartition(".")
    server, words = (server, words_of(own)) if server in catalogue.servers else ("", words_of(name))
    known = {spec.name: words_of(spec.upstream_name) for spec in catalogue.values() if server in ("", spec.server)}
    same = tuple(tool for tool, own_words in known.items() if own_words == words)
    runs = {tool: [own[at : at + len(words)] for at in range(len(own))] for tool, own in known.items()}
    return same or tuple(tool for tool, parts in runs.items() if words in parts)


def command_names(catalogue: Catalogue) -> dict[str, str]:
    """Return the shortest name by which each tool is typed, by the tool's canonical name."""
    return catalogue.derived(_command_names)


def render_call(tool_name: str, params: Mapping[str, Any], catalogue: Catalogue) -> str:
    """Return the line that `parse_call` reads as this call, which must be valid. May block.

    The only required parameter is given without its name if the line still parses to this call: `/read notes.txt`.
    """
    spec, command = catalogue[tool_name], f"/{command_names(catalogue)[tool_name]}"
    written = {name: render_value(spec, name, value) for name, value in params.items()}
    named = " ".join([command, *(f"{name}={value}" for name, value in written.items())])
    only = positional(spec)[0] if len(positional(spec)) == 1 else ""
    if only not in written:
        return named
    line = " ".join([command, written.pop(only), *(f"{name}={value}" for name, value in written.items())])
    try:
        call = parse_call(line, catalogue)
    except RequestError:
        return named
    return line if call and canonical_json(call.params) == canonical_json(params) else named


def positional(spec: ToolSpec) -> list[str]:
    """Return the parameters that take values without names, in order."""
    return [name for name in spec.parameters if name in spec.required] or [*spec.parameters][:1]


def text_before_cursor(token: str) -> str:
    """Return the text of a partly typed value; of a quoted value, without the quote and the escapes."""
    return _unescaped(token[1:]) if token.startswith('"') else token


def is_place(name: str) -> bool:
    """Whether a parameter is named like a file or a folder."""
    return not _PLACES.isdisjoint(words_of(name))


def _command_names(catalogue: Catalogue) -> dict[str, str]:
    own = {name: spec.upstream_name for name, spec in catalogue.items()}
    return {
        name: short if LINE.fullmatch(f"/{short}") and tools_named(short, catalogue) == (name,) else name
        for name, short in own.items()
    }


def _arguments(text: str, spec: ToolSpec, command: str) -> dict[str, Any]:
    """Return the arguments of a line. Raise RequestError with an example of a valid line."""
    try:
        params = coerce_params(spec, _given(text, spec))
    except RequestError as error:
        raise RequestError(f"{error} Example: `{_example(spec, command, {})}`") from error
    if problems := check_params(spec, {**spec.configured_defaults, **params}):
        raise RequestError(f"{problems[0].message} Example: `{_example(spec, command, params)}`")
    return params


def _given(text: str, spec: ToolSpec) -> dict[str, Any]:
    params, free = dict[str, Any](), list[_Token]()
    for token in _tokens(text, spec):
        if token.name in params:
            raise RequestError(f"`{token.name}` of `{spec.name}` is given twice.")
        if token.name:
            params[token.name] = _value(spec, token.name, token)
        else:
            free.append(token)
    slots = [name for name in positional(spec) if name not in params]
    places = [name for name in spec.parameters if is_place(name) and name not in {*params, *slots}]
    if places and len(free) > 1 and free[-2].raw == "in":
        if len(places) > 1:
            raise RequestError(f"`in` may give {' or '.join(map('`{}`'.format, places))} of `{spec.name}`: name it.")
        params[places[0]] = _value(spec, places[0], free[-1])
        del free[-2:]
    filled = False
    while free:
        rest = "".join(token.space + token.raw for token in free).strip()
        if not slots:
            raise RequestError(
                f"`{spec.name}` takes no value `{shorten(rest, 40)}` without a name: {spec.signature()}."
            )
        if len(free) > 1 and free[0].separates:
            if filled and not is_place(slots[0]):
                raise RequestError(f"`{free[0].raw}` is ambiguous: name the parameters, or quote the text.")
            if is_place(slots[0]):
                del free[0]
                continue
        name, filled = slots.pop(0), True
        if len(free) > 1 and not slots and _is_valid(spec, name, rest):
            params[name] = rest
            break
        params[name] = _value(spec, name, free.pop(0))
    return params


def _tokens(text: str, spec: ToolSpec) -> Iterator[_Token]:
    """Yield the words, quoted texts and JSON values of a line."""
    names, at = sorted(spec.parameters, key=len, reverse=True), 0
    while at < len(text):
        space = _SPACE.match(text, at)[0]  # type: ignore[index]  # it matches everywhere
        at += len(space)
        name = next((known for known in names if text.startswith(f"{known}=", at)), "")
        if not name and (unknown := _NAME.match(text, at)):
            name = unknown[0]
            if not spec.is_open:
                raise RequestError(f"{check_params(spec, {name: ''})[0].message} A text with `{name}=` needs quotes.")
        at += len(f"{name}=") if name else 0
        token = _token_at(text, at)
        at += len(token.raw)
        if token.raw or name:
            yield token._replace(space=space, name=name)


def _token_at(text: str, at: int = 0) -> _Token:
    if text[at : at + 1] in {"[", "{"}:
        with suppress(ValueError, RecursionError):
            _, end = json.JSONDecoder().raw_decode(text, at)
            if not text[end : end + 1].strip():
                return _Token("", "", text[at:end], None)
    match = _TOKEN.match(text, at)
    raw, double, single = (match[0], match["double"], match["single"]) if match else ("", None, None)
    return _Token("", "", raw, single if double is None else _unescaped(double))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda one: _ESCAPES[one[1]], text)


def _value(spec: ToolSpec, name: str, token: _Token) -> Any:
    """Return a token's value: JSON if the parameter takes it, otherwise text."""
    if token.quoted is not None:
        return token.quoted
    if token.raw[:1] in {'"', "'"}:
        raise RequestError(f"The quote of `{name}` is not closed, or text follows it: {shorten(token.raw, 40)}.")
    with suppress(ValueError, RecursionError):
        value = json.loads(token.raw, parse_constant=int)  # refuses NaN
        if _is_valid(spec, name, value):
            return value
    return token.raw


def _is_valid(spec: ToolSpec, name: str, value: Any) -> bool:
    try:
        return name not in invalid_names(value_errors(spec, {name: value}))
    except ValueError:  # a broken schema, which the check of the whole call reports
        return True


def render_value(spec: ToolSpec, name: str, value: Any) -> str:
    """Return a value as a token that parses to this value."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    token = _token_at(value)
    is_bare = token.raw == value != "" and value[0] not in "\"'" and not token.separates and not _NAME.match(value)
    if is_bare and _value(spec, name, token) == value:
        return value
    return '"' + value.translate({ord(char): f"\\{letter}" for letter, char in _ESCAPES.items()}) + '"'


def _example(spec: ToolSpec, command: str, params: Mapping[str, Any]) -> str:
    """Return a valid command line with the valid arguments of `params` and sample values for the others."""
    known = {name: value for name, value in params.items() if name in spec.parameters}
    shown = {name: value for name, value in known.items() if _is_valid(spec, name, value)}
    for name in dict.fromkeys([*spec.required, *known]):
        shown.setdefault(name, _sample(name, spec.parameters[name]))
    return " ".join([f"/{command}", *(f"{name}={render_value(spec, name, value)}" for name, value in shown.items())])


def _sample(name: str, schema: Mapping[str, Any]) -> Any:
    for values in (schema.get("enum"), schema.get("examples"), [schema["default"]] if "default" in schema else ()):
        if isinstance(values, list) and values:
            return values[0]
    samples = {"integer": 1, "number": 1, "boolean": True, "array": ["..."], "object": {}}
    kind = next(iter(types_of(schema)), "")
    return samples.get(kind, "notes.txt" if is_place(name) else "...")
