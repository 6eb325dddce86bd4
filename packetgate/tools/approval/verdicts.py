"""What a reply in words decides: yes or no to all that is asked, or to each by its number, its name or its place.

Every word must be accounted for. What says yes and no at once, asks, or says more, decides nothing.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.state.sections import ApprovalOutcome, Remember
from packetgate.tools.text.words import stem_of, words_of

_BY_MEANING = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_WORDS = {
    meaning: frozenset(word.replace("_", " ") for word in words.split()) for meaning, words in _BY_MEANING.items()
}

YES = _WORDS["yes"] | {
    *("do it", "go for it", "run it", "just do it", "please do", "please do it"),
    *("vas-y", "allez-y", "mach das", "mach es", "bien sûr"),
}
RETRACTS = _WORDS["retract"] | {
    *("never mind", "forget it", "forget that", "leave it", "not now"),
    *("lass es", "lass das", "laisse tomber", "lascia stare", "déjalo"),
}
"""Of those that say no, what takes back what was said before it."""
NO = _WORDS["no"] | RETRACTS | {"do not", "no thanks", "no thank you", "no way", "no gracias"}
SKIP = _WORDS["skip"]
SESSION = frozenset({"session", "this session", "for this session", "yes for this session", "yes session"})
ALWAYS = frozenset({"always", "yes always", "always allow", "allow always"})
NEVER = frozenset({"never", "no never", "never allow", "deny always"})
HEARD = _WORDS["heard"]
"""Of those that say yes, what may only say that something was heard."""
THANKS = _WORDS["thanks"]
AROUND = _WORDS["around"] | THANKS
"""Words that may stand beside such a word and say nothing more."""
MERGED = frozenset(word for words in (*_WORDS.values(), NO) for word in words if word.count(" ") == 1)
"""Two words that are one."""


SHORT = 80
"""Characters of a value by whose words a call may be named."""
_REMEMBERED: tuple[tuple[frozenset[str], ApprovalOutcome, Remember], ...] = (
    (SESSION, ApprovalOutcome.APPROVED, "session"),
    (ALWAYS, ApprovalOutcome.APPROVED, "always"),
    (NEVER, ApprovalOutcome.DENIED, "always"),
)
_OPPOSITE = {ApprovalOutcome.APPROVED: ApprovalOutcome.DENIED, ApprovalOutcome.DENIED: ApprovalOutcome.APPROVED}
ALL = frozenset("all both every everything each alle alles beide tout tous toutes todo todos todas tutti".split())
_NONE = frozenset("neither none nothing keine keines keins aucun aucune ninguno ninguna nessuno".split())
_REST = frozenset("rest other others else remaining andere anderen reste otro otros".split())
_ONLY = frozenset("only just nur seulement solo".split())
_EXCEPT = frozenset("except but excluding außer sauf excepto salvo".split())
_NOT = frozenset({"not", "except", "excluding"})
"""What takes a call out of a yes to all."""
_ORDINALS = {name: at for at, name in enumerate("first second third fourth fifth sixth seventh eighth ninth".split())}
_LINKS = frozenset(
    "to for the call calls of them with in on at is number no. nr und et e zu zum zur für den dem der die"
    " das pour le la les para el los las per il".split()
)
_TO_THEM = frozenset("to of for them the und et e y".split())
"""Those that name no call by themselves, and no number of calls."""
_SPLITS = frozenset({",", ";", "and", "&", "/"})
_ENDS = _SPLITS | ALL | _NONE | _REST | _EXCEPT
"""What ends the name of a call."""
LIMITS = frozenset(
    "not but only except without if unless instead other another more less than until after before".split()
)
"""Words that take back or change what is said with them, wherever else they stand."""
_MARKS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[\u2640\u2642]")
"""How a sign is drawn: the colour of a hand, and whose it is."""
_ASKS = frozenset("?؟¿")
_STOPS = ".!。:)([]#\"'“”¡।"


@dataclass(frozen=True)
class Reply:
    """The user's word on one call."""

    outcome: ApprovalOutcome
    comment: str = ""
    tool_name: str | None = None
    """For an edit: the tool, when it was named."""
    params: dict[str, Any] | None = None
    """For an edit: the new arguments."""
    remember: Remember = ""
    """How far the same is to hold for other calls."""

    @property
    def refuses(self) -> bool:
        """Whether it is a no."""
        return self.outcome is ApprovalOutcome.DENIED


Asked = tuple[str, dict[str, Any]]
"""A call that is asked about: its tool and its arguments."""


