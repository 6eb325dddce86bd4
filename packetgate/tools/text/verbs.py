"""The actions of English verbs: read, change or run something. `verbs.toml` is the only list of them."""

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

from packetgate.tools.text.words import words_of

SURE_CHANGES = frozenset({"changes", "runs"})
POSSIBLE_CHANGES = SURE_CHANGES | {"changes?", "runs?"}
JOINING_WORDS = frozenset({"and", "or", "then", "to"})
"""Words after which a name or a sentence may mention a second verb."""

_STORED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SENSES = {sense: frozenset(words.split()) for sense, words in _STORED.pop("senses").items()}
"""Verbs in requests, by the verb in tool names that they may mean."""
_LISTS = {name: words.split() for name, words in _STORED.items()}
SENDING_VERBS, DOUBTFUL_READS = frozenset(_LISTS["sending"]), frozenset(_LISTS["doubtful"])
_KINDS = {word: kind for kind in ("reads", "changes", "runs") for word in _LISTS[kind]}
_KINDS |= {word: f"{_KINDS[word]}?" if word in _KINDS else "either" for word in _LISTS["either"]}


def verb_kind(word: str) -> str:
    """Return the kind of a verb: `reads`, `changes`, `runs` or `either`; with `?` if it may be a noun; or empty."""
    return _KINDS.get(word.lower(), "")


def inflected_verb_kind(word: str) -> str:
    """Return the kind of a verb, also in forms such as `creates` and `creating`."""
    word = word.lower()
    bases = [word]
    if word.endswith("s"):
        bases += [word[:-1], word[:-2], f"{word[:-3]}y"]
    if word.endswith("ing") and len(word) > 5:
        bases += [word[:-3], f"{word[:-3]}e", word[:-4]]
    return next((kind for base in bases if (kind := _KINDS.get(base))), "")


def joined_in(name: str) -> str:
    """Return the second verb of a name if it changes something, such as `create` in `get_or_create`; empty if none."""
    pairs = pairwise(words_of(name))
    return next((word for link, word in pairs if link in JOINING_WORDS and verb_kind(word) in SURE_CHANGES), "")


def _of_kind(kind: str) -> frozenset[str]:
    return frozenset(word for word in _KINDS if _KINDS[word] in (kind, f"{kind}?"))


READ_VERBS, WRITE_VERBS, EXECUTE_VERBS = map(_of_kind, ("reads", "changes", "runs"))
KNOWN_VERBS = READ_VERBS.union(*SENSES.values(), WRITE_VERBS, EXECUTE_VERBS)
"""Verbs that begin a request."""
SURE_VERBS = KNOWN_VERBS - frozenset(word for word in _KINDS if _KINDS[word].endswith("?")).difference(*SENSES.values())
"""Known verbs that are rarely nouns."""
WRITES = (WRITE_VERBS | SENSES["write"] | SENSES["append"] | SENSES["delete"]) - (
    SENSES["read"] | SENSES["search"] | SENSES["execute"]
)
EXECUTES = SENSES["execute"] | EXECUTE_VERBS
