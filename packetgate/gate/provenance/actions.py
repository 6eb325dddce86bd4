"""Decide whether a text asks for a tool's action."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from packetgate.tools.text.argument_words import ACTIONS, WORDS
from packetgate.tools.text.verbs import READ_VERBS, WRITE_VERBS
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_in, words_of

_NEAR_CHARS = 200
_VERBS = frozenset().union(*ACTIONS.values())
_COMMAND = re.compile(r"(?<!\S)/([a-z]+)(?!\S)")
_WORD = re.compile(r"(?<![\w.@/:-])[a-z](?:[a-z'-]*[a-z])?(?![\w@/]|\.\w)")
_CLAUSE_START = re.compile(r"(?:^|[.!?:;,\n\"'()\[\]{}<>*#|/-])\s*$")
_SENTENCE = re.compile(r"(?<=[.!?\u2026])\s+|\n+")
_OBJECT = re.compile(r"\s+(?:the|an?|this|these|it|them|him|her|all|each|every)\b")
_TO_USER = re.compile(r"\W*(?:me|us|myself)\b")
DELEGATION = re.compile(
    r"\b(?:do|follow|perform|execute|complete|handle|finish|carry out|go through|work (?:through|off))\b"
    r"(?! (?:all )?(?:of )?(?:the |these )?following\b)[^.!?\n]{0,60}"
    r"\b(?:instructions?|tasks?|actions?|steps?|to-?dos?|orders?|directions?|what (?:it|they|he|she) says?)\b(?!\s*:)"
)
"""A request of the user to follow the instructions in a document."""


def asks_for_action(action: str, words: str, neighbours: Iterable[str]) -> bool:
    """Return whether the user's folded words ask for the action of a tool with this name.

    A verb of the action counts where it is an instruction, unless it asks to tell or give the user something. With an
    object, or as the tool's own verb, it counts anywhere. The instruction is ignored if another tool of the server
    (`neighbours`) fits verb and sentence better: "share the file" asks for `share_file`, not for `send_email`.
    """
    own, verbs = stem_of(_own_verb(action)), stems_of(action)
    if not verbs.isdisjoint(map(stem_of, _COMMAND.findall(words))):
        return True
    others = [one for one in neighbours if one != action and READ_VERBS.isdisjoint(words_of(one)[:1])]
    for sentence in _SENTENCE.split(words):
        stems = frozenset(map(stem_of, words_in(sentence)))
        for verb, instructs in _verbs_in(action, sentence):
            is_order = instructs and not _TO_USER.match(sentence, verb.end())
            if is_order or stem_of(verb[0]) == own or _OBJECT.match(sentence, verb.end()):
                after = frozenset(map(stem_of, words_in(sentence[verb.end() : verb.end() + _NEAR_CHARS])))
                fit = _fit(action, verb[0], stems)
                if not any(_fit(other, verb[0], after, is_rival=True) > fit for other in others):
                    return True
    return False


def _fit(action: str, verb: str, words: frozenset[str], *, is_rival: bool = False) -> int:
    """Return how well a tool fits a verb and the stems of words around it, from 0 to 2.

    A rival does not fit if its name has several other words, and `words` contains none of them.
    """
    own = _own_verb(action)
    nouns = {stem_of(word) for word in words_of(action) if word != own and word not in STOP_WORDS}
    has_noun = not nouns.isdisjoint(words)
    if stem_of(verb) not in stems_of(action) or (is_rival and len(nouns) > 1 and not has_noun):
        return 0
    return (stem_of(own) == stem_of(verb)) + has_noun


def is_removal(action: str) -> bool:
    """Return whether a tool with this name removes something."""
    return _own_verb(action) in ACTIONS["delete"]


def instruction_span(action: str, text: str) -> tuple[int, int] | None:
    """Return the start and end of the first verb in a folded text that instructs somebody to do the action."""
    own = stem_of(_own_verb(action))
    spans = (
        verb.span()
        for verb, instructs in _verbs_in(action, text)
        if instructs or (len(own) > 4 and stem_of(verb[0]) == own and not _is_plural(verb[0]))
    )
    return next(spans, None)


def _verbs_in(action: str, text: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield each verb of the action, with whether its place in the clause makes it an instruction.

    A plural word is a noun, as in a heading, or the verb of a report. It counts only if the tool's name contains it,
    and is never an instruction.
    """
    last, verbs, stems = "", verbs_of(action), stems_of(action)
    for match in _WORD.finditer(text):
        word = match[0]
        is_plural = _is_plural(word)
        if stem_of(word) in stems and (word in verbs or not is_plural) and word not in WORDS["nouns"]:
            before = text[max(0, match.start() - 4) : match.start()]
            starts = last in WORDS["before_instructions"] or _CLAUSE_START.search(before) is not None
            yield match, starts and not is_plural
        last = word


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


@lru_cache(maxsize=4_096)
def verbs_of(action: str) -> frozenset[str]:
    """Return the verb in a tool's name, and all verbs that ask for the same action, as "comment" for `add_comment`."""
    own = _own_verb(action)
    others = WRITE_VERBS.intersection(words_of(action)) if own in ACTIONS["create"] else ()
    return frozenset({own, *others, *ACTIONS.get(own, ())} - {""})


@lru_cache(maxsize=4_096)
def stems_of(action: str) -> frozenset[str]:
    """Return the stems of these verbs."""
    return frozenset(map(stem_of, verbs_of(action)))


def _own_verb(action: str) -> str:
    words = words_of(action)
    return next((word for word in words if word in _VERBS), words[0] if words else "")
