"""Split a request into steps without the parts that forbid something, and find other meanings of its words."""

import re
from itertools import pairwise

from packetgate.deciders.commands import UNDO_TOOL
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.tools.text.reading import PATH, is_small_talk, is_within_quotes, mentions_in, verbs_in
from packetgate.tools.text.verbs import KNOWN_VERBS, SENSES

_ADVICE = re.compile(r"^\s*(?:how\s+(?:do|should|would|to)\b|why\b|what\s+(?:is|are)\s+(?:a|an)\b)", re.IGNORECASE)
_STEP = re.compile(
    r"(?:[,;.]?\s+(?:and\s+)?(?:then|after\s+that|afterwards)[,]?\s+)|;\s+|\n\s*\d+[.)]\s+", re.IGNORECASE
)
_CLAUSE = re.compile(r"(?:[.!?;,]\s+|\n+|\s+(?=but\b|and\b))(?:(?:and|but|so)\s+)*", re.IGNORECASE)
_BEFORE = r"^\W*(?:(?:please|just|also|so|now|ok|okay|no|and|but|then|whatever you do)\b[\s,]*)*"
_FORBIDS = re.compile(
    rf"{_BEFORE}(?:(you|we|i)\s+)?(?:(?:do|does|did|must|should|shall)\s+not|(?:do|does|did|must|should)n['\u2019]?t|never"
    r"|let['\u2019]?s\s+not|avoid|refrain\s+from|(?:there(?:'s| is)\s+)?no\s+need\s+to|not\s+to)"
    r"\s+(?:(?:want|have|need|you|to|ever|even|please|by any means|under any circumstances)\s+)*([a-z]+)",
    re.IGNORECASE,
)
_FORBIDS_NOTHING = frozenset("bother fail forget hesitate just mind only worry".split())
"""Words after a negation that forbid nothing, as in `don't forget to`."""
_LEAVE_UNCHANGED = re.compile(
    rf"{_BEFORE}(?:keep|leave|spare|not)\s+(?:(?:the|my|file|folder)\s+)*[\"'`]*", re.IGNORECASE
)
_INSTEAD = re.compile(r"\?|\b(?:i|we|instead|only|just)\b", re.IGNORECASE)
"""After a clause that forbids something, these words or a question mark show a new request."""
_LOOSE_ENDS = re.compile(r"^(?:[\s,.;!]|\b(?:and|but|so)\b)+|(?:[\s,;]|\b(?:and|but|so)\b)+$", re.IGNORECASE)
ONLY_UNDO = "the request only asks to undo a change"
_THING = (
    r"(?:that|this|it|(?:(?:the|my|your)\s+)?(?:(?:last|latest|previous)\s+)?(?:change|edit|write|move|copy|deletion))"
)
_UNDO_WORDS = re.compile(
    rf"(?:please\s+)?(?:(?:undo|revert|reverse|roll\s+back|take\s+back)(?:\s+{_THING})?|(?:take|roll)\s+{_THING}\s+back)"
    r"(?:\s+(?:to|of|in)\s+(?P<path>\S*\w))?(?:\s+(?P<change>[0-9a-f]{8,32}))?(?:,?\s+please)?[.!]*",
    re.IGNORECASE,
)


def steps_in(request: str) -> list[str]:
    """Return the steps of a request, split at `then`, `;` and numbered items. Parts that forbid something are left out.

    The list is empty if the request only forbids something.
    """
    steps = [step.strip() for step in _split_outside_quotes(_STEP, request) if step.strip()] or [request.strip()]
    return [wanted for step in steps if (wanted := _without_forbidden(step)) or not step]


def forbids_something(request: str) -> bool:
    """Return whether a part of a request forbids something."""
    return any(_without_forbidden(step) != step.strip() for step in _split_outside_quotes(_STEP, request))


def _without_forbidden(text: str) -> str:
    starts = [match.end() for match in _CLAUSE.finditer(text) if not is_within_quotes(text, match.start())]
    clauses = [text[start:end] for start, end in pairwise([0, *starts, len(text)])]
    wanted, is_wanted, begins_sentence = [], True, False
    for clause in clauses:
        if _is_forbidden(clause):
            is_wanted = False
        elif begins_sentence or _INSTEAD.search(clause) or verbs_in(PATH.sub(" ", clause)):
            is_wanted = True
        wanted += [clause] if is_wanted else []
        begins_sentence = clause.rstrip().endswith((".", "!", "?"))
    if len(wanted) == len(clauses):
        return text.strip()
    rest = _LOOSE_ENDS.sub("", "".join(wanted))
    return "" if is_small_talk(rest) else rest


def _is_forbidden(clause: str) -> bool:
    match, leaves_unchanged = _FORBIDS.match(clause), _LEAVE_UNCHANGED.match(clause)
    if match is None:
        path = next(iter(mentions_in(clause).paths), None)
        return leaves_unchanged is not None and path is not None and clause[leaves_unchanged.end() :].startswith(path)
    who, word = (match[1] or "").lower(), match[2].lower()
    return word not in _FORBIDS_NOTHING if who in {"", "you"} else word in KNOWN_VERBS


def senses_of(verbs: list[str]) -> list[str]:
    """Return the verbs in tool names that a request's verbs may mean, in order, without duplicates."""
    senses = (sense for verb in verbs for sense, words in SENSES.items() if verb in words or verb == sense)
    return list(dict.fromkeys(senses))


def asks_for_advice(text: str) -> bool:
    """Return whether a text asks how to do something, why, or what a kind of thing is."""
    return bool(_ADVICE.match(text))


def _split_outside_quotes(pattern: re.Pattern[str], text: str) -> list[str]:
    pieces, last = [], 0
    for match in pattern.finditer(text):
        if not is_within_quotes(text, match.start()):
            pieces.append(text[last : match.start()])
            last = match.end()
    return [*pieces, text[last:]]


def undo_in_words(text: str) -> Selection | None:
    """Return the call that a text such as `undo that` asks for, if it asks for nothing else; otherwise None."""
    words = _UNDO_WORDS.fullmatch(text.strip())
    if words is None:
        return None
    params = {name: value for name, value in words.groupdict().items() if value}
    return Selection.of_certain(SelectedCall(tool_name=UNDO_TOOL, params=params, reasoning=ONLY_UNDO))
