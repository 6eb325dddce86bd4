"""What English verbs do: read, change or run something. `verbs.toml` is the only list of them."""

import tomllib
from itertools import pairwise
from pathlib import Path

from packetgate.tools.text.words import words_of

SURE_CHANGES = frozenset({"changes", "runs"})
POSSIBLE_CHANGES = SURE_CHANGES | {"changes?", "runs?"}
JOINING_WORDS = frozenset({"and", "or", "then", "to"})
"""Words after which a name or a sentence may mention a second verb."""

_LISTS = {kind: words.split() for kind, words in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()}
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
