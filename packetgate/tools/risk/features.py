"""What is seen of a tool's definition before it is weighed: words by where they stand, and what kind of verb they are.

A feature's name says where it was seen: `name:delete`, `lead:changes`, `takes:sql`. Every group has its own scale, the
prior on how much one such sight may count.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from packetgate.tools.risk.parameters import takes
from packetgate.tools.spec.tool_spec import parts_of
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

VERSION = 1
"""Of what the features mean: weights of another version are of no use."""

MAX_CHARS = 20_000
"""Of a description that is read: what a server sends has no end."""
MAX_PARTS = 400
"""Of a schema."""

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

_LEXICON = Path(__file__).with_name("lexicon.toml")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n\s*\n|\n\s*(?=[-*#\d])")
_HEADING = re.compile(
    r"^[\W_]*(args?|arguments|parameters|params|inputs?|raises|examples?|usage)[*_]*\s*:", re.IGNORECASE | re.MULTILINE
)
_SAYS = {
    said: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    for said, pattern in {
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
_BOILERPLATE = frozenset(
    "tool tools function command action operation api endpoint use used uses using"
    " help helps able ability user users provides perform performs important note warning required always call must"
    " currently deprecated beta mcp".split()
)
_LETS = frozenset("allow allows enable enables lets".split())
_LET = frozenset("agents ai client clients llm llms one the to us user users you".split())
SURE = frozenset({"reads", "changes", "runs"})
"""Kinds of words that are verbs wherever they stand."""
_LINKS = frozenset({"and", "or", "then", "to", "/"})
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?|[,;/]")


class Definition(NamedTuple):
    """What a server says of a tool, its annotations left out."""

    name: str
    description: str
    schema: Mapping[str, Any]


def features_of(tool: Definition) -> dict[str, float]:
    """Return what is seen of a tool, each with its strength."""
    found: dict[str, float] = {}
    about = _about(tool.description[:MAX_CHARS])
    for feature in (*_of_name(tool.name), *_of_description(about), *_of_parameters(tool, about)):
        group = feature.partition(":")[0]
        most = 2 * SCALES[group] if group == "rest" else SCALES[group]
        found[feature] = min(found.get(feature, 0.0) + SCALES[group], most)
    return found


def says_read_only(description: str) -> bool:
    """Whether a description says that nothing is changed."""
    return bool(_SAYS["read only"].search(description[:MAX_CHARS]))


def joined_in(name: str) -> str:
    """Return the word of a name that says what else a tool does, such as `create` in `get_or_create`."""
    pairs = pairwise(words_of(name))
    return next((word for link, word in pairs if link in _LINKS and kind_of(word) in {"changes", "runs"}), "")


def kind_of(word: str) -> str:
    """Return what kind of verb a word of a name is: `reads`, `changes`, `runs` or `either`, empty if it is none.

    One that may also stand for a thing ends in `?`. `deleted`, `messages` and `configuration` are no verbs.
    """
    return _kinds().get(word.lower(), "")


def kind_said(word: str) -> str:
    """Return what kind of verb a word of a description is, in the forms `creates` and `creating` too."""
    word = word.lower()
    bases = [word]
    if word.endswith("s"):
        bases += [word[:-1], word[:-2], f"{word[:-3]}y"]
    if word.endswith("ing") and len(word) > 5:
        bases += [word[:-3], f"{word[:-3]}e", word[:-4]]
    return next((kind for base in bases if (kind := _kinds().get(base))), "")


@cache
def _kinds() -> dict[str, str]:
    said = tomllib.loads(_LEXICON.read_text("utf-8"))
    kinds = {word: kind for kind in ("reads", "changes", "runs") for word in said[kind].split()}
    return kinds | {word: f"{kinds[word]}?" if word in kinds else "either" for word in said["either"].split()}


def _of_name(name: str) -> Iterator[str]:
    words = words_of(name)[:12]
    stems = [stem_of(word) for word in words]
    kinds = [kind_of(word) for word in words]
    sure = [kind for kind in kinds if kind in SURE]
    yield from (f"name:{stem}" for stem in stems)
    yield from (f"name:{one} {other}" for one, other in pairwise(stems))
    if stems:
        yield f"name:^{stems[0]}"
        yield f"name:{stems[-1]}$"
    if not words:
        yield "kind:name none"
    at = _verb_at(kinds)
    if at is None:
        yield "kind:name no verb"
    else:
        yield f"kind:name verb {kinds[at]}"
        yield f"name:verb {stems[at]}"
        yield f"kind:name begins {kinds[at]}" if at == 0 else "kind:name begins noun"
        joined = {kinds[i] for i in range(at + 2, len(words)) if words[i - 1] in _LINKS} & SURE
        yield from (f"kind:name {kinds[at]} and {kind}" for kind in sorted(joined))
    yield from (f"kind:name has {kind}" for kind in sorted({*sure}))
    if {*sure} == {"reads"}:
        yield "kind:name only reads"
    whole = f"^{'_'.join(words)}$"
    for size in (4, 5):
        yield from (f"gram:{whole[at : at + size]}" for at in range(len(whole) - size + 1))


def _verb_at(kinds: list[str]) -> int | None:
    """Return where a name's verb stands: first of all, else where it is surely one, else where it may be one."""
    if kinds and kinds[0]:
        return 0
    known = [at for at, kind in enumerate(kinds) if kind]
    return next((at for at in known if kinds[at] in SURE), known[-1] if known else None)


