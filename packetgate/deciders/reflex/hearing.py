"""What somebody says while a question waits: a reply to it, a new request, or neither.

What is not surely a reply leaves the question open, so that nothing is approved and nothing is lost by it. A new
request is known by its own verb and object, and by the tool that serves it.
"""

import asyncio
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from packetgate.deciders.reflex.reading import VERBS, asks, is_small_talk, mentions_in, reserve_in, verbs_in, words_in
from packetgate.state.channels import is_slash_command
from packetgate.state.origins import ArgumentRole
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import code_span, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.approval.verdicts import ALL, AROUND, LIMITS, decided_in, read_words, tokens_of, verdict_of
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import STOP_WORDS, query_terms

SURE = 0.8
"""Probability that another tool serves words that have no verb, from which they are a request."""
_POLITE = re.compile(r"^\W*(?:(?:please|kindly)\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)+", re.IGNORECASE)
_POINTS = re.compile(r"\b(?:it|this|that|them|these|those|instead|rather|you)\b", re.IGNORECASE)
_NO_THEN = re.compile(r"^\W*\w+(?:\s+\w+)?\s*[,.;:!\u2013\u2014-]")
"""A first word or two that stand for themselves."""
_OF_THE_CALL = frozenset(
    "call tool action file argument value reason risk change effect happen mean exactly safe undo undone reversible"
    " sure certain necessary need needed difference explain kind option".split()
)
"""What is asked of a call that waits, whatever it is."""
_HESITATES = frozenset(
    "hm hmm hmmm um uh maybe perhaps later soon wait moment second unsure dunno idk hold think".split()
)
_EITHER = frozenset("not or either except unless if neither nor".split())
_BESIDE = AROUND | {"and", "also", "but", "first", "never", "mind", ",", ";"}
_UNDECIDED = (
    "This decides nothing, so it waits, and has not run: answer yes or no, say what to change, or ask for something"
    " else."
)
_ALONE = (
    "A value alone decides nothing, so this waits, and has not run: answer yes or no, or say what is to change, as in"
    " `no, VALUE instead`."
)
_SOME_UNDECIDED = (
    "This does not say yes or no to each of these calls, so all wait, and none has run: "
    "say it by number or name, such as `1 yes 2 no`."
)


@dataclass(frozen=True)
class Heard:
    """What was said."""

    kind: Literal["reply", "request", "neither"]
    reply: Any = None
    told: str = ""
    """For neither: why the question is put again."""


async def hear(said: str, packet: CognitionPacket, catalogue: Catalogue) -> Heard:
    """Return what words are to the question that a packet waits with."""
    return await asyncio.to_thread(_heard, said, packet, catalogue)


def _heard(said: str, packet: CognitionPacket, catalogue: Catalogue) -> Heard:
    """Blocking."""
    asks_for = packet.routing.asks_for if packet.routing.outcome == "clarify" else ()
    spec = catalogue.get(asks_for[0]) if asks_for else None
    if is_slash_command(said):
        return _neither(f"There is no command {said.strip()[:40]} here, and it is no answer: the question still waits.")
    talk = _Talk(said.strip(), packet, catalogue)
    if packet.routing.outcome != "clarify":
        waiting = [call for call in packet.routing.calls if call.status.awaits_user]
        return _about_calls(talk, waiting)
    return _about_argument(talk, spec, asks_for[1]) if spec else Heard("reply", said)