def decided_in(text: str, calls: Sequence[Asked]) -> list[Reply] | None:
    """Return the word on each call that a reply is; None where it does not say yes, no or skip of every one."""
    names = [_names_of(*call) for call in calls]
    known = names[0] if len(names) == 1 else frozenset()
    plain = _plain(text, known)
    if plain is not None:
        return [plain] * len(calls)
    each = _each(tokens_of(text), names) if len(names) > 1 else None
    return [Reply(outcome) for outcome in each] if each else None


def read_words(text: str) -> Reply:
    """Read a reply to whatever is asked; what only says yes, no or skip decides, and all else is something said."""
    return _plain(text, frozenset()) or Reply(ApprovalOutcome.ANSWERED, comment=text.strip())


def verdict_of(token: str) -> ApprovalOutcome | None:
    """Return what a word says of what is asked."""
    for words, outcome in (
        (YES, ApprovalOutcome.APPROVED),
        (NO, ApprovalOutcome.DENIED),
        (SKIP, ApprovalOutcome.SKIPPED),
    ):
        if token in words:
            return outcome
    return None


def tokens_of(text: str) -> list[str]:
    """Return a reply's words, signs, commas and semicolons, in order."""
    said = _MARKS.sub("", _plain_form(text)).casefold().replace("\u2019", "'").replace("、", ",")
    said = "".join(f" {char} " if unicodedata.category(char) == "So" or char in ",;" else char for char in said)
    found: list[str] = []
    for word in filter(None, (word if verdict_of(word) else word.strip(_STOPS) for word in said.split())):
        two = f"{found[-1]} {word}" if found else ""
        found[-1:] = [two] if two in MERGED else [*found[-1:], word]
    return found


