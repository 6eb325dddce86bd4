"""Split a request into steps and parts, and find its verbs, access, negations and mentions."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from packetgate.state.sections import Access
from packetgate.tools.text.verbs import EXECUTE_VERBS, READ_VERBS, SENSES, WRITE_VERBS

SMALL_TALK = frozenset(
    "afternoon alright awesome bye cheers cool day evening fine good goodbye great greetings hallo hello hey hi howdy"
    " how how's is it going are you morning nice night okay ok please sorry sure thank thanks there welcome well"
    " what's up whats yes no yo you're a an and the for very much lot so to all everyone me my i am im i'm doing"
    " today again".split()
)

KNOWN_VERBS = READ_VERBS.union(*SENSES.values(), WRITE_VERBS, EXECUTE_VERBS)
_WRITES = (WRITE_VERBS | SENSES["write"] | SENSES["append"] | SENSES["delete"]) - (
    SENSES["read"] | SENSES["search"] | SENSES["execute"]
)

_QUESTIONS = frozenset("how what what's when where which who who's whose why".split())
_ADVICE = re.compile(r"^\s*(?:how\s+(?:do|should|would|to)\b|why\b|what\s+(?:is|are)\s+(?:a|an)\b)", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")
_BACKQUOTED = re.compile(r"`([^`\n]+)`")
_URL = re.compile(r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]")
_PATH = re.compile(
    r"(?<![\w/.~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+(?:[\w.@+-]*\w)?|(?<![\w/.~-])/\w[\w.@+-]*"
    r"|(?<![\w/.~-])\.?[\w-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])|(?<![\w/.~-])\.[A-Za-z][\w-]{2,}(?![\w/])"
)
_NOT_PATHS = frozenset({"and/or", "e.g", "i.e", "either/or", "his/her", "he/she", "w/o", "yes/no", "true/false"})
_FILES = re.compile(r"(?<![\w/.])(?:README|LICENSE|Makefile|Dockerfile|CHANGELOG|CONTRIBUTING)(?![\w/.])")
_NUMBER = re.compile(r"(?<![\w.:/-])-?\d+(?:\.\d+)?(?![\w:/-]|\.\d)")
_KEY_VALUE = re.compile(r"(?<!\w)[A-Za-z_]\w*\s*=\s*[^\s,;]")
_STEP = re.compile(
    r"(?:[,;.]?\s+(?:and\s+)?(?:then|after\s+that|afterwards)[,]?\s+)|;\s+|\n\s*\d+[.)]\s+", re.IGNORECASE
)
_PART = re.compile(r",?\s+and\s+(?:also\s+)?(?=(\w+)\b)", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!:,;]\s+|\n")
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
_CONDITION = re.compile(r"\b(?:if|unless|except|excluding|apart from|other than|only when|as long as)\b", re.IGNORECASE)
_INSTEAD = re.compile(r"\?|\b(?:i|we|instead|only|just)\b", re.IGNORECASE)
"""After a clause that forbids something, these words or a question mark show a new request."""
_LOOSE_ENDS = re.compile(r"^(?:[\s,.;!]|\b(?:and|but|so)\b)+|(?:[\s,;]|\b(?:and|but|so)\b)+$", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")


@dataclass(frozen=True)
class Mentions:
    """Paths, URLs and texts that a request contains, in order."""

    paths: tuple[str, ...]
    urls: tuple[str, ...]
    quoted: tuple[str, ...]
    backquoted: tuple[str, ...]
    has_value: bool  # whether the request contains a quoted text, a number or a `key=value` pair

    @property
    def has_target(self) -> bool:
        """Whether the request contains a path, a URL or a backquoted text."""
        return bool(self.paths or self.urls or self.backquoted)


@lru_cache(maxsize=256)
def mentions_in(text: str) -> Mentions:
    """Return the mentions in a text."""
    quoted, backquoted = [next(filter(None, groups)) for groups in _QUOTED.findall(text)], _BACKQUOTED.findall(text)
    unquoted = _URL.sub(" ", _QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))
    spots = [(match.start(), match.group()) for pattern in (_PATH, _FILES) for match in pattern.finditer(unquoted)]
    paths = [path for _, path in sorted(spots) if path.lower() not in _NOT_PATHS]
    backquoted_paths = [one for one in backquoted if " " not in one and (_PATH.fullmatch(one) or _FILES.fullmatch(one))]
    quoted_paths = [one for one in quoted if " " not in one and _PATH.fullmatch(one)]
    texts = tuple(one for one in quoted if one not in quoted_paths)
    pairs = _KEY_VALUE.search(_URL.sub(" ", _BACKQUOTED.sub(" ", text)))
    return Mentions(
        paths=tuple(dict.fromkeys([*paths, *backquoted_paths, *quoted_paths])),
        urls=tuple(_URL.findall(_QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))),
        quoted=texts,
        backquoted=tuple(one for one in backquoted if one not in backquoted_paths),
        has_value=bool(texts or pairs or _NUMBER.search(_PATH.sub(" ", unquoted))),
    )


def steps_in(request: str) -> list[str]:
    """Return the steps of a request, split at `then`, `;` and numbered items. Parts that forbid something are left out.

    The list is empty if the request only says what not to do.
    """
    steps = [step.strip() for step in _split_outside_quotes(_STEP, request) if step.strip()] or [request.strip()]
    return [wanted for step in steps if (wanted := _without_forbidden(step)) or not step]


def _without_forbidden(text: str) -> str:
    starts = [match.end() for match in _CLAUSE.finditer(text) if not _within_quotes(text, match.start())]
    clauses = [text[start:end] for start, end in pairwise([0, *starts, len(text)])]
    wanted, is_wanted, begins_sentence = [], True, False
    for clause in clauses:
        if _is_forbidden(clause):
            is_wanted = False
        elif begins_sentence or _INSTEAD.search(clause) or verbs_in(_PATH.sub(" ", clause)):
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


def condition_in(text: str) -> str:
    """Return the word that makes a request conditional, such as `if` or `except`; an empty text if there is none."""
    match = _CONDITION.search(_QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))
    return match[0].lower() if match else ""


def parts_in(step: str) -> list[str]:
    """Return the parts of a step, split where `and` begins another request.

    `read a.txt and list src/` has two parts, `read a.txt and tell me why` one.
    """
    ands = [match for match in _PART.finditer(step) if match[1].lower() in KNOWN_VERBS]
    cuts = [match.start() for match in ands if not _within_quotes(step, match.start())]
    edges = [0, *cuts, len(step)]
    parts = [_PART.sub("", step[start:end], count=1) if start else step[start:end] for start, end in pairwise(edges)]
    found: list[str] = []
    for part in (part.strip(" ,.") for part in parts):
        if found and _continues(part):
            found[-1] += f" and {part}"
        elif part:
            found.append(part)
    return found


def _continues(part: str) -> bool:
    verb, mentions = next(iter(verbs_in(part)), None), mentions_in(part)
    return verb in SENSES["read"] and not mentions.has_target and not mentions.has_value


def unquoted_words(text: str) -> list[str]:
    """Return the words outside quotes, in lower case."""
    return [word.lower() for word in _WORD.findall(_QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))]


def verbs_in(text: str) -> list[str]:
    """Return the known verbs among the words, in order."""
    return [word for word in unquoted_words(text) if word in KNOWN_VERBS]


def senses_of(verbs: list[str]) -> list[str]:
    """Return the verbs in tool names that a request's verbs may mean, in order, without duplicates."""
    senses = (sense for verb in verbs for sense, words in SENSES.items() if verb in words or verb == sense)
    return list(dict.fromkeys(senses))


