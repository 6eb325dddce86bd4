"""What the arguments of a call ask for, at every leaf: each is trimmed and read without regard to case."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from packetgate.state.printing import printable
from packetgate.state.routing import Risk
from packetgate.tools.risk.features import kind_of
from packetgate.tools.risk.parameters import SAVE_NAMES
from packetgate.tools.risk.reasons import MOST_CHARS
from packetgate.tools.risk.sql import UNREADABLE, change_in, looks_like_sql, risk_of_sql
from packetgate.tools.text.words import words_of

MAX_DEPTH = 8
MAX_CHARS = 20_000

_METHODS = frozenset({"delete", "patch", "post", "put"})
_METHOD_NAMES = frozenset("http method verb".split())
_ADDRESSES = frozenset("endpoint href link uri url urls webhook".split())
_PLACES = frozenset("api file files folder path paths ref remote revision route target".split())
_BODIES = frozenset("body data form formdata json multipart payload".split())
_ACTIONS = frozenset(
    "action actions cmd command commands do method op operation operations ops subcommand verb".split()
)
_MODES = frozenset({"mode"})
_TURNS = frozenset("power switch toggle turn".split())
_COMMANDS = frozenset("cli cmd cmdline command commands subcommand".split())
_LINES = _COMMANDS | frozenset("argv args arguments flags options opts".split())
"""Parameters that hold words of a command line."""
_REHEARSALS = frozenset("dry dryrun noop preview rehearse simulate".split())
_GO_AHEAD = frozenset("auto confirm confirmed force yes".split())
_CHANGES = frozenset({"changes", "changes?", "runs", "runs?"})
_SURELY_CHANGES = frozenset({"changes", "runs"})
_LEADING = frozenset("also and auto do should then".split())
_ABOUT_ANSWER = frozenset(
    "allow debug embed enable exclude expand extend focus follow format group include like load merge open order select"
    " separate show skip split stream truncate use vote".split()
)
"""Verbs that, as a switch or a mode, say how an answer looks."""
_ORDERS = frozenset("allow enable follow merge vote".split())
"""Those of them that change something where they are the action."""
_SETS = frozenset(
    "add append assign clear delete drop erase insert move purge remove rename replace replacement set unset update"
    " upsert wipe write".split()
)
"""Verbs that, as the whole name of a parameter, are what is to be done."""
_WHERETO = frozenset({"as", "into", "to", "with"})
_OPERATORS = frozenset({"$out", "$merge", "$where", "$function", "$accumulator"})
"""Stages of a pipeline that store its result, and what runs code."""
_SCHEMES = re.compile(r"(?:data|dict|gopher|javascript|vbscript):", re.IGNORECASE)
"""Of addresses that run something, or send any bytes to any port."""
_REQUEST_LINE = re.compile(r"(?:delete|patch|post|put)\s+(?:/|https?://)", re.IGNORECASE)
_SHELL = re.compile(r"\$\(|`[^`]+`|(?:^|[\s\w])(?:;|\|\|?|&&?|>>?)\s*[\w./~$-]")
_OPTION = re.compile(r"--[A-Za-z][\w-]*(?:[=\s]|$)")
_ONE_OPTION = re.compile(r"--?[a-z][\w-]+")
_OPENED_TO_WRITE = re.compile(r"[wax][bt]?\+?[bt]?|r[bt]?\+[bt]?")
"""Modes of files."""
_CODE = re.compile(
    r"__\w+__\s*[.(\[]|\bos\s*\.\s*(?:exec|popen|spawn|system)|\bsubprocess\s*\.|!!python/", re.IGNORECASE
)
_SEEMS_TRUE = frozenset({"1", "on", "true", "y", "yes"})
_SEEMS_FALSE = frozenset({"0", "false", "n", "no", "off"})
_FIRST_WORDS = 3
"""Words of a command line that may be its program and its subcommand."""
_BULK = frozenset({"bulk"})


class Reason(NamedTuple):
    """Why a call does more than read."""

    risk: Risk
    why: str


def reasons_in(params: Mapping[str, Any], held: Mapping[str, str]) -> Iterator[Reason]:
    """Yield what the arguments ask for; `held` is what kind of thing a parameter holds, by its name."""
    is_sent = any(words & _ADDRESSES for name, value in params.items() if value for words in [{*words_of(name)}])
    for name, value in params.items():
        yield from _Reading(held, is_sent).of(name, value, frozenset(), 0)


def quoted(text: str) -> str:
    """Return a name or a value as a reason quotes it."""
    return printable(" ".join(text.split()))[:MOST_CHARS]


class _Reading(NamedTuple):
    held: Mapping[str, str]
    is_sent: bool
    """Whether the call names an address: what goes with it is sent there."""

    def of(self, name: str, value: Any, above: frozenset[str], depth: int) -> Iterator[Reason]:
        """Yield what an argument, or what is within it, asks for; `above` are the words of the names that hold it."""
        words = words_of(name)
        if depth > MAX_DEPTH:
            yield Reason(Risk.EXECUTE, f"its `{quoted(name)}` is nested too deep to be read")
            return
        yield from _of_name(name, words, value, is_sent=self.is_sent)
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield from self.of(str(key), inner, above | {*words}, depth + 1)
        elif isinstance(value, list | tuple) and _LINES & {*words} and all(isinstance(one, str) for one in value):
            yield from self._of_text(name, " ".join(value), above | {*words}, depth)
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from self.of(name, inner, above, depth + 1)
        elif isinstance(value, str) and value.strip():
            yield from self._of_text(name, value, above | {*words}, depth)

    def _of_text(self, name: str, text: str, words: frozenset[str], depth: int) -> Iterator[Reason]:
        kind, plain = self.held.get(name, ""), _plain(text)
        sql = kind == "sql" or "sql" in words_of(name)
        if sql or looks_like_sql(text):
            risk, what = risk_of_sql(text)
            if sql or (risk is not Risk.READ and what not in UNREADABLE):
                yield Reason(risk if sql else Risk.WRITE, f"its `{quoted(name)}` is {what}")
        if kind == "save":
            yield Reason(Risk.WRITE, f"it saves to its `{quoted(name)}`")
        said = Reason(Risk.WRITE, f"its `{quoted(name)}` says `{quoted(text)}`")
        if self._is_order(plain, text, words):
            yield said
        if not sql and (what := change_in(text)):
            yield Reason(Risk.WRITE, f"its `{quoted(name)}` is {what}")
        if _runs_something(plain, words):
            yield Reason(Risk.EXECUTE, said.why)
        if plain[:1] in ("{", "[") and (inner := _json(text)) is not None:
            yield from self.of(name, inner, words, depth + 1)

    def _is_order(self, plain: str, text: str, words: frozenset[str]) -> bool:
        """Whether a text is a method, an action or a mode that changes something."""
        if plain in _METHODS and (words & _METHOD_NAMES or (self.is_sent and text.strip().isupper())):
            return True
        if _REQUEST_LINE.match(plain) or (words & {*_ADDRESSES, *_PLACES} and _is_changing_path(plain)):
            return True
        if plain in ("on", "off") and words & {*_TURNS, *_ACTIONS}:
            return True
        first = next(iter(words_of(text.strip())), "").casefold()
        if (words & _MODES and _OPENED_TO_WRITE.fullmatch(plain)) or (
            _ONE_OPTION.fullmatch(plain) and kind_of(first) in _SURELY_CHANGES
        ):
            return True
        harmless = _ABOUT_ANSWER - _ORDERS if words & _ACTIONS else _ABOUT_ANSWER
        return bool(words & {*_ACTIONS, *_MODES}) and kind_of(first) in _CHANGES and first not in harmless


def _of_name(name: str, words: list[str], value: Any, *, is_sent: bool) -> Iterator[Reason]:
    """Yield what an argument's name makes of a value that is not empty."""
    if name.strip().casefold() in _OPERATORS:
        yield Reason(Risk.WRITE, f"it holds `{quoted(name)}`")
    if not words or name.startswith("$") or value is None or value in ("", [], {}):
        return
    said = Reason(Risk.WRITE, f"its `{quoted(name)}` is `{quoted(str(value))}`")
    switched, known = _switched(value), {*words}
    if switched is False and (known & _REHEARSALS or {"read", "only"} <= known or "readonly" in known):
        yield said
    elif switched:
        verb = next((one for word in words if (one := word.removeprefix("auto")) and one not in _LEADING), "")
        if known & _GO_AHEAD or (kind_of(verb) in _CHANGES and verb not in _ABOUT_ANSWER):
            yield said
    elif switched is None:
        goes_to = len(words) == 2 and words[1] in _WHERETO and kind_of(words[0]) in _SURELY_CHANGES
        if (len(words) == 1 and known & _SETS) or goes_to or _is_request(words, value) or (is_sent and known & _BODIES):
            yield said


