"""Classify a message that arrives while a question is open: a reply, a new request, or neither.

Only a clear reply answers the question. Otherwise nothing is approved, and the question stays open.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Literal

from packetgate.state.channels import is_slash_command
from packetgate.state.origins import ArgumentRole
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import code_span, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.approval.replies import (
    ALL_WORDS,
    LIMITING_WORDS,
    POLITE_WORDS,
    decisions_in,
    parse_words,
    tokens_of,
    verdict_of,
)
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import (
    condition_in,
    has_question,
    is_small_talk,
    mentions_in,
    unquoted_words,
    verbs_in,
)
from packetgate.tools.text.verbs import KNOWN_VERBS
from packetgate.tools.text.words import STOP_WORDS, query_terms, words_of

_SURE = 0.8  # if another tool serves the message with this probability, the message is a request, even without a verb
_POLITE = re.compile(r"^\W*(?:(?:please|kindly)\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)+", re.IGNORECASE)
_REFERENCE = re.compile(r"\b(?:it|this|that|them|these|those|instead|rather|you)\b", re.IGNORECASE)
_NO_AND_MORE = re.compile(r"^\W*\w+(?:\s+\w+)?\s*[,.;:!\u2013\u2014-]")
_QUESTION_WORDS = frozenset(
    "call tool action file argument value reason risk change effect happen mean exactly safe undo undone reversible"
    " sure certain necessary need needed difference explain kind option".split()
)
"""Words of questions about any waiting call."""
_HESITATION = frozenset(
    "hm hmm hmmm um uh maybe perhaps later soon wait moment second unsure dunno idk hold think".split()
)
_EITHER = frozenset("not or either except unless if neither nor".split())
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


async def classify_reply(text: str, packet: CognitionPacket, catalogue: Catalogue) -> TypedReply:
    """Classify a message, given a packet with an open question."""
    return await asyncio.to_thread(_classify, text, packet, catalogue)


def _classify(text: str, packet: CognitionPacket, catalogue: Catalogue) -> TypedReply:
    if is_slash_command(text):
        return _neither(f"Unknown command {text.strip()[:40]}. The question is still open.")
    message = _Message(text.strip(), packet, catalogue)
    if packet.routing.outcome != "clarify":
        return _classify_for_calls(message, [call for call in packet.routing.calls if call.status.awaits_user])
    name, parameter = packet.routing.asked_argument or ("", "")
    spec = catalogue.get(name)
    return _classify_for_argument(message, spec, parameter) if spec else TypedReply("reply", text)


@dataclass(frozen=True)
class _Message:
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
        steps = [one for one in self.packet.reasoning.reflection_log if one.step == "select_tool" and one.decided_by]
        return bool(steps) and steps[-1].decided_by == "model" and not steps[-1].is_fallback

    @property
    def hesitates(self) -> bool:
        return is_small_talk(self.text) or not {*query_terms(self.text)} - _HESITATION - {"sure"}

    def fits_other_tool(self, text: str, *tools: str, probability: float) -> bool:
        """Return whether the best tool for a text is not one of `tools`, and serves the text with this probability."""
        from packetgate.reflex.fit import best_fits, probability_of_any

        fits = best_fits(text, self.catalogue, self.packet.header.created_at.astimezone())
        return bool(fits) and probability_of_any(fits) >= probability and fits[0].spec.name not in tools

    def arguments_in(self, text: str, spec: ToolSpec) -> dict[str, Any]:
        """Return the arguments of a tool that a text likely contains."""
        from packetgate.reflex.values.filling import fill_parameters

        return fill_parameters(spec, text, now=self.packet.header.created_at.astimezone()).likely_params()


def _is_request(text: str) -> bool:
    bare = " ".join(word for word in text.split() if not mentions_in(word).has_target)
    words = [word for word in unquoted_words(bare) if word not in STOP_WORDS or word in KNOWN_VERBS]
    has_object = bool({*words[1:]} - STOP_WORDS) or mentions_in(text).has_target
    return bool(words) and words[0] in KNOWN_VERBS and has_object


def _classify_for_calls(message: _Message, calls: list[ToolCall]) -> TypedReply:
    from packetgate.reflex.fit import MIN_TOOL_PROBABILITY

    text, names = message.text, [call.tool_name for call in calls]
    reply, request = TypedReply("reply", text), TypedReply("request", text)
    undecided = _neither(_UNDECIDED if len(calls) == 1 else _SOME_UNDECIDED)
    if decisions_in(text, [(call.tool_name, call.params) for call in calls]) is not None:
        return reply
    if has_question(message.plain):
        is_about = _is_about(message.plain, calls) and not message.fits_other_tool(
            message.plain, *names, probability=_SURE
        )
        return _neither(_explanation(calls, message.catalogue)) if is_about else request
    verdicts = [verdict for token in tokens_of(text) if (verdict := verdict_of(token))]
    lead = verdict_of(next(iter(tokens_of(text)), ""))
    remainder = _after_verdict(message.plain)
    if _is_request(remainder):
        if message.fits_other_tool(remainder, *names, probability=MIN_TOOL_PROBABILITY):
            return _neither(_UNDECIDED) if lead is ApprovalOutcome.APPROVED else request
        is_new = not _REFERENCE.search(remainder) and (
            not message.selected_by_model or mentions_in(remainder).has_target
        )
        if lead is None and is_new:
            return request
    if len(calls) > 1 and verdicts:
        return undecided
    if lead is not None and condition_in(text):
        return _neither(_UNDECIDED)
    if len(calls) == 1 and _changes_argument(message, remainder, calls[0]):
        is_bare_value = len(text.split()) == 1 and "=" not in text
        return undecided if is_bare_value else reply
    if lead is ApprovalOutcome.DENIED and len({*verdicts}) == 1 and _NO_AND_MORE.match(text):
        return TypedReply("reply", {"type": "reject", "message": text})
    if message.selected_by_model and not message.hesitates and (not verdicts or LIMITING_WORDS & {*tokens_of(text)}):
        return reply
    if lead is None and len(text.split()) > 1 and message.fits_other_tool(text, *names, probability=_SURE):
        return request
    return undecided


def _after_verdict(text: str) -> str:
    words = text.split()
    while begins := next((count for count in (2, 1) if _is_verdict(words[:count])), 0):
        words = words[begins:]
    return " ".join(words)


def _is_verdict(words: list[str]) -> bool:
    tokens = tokens_of(" ".join(words))
    return bool(tokens) and all(verdict_of(token) or token in _BESIDE_VERDICT for token in tokens)


def _classify_for_argument(message: _Message, spec: ToolSpec, parameter: str) -> TypedReply:
    from packetgate.reflex.fit import MIN_TOOL_PROBABILITY, QUERIES
    from packetgate.reflex.values.filling import is_bare, is_narrow, value_from_answer

    text, plain = message.text, message.plain
    reply, request = TypedReply("reply", text), TypedReply("request", text)
    if parse_words(text).outcome is not ApprovalOutcome.ANSWERED:
        return reply
    schema = spec.parameters.get(parameter, {})
    about = f" ({shorten(str(schema['description']), 200)})" if "description" in schema else ""
    wanted = f"{spec.name} still waits for {code_span(parameter)}{about}."
    no_value = _neither(f"This is not a valid value. {wanted}")
    named, asks, is_request = mentions_in(text), has_question(text), _is_request(plain)
    if asks and not named.has_target and not {*query_terms(text)} - _QUESTION_WORDS:
        return _neither(f"{_description(spec)} {wanted}")
    if role_of((parameter,), schema, None) is ArgumentRole.PAYLOAD or QUERIES & {*words_of(parameter)}:
        return reply
    if message.hesitates and not named.has_target:
        return no_value
    value = value_from_answer(spec, parameter, text, message.packet.header.created_at.astimezone())
    if is_bare(text) and not is_request:
        return reply if value is not None and not asks else no_value
    if _EITHER & {*unquoted_words(text)} and schema.get("type") != "boolean" and not is_request:
        return request if asks else no_value
    fits_other_tool = message.fits_other_tool(plain, spec.name, probability=MIN_TOOL_PROBABILITY)
    narrow = is_narrow(spec, parameter)
    is_found = parameter in message.arguments_in(text, spec) and (not narrow or named.has_target or "@" in text)
    if is_request:
        return request if fits_other_tool or not is_found else reply
    if asks and not is_found:
        return request
    if narrow and not is_found and not named.has_target:
        return request if fits_other_tool or verbs_in(text) else no_value
    if not is_found and message.fits_other_tool(text, spec.name, probability=_SURE):
        return request
    return reply if value is not None or is_found else no_value


def _changes_argument(message: _Message, text: str, call: ToolCall) -> bool:
    spec = message.catalogue.get(call.tool_name)
    values = message.arguments_in(text, spec) if spec and call.started_at is None else {}
    return any(
        call.params.get(name) != value and str(value).casefold() not in ALL_WORDS for name, value in values.items()
    )


def _is_about(text: str, calls: list[ToolCall]) -> bool:
    own = {*query_terms(" ".join(f"{call.tool_name} {call.params}" for call in calls))}
    named, params = mentions_in(text), str([call.params for call in calls])
    if any(one not in params for one in (*named.paths, *named.urls, *named.backquoted)):
        return False
    rest = {word for word in query_terms(text) if not verdict_of(word)} - own - _QUESTION_WORDS - _HESITATION
    return not rest or (len(rest) <= 1 and bool(_REFERENCE.search(text)))


def _explanation(calls: list[ToolCall], catalogue: Catalogue) -> str:
    lines = []
    for call in calls:
        spec = catalogue.get(call.tool_name)
        risk = f"Risk: {call.risk} ({'; '.join(call.risk_reasons)})." if call.risk_reasons else f"Risk: {call.risk}."
        lines.append(f"{_description(spec) if spec else call.tool_name} {risk}")
    return " ".join([*lines, "Not run yet: answer yes or no."])


def _description(spec: ToolSpec) -> str:
    return f"{spec.name}: {code_span(shorten(' '.join(spec.brief.split()), 300))}."


def _neither(problem: str) -> TypedReply:
    return TypedReply("neither", problem=problem)
