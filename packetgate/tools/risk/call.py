"""Rate the risk of one call: the worse of its tool's risk and its arguments' risk."""

import ipaddress
import json
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote_plus, urlsplit

from packetgate.state.origins import ArgumentRole
from packetgate.state.printing import printable
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.risk.command_lines import is_queried, only_reads, program_in
from packetgate.tools.risk.parameter_kinds import SAVE_NAMES, Kind, parameter_kinds, word_lists
from packetgate.tools.risk.request_paths import names_change
from packetgate.tools.risk.sql import (
    UNREADABLE,
    change_in,
    looks_like_sql,
    names_language,
    only_queries,
    risk_of_sql,
)
from packetgate.tools.spec.tool_spec import CallHints, ToolSpec
from packetgate.tools.text.roles import is_id, role_of
from packetgate.tools.text.values import is_address
from packetgate.tools.text.verbs import POSSIBLE_CHANGES, READ_VERBS, SENDING_VERBS, SURE_CHANGES, verb_kind
from packetgate.tools.text.words import words_of

UNCONFIRMED_READ = "looks like a read, but nothing confirms that"
"""Text of a question after the name of a tool that may be trusted as a read."""
_CACHED_CHARS = 4_000
_MAX_CHARS = 20_000
_QUOTED_CHARS = 60
_ADDRESS_CHARS = 80

_WORDS = word_lists("arguments")
_CODE_SCHEMES = re.compile(r"(?:data|dict|gopher|javascript|vbscript):", re.IGNORECASE)
_REQUEST_LINE = re.compile(r"(?:delete|patch|post|put)\s+(?:/|https?://)", re.IGNORECASE)
_SHELL = re.compile(r"[$<>]\(|`[^`]+`|(?:^|[\s\w])(?:;|\|\|?|&&?|>>?)\s*[\w./~$-]")
_OPTION = re.compile(r"--[A-Za-z][\w-]*(?:[=\s]|$)")
_OPTION_WORD = re.compile(r"--?[a-z][\w-]+")
_PATH = re.compile(r"(?:[/~\\]|\.{1,2}[/\\]|[a-z]:[/\\])\S.*|\S(?:.*\S)?\.[a-z]\w{0,5}", re.IGNORECASE)
_FILE_NAME = re.compile(r"(?!.*://).*\.[a-z]\w{0,5}", re.IGNORECASE)
_METHOD = re.compile(r"[a-z]\w*(?:[./][a-z]\w*)*")
_METHOD_HEADER = re.compile(
    r"(?:^|(?:-h|--header)[\s=]*['\"]?)[\w-]*method[\w-]*\s*:\s*(?:delete|merge|patch|post|put)\b"
)
_PROTOCOL_LINE = re.compile(r"\r\n(?:\S+ )?[A-Z]{3,}\b")  # as in `A2 EXPUNGE`
_PROPERTIES = re.compile(r";\s*([\w.]+)\s*=")
_WRITE_MODE = re.compile(r"[wax][bt]?\+?[bt]?|r[bt]?\+[bt]?")
_CODE = re.compile(
    r"__\w+__\s*[.(\[]|\bos\s*\.\s*(?:exec|popen|spawn|system)|\bsubprocess\s*\.|!!python/", re.IGNORECASE
)
_COMPOUND_VERB = 6
"""Least number of letters of a verb that another word follows without a separator."""
_COMMAND_WORDS = 3
"""Number of words at the start of a command line that may be its program and subcommand."""

_URL = re.compile(r"\b([a-z][a-z0-9+.-]{0,31})://([^\s\"'<>]+)|\b(?:mailto|data|javascript):", re.IGNORECASE)
_HOST = re.compile(
    r"(?:(?:[\w-]+\.)+[a-z][a-z0-9-]{1,62}\.?|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]+\])(?::\d+)?(?:/\S*)?", re.IGNORECASE
)
_MAIL = re.compile(r"[^\s@<>\"']{1,64}@(?:[\w-]{1,63}\.){1,9}[a-z]{2,63}", re.IGNORECASE)


class _Reason(NamedTuple):
    """Why a call does more than read."""

    risk: Risk
    text: str