def _plain_form(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _plain(text: str, known: frozenset[str]) -> Reply | None:
    """Return the word that a reply is for all that is asked; `known` are words that may stand beside it."""
    if not text.strip():
        return Reply(ApprovalOutcome.SKIPPED)
    if _ASKS & {*_plain_form(text)}:
        return None
    tokens = [token for token in tokens_of(text) if token not in {",", ";"}]
    rest = [token for token in tokens if token not in AROUND]
    if THANKS & {*tokens} and rest and {*rest} <= HEARD:
        return None
    for words in (" ".join(tokens), " ".join(rest)):
        for remembered, outcome, remember in _REMEMBERED:
            if words in remembered:
                return Reply(outcome, remember=remember)
        decided = verdict_of(words)
        if decided:
            return Reply(decided)
    said = {verdict_of(token) for token in rest if not _names(token, known)}
    return Reply(*said) if len(said) == 1 and None not in said else None  # type: ignore[arg-type]


def _names_of(tool: str, params: dict[str, Any]) -> frozenset[str]:
    """Return the stems by which a call may be named: its tool's, and those of its short values."""
    found = {stem_of(word) for word in words_of(tool)}
    for value in _leaves(params):
        text = str(value).casefold()
        if len(text) <= SHORT:
            found |= {text, *(stem_of(word) for word in tokens_of(text)), *(stem_of(word) for word in words_of(text))}
    return frozenset(found - LIMITS)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None:
        yield value


def _names(token: str, names: frozenset[str]) -> bool:
    return token not in LIMITS and verdict_of(token) is None and (token in names or stem_of(token) in names)


@dataclass(frozen=True)
class _Which:
    """Calls that a part of a reply means."""

    calls: frozenset[int]
    """None of them: the rest."""


def _each(tokens: Sequence[str], names: Sequence[frozenset[str]]) -> list[ApprovalOutcome] | None:
    """Return the word on each call, where every call gets one, and every word of the reply is understood."""
    if not tokens or any(_ASKS & {*word} for word in tokens):
        return None
    every = frozenset(range(len(names)))
    only = next((at for at, word in enumerate(tokens) if word in _ONLY), None)
    if only is not None:
        return _only([*tokens[:only], *tokens[only + 1 :]], names)
    parts = _parts(tokens, names)
    if parts is None:
        return None
    verdicts = [part for part in parts if isinstance(part, ApprovalOutcome)]
    if len(verdicts) == len(parts):
        taken_back = RETRACTS & {*tokens} and len({*verdicts}) > 1
        some = {*tokens} & _LINKS - _TO_THEM
        in_order = verdicts if len(verdicts) == len(names) else [*{*verdicts}] * len(names)
        return in_order if len(in_order) == len(names) and not taken_back and not some else None
    if not verdicts:
        is_all = parts == [_Which(every)] and {*tokens} <= ALL | _TO_THEM
        return [ApprovalOutcome.APPROVED] * len(names) if is_all else None
    leads = isinstance(parts[0], ApprovalOutcome)
    if leads == isinstance(parts[-1], ApprovalOutcome):
        return None
    said: dict[int, ApprovalOutcome] = {}
    rest, verdict = None, ApprovalOutcome.SKIPPED
    for part in parts if leads else reversed(parts):
        if isinstance(part, ApprovalOutcome):
            verdict = part
        elif not part.calls and rest is None:
            rest = verdict
        elif not part.calls or part.calls & said.keys():
            return None
        else:
            said |= dict.fromkeys(part.calls, verdict)
    if rest and said:
        said = dict.fromkeys(every, rest) | said
    return [said[call] for call in sorted(every)] if said.keys() == every else None


def _only(tokens: Sequence[str], names: Sequence[frozenset[str]]) -> list[ApprovalOutcome] | None:
    """Return yes to what a reply names, and no to all else; it may say yes itself."""
    parts = [part for part in _parts(tokens, names) or [] if part is not ApprovalOutcome.APPROVED]
    chosen = frozenset[int]().union(*(part.calls for part in parts if isinstance(part, _Which)))
    if not chosen or len(names) < 2 or not all(isinstance(part, _Which) for part in parts):
        return None
    return [ApprovalOutcome.APPROVED if at in chosen else ApprovalOutcome.DENIED for at in range(len(names))]


def _parts(tokens: Sequence[str], names: Sequence[frozenset[str]]) -> list["ApprovalOutcome | _Which"] | None:
    """Return a reply as verdicts and the calls that they are for; None where a word of it is not understood."""
    every = frozenset(range(len(names)))
    yes_to_all = ([ApprovalOutcome.APPROVED], [_Which(every)], [ApprovalOutcome.APPROVED, _Which(every)])
    parts: list[ApprovalOutcome | _Which] = []
    named: set[str] = set()
    excepted = ends_name = False

    def end() -> bool:
        nonlocal excepted
        if not named:
            return True
        which = _named(frozenset(named), names)
        named.clear()
        if excepted and which:
            excepted = False
            return _take_out(parts, which, every)
        parts.append(_Which(which))
        return bool(which)

    for at, word in enumerate(tokens):
        verdict = verdict_of(word) if not (word in AROUND and len(tokens) > 1) else None
        counted = _counted(word, len(names))
        bearers = {at for at, one in enumerate(names) if _names(word, one)} - {counted}
        if bearers and counted in every:
            return None  # a number of one call, and a value of another
        counted = None if bearers else counted
        ends = verdict is not None or counted is not None or word in (_ENDS | _NOT) - (ALL if bearers else frozenset())
        if ends and not end():
            return None
        if verdict:
            parts.append(verdict)
        elif counted is not None:
            if counted not in every or (excepted and not _take_out(parts, frozenset({counted}), every)):
                return None
            parts += [] if excepted else [_Which(frozenset({counted}))]
            excepted = False
        elif word in _NONE:
            parts += [ApprovalOutcome.DENIED, _Which(every)]
        elif word in ALL and not bearers:
            parts += [] if _REST & {*tokens[at + 1 : at + 2]} else [_Which(every)]
        elif word in _REST:
            parts.append(_Which(frozenset()))
        elif (word in _EXCEPT and parts[-1:] == [_Which(every)]) or (word in _NOT and parts in yes_to_all):
            parts += [_Which(every)] if parts == yes_to_all[0] else []
            excepted = True
        elif bearers:
            named.add(word)
        elif not (word in _SPLITS | _LINKS | AROUND or word == "but" or (word == "one" and ends_name)):
            return None
        ends_name = counted is not None or bool(bearers) or word in _REST
    return parts if end() and not excepted else None


def _take_out(parts: list[ApprovalOutcome | _Which], which: frozenset[int], every: frozenset[int]) -> bool:
    """Let what was said of all hold for all but these, and the opposite for these."""
    parts.pop()
    said = parts[-1] if parts else ApprovalOutcome.APPROVED
    if not isinstance(said, ApprovalOutcome) or said not in _OPPOSITE or which >= every:
        return False
    parts[-1:] = [said, _Which(every - which), _OPPOSITE[said], _Which(which)]
    return True


def _named(words: frozenset[str], names: Sequence[frozenset[str]]) -> frozenset[int]:
    return frozenset(at for at, one in enumerate(names) if all(_names(word, one) for word in words))


def _counted(word: str, count: int) -> int | None:
    if word.isdecimal():
        return int(word) - 1
    return count - 1 if word == "last" else _ORDINALS.get(word)
