"""Classify a message that arrives while a question is open: a reply, a new request, or neither.

Only a clear reply answers the question. Otherwise nothing is approved, and the question stays open.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from packetgate.gate.replies import CORRECTING_WORDS, LIMITING_WORDS, POLITE_WORDS, read_reply, tokens_of, verdict_of
from packetgate.state.channels import is_slash_command
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import code_span, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import (
    condition_in,
    has_question,
    is_small_talk,
    mentions_in,
    talk_in,
    unquoted_words,
)
from packetgate.tools.text.verbs import KNOWN_VERBS
from packetgate.tools.text.words import STOP_WORDS, query_terms, words_of

_POLITE = re.compile(r"^\W*(?:(?:please|kindly)\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)+", re.IGNORECASE)
_REFERENCE = re.compile(r"\b(?:it|this|that|them|these|those|instead|rather|you)\b", re.IGNORECASE)
_NO_AND_MORE = re.compile(r"^\W*\w+(?:\s+\w+)?\s*[,.;:!\u2013\u2014-]")
QUESTION_WORDS = frozenset(
    "call tool action file argument value reason risk change effect happen mean exactly safe undo undone reversible"
    " sure certain necessary need needed difference explain kind option".split()
)
"""Words of questions about any waiting call."""
_HESITATION = frozenset(
    "hm hmm hmmm um uh maybe perhaps later soon wait moment second unsure dunno idk hold think".split()
)
_BESIDE_VERDICT = POLITE_WORDS | {"and", "also", "but", "first", "never", "mind", ",", ";"}
_UNDECIDED = (
    "This is not a clear answer. The call has not run: answer yes or no, say what to change, or make another request."
)
_SOME_UNDECIDED = "This is not a clear answer for each call. No call has run: answer by number, such as `1 yes 2 no`."


@dataclass(frozen=True)
class TypedReply:
    """A classified message."""

    kind: Literal["reply", "request", "neither"]
    reply: Any = None  # the text, or a decision about the calls
    problem: str = ""  # for `neither`: why the question is repeated


@dataclass(frozen=True)
class Change:
    """The change of a call by a message."""

    params: Mapping[str, Any] = field(default_factory=dict)
    """New values by argument."""
    unclear: tuple[str, ...] = ()
    """Arguments that a value of the message fits equally well. Then nothing changes."""
    names_argument: bool = False
    """Whether the message names an argument, or the value that it has."""
    request: str = ""
    """The user's request with the new values in place of the old ones; empty if it does not contain the old ones."""
    is_all: bool = False
    """Whether the message says nothing else."""

    @property
    def question(self) -> str:
        """A question for the user if the change is unclear."""
        return f"This may change {' or '.join(f'`{name}`' for name in self.unclear)}: say which, as in NAME=VALUE."


@dataclass(frozen=True)
class Message:
    """A message, with the packet whose question is open."""

    text: str
    packet: CognitionPacket
    catalogue: Catalogue

    @property
    def plain(self) -> str:
        """The text without polite words."""
        polite = _POLITE.match(self.text)
        return self.text[polite.end() :].rstrip(" ?") if polite else self.text

    @property
    def selected_by_model(self) -> bool:
        """Whether a model selected the calls."""
        steps = [one for one in self.packet.reasoning.reflection_log if one.step == "select_tool" and one.decided_by]
        return bool(steps) and steps[-1].decided_by == "model" and not steps[-1].is_fallback

    @property
    def hesitates(self) -> bool:
        """Whether the text only hesitates or greets."""
        return is_small_talk(self.text) or not {*query_terms(self.text)} - _HESITATION - {"sure"}


def is_request(text: str) -> bool:
    """Return whether a text begins with a verb that has an object."""
    bare = " ".join(word for word in text.split() if not mentions_in(word).has_target)
    words = [word for word in unquoted_words(bare) if word not in STOP_WORDS or word in KNOWN_VERBS]
    has_object = bool({*words[1:]} - STOP_WORDS) or mentions_in(text).has_target
    return bool(words) and words[0] in KNOWN_VERBS and has_object