@dataclass(frozen=True)
class _Talk:
    """Words, and where they were said."""

    said: str
    packet: CognitionPacket
    catalogue: Catalogue

    @property
    def plain(self) -> str:
        """The words without what is only polite."""
        polite = _POLITE.match(self.said)
        return self.said[polite.end() :].rstrip(" ?") if polite else self.said

    @property
    def now(self) -> datetime:
        """What "tomorrow" is reckoned from."""
        return self.packet.header.created_at.astimezone()

    @property
    def by_model(self) -> bool:
        """Whether a language model chose what is asked about: it reads what is said instead, too."""
        chosen = [one for one in self.packet.reasoning.reflection_log if one.step == "select_tool" and one.decided_by]
        return bool(chosen) and chosen[-1].decided_by == "model" and not chosen[-1].is_fallback

    def requests(self, text: str) -> bool:
        """Whether words lead with a verb, and name what it is to be done to."""
        bare = " ".join(word for word in text.split() if not mentions_in(word).has_target)
        words = [word for word in words_in(bare) if word not in STOP_WORDS or word in VERBS]
        verb = words[0] if words and words[0] in VERBS else ""
        return bool(verb) and (bool({*words[1:]} - STOP_WORDS) or mentions_in(text).has_target)

    def serves(self, text: str, *tools: str, enough: float) -> bool:
        """Whether another than these tools serves these words."""
        from packetgate.deciders.reflex.fit import fits_of, needed

        fits = fits_of(text, self.catalogue, self.now)
        return bool(fits) and needed(fits) >= enough and fits[0].spec.name not in tools

    def values(self, spec: ToolSpec, text: str) -> dict[str, Any]:
        """Return the arguments that words name, and that are likelier right than not."""
        from packetgate.deciders.reflex.fit import sure_of
        from packetgate.deciders.values.filling import fill

        return sure_of(fill(spec, text, now=self.now))


def _about_calls(talk: _Talk, calls: list[ToolCall]) -> Heard:
    from packetgate.deciders.reflex.fit import ENOUGH

    said, names = talk.said, [call.tool_name for call in calls]
    if decided_in(said, [(call.tool_name, call.params) for call in calls]) is not None:
        return Heard("reply", said)
    if asks(talk.plain):
        is_of = _is_of(talk.plain, calls) and not talk.serves(talk.plain, *names, enough=SURE)
        return _neither(_explained(calls, talk.catalogue)) if is_of else Heard("request", said)
    verdicts = [verdict for token in tokens_of(said) if (verdict := verdict_of(token))]
    lead = verdict_of(next(iter(tokens_of(said)), ""))
    text = _after_verdict(talk.plain)
    if talk.requests(text):
        if talk.serves(text, *names, enough=ENOUGH):
            return _neither(_UNDECIDED) if lead is ApprovalOutcome.APPROVED else Heard("request", said)
        if lead is None and not _POINTS.search(text) and (not talk.by_model or mentions_in(text).has_target):
            return Heard("request", said)
    if len(calls) > 1 and verdicts:
        return _neither(_SOME_UNDECIDED)
    if lead is not None and reserve_in(said):
        return _neither(_UNDECIDED)
    if len(calls) == 1 and _changes(talk, text, calls[0]):
        is_alone = len(said.split()) == 1 and not mentions_in(said).named
        return _neither(_ALONE) if is_alone else Heard("reply", said)
    if lead is ApprovalOutcome.DENIED and len({*verdicts}) == 1 and _NO_THEN.match(said):
        return Heard("reply", {"type": "reject", "message": said})
    if talk.by_model and not _hesitates(said) and (not verdicts or LIMITS & {*tokens_of(said)}):
        return Heard("reply", said)
    if lead is None and len(said.split()) > 1 and talk.serves(said, *names, enough=SURE):
        return Heard("request", said)
    return _neither(_UNDECIDED if len(calls) == 1 else _SOME_UNDECIDED)


def _hesitates(said: str) -> bool:
    return is_small_talk(said) or not {*query_terms(said)} - _HESITATES - {"sure"}


def _after_verdict(text: str) -> str:
    """Return words without the yes or no that they begin with, and what may stand beside it."""
    words = text.split()
    while begins := next((count for count in (2, 1) if _is_verdict(words[:count])), 0):
        words = words[begins:]
    return " ".join(words)


def _is_verdict(words: list[str]) -> bool:
    first = tokens_of(" ".join(words))
    return bool(first) and all(verdict_of(one) or one in _BESIDE for one in first)


