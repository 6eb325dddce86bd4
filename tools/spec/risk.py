"""What a tool may do to the world, judged from its name and from what its server says of it.

The server's annotations are hints from an untrusted party: they may raise the risk, and lower it only where the
configuration trusts the server. A name without a known verb counts as write, and so does a tool that takes code, SQL, a
script, an expression or a command, or a path to save to: what it does is in its arguments, not in its name.
"""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from state.routing import Risk
from tools.spec.tool_spec import parts_of
from tools.text.words import words_of

READ_VERBS = frozenset(
    "analyze calculate check compare compute convert count describe diff discover echo evaluate explain explore extract"
    " fetch find get glob grep head inspect list lookup ls measure parse peek ping preview query read retrieve"
    " scan search select show stat status suggest summarize tail translate validate verify view".split()
)
WRITE_VERBS = frozenset(
    "accept add allocate append apply approve archive assign book buy cancel change clear close comment commit"
    " configure copy create delete disable drop edit enable erase fork generate grant import insert install invite"
    " invoke kill link lock log make mark merge modify move mute open order patch pay pin post publish purge push put"
    " rebase record register reject release remove rename replace reply reset restart restore revoke save schedule"
    " send set share sign stop store submit subscribe sync transfer trash trigger unlink unlock update upload upsert"
    " write".split()
)
EXECUTE_VERBS = frozenset(
    "bash call command deploy eval exec execute launch powershell run script shell sh spawn start sudo".split()
)

_CODE_NAMES = frozenset(
    "bash cmd command commands cypher expr expression expressions javascript js lambda logql lua promql python script"
    " scripts shell snippet sparql sql statement statements".split()
)
"""Words in the names of parameters that hold code."""
_SOURCE = frozenset("html java javascript js program python script source sql".split())
"""Words before `code` that make it a program's: there are country codes too."""
_QUERY_NAMES = frozenset("input q queries query".split())
"""Parameters that hold code where their tool, or they, speak of a query language."""
_OF_CODE = frozenset("format id language mode name timeout type".split())
"""Words that make a parameter one about code, not code."""
_SAVE_NAMES = frozenset("dest destination download export out output save saved write".split())
_PLACE_NAMES = frozenset("as dir directory file filename filepath folder path to".split())

_LANGUAGE = r"(?:cypher|flux|javascript|(?!html|url)[a-z]*ql|python|sparql)"
_SPEAKS_OF_LANGUAGE = re.compile(rf"\b{_LANGUAGE}\b", re.IGNORECASE)
_RUNS = re.compile(
    r"\b(?:execut|run|evaluat|interpret)\w*\b[^.;:\n]{0,40}\b(?:code|commands?|scripts?|shell|statements?"
    rf"|(?<!regular )(?<!cron )(?<!glob )expressions?|{_LANGUAGE})\b",
    re.IGNORECASE,
)
_IS_RUN = re.compile(r"\b(?:code|commands?|expressions?|scripts?|sql) to (?:execute|run|evaluate)\b", re.IGNORECASE)
_SAVES = re.compile(
    r"\b(?:(?:path|file|filename|folder|directory|where) to|to) (?:save|write|store|download|export)\b"
    r"|\b(?:output|destination) (?:file|path|folder|directory)\b",
    re.IGNORECASE,
)


class Annotations(Protocol):
    """The MCP tool annotations that bear on risk; each None when the server says nothing."""

    read_only_hint: bool | None
    destructive_hint: bool | None


def risk_of(
    name: str,
    annotations: Annotations | None,
    *,
    trusted: bool,
    description: str = "",
    schema: Mapping[str, Any] | None = None,
) -> Risk:
    """Judge a tool by what its server says of it, its own name first; the worst of it counts."""
    judged = _risk_of_name(name)
    if judged is Risk.READ and _acts_by_argument(description, dict(schema or {})):
        judged = Risk.WRITE
    if annotations is None:
        return judged
    if annotations.read_only_hint:
        return Risk.READ if trusted else judged
    if annotations.destructive_hint or annotations.read_only_hint is False:
        return max(judged, Risk.WRITE, key=lambda risk: risk.severity)
    return judged


def _risk_of_name(name: str) -> Risk:
    words = set(words_of(name))
    if words & EXECUTE_VERBS:
        return Risk.EXECUTE
    if words & WRITE_VERBS or not words & READ_VERBS:
        return Risk.WRITE
    return Risk.READ


def _acts_by_argument(description: str, schema: dict[str, Any]) -> bool:
    """Whether a tool does what an argument says, or writes where one says."""
    texts = [(name, str(part.get("description", ""))) for name, part in parts_of(schema) if name and _may_be_text(part)]
    about = description.partition(".")[0]
    return (bool(texts) and bool(_RUNS.search(about))) or any(
        _holds_code(name, f"{about} {text}")
        or _names_a_place_to_save(name)
        or _IS_RUN.search(text)
        or _SAVES.search(text)
        for name, text in texts
    )


def _may_be_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") not in ("boolean", "integer", "number") and "enum" not in part


def _holds_code(parameter: str, about: str) -> bool:
    words = set(words_of(parameter))
    return not words & _OF_CODE and bool(
        words & _CODE_NAMES
        or words == {"code"}
        or ("code" in words and words & _SOURCE)
        or (words & _QUERY_NAMES and _SPEAKS_OF_LANGUAGE.search(about))
    )


def _names_a_place_to_save(parameter: str) -> bool:
    words = set(words_of(parameter))
    return bool(words & _SAVE_NAMES) and (bool(words & _PLACE_NAMES) or words <= {"output", "outfile"})
