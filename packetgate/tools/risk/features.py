"""Extract the features of a tool's definition for the risk model, and the kind of content of each parameter.

A feature's name starts with its group, such as `name:delete`, `lead:changes`, `takes:sql`. Each group has a scale: the
prior of the weight of one feature.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from packetgate.tools.spec.tool_spec import subschemas
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

VERSION = 1
"""Version of the features; weights for another version cannot be used."""
_MAX_CHARS = 20_000
_MAX_PARTS = 400

SCALES = {
    "kind": 1.0,
    "name": 1.0,
    "lead": 1.0,
    "pair": 0.5,
    "first": 0.35,
    "rest": 0.1,
    "says": 0.7,
    "takes": 1.0,
    "param": 0.35,
    "choice": 0.7,
    "shape": 0.5,
    "gram": 0.25,
}
SURE_CHANGES = frozenset({"changes", "runs"})
_SURE = SURE_CHANGES | {"reads"}

_LEXICON: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n\s*\n|\n\s*(?=[-*#\d])")
_HEADING = re.compile(
    r"^[\W_]*(args?|arguments|parameters|params|inputs?|raises|examples?|usage)[*_]*\s*:", re.IGNORECASE | re.MULTILINE
)
_SAYS = {
    topic: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    for topic, pattern in {
        "read only": (
            r"read[- ]?only|(?:does|do|will)(?: not|n't) (?:modify|change|alter|write|mutate|affect)"
            r"|no side[- ]effects?|without (?:modifying|changing|altering)"
        ),
        "final": (
            r"irreversibl[ey]|permanent(?:ly)?|cannot be (?:undone|reversed|recovered)|destructive|overwrit\w+"
            r"|dangerous|unsafe"
        ),
        "confirm": r"confirm(?:ation|ed)?|approval|user consent|use with caution|carefully",
        "side effect": r"side[- ]effects?|modif(?:y|ies|ied)|creates?|deletes?|removes?|sends?",
        "returns": r"returns?|retrieves?|lists?|shows?",
        "useful for": r"useful (?:for|when)|use (?:this|it) (?:to|when|tool)|helps?",
    }.items()
}


def word_lists(section: str) -> dict[str, frozenset[str]]:
    """Return the word lists of a section of the lexicon, by name."""
    return {name: frozenset(words.split()) for name, words in _LEXICON[section].items()}


_WORDS = word_lists("definitions")
_LINKS = frozenset({"and", "or", "then", "to", "/"})
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?|[,;/]")


Kind = Literal["sql", "code", "command", "language", "search", "save", "address"]
"""`language` is a query language other than SQL that can change something; `search` is one that cannot."""

SAVE_NAMES = frozenset("dest destination download export out output save saved write".split())

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


class Definition(NamedTuple):
    """A tool's definition without its annotations."""

    name: str
    description: str
    schema: Mapping[str, Any]


def features_of(tool: Definition) -> dict[str, float]:
    """Return the features of a definition with their strengths."""
    strengths: dict[str, float] = {}
    sentences = _sentences(tool.description[:_MAX_CHARS])
    for feature in (*_of_name(tool.name), *_of_description(sentences), *_of_parameters(tool)):
        group = feature.partition(":")[0]
        most = 2 * SCALES[group] if group == "rest" else SCALES[group]
        strengths[feature] = min(strengths.get(feature, 0.0) + SCALES[group], most)
    return strengths