def _is_request(words: list[str], value: Any) -> bool:
    """Whether a name says what to do with its value, as `deleteRange: {...}` and `labels_to_add` do."""
    if words[-2:-1] == ["to"]:
        return kind_of(words[-1]) in _SURELY_CHANGES and words[-1] not in _ABOUT_ANSWER
    return isinstance(value, Mapping) and len(words) > 1 and kind_of(words[0]) in _SURELY_CHANGES


def _switched(value: Any) -> bool | None:
    """Return whether a switch is on or off, None where a value is no switch."""
    if isinstance(value, bool | int | float):
        return bool(value) if value in (0, 1) else None
    plain = _plain(value) if isinstance(value, str) else ""
    return True if plain in _SEEMS_TRUE else False if plain in _SEEMS_FALSE else None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:MAX_CHARS]).strip().casefold()


def _is_changing_path(plain: str) -> bool:
    """Whether a path ends in an endpoint of the form `_delete_by_query` that changes something."""
    ends = [part.lstrip("_") for part in plain.partition("?")[0].split("/") if part.startswith("_")]
    return any(kind_of(first) in _SURELY_CHANGES or first in _BULK for end in ends for first in words_of(end)[:1])


def _runs_something(plain: str, words: frozenset[str]) -> bool:
    """Whether a text starts a program, or hands one an option that makes it do more."""
    if _CODE.search(plain) or (words & _ADDRESSES and _SCHEMES.match(plain)):
        return True
    if words & _LINES:
        return bool(_SHELL.search(plain)) or _is_line_that_changes(plain, is_command=bool(words & _COMMANDS))
    return bool(words & _PLACES) and bool(_SHELL.search(plain) or _OPTION.match(plain))


def _is_line_that_changes(plain: str, *, is_command: bool) -> bool:
    """Whether the words of a command line say that it changes something; those of a command must say that it reads."""
    parts = plain.split()
    bare = [words[0] for part in parts if part[0].isalpha() and (words := words_of(part))][:_FIRST_WORDS]
    options = [words for part in parts if part[0] == "-" and (words := words_of(part.partition("=")[0]))]
    if any({*option} & (SAVE_NAMES | _BODIES) or kind_of(option[0]) in _SURELY_CHANGES for option in options):
        return True
    if any(kind_of(word) in _CHANGES and word not in _ABOUT_ANSWER for word in bare) or {*parts} & _METHODS:
        return True
    return is_command and bool(bare) and not any(kind_of(word) for word in bare)


def _json(text: str) -> Any:
    try:
        return json.loads(text[: MAX_CHARS + 1])
    except (ValueError, RecursionError):
        return None