class _NamedValue(NamedTuple):
    """A named value in the arguments, at any depth."""

    name: str
    value: Any
    words: frozenset[str]
    """The words of all names that lead to the value."""


@dataclass(frozen=True)
class Judgement:
    """The risk of a tool or a call."""

    risk: Risk
    reaches_outside: bool = False
    """Whether the tool or call reaches beyond the user's machine, accounts and own servers."""
    reasons: tuple[str, ...] = ()
    """The strongest reason first."""
    is_unconfirmed_read: bool = False
    """Whether this is an unconfirmed read: it looks like a read, but nothing that the user trusts confirms that."""

    @property
    def apparent_risk(self) -> Risk:
        """The risk, with an unconfirmed read taken as a read; never used for permission."""
        return Risk.READ if self.is_unconfirmed_read else self.risk


def judge_call(spec: ToolSpec, params: Mapping[str, Any], hints: CallHints | None = None) -> Judgement:
    """Return the risk of a call. Permission depends on this risk, not on `spec.risk`. Blocking.

    Arguments can only raise the risk, with three exceptions. A call of a trusted server's query tool has the risk of
    its parsed SQL, or is a read if it certainly is a query in another language. A call without any of the tool's
    `changing_parameters` has its `least_risk`. A trusted server's hints can say that a call of a writing tool reads.
    """
    try:
        arguments = json.dumps(params)
        judge = _judge if len(arguments) <= _CACHED_CHARS else _judge.__wrapped__
        return judge(spec, arguments, hints)
    except RecursionError:  # Python reads JSON to a depth of a few hundred levels
        return Judgement(Risk.EXECUTE, True, ("its arguments are nested too deeply to be read",))


def with_risk(call: ToolCall, spec: ToolSpec | None, hints: CallHints | None = None) -> ToolCall:
    """Return the call with its risk; unchanged if the tool no longer exists."""
    fields = risk_fields(spec, call.params, hints) if spec else {}
    return call if all(getattr(call, name) == value for name, value in fields.items()) else call.changed(**fields)


def risk_fields(spec: ToolSpec, params: Mapping[str, Any], hints: CallHints | None = None) -> dict[str, Any]:
    """Return the call fields that depend on its risk."""
    judgement = judge_call(spec, params, hints)
    return {
        "risk": judgement.risk,
        "open_world": judgement.reaches_outside,
        "risk_reasons": judgement.reasons,
        "is_unconfirmed_read": judgement.is_unconfirmed_read,
        "result_labels": spec.result_labels,
    }


def quoted(text: str) -> str:
    """Return a name or value as text for a reason: one line, printable, at most `_QUOTED_CHARS` characters."""
    return printable(" ".join(text.split()))[:_QUOTED_CHARS]


@lru_cache(maxsize=256)
def _judge(spec: ToolSpec, arguments: str, hints: CallHints | None) -> Judgement:
    params: dict[str, Any] = json.loads(arguments)
    values = {name: [*_named_values(name, value)] for name, value in params.items()}
    addresses = [(name, next(filter(None, map(_address_in, values[name])), "")) for name in values]
    address_reasons = tuple(
        f"its `{quoted(name)}` points outside: {quoted(address)}" for name, address in addresses if address
    )
    reaches_outside = spec.reaches_outside or bool(address_reasons) or (hints is not None and hints.open_world)
    if spec.has_fixed_risk:
        return Judgement(spec.risk, reaches_outside, spec.risk_reasons + address_reasons)
    kinds = _kinds_of(spec)
    reasons = [*dict.fromkeys(_reasons_in(spec, params, values, kinds))]
    floor, floor_reasons, is_query = spec.risk, spec.risk_reasons, _is_query_call(params, kinds)
    may_be_lower = params.keys().isdisjoint(spec.changing_parameters) if spec.changing_parameters else is_query
    if may_be_lower and spec.least_risk is not None and spec.least_risk.severity < spec.risk.severity:
        floor = spec.least_risk
        floor_reasons = () if floor is Risk.READ else spec.risk_reasons
    if hints is not None and not hints.read_only:
        reasons.append(_Reason(Risk.WRITE, "its server says that this call does more than read"))
    elif hints is not None and hints.are_trusted and floor is Risk.WRITE and not _sends(spec):
        floor, floor_reasons = Risk.READ, ("its server, which is trusted, says that this call only reads",)
    worst = max([Risk.READ, *(reason.risk for reason in reasons)], key=lambda risk: risk.severity)
    risk = max(floor, worst, key=lambda risk: risk.severity)
    raised = tuple(
        reason.text for reason in reasons if reason.risk is risk and (risk is not floor or not floor_reasons)
    )
    tool_reasons = floor_reasons if risk is floor or not raised else ()
    is_program = spec.risk is Risk.EXECUTE and not is_query
    is_unconfirmed_read = spec.is_unconfirmed_read and worst is Risk.READ and not is_program
    return Judgement(risk, reaches_outside, raised + tool_reasons + address_reasons, is_unconfirmed_read)