def is_small_talk(text: str) -> bool:
    """Return whether a text contains only greetings, thanks and similar words."""
    words = unquoted_words(text)
    return 0 < len(words) <= 12 and SMALL_TALK.issuperset(words) and not mentions_in(text).has_target


def is_question(text: str) -> bool:
    """Return whether a text begins with a question word."""
    return next(iter(unquoted_words(text)), None) in _QUESTIONS


def has_question(text: str) -> bool:
    """Return whether a text contains a question."""
    return "?" in text or any(is_question(sentence) for sentence in _SENTENCE.split(text))


def asks_for_advice(text: str) -> bool:
    """Return whether a text asks how to do something, why, or what a kind of thing is."""
    return bool(_ADVICE.match(text))


def access_of(text: str) -> Access:
    """Return the access that a request asks for, by the first verb of each part; a question only reads."""
    if is_question(text):
        return Access.READ
    verbs = {verb for part in parts_in(text) for verb in verbs_in(part)[:1]}
    writes, executes = bool(verbs & _WRITES), bool(verbs & (SENSES["execute"] | EXECUTE_VERBS))
    if executes:
        return Access.MIXED if writes else Access.EXECUTE
    return Access.WRITE if writes else Access.READ


def _within_quotes(text: str, position: int) -> bool:
    starts, ends = _quoted_spans(text)
    before = bisect_right(starts, position)
    return before > 0 and position < ends[before - 1]


@lru_cache(maxsize=8)
def _quoted_spans(text: str) -> tuple[list[int], list[int]]:
    """Return the starts of all quotations, in order, and for each the last end of those that start until there."""
    spans = sorted(match.span() for pattern in (_QUOTED, _BACKQUOTED) for match in pattern.finditer(text))
    return [start for start, _ in spans], [*accumulate((end for _, end in spans), max)]


def _split_outside_quotes(pattern: re.Pattern[str], text: str) -> list[str]:
    pieces, last = [], 0
    for match in pattern.finditer(text):
        if not _within_quotes(text, match.start()):
            pieces.append(text[last : match.start()])
            last = match.end()
    return [*pieces, text[last:]]