class ReplyReader:
    """Classifies messages by their words alone. A subclass may also know their requests to tools."""

    async def classify(self, text: str, packet: CognitionPacket, catalogue: Catalogue) -> TypedReply:
        """Classify a message, given a packet with an open question."""
        return await asyncio.to_thread(self._classify, text, packet, catalogue)

    def asks_for_other_tool(self, message: Message, text: str, tools: Sequence[str], *, surely: bool = True) -> bool:
        """Return whether a text asks for another tool than `tools`, for sure or probably. Blocking."""
        return False

    def change_of(self, message: Message, call: ToolCall) -> Change:
        """Return the change that a message makes to a call. Blocking."""
        return Change()

    def classify_answer(self, message: Message, spec: ToolSpec, parameter: str) -> TypedReply:
        """Classify a message, given a question for one argument of a tool. Blocking."""
        return TypedReply("reply", message.text)

    def _classify(self, text: str, packet: CognitionPacket, catalogue: Catalogue) -> TypedReply:
        if is_slash_command(text):
            return neither(f"Unknown command {text.strip()[:40]}. The question is still open.")
        message = Message(text.strip(), packet, catalogue)
        if packet.routing.outcome != "clarify":
            if talk_in(message.text) in {"help", "about"}:
                return TypedReply("request", message.text)
            return self._classify_for_calls(message, [call for call in packet.routing.calls if call.status.awaits_user])
        name, parameter = packet.routing.asked_argument or ("", "")
        spec = catalogue.get(name)
        return self.classify_answer(message, spec, parameter) if spec else TypedReply("reply", text)

    def _classify_for_calls(self, message: Message, calls: list[ToolCall]) -> TypedReply:
        text, names = message.text, [call.tool_name for call in calls]
        reply, request = TypedReply("reply", text), TypedReply("request", text)
        undecided = neither(_UNDECIDED if len(calls) == 1 else _SOME_UNDECIDED)
        if read_reply(text, [(call.tool_name, call.params) for call in calls]) is not None:
            return reply
        if has_question(message.plain):
            is_about = _is_about(message.plain, calls) and not self.asks_for_other_tool(message, message.plain, names)
            return neither(_explanation(calls, message.catalogue)) if is_about else request
        verdicts = [verdict for token in tokens_of(text) if (verdict := verdict_of(token))]
        lead = verdict_of(next(iter(tokens_of(text)), ""))
        remainder = after_verdict(message.plain)
        change = self.change_of(message, calls[0]) if len(calls) == 1 else Change()
        is_about_call = bool(change.params or change.unclear) and _is_about_call(message, remainder, change, calls[0])
        if is_request(remainder) and not is_about_call:
            if self.asks_for_other_tool(message, remainder, names, surely=False):
                return neither(_UNDECIDED) if lead is ApprovalOutcome.APPROVED else request
            is_new = not _REFERENCE.search(remainder) and (
                not message.selected_by_model or mentions_in(remainder).has_target
            )
            if lead is None and is_new:
                return request
        if len(calls) > 1 and verdicts:
            return undecided
        if lead is not None and condition_in(text):
            return neither(_UNDECIDED)
        if change.unclear and not message.selected_by_model:
            return neither(change.question)
        if change.params:
            is_bare_value = len(text.split()) == 1 and "=" not in text
            return undecided if is_bare_value else reply
        if lead is ApprovalOutcome.DENIED and len({*verdicts}) == 1 and _NO_AND_MORE.match(text):
            return TypedReply("reply", {"type": "reject", "message": text})
        if (
            message.selected_by_model
            and not message.hesitates
            and (not verdicts or LIMITING_WORDS & {*tokens_of(text)})
        ):
            return reply
        if lead is None and len(text.split()) > 1 and self.asks_for_other_tool(message, text, names):
            return request
        return undecided


def after_verdict(text: str) -> str:
    """Return a text without the words at its beginning that decide, such as `no,` and `yes but`."""
    words = text.split()
    while begins := next((count for count in (2, 1) if _is_verdict(words[:count])), 0):
        words = words[begins:]
    return " ".join(words)


def _is_verdict(words: list[str]) -> bool:
    tokens = tokens_of(" ".join(words))
    return bool(tokens) and all(verdict_of(token) or token in _BESIDE_VERDICT for token in tokens)


def _is_about_call(message: Message, text: str, change: Change, call: ToolCall) -> bool:
    """Return whether a change such as `call it b.txt` or `I meant b.txt` is about a call, and names no other tool."""
    words = {*unquoted_words(text)}
    named = [name for name in message.catalogue if words.issuperset(words_of(name.partition(".")[2]))]
    refers = bool(_REFERENCE.search(text)) or not CORRECTING_WORDS.isdisjoint(words)
    return (refers or change.names_argument) and (not named or call.tool_name in named)


def _is_about(text: str, calls: list[ToolCall]) -> bool:
    own = {*query_terms(" ".join(f"{call.tool_name} {call.params}" for call in calls))}
    named, params = mentions_in(text), str([call.params for call in calls])
    if any(one not in params for one in (*named.paths, *named.urls, *named.backquoted)):
        return False
    rest = {word for word in query_terms(text) if not verdict_of(word)} - own - QUESTION_WORDS - _HESITATION
    return not rest or (len(rest) <= 1 and bool(_REFERENCE.search(text)))


def _explanation(calls: list[ToolCall], catalogue: Catalogue) -> str:
    lines = []
    for call in calls:
        spec = catalogue.get(call.tool_name)
        risk = f"Risk: {call.risk} ({'; '.join(call.risk_reasons)})." if call.risk_reasons else f"Risk: {call.risk}."
        lines.append(f"{description_of(spec) if spec else call.tool_name} {risk}")
    return " ".join([*lines, "Not run yet: answer yes or no."])


def description_of(spec: ToolSpec) -> str:
    """Return the name and the beginning of the description of a tool."""
    return f"{spec.name}: {code_span(shorten(' '.join(spec.brief.split()), 300))}."


def neither(problem: str) -> TypedReply:
    """Classify a message as neither, for this reason."""
    return TypedReply("neither", problem=problem)