def _tells(word: str, then: str) -> bool:
    if word in _LETS:
        return then not in _LET
    return word[0].isalpha() and word not in STOP_WORDS and word not in _BOILERPLATE


def _about(description: str) -> list[str]:
    """Return the sentences of a description, up to where it turns to its parameters."""
    heading = _HEADING.search(description)
    text = description[: heading.start()] if heading and heading.start() > 20 else description
    return [" ".join(part.split()) for part in _SENTENCE.split(text.strip()) if part and part.strip()][:40]


def _of_description(sentences: list[str]) -> Iterator[str]:
    if not sentences:
        yield "shape:no description"
        return
    first, rest = sentences[0][:600], " ".join(sentences[1:])
    words = [word.lower() for word in _WORD.findall(first)]
    if not first.isascii() and sum(char.isascii() for char in first) < 0.7 * len(first):
        yield "shape:not english"
    telling = [word for word, then in pairwise([*words, ""]) if _tells(word, then)]
    leading = [kind_said(word) for word in telling[:3]]
    at = next((at for at, kind in enumerate(leading) if kind), None)
    if at is None:
        later = next((word for word in telling[3:] if kind_said(word) in SURE), "")
        yield f"kind:lead none, later {kind_said(later) or 'none'}"
    else:
        yield f"kind:lead {leading[at]}"
        yield f"kind:lead {'first' if at == 0 else 'later'} {leading[at]}"
        yield f"lead:{stem_of(telling[at])}"
        chained = {
            kind_said(word) for before, word in pairwise(words[:60]) if before in _LINKS or before in ",;/"
        } & SURE
        yield from (f"kind:lead {leading[at]}, and {kind}" for kind in sorted(chained))
        yield from (f"kind:and {kind}" for kind in sorted(chained))
    stems = [stem_of(word) for word in words if word not in STOP_WORDS and word[0].isalpha()]
    yield from (f"first:{stem}" for stem in stems[:40])
    yield from (f"pair:{one} {other}" for one, other in pairwise(stems[:8]))
    for sentence in sentences[1:12]:
        word = next((word for word in words_in(sentence[:80]) if word not in STOP_WORDS | _BOILERPLATE), "")
        if word and (kind := kind_said(word)):
            yield f"says:then {kind}"
    for said, pattern in _SAYS.items():
        if pattern.search(first):
            yield f"says:{said} first"
        if pattern.search(rest):
            yield f"says:{said}"
    yield from (f"rest:{stem_of(word)}" for word in words_in(rest)[:400] if word not in STOP_WORDS)


def _of_parameters(tool: Definition, about: list[str]) -> Iterator[str]:
    parts = _parts(tool.schema)
    names = [name for name, _ in parts]
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        yield "shape:no parameters"
    kinds = {kind for kind, _ in takes(tool.description, tool.schema)} - {"save"}  # that is judged of the call
    yield from (f"takes:{kind}" for kind in sorted(kinds))
    for name in names[:60]:
        stems = [stem_of(word) for word in words_of(name)]
        yield from (f"param:{stem}" for stem in stems)
        yield f"param:={' '.join(stems)}"
        if stems and (kind := kind_of(stems[0])):
            yield f"says:parameter {kind}"
    for name, part in parts:
        choices = part.get("enum")
        if isinstance(choices, list):
            yield from _of_choices(choices)
        if (
            part.get("type") == "array"
            and isinstance(part.get("items"), dict)
            and part["items"].get("type") == "object"
        ):
            yield "shape:takes objects"
        if part.get("type") == "object" and name:
            yield "shape:takes an object"


def _of_choices(choices: Iterable[Any]) -> Iterator[str]:
    for choice in [*choices][:40]:
        words = words_of(choice) if isinstance(choice, str) else []
        if words and (kind := kind_of(words[0])):
            yield f"choice:{kind}"
            yield f"choice:={stem_of(words[0])}"


def _parts(schema: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for name, part in parts_of(dict(schema)):
        if name:
            found.append((str(name), part))
        if len(found) >= MAX_PARTS:
            break
    return found
