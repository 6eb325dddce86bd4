"""The kind of content of each parameter of a tool, by its name and by the descriptions of parameter and tool."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from packetgate.tools.spec.tool_spec import subschemas
from packetgate.tools.text.words import words_of

MAX_CHARS = 20_000
_MAX_PARTS = 400

_LEXICON: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
_READ_ONLY = re.compile(
    r"\b(?:read[- ]?only|(?:does|do|will)(?: not|n't) (?:modify|change|alter|write|mutate|affect)"
    r"|no side[- ]effects?|without (?:modifying|changing|altering))\b",
    re.IGNORECASE,
)


def word_lists(section: str) -> dict[str, frozenset[str]]:
    """Return the word lists of a section of the lexicon, by name."""
    return {name: frozenset(words.split()) for name, words in _LEXICON[section].items()}


_WORDS = word_lists("definitions")


Kind = Literal["sql", "code", "command", "language", "search", "save", "address"]
"""`language` is a query language other than SQL that can change something; `search` is one that cannot."""

SAVE_NAMES = frozenset(
    "dest destination download dump export out outdir outfile outpath output save saved tee write".split()
)

_MENTIONS_SQL = re.compile(
    r"\b(?:sql|(?!no|graph)[a-z]*sql|sqlite|select (?:statement|quer)\w*|athena|bigquery|clickhouse|duckdb|redshift"
    r"|snowflake)\b",
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


class Definition(NamedTuple):
    """A tool's definition without its annotations."""

    name: str
    description: str
    schema: Mapping[str, Any]


def parameter_kinds(description: str, schema: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    """Yield the kind and the name of each parameter whose content has a known kind."""
    text = description[:MAX_CHARS]
    sentence = text.partition(". ")[0][:600]
    for name, part in islice(subschemas(dict(schema)), _MAX_PARTS + 1):
        may_be_text = part.get("type") not in ("boolean", "integer", "number") and "enum" not in part
        if name and may_be_text:
            own_text = str(part.get("description", ""))[:2_000]
            if kind := _kind(str(name), own_text, sentence, text):
                yield kind, str(name)


def _kind(name: str, text: str, tool_sentence: str, tool_text: str) -> Kind | None:
    words = {*words_of(name)}
    names_save = bool(words & SAVE_NAMES) and (bool(words & _WORDS["place_names"]) or words <= {"output", "outfile"})
    names_code = bool(words & _WORDS["code"]) or words == {"code"}
    names_code = names_code or ("code" in words and bool(words & _WORDS["source"]))
    mentioned = f"{text} {tool_sentence}" if words & _WORDS["queries"] else ""
    rules: tuple[tuple[object, Kind | None], ...] = (
        (names_save or _SAVES.search(text), "save"),
        (words & _WORDS["addresses"], "address"),
        (words & _WORDS["about"], None),
        (words & _WORDS["sql"] and ("sql" in words or _MENTIONS_SQL.search(f"{text} {tool_text}")), "sql"),
        (words & _WORDS["commands"], "command"),
        (words & _WORDS["languages"], "language"),
        (words & _WORDS["searches"], "search"),
        (names_code or _IS_RUN.search(text), "code"),
        (_MENTIONS_SQL.search(mentioned), "sql"),
        (_MENTIONS_LANGUAGE.search(mentioned), "language"),
    )
    return next((kind for applies, kind in rules if applies), None)


def says_read_only(description: str) -> bool:
    """Return whether a description says that the tool changes nothing."""
    return bool(_READ_ONLY.search(description[:MAX_CHARS]))
