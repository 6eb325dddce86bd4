"""Reading a request without a model: its steps, the verbs it asks with, and what it mentions."""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from packetgate.state.sections import Access
from packetgate.tools.text.verbs import EXECUTE_VERBS, WRITE_VERBS

SMALL_TALK = frozenset(
    "afternoon alright awesome bye cheers cool day evening fine good goodbye great greetings hallo hello hey hi howdy"
    " how how's is it going are you morning nice night okay ok please sorry sure thank thanks there welcome well"
    " what's up whats yes no yo you're a an and the for very much lot so to all everyone me my i am im i'm doing"
    " today again".split()
)

SENSES: dict[str, frozenset[str]] = {
    "read": frozenset(
        "cat display explain get open print quote read say says see show summarise summarize tell view".split()
    ),
    "list": frozenset("enumerate list ls show".split()),
    "search": frozenset("find grep look lookup query search where".split()),
    "write": frozenset("create generate make note overwrite put record save store write".split()),
    "append": frozenset("add append".split()),
    "execute": frozenset("call execute launch run start".split()),
    "convert": frozenset("convert translate".split()),
    "delete": frozenset("delete drop erase remove".split()),
}
"""What a user's verb may stand for in the name of a tool."""

VERBS = (
    frozenset().union(*SENSES.values())
    | WRITE_VERBS
    | EXECUTE_VERBS
    | {"check", "compare", "count", "describe", "fetch"}
)

_WRITES = (
    (WRITE_VERBS | SENSES["write"] | SENSES["append"] | SENSES["delete"])
    - SENSES["read"]
    - SENSES["search"]
    - SENSES["execute"]
)

_QUESTIONS = frozenset("how what what's when where which who who's whose why".split())