def parameter_kinds(description: str, schema: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    """Yield the kind and the name of each parameter whose content has a known kind."""
    text = description[:_MAX_CHARS]
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
    return bool(_SAYS["read only"].search(description[:_MAX_CHARS]))


def joined_in(name: str) -> str:
    """Return the second verb of a name if it changes something, such as `create` in `get_or_create`; empty if none."""
    pairs = pairwise(words_of(name))
    return next((word for link, word in pairs if link in _LINKS and verb_kind(word) in SURE_CHANGES), "")


def verb_kind(word: str) -> str:
    """Return the kind of a verb: `reads`, `changes`, `runs` or `either`; with `?` if it may be a noun; or empty."""
    return _kinds().get(word.lower(), "")


def inflected_verb_kind(word: str) -> str:
    """Return the kind of a verb, also in forms such as `creates` and `creating`."""
    word = word.lower()
    bases = [word]
    if word.endswith("s"):
        bases += [word[:-1], word[:-2], f"{word[:-3]}y"]
    if word.endswith("ing") and len(word) > 5:
        bases += [word[:-3], f"{word[:-3]}e", word[:-4]]
    return next((kind for base in bases if (kind := _kinds().get(base))), "")


@cache
def _kinds() -> dict[str, str]:
    kinds = {word: kind for kind in ("reads", "changes", "runs") for word in _LEXICON[kind].split()}
    return kinds | {word: f"{kinds[word]}?" if word in kinds else "either" for word in _LEXICON["either"].split()}


def _of_name(name: str) -> Iterator[str]:
    words = words_of(name)[:12]
    stems = [stem_of(word) for word in words]
    kinds = [verb_kind(word) for word in words]
    yield from (f"name:{stem}" for stem in stems)
    yield from (f"name:{one} {other}" for one, other in pairwise(stems))
    if stems:
        yield f"name:^{stems[0]}"
        yield f"name:{stems[-1]}$"
    else:
        yield "kind:name none"
    at = _verb_index(kinds)
    if at is None:
        yield "kind:name no verb"
    else:
        yield f"kind:name verb {kinds[at]}"
        yield f"name:verb {stems[at]}"
        yield f"kind:name begins {kinds[at]}" if at == 0 else "kind:name begins noun"
        joined = {kinds[index] for index in range(at + 2, len(words)) if words[index - 1] in _LINKS} & _SURE
        yield from (f"kind:name {kinds[at]} and {kind}" for kind in sorted(joined))
    sure = {*kinds} & _SURE
    yield from (f"kind:name has {kind}" for kind in sorted(sure))
    if sure == {"reads"}:
        yield "kind:name only reads"
    padded = f"^{'_'.join(words)}$"
    for size in (4, 5):
        yield from (f"gram:{padded[start : start + size]}" for start in range(len(padded) - size + 1))


def _verb_index(kinds: list[str]) -> int | None:
    """Return the index of a name's verb: the first word, otherwise a certain verb, otherwise the last possible verb."""
    if kinds and kinds[0]:
        return 0
    known = [at for at, kind in enumerate(kinds) if kind]
    return next((at for at in known if kinds[at] in _SURE), known[-1] if known else None)


def _is_informative(word: str, next_word: str) -> bool:
    if word in _WORDS["lets"]:
        return next_word not in _WORDS["let"]
    return word[0].isalpha() and word not in STOP_WORDS and word not in _WORDS["boilerplate"]


def _sentences(description: str) -> list[str]:
    """Return the sentences of a description up to its section about parameters."""
    heading = _HEADING.search(description)
    text = description[: heading.start()] if heading and heading.start() > 20 else description
    return [" ".join(part.split()) for part in _SENTENCE.split(text.strip()) if part and part.strip()][:40]


def _of_description(sentences: list[str]) -> Iterator[str]:
    if not sentences:
        yield "shape:no description"
        return
    first, rest = sentences[0][:600], " ".join(sentences[1:])
    if not first.isascii() and sum(char.isascii() for char in first) < 0.7 * len(first):
        yield "shape:not english"
    words = [word.lower() for word in _WORD.findall(first)]
    yield from _of_lead(words)
    stems = [stem_of(word) for word in words if word not in STOP_WORDS and word[0].isalpha()]
    yield from (f"first:{stem}" for stem in stems[:40])
    yield from (f"pair:{one} {other}" for one, other in pairwise(stems[:8]))
    for sentence in sentences[1:12]:
        word = next((word for word in words_in(sentence[:80]) if word not in STOP_WORDS | _WORDS["boilerplate"]), "")
        if word and (kind := inflected_verb_kind(word)):
            yield f"says:then {kind}"
    for topic, pattern in _SAYS.items():
        if pattern.search(first):
            yield f"says:{topic} first"
        if pattern.search(rest):
            yield f"says:{topic}"
    yield from (f"rest:{stem_of(word)}" for word in words_in(rest)[:400] if word not in STOP_WORDS)


def _of_lead(words: list[str]) -> Iterator[str]:
    informative = [word for word, next_word in pairwise([*words, ""]) if _is_informative(word, next_word)]
    leading = [inflected_verb_kind(word) for word in informative[:3]]
    at = next((at for at, kind in enumerate(leading) if kind), None)
    if at is None:
        later = next((kind for word in informative[3:] if (kind := inflected_verb_kind(word)) in _SURE), "none")
        yield f"kind:lead none, later {later}"
        return
    yield f"kind:lead {leading[at]}"
    yield f"kind:lead {'first' if at == 0 else 'later'} {leading[at]}"
    yield f"lead:{stem_of(informative[at])}"
    pairs = pairwise(words[:60])
    chained = {inflected_verb_kind(word) for before, word in pairs if before in _LINKS or before in ",;/"} & _SURE
    yield from (f"kind:lead {leading[at]}, and {kind}" for kind in sorted(chained))
    yield from (f"kind:and {kind}" for kind in sorted(chained))


def _of_parameters(tool: Definition) -> Iterator[str]:
    named = ((str(name), part) for name, part in subschemas(dict(tool.schema)) if name)
    parts = [*islice(named, _MAX_PARTS)]
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        yield "shape:no parameters"
    kinds = {kind for kind, _ in parameter_kinds(tool.description, tool.schema)} - {"save"}  # that depends on the call
    yield from (f"takes:{kind}" for kind in sorted(kinds))
    for name, _ in parts[:60]:
        stems = [stem_of(word) for word in words_of(name)]
        yield from (f"param:{stem}" for stem in stems)
        yield f"param:={' '.join(stems)}"
        if stems and (kind := verb_kind(stems[0])):
            yield f"says:parameter {kind}"
    for _, part in parts:
        choices, items = part.get("enum"), part.get("items")
        if isinstance(choices, list):
            yield from _of_choices(choices)
        if part.get("type") == "array" and isinstance(items, dict) and items.get("type") == "object":
            yield "shape:takes objects"
        if part.get("type") == "object":
            yield "shape:takes an object"


def _of_choices(choices: Iterable[Any]) -> Iterator[str]:
    for choice in islice(choices, 40):
        words = words_of(choice) if isinstance(choice, str) else []
        if words and (kind := verb_kind(words[0])):
            yield f"choice:{kind}"
            yield f"choice:={stem_of(words[0])}"