@lru_cache(maxsize=4_096)
def _kinds_of(spec: ToolSpec) -> Mapping[str, Kind]:
    return {name: kind for kind, name in parameter_kinds(spec.full, spec.input_schema)}


def _sends(spec: ToolSpec) -> bool:
    return not SENDING_VERBS.isdisjoint(words_of(spec.upstream_name))


def _is_query_call(params: Mapping[str, Any], kinds: Mapping[str, Kind]) -> bool:
    """Return whether a call's arguments contain SQL, or queries that certainly read, and no other code or command."""
    programs = {name: params[name] for name in params if kinds.get(name) in ("sql", "code", "command", "language")}
    return bool(programs) and all(
        isinstance(text, str) and (kinds[name] == "sql" or (kinds[name] == "language" and only_queries(text)))
        for name, text in programs.items()
    )


def _reasons_in(
    spec: ToolSpec, params: Mapping[str, Any], values: Mapping[str, list[_NamedValue]], kinds: Mapping[str, Kind]
) -> Iterator[_Reason]:
    # a call that names an address or a topic sends its body there
    is_sent = any(value and _WORDS["sends"] & {*words_of(name)} for name, value in params.items())
    for value in chain.from_iterable(values.values()):
        name = quoted(value.name)
        if value.name.strip().casefold() in _WORDS["operators"]:
            yield _Reason(Risk.WRITE, f"its arguments contain the operator `{name}`")
        elif _name_changes(value.name, value.value, is_sent=is_sent):
            yield _Reason(Risk.WRITE, f"its `{name}` is `{quoted(str(value.value))}`")
        elif value.value and _names_program(value.name, value.value):
            yield _Reason(Risk.EXECUTE, f"its `{name}` says what runs: `{quoted(str(value.value))}`")
        if isinstance(value.value, str) and value.value.strip():
            yield from _text_reasons(spec, value, kinds.get(value.name, ""), is_sent=is_sent)


def _named_values(name: str, value: Any) -> Iterator[_NamedValue]:
    """Yield an argument and all values inside, also those in JSON text and in the query of an address.

    A list of command words counts as one text, joined with and without quotes.
    """
    waiting: list[tuple[str, Any, frozenset[str]]] = [(name, value, frozenset())]
    while waiting:
        name, value, outer_words = waiting.pop()
        if name.startswith("$"):  # a comparison with a value of the field outside, which is data
            outer_words = frozenset[str]()
        words = outer_words | {*words_of(name)}
        yield _NamedValue(name, value, words)
        inner: list[tuple[str, Any, frozenset[str]]] = []
        if isinstance(value, str) and (parsed := _parse_json(value)) is not None:
            inner = [(name, parsed, words)]
        elif isinstance(value, str) and "?" in value and words & (_WORDS["addresses"] | _WORDS["places"]):
            inner = [(key, part, frozenset()) for key, part in _query_of(value)]
        elif isinstance(value, Mapping):
            inner = [(str(key), part, words) for key, part in value.items()]
        elif isinstance(value, list):
            scalars = [str(part) for part in value if not isinstance(part, dict | list)]
            is_command = _WORDS["command_lines"] & {*words_of(name)} and len(scalars) == len(value)
            texts = dict.fromkeys([" ".join(scalars), shlex.join(scalars)])
            inner = [(name, part, outer_words) for part in (texts if is_command else value)]
        waiting += reversed(inner)


