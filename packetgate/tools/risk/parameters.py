"""What a tool's parameters hold that makes a call what its arguments say: SQL, code, a command, a path to save to."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from packetgate.tools.spec.tool_spec import parts_of
from packetgate.tools.text.words import words_of

Kind = Literal["sql", "code", "command", "language", "search", "save", "address"]
"""`language`: one beside SQL in which a query may change something; `search`: one in which it cannot."""

_COMMANDS = frozenset("argv bash cmd command commands commandline powershell shell".split())
_CODE = frozenset("expression expressions function javascript js lambda macro python script scripts snippet".split())
_SQL = frozenset("dml sql statement statements".split())
_LANGUAGES = frozenset("cypher flux gremlin graphql influxql mutation sparql".split())
_SEARCHES = frozenset("cql esql jql kql logql lucene promql soql traceql".split())
_SOURCE = frozenset("html java javascript js program python script source".split())
"""Words before `code` that make it a program's: there are country codes too."""
_QUERIES = frozenset("input q queries query".split())
"""Parameters that hold a language where their tool, or they, speak of one."""
_ABOUT = frozenset("count format id ids language limit mode name names path timeout title type url".split())
"""Words that make a parameter one about code, not code."""
SAVE_NAMES = frozenset("dest destination download export out output save saved write".split())
"""Words of a parameter for where something is saved."""
_PLACE_NAMES = frozenset("as dir directory file filename filepath folder path to".split())
_ADDRESSES = frozenset("endpoint host hostname uri uris url urls webhook website".split())

_SPEAKS_OF_SQL = re.compile(
    r"\b(?:sql|(?!no|graph)[a-z]*sql|sqlite|select (?:statement|quer)\w*|bigquery|redshift|snowflake|athena)\b",
    re.IGNORECASE,
)
_SPEAKS_OF_LANGUAGE = re.compile(
    r"\b(?:cypher|flux|gremlin|influxql|sparql|graphql (?:query|mutation|operation))\b", re.IGNORECASE
)
_IS_RUN = re.compile(
    r"\b(?:code|commands?|scripts?) to (?:be )?(?:execute|run|evaluate)d?\b"
    r"|\b(?:python|javascript|js|shell|bash) (?:code|script|snippet|command)s?\b",
    re.IGNORECASE,
)
_SAVES = re.compile(
    r"\b(?:(?:path|file|filename|folder|directory|where) to|to) (?:save|write|store|download|export)\b"
    r"|\b(?:output|destination) (?:file|path|folder|directory)\b",
    re.IGNORECASE,
)


def takes(description: str, schema: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    """Yield what kinds of things the parameters hold, each with the parameter's name."""
    about = description[:20_000]
    sentence = about.partition(". ")[0][:600]
    for at, (name, part) in enumerate(parts_of(dict(schema))):
        if at > 400:
            return
        if name and _may_be_text(part):
            text = str(part.get("description", ""))[:2_000]
            kind = _kind(str(name), text, sentence, about)
            if kind:
                yield kind, str(name)


def _kind(name: str, text: str, sentence: str, about: str) -> Kind | None:
    words = set(words_of(name))
    if _names_a_place_to_save(words) or _SAVES.search(text):
        return "save"
    if words & _ADDRESSES:
        return "address"
    if words & _ABOUT:
        return None
    if words & _SQL and ("sql" in words or _SPEAKS_OF_SQL.search(f"{text} {about}")):
        return "sql"
    if words & _COMMANDS:
        return "command"
    if words & _LANGUAGES:
        return "language"
    if words & _SEARCHES:
        return "search"
    if words & _CODE or words == {"code"} or ("code" in words and words & _SOURCE) or _IS_RUN.search(text):
        return "code"
    if words & _QUERIES and _SPEAKS_OF_SQL.search(f"{text} {sentence}"):
        return "sql"
    if words & _QUERIES and _SPEAKS_OF_LANGUAGE.search(f"{text} {sentence}"):
        return "language"
    return None


def _may_be_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") not in ("boolean", "integer", "number") and "enum" not in part


def _names_a_place_to_save(words: set[str]) -> bool:
    return bool(words & SAVE_NAMES) and (bool(words & _PLACE_NAMES) or words <= {"output", "outfile"})
