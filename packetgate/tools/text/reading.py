"""Extract plain facts from a request: its words, verbs, mentions, parts, and the access that it asks for."""

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path

from packetgate.state.sections import Access
from packetgate.tools.text.verbs import EXECUTES, KNOWN_VERBS, SENSES, SURE_VERBS, WRITES

SMALL_TALK = frozenset(
    "afternoon alright awesome bye cheers cool day evening fine good goodbye great greetings hallo hello hey hi howdy"
    " how how's is it going are you morning nice night okay ok please sorry sure thank thanks there welcome well"
    " what's up whats yes no yo you're a an and the for very much lot so to all everyone me my i am im i'm doing"
    " today again".split()
)

_TALK: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("talk.toml").read_text(encoding="utf-8"))
_BESIDE_TALK = SMALL_TALK.union(_TALK.pop("beside")["words"].split())
_KIND_BY_PHRASE = {one.replace("_", " "): kind for kind, stored in _TALK.items() for one in stored["phrases"].split()}
_KIND_WORDS = {kind: frozenset(stored["words"].split()) for kind, stored in _TALK.items() if "words" in stored}
_TALK_WORDS = _BESIDE_TALK.union(*_KIND_WORDS.values())
TALK_REPLIES = {kind: stored["reply"] for kind, stored in _TALK.items() if "reply" in stored}
"""Answers to small talk that need nothing else."""
ABOUT_TOOLS = {"help", "about"}
"""Kinds of small talk that are answered with the tools' capabilities."""
_MAX_TALK_WORDS = 12
_TALK_WORD = re.compile('[^\\s?!.,;:()"\u00bf\u00a1\uff1f\uff01\u3002\u3001\u2026]+')

_QUESTIONS = frozenset("how what what's when where which who who's whose why".split())
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")
_BACKQUOTED = re.compile(r"`([^`\n]+)`")
_URL = re.compile(r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]")
PATH = re.compile(
    r"(?<![\w/.~-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+(?:[\w.@+-]*\w)?|(?<![\w/.~-])/\w[\w.@+-]*"
    r"|(?<![\w/.~-])\.?[\w-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])|(?<![\w/.~-])\.[A-Za-z][\w-]{2,}(?![\w/])"
)
_NOT_PATHS = frozenset({"and/or", "e.g", "i.e", "either/or", "his/her", "he/she", "w/o", "yes/no", "true/false"})
_FILES = re.compile(r"(?<![\w/.])(?:README|LICENSE|Makefile|Dockerfile|CHANGELOG|CONTRIBUTING)(?![\w/.])")
_NUMBER = re.compile(r"(?<![\w.:/-])-?\d+(?:\.\d+)?(?![\w:/-]|\.\d)")
_KEY_VALUE = re.compile(r"(?<!\w)[A-Za-z_]\w*\s*=\s*[^\s,;]")
_PART = re.compile(r",?\s+and\s+(?:also\s+)?(?=(\w+)\b)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?]\s+|\n")
_SENTENCE = re.compile(r"[.!:,;]\s+|\n")
_BEFORE_ORDERS = frozenset({"", "please", "you", "to", "and", "then", "also", "just", "now", "let's", "we"})
_CONDITION = re.compile(r"\b(?:if|unless|except|excluding|apart from|other than|only when|as long as)\b", re.IGNORECASE)
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
    spots = [(match.start(), match.group()) for pattern in (PATH, _FILES) for match in pattern.finditer(unquoted)]
    paths = [path for _, path in sorted(spots) if path.lower() not in _NOT_PATHS]
    backquoted_paths = [one for one in backquoted if " " not in one and (PATH.fullmatch(one) or _FILES.fullmatch(one))]
    quoted_paths = [one for one in quoted if " " not in one and PATH.fullmatch(one)]
    texts = tuple(one for one in quoted if one not in quoted_paths)
    pairs = _KEY_VALUE.search(_URL.sub(" ", _BACKQUOTED.sub(" ", text)))
    return Mentions(
        paths=tuple(dict.fromkeys([*paths, *backquoted_paths, *quoted_paths])),
        urls=tuple(_URL.findall(_QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))),
        quoted=texts,
        backquoted=tuple(one for one in backquoted if one not in backquoted_paths),
        has_value=bool(texts or pairs or _NUMBER.search(PATH.sub(" ", unquoted))),
    )