def _query_of(address: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values in the query of an address. A name alone is a switch."""
    for part in address.partition("?")[2].partition("#")[0].split("&"):
        name, has_value, value = part.partition("=")
        yield unquote_plus(name), unquote_plus(value) if has_value else "true"


def _text_reasons(spec: ToolSpec, value: _NamedValue, kind: Kind | Literal[""], *, is_sent: bool) -> Iterator[_Reason]:
    text, name, plain = value.value, quoted(value.name), _plain(value.value)
    is_sql = kind == "sql" or "sql" in words_of(value.name)
    if is_sql or looks_like_sql(text):
        risk, description = risk_of_sql(text)
        if is_sql or (risk is not Risk.READ and description not in UNREADABLE):
            yield _Reason(risk if is_sql else Risk.WRITE, f"its `{name}` is {description}")
    if kind == "save" or _is_capture(spec, value) or (value.words & SAVE_NAMES and _is_saved_to(text, value.words)):
        yield _Reason(Risk.WRITE, f"it saves to the path in its `{name}`")
    quotation = f"its `{name}` says `{quoted(text)}`"
    if _is_changing_value(plain, text, value.words, is_sent=is_sent):
        yield _Reason(Risk.WRITE, quotation)
    is_named = names_language(value.words) or (
        bool(value.words & _WORDS["queries"]) and names_language(_languages_of(spec))
    )
    if not is_sql and (description := change_in(text, _languages_of(spec), is_named=is_named)):
        yield _Reason(Risk.WRITE, f"its `{name}` is {description}")
    if "\n" in text.strip().replace("\r", "\n") and _is_one_line(value):
        yield _Reason(Risk.WRITE, f"its `{name}` has a second line")
    if plain.startswith("jdbc:") and (unknown := {*_PROPERTIES.findall(plain)} - _WORDS["connection"]):
        yield _Reason(Risk.EXECUTE, f"its `{name}` sets `{min(unknown)}`")
    program = f"{spec.server} {spec.upstream_name}"
    lines = _WORDS["lines"] if program_in(spec.server) or program_in(spec.upstream_name) else frozenset()
    is_line = bool(value.words & (_WORDS["command_lines"] | lines) or ("query" in value.words and is_queried(program)))
    if _contains_code(plain, value.words) or (is_line and _is_changing_line(spec, value, plain)):
        yield _Reason(Risk.EXECUTE, quotation)


def _is_changing_line(spec: ToolSpec, value: _NamedValue, plain: str) -> bool:
    """Return whether a command line may do more than read, judged by its program or, if unknown, by its words."""
    parts = unicodedata.normalize("NFKC", value.value[:_MAX_CHARS]).split()
    is_request = any("://" in part and names_change(part, frozenset()) for part in parts)
    if "\n" in value.value.strip() or is_request:
        return True
    try:
        lines = (parts, shlex.split(value.value[:_MAX_CHARS]))
        reads = {only_reads(spec.server, spec.upstream_name, one) for one in lines}
    except ValueError:  # unclosed quotes
        return True
    if None in reads:
        is_command = bool(value.words & _WORDS["commands"])
        is_request = bool({*plain.split()} & _WORDS["methods"])
        return is_request or _is_other_program(spec, value) or _is_changing_command(plain, is_command=is_command)
    return False in reads


def _is_one_line(value: _NamedValue) -> bool:
    """Return whether a second line may be a second command: in an id, a path or an address, or in a protocol."""
    if {*words_of(value.name)} & (_WORDS["addresses"] | _WORDS["places"]) or is_id(value.name):
        return True
    is_text = role_of([value.name], {}, "") is ArgumentRole.PAYLOAD
    return not is_text and _PROTOCOL_LINE.search(value.value.strip()) is not None


def _is_other_program(spec: ToolSpec, value: _NamedValue) -> bool:
    """Return whether a tool without a verb of reading, such as `wget`, takes the arguments of a program."""
    tool = words_of(spec.upstream_name)
    return bool(_WORDS["program_arguments"] & {*words_of(value.name)}) and not READ_VERBS.intersection(tool)


@lru_cache(maxsize=4_096)
def _languages_of(spec: ToolSpec) -> frozenset[str]:
    return frozenset(words_of(f"{spec.name} {spec.full[:_MAX_CHARS]}"))


def _names_program(name: str, value: Any) -> bool:
    words = {*words_of(name)}
    if not words or not isinstance(value, str | list | Mapping):
        return False
    return words <= _WORDS["programs"] or (isinstance(value, Mapping) and words <= _WORDS["variables"])


def _is_capture(spec: ToolSpec, value: _NamedValue) -> bool:
    """Return whether a tool such as `take_screenshot` creates a file that the value names."""
    tool = {*words_of(spec.upstream_name)}
    captures = not tool.isdisjoint(_WORDS["captures"]) and READ_VERBS.isdisjoint(tool - _WORDS["captures"])
    return captures and bool(value.words & _WORDS["captured"]) and bool(_FILE_NAME.fullmatch(value.value.strip()))


def _is_saved_to(text: str, words: frozenset[str]) -> bool:
    may_be_host = "://" in text or not words.isdisjoint(("dest", "destination"))
    return _PATH.fullmatch(text.strip()) is not None and not (may_be_host and is_address(text))


def _is_changing_value(plain: str, text: str, words: frozenset[str], *, is_sent: bool) -> bool:
    if _REQUEST_LINE.match(plain) or (words & (_WORDS["addresses"] | _WORDS["places"]) and names_change(text, words)):
        return True
    if words & (_WORDS["headers"] | _WORDS["command_lines"]) and _METHOD_HEADER.search(plain):
        return True
    if words & _WORDS["filters"]:
        words = frozenset()  # the value of a searched field
    if plain in _WORDS["methods"] and (words & _WORDS["method_names"] or (is_sent and text.strip().isupper())):
        return True
    known = words_of(re.split("[./]", unicodedata.normalize("NFKC", text).strip())[-1])
    if known and _METHOD.fullmatch(plain):
        is_method = bool(words & (_WORDS["calls"] | _WORDS["actions"])) and _is_changing_method(known)
        is_mode = bool(words & _WORDS["modes"]) or any(word.endswith("mode") for word in words)
        if is_method or (is_mode and _WORDS["sets"].intersection(known)):  # `ack_requeue_false`
            return True
    if plain in ("on", "off") and words & (_WORDS["turns"] | _WORDS["actions"]):
        return True
    if words & _WORDS["modes"] and _WRITE_MODE.fullmatch(plain):
        return True
    first = next(iter(words_of(text.strip())), "").casefold()
    if _OPTION_WORD.fullmatch(plain) and verb_kind(first) in SURE_CHANGES:
        return True
    is_action = bool(words & _WORDS["actions"]) and first in _WORDS["orders"] and verb_kind(first) in POSSIBLE_CHANGES
    return bool(words & (_WORDS["actions"] | _WORDS["modes"])) and (_is_changing_verb(first) or is_action)


def _is_changing_method(words: list[str]) -> bool:
    """Return whether the first verb of a name such as `eth_sendRaw`, or its end, says that it changes something."""
    first, *others = words
    verbs = (first, *(first[:end] for end in range(_COMPOUND_VERB, len(first) - 2)))  # `deletemany`
    later = [verb_kind(word) for word, after in pairwise([*others, ""]) if after not in ("number", "count")]
    kind = next((kind for kind in (verb_kind(first), *later) if kind in {"reads", "changes"}), "")
    is_sure = any(verb_kind(verb) in SURE_CHANGES for verb in verbs) or (not others and first in _WORDS["sets"])
    return is_sure or kind == "changes" or (not kind and words[-1] in ("on", "off"))


def _is_changing_verb(verb: str) -> bool:
    return verb_kind(verb) in POSSIBLE_CHANGES and verb not in _WORDS["about_answer"]


def _name_changes(name: str, value: Any, *, is_sent: bool) -> bool:
    words = words_of(name)
    if not words or name.startswith("$") or value is None or value in ("", [], {}):
        return False
    switch, word_set = _switch_value(value), {*words}
    if switch is False:
        is_kept = words[-1] == "only" and words[-2:-1] != [] and words[-2] in _WORDS["only"] | _WORDS["rehearsals"]
        is_taken = len(words) > 1 and words[0] in _WORDS["keeps"]
        is_negated = words[0] in _WORDS["negations"] and any(verb_kind(word) in SURE_CHANGES for word in words[1:])
        return is_kept or is_taken or is_negated or bool(word_set & _WORDS["rehearsals"])
    if switch:
        verbs = (word.removeprefix("auto") for word in words)
        verb = next((verb for verb in verbs if verb and verb not in _WORDS["leading"]), "")
        return bool(word_set & _WORDS["confirmations"]) or _is_changing_verb(verb)
    if (len(words) == 1 and word_set & _WORDS["sets"]) or (is_sent and word_set & _WORDS["bodies"]):
        return True
    if words[-2:-1] == ["to"] and verb_kind(words[-1]) in SURE_CHANGES and words[-1] not in _WORDS["about_answer"]:
        return True  # `labels_to_add`
    if words[0] == "set" and len(words) > 1 and words[-1] not in _WORDS["about_set"] and not isinstance(value, list):
        return True  # `set_temperature`
    # `deleteRange`, `save_to`
    if isinstance(value, list) and len(words) == 2 and words[0] in _WORDS["lists"]:
        return True
    has_object = isinstance(value, Mapping) or (len(words) == 2 and words[1] in _WORDS["prepositions"])
    return len(words) > 1 and words[-2] != "to" and has_object and verb_kind(words[0]) in SURE_CHANGES


def _switch_value(value: Any) -> bool | None:
    """Return whether a value switches something on or off; None if it is not the value of a switch."""
    if isinstance(value, bool | int | float):
        return bool(value) if value in (0, 1) else None
    plain = _plain(value) if isinstance(value, str) else ""
    return True if plain in _WORDS["true"] else False if plain in _WORDS["false"] else None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:_MAX_CHARS]).strip().casefold()


def _contains_code(plain: str, words: frozenset[str]) -> bool:
    if _CODE.search(plain) or (words & _WORDS["addresses"] and _CODE_SCHEMES.match(plain)):
        return True
    if words & _WORDS["command_lines"]:
        return bool(_SHELL.search(plain))
    return bool(words & _WORDS["places"]) and bool(_SHELL.search(plain) or _OPTION.match(plain))


def _is_changing_command(plain: str, *, is_command: bool) -> bool:
    """Return whether a command line changes something; a command without a known verb counts as a change."""
    parts = re.sub("[\"']", " ", plain).split()
    words = [known[0] for part in parts if part[0].isalpha() and (known := words_of(part))][:_COMMAND_WORDS]
    options = [known for part in parts if part[0] == "-" and (known := words_of(part.partition("=")[0]))]
    if any({*option} & (SAVE_NAMES | _WORDS["bodies"]) or verb_kind(option[0]) in SURE_CHANGES for option in options):
        return True
    if any(map(_is_changing_verb, words)):
        return True
    return is_command and bool(words) and not any(verb_kind(word) for word in words)


def _parse_json(text: str) -> Any:
    """Return the object or list that a text contains as JSON, or None."""
    if not _plain(text).startswith(("{", "[")):
        return None
    try:
        return json.loads(text[: _MAX_CHARS + 1])
    except ValueError:
        return None


def _address_in(value: _NamedValue) -> str:
    """Return the first address that is not of this machine, or an empty string.

    A bare host counts only if the value's name says that it is a host.
    """
    name, text = value.name, value.value
    if not isinstance(text, str):
        return ""
    for match in _URL.finditer(text):
        if match[1] is None or (match[1].lower() not in _WORDS["local_schemes"] and not _is_local(match[0])):
            return match[0][:_ADDRESS_CHARS]
    if mail := _MAIL.search(text):
        return mail[0][:_ADDRESS_CHARS]
    host = text.strip()
    if {*words_of(name)} & _WORDS["host_names"] and _HOST.fullmatch(host) and not _is_local(f"//{host}"):
        return host[:_ADDRESS_CHARS]
    return ""


def _is_local(url: str) -> bool:
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
        return host in _WORDS["local_hosts"] or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