def _about_argument(talk: _Talk, spec: ToolSpec, parameter: str) -> Heard:
    """Return what words are where one argument of a call is asked for."""
    from packetgate.deciders.reflex.fit import ENOUGH, QUERIES
    from packetgate.deciders.values.filling import answer, is_bare, is_narrow
    from packetgate.tools.text.words import words_of

    said = talk.said
    if read_words(said).outcome is not ApprovalOutcome.ANSWERED:
        return Heard("reply", said)
    schema = spec.parameters.get(parameter, {})
    about = code_span(parameter) + (f" ({shorten(str(schema['description']), 200)})" if "description" in schema else "")
    wanted = f"{spec.name} still waits for {about}."
    named = mentions_in(said)
    if asks(said) and not named.has_target and not {*query_terms(said)} - _OF_THE_CALL:
        return _neither(f"{_described(spec)} {wanted}")
    if role_of((parameter,), schema, None) is ArgumentRole.PAYLOAD or QUERIES & {*words_of(parameter)}:
        return Heard("reply", said)
    if _hesitates(said) and not named.has_target:
        return _neither(f"This is no answer. {wanted}")
    value = answer(spec, parameter, said, talk.now)
    if is_bare(said) and not talk.requests(talk.plain):
        is_value = value is not None and not asks(said)
        return Heard("reply", said) if is_value else _neither(f"That cannot be it. {wanted}")
    if _EITHER & {*words_in(said)} and schema.get("type") != "boolean" and not talk.requests(talk.plain):
        return Heard("request", said) if asks(said) else _neither(f"This does not say which it is. {wanted}")
    serves = talk.serves(talk.plain, spec.name, enough=ENOUGH)
    is_found = parameter in talk.values(spec, said)
    if is_narrow(spec, parameter):
        is_found = is_found and (named.has_target or "@" in said)
    if talk.requests(talk.plain):
        return Heard("request" if serves or not is_found else "reply", said)
    if asks(said) and not is_found:
        return Heard("request", said)
    if is_narrow(spec, parameter) and not is_found and not named.has_target:
        is_request = serves or bool(verbs_in(said))
        return Heard("request", said) if is_request else _neither(f"That cannot be it. {wanted}")
    if not is_found and talk.serves(said, spec.name, enough=SURE):
        return Heard("request", said)
    return Heard("reply", said) if value is not None or is_found else _neither(f"That cannot be it. {wanted}")


def _changes(talk: _Talk, text: str, call: ToolCall) -> bool:
    """Whether words name another value for an argument of a call."""
    spec = talk.catalogue.get(call.tool_name)
    found = talk.values(spec, text) if spec and call.started_at is None else {}
    return any(call.params.get(name) != value and str(value).casefold() not in ALL for name, value in found.items())


def _is_of(text: str, calls: list[ToolCall]) -> bool:
    """Whether a question is about the calls that wait: it names nothing that is not theirs."""
    theirs = {*query_terms(" ".join(f"{call.tool_name} {call.params}" for call in calls))}
    named = mentions_in(text)
    if any(one not in str([call.params for call in calls]) for one in (*named.paths, *named.urls, *named.ticked)):
        return False
    rest = {word for word in query_terms(text) if not verdict_of(word)} - theirs - _OF_THE_CALL - _HESITATES
    return not rest or (len(rest) <= 1 and bool(_POINTS.search(text)))


def _explained(calls: list[ToolCall], catalogue: Catalogue) -> str:
    lines = []
    for call in calls:
        spec = catalogue.get(call.tool_name)
        risk = f" It may {call.risk}: {'; '.join(call.risk_why)}." if call.risk_why else f" It is a {call.risk}."
        lines.append(f"{_described(spec) if spec else call.tool_name}{risk}")
    return " ".join([*lines, "It has not run, and still waits for your yes or no."])


def _described(spec: ToolSpec) -> str:
    return f"{spec.name}: {code_span(shorten(' '.join(spec.brief.split()), 300))}."


def _neither(told: str) -> Heard:
    return Heard("neither", told=told)
