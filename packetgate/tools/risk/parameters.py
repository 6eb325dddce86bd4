"""Classify parameters by the values that they take: SQL, code, commands, output paths, addresses."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from packetgate.tools.spec.tool_spec import parts_of
from packetgate.tools.text.words import words_of

Kind = Literal["sql", "code", "command", "language", "search", "save", "address"]
"""`language` is a query language other than SQL that can change something; `search` is one that cannot."""

SAVE_NAMES = frozenset("dest destination download export out output save saved write".split())
_MAX_PARTS = 401
_COMMANDS = frozenset("argv bash cmd command commands commandline powershell shell".split())
_CODE = frozenset("expression expressions function javascript js lambda macro python script scripts snippet".split())
_SQL = frozenset("dml sql statement statements".split())
_LANGUAGES = frozenset("cypher flux gremlin graphql influxql mutation sparql".split())
_SEARCHES = frozenset("cql esql jql kql logql lucene promql soql traceql".split())
_SOURCE = frozenset("html java javascript js program python script source".split())
"""Words before `code` that mean program code, unlike `country_code`."""
_QUERIES = frozenset("input q queries query".split())
"""Parameters that take a query language if their description, or the tool's, names one."""
_ABOUT = frozenset("count format id ids language limit mode name names path timeout title type url".split())
"""Words of parameters that describe code and do not hold it."""
_PLACE_NAMES = frozenset("as dir directory file filename filepath folder path to".split())
_ADDRESSES = frozenset("endpoint host hostname uri uris url urls webhook website".split())

_MENTIONS_SQL = re.compile(
    r"\b(?:sql|(?!no|graph)[a-z]*sql|sqlite|select (?:statement|quer)\w*|bigquery|redshift|snowflake|athena)\b",
    re.IGNORECASE,
)
_MENTIONS_LANGUAGE = re.compile(
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


def parameter_kinds(description: str, schema: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    """Yield the kind and name of each parameter of a known kind."""
    about = description[:20_000]
    sentence = about.partition(". ")[0][:600]
    for name, part in islice(parts_of(dict(schema)), _MAX_PARTS):
        may_be_text = part.get("type") not in ("boolean", "integer", "number") and "enum" not in part
        if name and may_be_text:
            text = str(part.get("description", ""))[:2_000]
            if kind := _kind(str(name), text, sentence, about):
                yield kind, str(name)


def _kind(name: str, text: str, sentence: str, about: str) -> Kind | None:
    words = {*words_of(name)}
    names_save = bool(words & SAVE_NAMES) and (bool(words & _PLACE_NAMES) or words <= {"output", "outfile"})
    names_code = bool(words & _CODE) or words == {"code"} or ("code" in words and bool(words & _SOURCE))
    mentioned = f"{text} {sentence}" if words & _QUERIES else ""
    rules: tuple[tuple[object, Kind | None], ...] = (
        (names_save or _SAVES.search(text), "save"),
        (words & _ADDRESSES, "address"),
        (words & _ABOUT, None),
        (words & _SQL and ("sql" in words or _MENTIONS_SQL.search(f"{text} {about}")), "sql"),
        (words & _COMMANDS, "command"),
        (words & _LANGUAGES, "language"),
        (words & _SEARCHES, "search"),
        (names_code or _IS_RUN.search(text), "code"),
        (_MENTIONS_SQL.search(mentioned), "sql"),
        (_MENTIONS_LANGUAGE.search(mentioned), "language"),
    )
    return next((kind for applies, kind in rules if applies), None)
