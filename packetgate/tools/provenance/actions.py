"""What kind of action a tool is for, and whether words ask for it."""

import re
from functools import lru_cache

from packetgate.tools.provenance.words import ACTIONS, NOUNS
from packetgate.tools.text.words import stem_of, words_of

_ALL = frozenset(verb for family in ACTIONS for verb in family)
_WORD = re.compile(r"(?<![\w.@/:-])[a-z][a-z'-]*[a-z](?![\w@/]|\.\w)")
_ASKING = frozenset(
    "please then and to must should now you first also finally kindly immediately just could can will would need be or"
    " next instead always do before after assistant ai agent have".split()
)
"""Words before a verb that make it an instruction, beside the beginning of a clause."""
_LABEL = re.compile(r"[\"']?\s?[:=]")
"""What makes the word before it the name of a field."""
_CLAUSE = re.compile(r"(?:^|[.!?:;,\n\"'()\[\]{}<>*#|/-])\s*$")


@lru_cache(maxsize=4_096)
def verbs_of(name: str) -> frozenset[str]:
    """Return the stems of the verbs that ask for what a tool of this name does, its own first."""
    words = words_of(name)
    own = next((word for word in words if word in _ALL), words[0] if words else "")
    near = {verb for family in ACTIONS if family[0] == own for verb in family}
    return frozenset(map(stem_of, {own, *near})) if own else frozenset()


_DELEGATES = re.compile(
    r"\b(?:do|follow|perform|execute|complete|handle|finish|carry out|go through|work (?:through|off))\b[^.!?\n]{0,60}"
    r"\b(?:instructions?|tasks?|actions?|steps?|to-?dos?|orders?|directions?|what (?:it|they|he|she) says?)\b"
)


def delegates(words: str) -> bool:
    """Whether the user's words, folded, say to do what is written elsewhere."""
    return _DELEGATES.search(words) is not None


def own_stem(name: str) -> str:
    """Return the stem of a tool's own verb."""
    words = words_of(name)
    own = next((word for word in words if word in _ALL), words[0] if words else "")
    return stem_of(own)


def calls_for(name: str, words: str) -> bool:
    """Whether the user's words, folded, speak of such an action at all."""
    stems = {stem_of(word) for word in _WORD.findall(words)}
    return bool(verbs_of(name) & stems)


def asks_for(name: str, passage: str) -> bool:
    """Whether a passage, folded, instructs somebody to do what a tool of this name does."""
    return commanded(name, passage) is not None


def commanded(name: str, passage: str) -> tuple[int, int] | None:
    """Return where a passage, folded, instructs somebody to do what a tool of this name does."""
    verbs, own = verbs_of(name), own_stem(name)
    last = ""
    for found in _WORD.finditer(passage):
        stem = stem_of(found[0])
        before = passage[max(0, found.start() - 4) : found.start()]
        leads = (stem == own and len(own) > 4) or last in _ASKING or _CLAUSE.search(before)
        orders = stem in verbs and found[0] not in NOUNS and leads
        if orders and not _LABEL.match(passage, found.end()):
            return found.span()
        last = found[0]
    return None