_ADVICE = re.compile(r"^\s*(?:how\s+(?:do|should|would|to)\b|why\b|what\s+(?:is|are)\s+(?:a|an)\b)", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")
_TICKED = re.compile(r"`([^`\n]+)`")
_URL = re.compile(r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]")
_PATH = re.compile(
    r"(?<![\w/.~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+(?:[\w.@+-]*\w)?|(?<![\w/.~-])/\w[\w.@+-]*"
    r"|(?<![\w/.~-])\.?[\w-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])|(?<![\w/.~-])\.[A-Za-z][\w-]{2,}(?![\w/])"
)
_NOT_PATHS = frozenset({"and/or", "e.g", "i.e", "either/or", "his/her", "he/she", "w/o", "yes/no", "true/false"})
_FILES = re.compile(r"(?<![\w/.])(?:README|LICENSE|Makefile|Dockerfile|CHANGELOG|CONTRIBUTING)(?![\w/.])")
_NUMBER = re.compile(r"(?<![\w.:/-])-?\d+(?:\.\d+)?(?![\w:/-]|\.\d)")
_KEY_VALUE = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*=\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;]+(?:,(?!\w+\s*=)[^\s,;]+)*)")
_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-3]):[0-5]\d(?!\d)")
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
_NO_BAN = frozenset("bother fail forget hesitate just mind only worry".split())
"""Words after a negation that forbid nothing: `don't forget to`."""
_SPARES = re.compile(rf"{_BEFORE}(?:keep|leave|spare|not)\s+(?:(?:the|my|file|folder)\s+)*[\"'`]*", re.IGNORECASE)
_RESERVES = re.compile(r"\b(?:if|unless|except|excluding|apart from|other than|only when|as long as)\b", re.IGNORECASE)
_INSTEAD = re.compile(r"\?|\b(?:i|we|instead|only|just)\b", re.IGNORECASE)
"""What a clause has that says something new after one that forbids."""
_LOOSE = re.compile(r"^(?:[\s,.;!]|\b(?:and|but|so)\b)+|(?:[\s,;]|\b(?:and|but|so)\b)+$", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")


@dataclass(frozen=True)
class Mentions:
    """What a piece of a request names outright, in order of appearance."""

    text: str
    paths: tuple[str, ...]
    urls: tuple[str, ...]
    quoted: tuple[str, ...]
    ticked: tuple[str, ...]
    numbers: tuple[str, ...]
    clocks: tuple[str, ...]
    named: dict[str, str]
    """`key=value` pairs."""

    @property
    def has_target(self) -> bool:
        """Whether something is named that only a tool can reach."""
        return bool(self.paths or self.urls or self.ticked)


@lru_cache(maxsize=256)
def mentions_in(text: str) -> Mentions:
    """Read what `text` names."""
    quoted = tuple(next(group for group in match if group) for match in _QUOTED.findall(text))
    bare = _QUOTED.sub(" ", _TICKED.sub(" ", text))
    urls = tuple(_URL.findall(bare))
    without_urls = _URL.sub(" ", bare)
    inside_ticks = [
        tick for tick in _TICKED.findall(text) if " " not in tick and (_PATH.fullmatch(tick) or _FILES.fullmatch(tick))
    ]
    inside_quotes = [value for value in quoted if _PATH.fullmatch(value) and " " not in value]
    spots = [(m.start(), m.group()) for pattern in (_PATH, _FILES) for m in pattern.finditer(without_urls)]
    paths = [value for _, value in sorted(spots) if value.lower() not in _NOT_PATHS]
    return Mentions(
        text=text,
        paths=tuple(dict.fromkeys([*paths, *inside_ticks, *inside_quotes])),
        urls=urls,
        quoted=tuple(value for value in quoted if value not in inside_quotes),
        ticked=tuple(tick for tick in _TICKED.findall(text) if tick not in inside_ticks),
        numbers=tuple(_NUMBER.findall(_CLOCK.sub(" ", _PATH.sub(" ", without_urls)))),
        clocks=tuple(match.group() for match in _CLOCK.finditer(without_urls)),
        named={
            key: value.rstrip("?!.").strip("\"'")
            for key, value in _KEY_VALUE.findall(_URL.sub(" ", _TICKED.sub(" ", text)))
        },
    )


def steps_in(request: str) -> list[str]:
    """Split a request where one thing is to follow another: `then`, `;`, a numbered list.

    What it says is not to be done is left out; where that is all, there is no step.
    """
    steps = [step.strip() for step in _outside_quotes(_STEP, request) if step.strip()] or [request.strip()]
    return [wanted for step in steps if (wanted := wanted_of(step)) or not step]


def wanted_of(text: str) -> str:
    """Return a text without what it says is not to be done: `don't delete a.txt`, `keep b.txt`, `but not c.txt`.

    Clauses without a verb of their own go with the one before in their sentence.
    """
    starts = [match.end() for match in _CLAUSE.finditer(text) if not _within_quotes(text, match.start())]
    clauses = [text[start:end] for start, end in pairwise([0, *starts, len(text)])]
    wanted, is_wanted, ends = [], True, False
    for clause in clauses:
        if _is_forbidden(clause):
            is_wanted = False
        elif ends or _INSTEAD.search(clause) or verbs_in(_PATH.sub(" ", clause)):
            is_wanted = True
        wanted += [clause] if is_wanted else []
        ends = clause.rstrip().endswith((".", "!", "?"))
    if len(wanted) == len(clauses):
        return text.strip()
    rest = _LOOSE.sub("", "".join(wanted))
    return "" if is_small_talk(rest) else rest


def reserve_in(text: str) -> str:
    """Return the word by which a text says when something is to be done, or for what not; empty where there is none."""
    match = _RESERVES.search(_QUOTED.sub(" ", _TICKED.sub(" ", text)))
    return match[0].lower() if match else ""


def parts_in(step: str) -> list[str]:
    """Split a step where `and` begins another request: `read a.txt and list src/`, not `... and tell me why`."""
    cut = [m.start() for m in _PART.finditer(step) if m[1].lower() in VERBS and not _within_quotes(step, m.start())]
    edges = [0, *cut, len(step)]
    parts = [_PART.sub("", step[start:end], count=1) if start else step[start:end] for start, end in pairwise(edges)]
    found: list[str] = []
    for part in (part.strip(" ,.") for part in parts):
        if found and _only_tells(part):
            found[-1] += f" and {part}"
        elif part:
            found.append(part)
    return found


def words_in(text: str) -> list[str]:
    """Return the words outside quotes, in lower case."""
    return [word.lower() for word in _WORD.findall(_QUOTED.sub(" ", _TICKED.sub(" ", text)))]


def verbs_in(text: str) -> list[str]:
    """Return the known verbs among the words, in order."""
    return [word for word in words_in(text) if word in VERBS]


def senses_of(verbs: list[str]) -> list[str]:
    """Return the tool verbs that a user's verbs may stand for, in order, without repeats."""
    return list(
        dict.fromkeys(sense for verb in verbs for sense, words in SENSES.items() if verb in words or verb == sense)
    )


def is_small_talk(text: str) -> bool:
    """Whether nothing but greetings, thanks and the like is said."""
    words = words_in(text)
    return (
        bool(words)
        and len(words) <= 12
        and all(word in SMALL_TALK for word in words)
        and not mentions_in(text).has_target
    )


def is_question(text: str) -> bool:
    """Whether it begins with a question word."""
    return bool(words_in(text)) and words_in(text)[0] in _QUESTIONS


def asks(text: str) -> bool:
    """Whether a question stands in it."""
    return "?" in text or any(is_question(sentence) for sentence in _SENTENCE.split(text))


def asks_advice(text: str) -> bool:
    """Whether it asks how or why something is done, not for it to be done."""
    return bool(_ADVICE.match(text))


def access_of(text: str) -> Access:
    """Judge what kind of access a request asks for, by the verb each part leads with; a question only reads."""
    if is_question(text):
        return Access.READ
    verbs = [verb for part in parts_in(text) for verb in verbs_in(part)[:1]]
    writes = any(verb in _WRITES for verb in verbs)
    executes = any(verb in SENSES["execute"] | EXECUTE_VERBS for verb in verbs)
    if writes and executes:
        return Access.MIXED
    if executes:
        return Access.EXECUTE
    return Access.WRITE if writes else Access.READ


def _is_forbidden(clause: str) -> bool:
    """Whether a clause says of an action that it is not to be done, or of a thing that it is to be left alone."""
    match, spares = _FORBIDS.match(clause), _SPARES.match(clause)
    if match is None:
        return spares is not None and clause[spares.end() :].startswith(mentions_in(clause).paths[:1] or ("\0",))
    who, word = (match[1] or "").lower(), match[2].lower()
    if who in {"", "you"}:
        return word not in _NO_BAN
    return word in VERBS


def _only_tells(part: str) -> bool:
    """Whether a part names nothing of its own and only says what to do with what the part before it brings."""
    lead, mentions = verbs_in(part)[:1], mentions_in(part)
    names = mentions.has_target or mentions.named or mentions.quoted or mentions.numbers
    return not names and bool(lead) and lead[0] in SENSES["read"]


def _within_quotes(text: str, position: int) -> bool:
    spans = [m.span() for pattern in (_QUOTED, _TICKED) for m in pattern.finditer(text)]
    return any(start <= position < end for start, end in spans)


def _outside_quotes(pattern: re.Pattern[str], text: str) -> list[str]:
    pieces, last = [], 0
    for match in pattern.finditer(text):
        if not _within_quotes(text, match.start()):
            pieces.append(text[last : match.start()])
            last = match.end()
    return [*pieces, text[last:]]