def condition_in(text: str) -> str:
    """Return the word that makes a request conditional, such as `if` or `except`; an empty string if there is none."""
    match = _CONDITION.search(_QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))
    return match[0].lower() if match else ""


def parts_in(step: str) -> list[str]:
    """Return the parts of a step, split where `and` begins another request.

    `read a.txt and list src/` has two parts, `read a.txt and tell me why` one.
    """
    ands = [match for match in _PART.finditer(step) if match[1].lower() in SURE_VERBS]
    cuts = [match.start() for match in ands if not is_within_quotes(step, match.start())]
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
    """Return the known verbs among the words, in order. A word that may be a noun counts only as an instruction."""
    sentences = _SENTENCE_END.split(_QUOTED.sub(" ", _BACKQUOTED.sub(" ", text)))
    orders = [pair for words in map(unquoted_words, sentences) for pair in zip(["", *words], words, strict=False)]
    return [word for before, word in orders if word in SURE_VERBS or (word in KNOWN_VERBS and before in _BEFORE_ORDERS)]


def is_small_talk(text: str) -> bool:
    """Return whether a text is not a request: greetings, thanks and the like, or a question about the assistant."""
    return bool(talk_in(text))


def talk_in(text: str) -> str:
    """Return the kind of small talk: `thanks`, `bye`, `ok`, `help`, `about` or `greeting`; empty if it is none."""
    words = unquoted_words(text)
    if not 0 < len(words) <= _MAX_TALK_WORDS or mentions_in(text).has_target:
        return ""
    phrase = " ".join(_TALK_WORD.findall(text.lower().replace("\u2019", "'")))
    if phrase in _KIND_BY_PHRASE:
        return _KIND_BY_PHRASE[phrase]
    kind = next((kind for kind, listed in _KIND_WORDS.items() if not listed.isdisjoint(words)), "")
    if kind and _TALK_WORDS.issuperset(words):
        return kind
    return "greeting" if SMALL_TALK.issuperset(words) else ""


def is_question(text: str) -> bool:
    """Return whether a text begins with a question word."""
    return next(iter(unquoted_words(text)), None) in _QUESTIONS


def has_question(text: str) -> bool:
    """Return whether a text contains a question."""
    return "?" in text or any(is_question(sentence) for sentence in _SENTENCE.split(text))


def access_of(text: str) -> Access:
    """Return the access that a request asks for, by the first verb of each part; a question only reads."""
    if is_question(text):
        return Access.READ
    verbs = {verb for part in parts_in(text) for verb in verbs_in(part)[:1]}
    writes, executes = bool(verbs & WRITES), bool(verbs & EXECUTES)
    if executes:
        return Access.MIXED if writes else Access.EXECUTE
    return Access.WRITE if writes else Access.READ


def is_within_quotes(text: str, position: int) -> bool:
    """Return whether a position of a text is inside quotes or backquotes."""
    starts, ends = _quoted_spans(text)
    before = bisect_right(starts, position)
    return before > 0 and position < ends[before - 1]


@lru_cache(maxsize=8)
def _quoted_spans(text: str) -> tuple[list[int], list[int]]:
    """Return the starts of all quotations, in order, and for each the last end of those that start up to there."""
    spans = sorted(match.span() for pattern in (_QUOTED, _BACKQUOTED) for match in pattern.finditer(text))
    return [start for start, _ in spans], [*accumulate((end for _, end in spans), max)]
