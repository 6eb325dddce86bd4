"""Parse replies to a question: decisions of front ends, and words such as "yes" or "1 yes 2 no"."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from packetgate.state.codes import Code
from packetgate.state.errors import RequestError
from packetgate.state.sections import ApprovalOutcome, Remember
from packetgate.tools.text.values import leaves
from packetgate.tools.text.words import stem_of, words_of

ANSWER = "answer"
"""Name of the argument with the text of an answer. agent-chat-ui cannot respond: it shows a form to edit arguments."""
_MAX_NAME_CHARS = 80

_STORED: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_WORDS = {meaning: [word.replace("_", " ") for word in words.split()] for meaning, words in _STORED.items()}
YES, SKIP = frozenset(_WORDS["yes"] + _WORDS["yes_phrases"]), frozenset(_WORDS["skip"])
NO = frozenset(_WORDS["no"] + _WORDS["retract"])
ACKNOWLEDGEMENTS = frozenset(_WORDS["acknowledge"])
"""Words of `YES` that may be a mere acknowledgement, such as "ok, thanks"."""
POLITE_WORDS = frozenset(_WORDS["around"] + _WORDS["thanks"])
"""Polite words that may accompany a verdict."""
ALL_WORDS, LIMITING_WORDS = frozenset(_WORDS["all"]), frozenset(_WORDS["limits"])
CORRECTING_WORDS, THANKS = frozenset(_WORDS["correct"]), frozenset(_WORDS["thanks"])
_TWO_WORD_PHRASES = frozenset(
    word
    for meaning in ("yes", "no", "skip", "acknowledge", "retract", "thanks", "around")
    for word in _WORDS[meaning]
    if word.count(" ") == 1
)
_LINK_WORDS = frozenset(_WORDS["links"])
_FILLER_WORDS = _LINK_WORDS | ALL_WORDS | POLITE_WORDS | {*_WORDS["to_them"], ",", ";", "and", "&", "/"}
_SIGN_VARIANTS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[\u2640\u2642]")
_QUESTION_MARKS = frozenset("?؟¿")
_PUNCTUATION = ".!。:)([]#\"'“”¡।"

_OUTCOMES = {
    "approve": ApprovalOutcome.APPROVED,
    "accept": ApprovalOutcome.APPROVED,
    "edit": ApprovalOutcome.EDITED,
    "reject": ApprovalOutcome.DENIED,
    "ignore": ApprovalOutcome.SKIPPED,
    "skip": ApprovalOutcome.SKIPPED,
    "respond": ApprovalOutcome.ANSWERED,
    "response": ApprovalOutcome.ANSWERED,
}


@dataclass(frozen=True)
class CallReply:
    """The user's decision about one call."""

    outcome: ApprovalOutcome
    comment: str = ""
    tool_name: str | None = None
    params: dict[str, Any] | None = None
    remember: Remember = ""


_REMEMBERED = {
    **dict.fromkeys(_WORDS["session"], CallReply(ApprovalOutcome.APPROVED, remember="session")),
    **dict.fromkeys(_WORDS["always"], CallReply(ApprovalOutcome.APPROVED, remember="always")),
    **dict.fromkeys(_WORDS["trust"], CallReply(ApprovalOutcome.APPROVED, remember="trust")),
    **dict.fromkeys(_WORDS["never"], CallReply(ApprovalOutcome.DENIED, remember="always")),
}
CallInQuestion = tuple[str, dict[str, Any]]
"""Tool name and arguments of a call in a question."""


def parse_replies(reply: Any, count: int) -> list[CallReply]:
    """Return the decisions of a reply: `{"decisions": [...]}`, a list, one decision, or words for all `count` calls.

    Raises:
        RequestError: the reply has none of these forms, or another number of decisions.
    """
    if isinstance(reply, str):
        return [parse_words(reply)] * count
    decisions = reply.get("decisions", [reply]) if isinstance(reply, dict) else reply
    if not isinstance(decisions, list) or not decisions:
        raise _unusable_reply_error(
            'no decision in the reply: send {"decisions": [{"type": "approve"}]}, or a word such as yes or no'
        )
    replies = [
        parse_words(decision) if isinstance(decision, str) else _from_decision(decision) for decision in decisions
    ]
    if len(replies) != count:
        message = f"{len(replies)} decisions for {count} calls: send one decision for each call, in order"
        raise RequestError(message, Code.REPLY_INCOMPLETE)
    return replies


def parse_answer(reply: Any) -> str | None:
    """Return the text that answers a free-text question; None if the user declines.

    Raises:
        RequestError: the reply contains no text.
    """
    if isinstance(reply, str):
        return reply.strip() or None
    decision = parse_replies(reply, 1)[0]
    if text := _comment_of(decision, ApprovalOutcome.ANSWERED, ApprovalOutcome.DENIED):
        return text
    if decision.outcome in {ApprovalOutcome.DENIED, ApprovalOutcome.SKIPPED}:
        return None
    raise _unusable_reply_error('the question needs an answer in words: send text, or {"type": "respond"}')


def reply_text(reply: Any, count: int) -> str:
    """Return a reply in words, or the text of a decision to respond to the only call; otherwise an empty string."""
    if isinstance(reply, str):
        return reply.strip()
    try:
        return _comment_of(parse_replies(reply, 1)[0], ApprovalOutcome.ANSWERED) if count == 1 else ""
    except RequestError:
        return ""


def asked_calls(payload: Mapping[str, Any]) -> list[CallInQuestion]:
    """Return the calls in a question's payload; empty if the question asks for words."""
    requests = () if payload.get("kind") == "question" else payload.get("action_requests") or ()
    return [(str(request.get("name")), request.get("args") or {}) for request in requests]


def read_reply(words: str, calls: Sequence[CallInQuestion] = ()) -> list[CallReply] | None:
    """Return the decision on each call of a question; None if the words do not clearly decide every call.

    Without calls, only a yes, no or skip is a decision.
    """
    if not words.strip():
        return None
    names = [_names_of(*call) for call in calls]
    for_all = _single_decision_in(words, names[0] if len(names) == 1 else frozenset())
    if for_all is not None:
        return [for_all] * len(calls)
    if len(names) < 2 or _QUESTION_MARKS & {*_normal(words)}:
        return None
    outcomes = _decisions_for_each(tokens_of(words), names)
    return [CallReply(outcome) for outcome in outcomes] if outcomes else None


def parse_words(text: str) -> CallReply:
    """Return the decision for all calls. Anything but a clear yes, no or skip is an answer in words."""
    return _single_decision_in(text, frozenset()) or CallReply(ApprovalOutcome.ANSWERED, comment=text.strip())


def verdict_of(token: str) -> ApprovalOutcome | None:
    """Return the decision that a word means; None if the word is not a verdict."""
    if token in YES:
        return ApprovalOutcome.APPROVED
    if token in NO:
        return ApprovalOutcome.DENIED
    return ApprovalOutcome.SKIPPED if token in SKIP else None


def tokens_of(text: str) -> list[str]:
    """Return a text's words, signs, commas and semicolons, in order."""
    plain = _SIGN_VARIANTS.sub("", _normal(text)).casefold().replace("\u2019", "'").replace("、", ",")
    plain = "".join(f" {char} " if unicodedata.category(char) == "So" or char in ",;" else char for char in plain)
    tokens: list[str] = []
    for word in filter(None, (word if verdict_of(word) else word.strip(_PUNCTUATION) for word in plain.split())):
        pair = f"{tokens[-1]} {word}" if tokens else ""
        tokens[-1:] = [pair] if pair in _TWO_WORD_PHRASES else [*tokens[-1:], word]
    return tokens


def _from_decision(decision: Any) -> CallReply:
    kind = decision.get("type") if isinstance(decision, dict) else None
    if not isinstance(kind, str) or kind not in _OUTCOMES:
        raise _unusable_reply_error(f"unknown decision {kind!r}: use approve, edit, reject, respond or skip")
    outcome = _OUTCOMES[kind]
    if outcome is ApprovalOutcome.EDITED:
        return _edit(decision)
    remember = decision.get("remember", "")
    may_remember = outcome in {ApprovalOutcome.APPROVED, ApprovalOutcome.DENIED}
    if remember not in get_args(Remember) or (remember and not may_remember):
        raise _unusable_reply_error(
            f'{kind} cannot be remembered as {remember!r}: use "session", "always" or "trust", with approve or reject'
        )
    message = decision.get("message", decision.get("args"))
    comment = message if isinstance(message, str) else ""
    if outcome is ApprovalOutcome.ANSWERED and not comment.strip():
        raise _unusable_reply_error('a "respond" decision needs a "message"')
    return CallReply(outcome, comment=comment, remember=remember)


def _edit(decision: dict[str, Any]) -> CallReply:
    # LangChain sends `edited_action: {name, args}`, Agent Inbox `args: {action, args}`, others only the arguments.
    edited = decision.get("edited_action", decision.get("args"))
    if isinstance(edited, dict):
        name, params = edited.get("name", edited.get("action")), edited.get("args", edited.get("arguments"))
        if isinstance(params, dict) and (name is None or isinstance(name, str)):
            return CallReply(ApprovalOutcome.EDITED, tool_name=name, params=params)
        if params is None and "edited_action" not in decision:
            return CallReply(ApprovalOutcome.EDITED, params=edited)
    raise _unusable_reply_error('an "edit" decision needs {"edited_action": {"name": "...", "args": {...}}}')


def _comment_of(reply: CallReply, *outcomes: ApprovalOutcome) -> str:
    text = reply.comment.strip() if reply.outcome in outcomes else ""
    edited = (reply.params or {}).get(ANSWER)
    return text or (edited.strip() if isinstance(edited, str) else "")


def _unusable_reply_error(message: str) -> RequestError:
    return RequestError(message, Code.REPLY_UNUSABLE)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _single_decision_in(text: str, names: frozenset[str]) -> CallReply | None:
    if not text.strip():
        return CallReply(ApprovalOutcome.SKIPPED)
    if _QUESTION_MARKS & {*_normal(text)}:
        return None
    tokens = [token for token in tokens_of(text) if token not in {",", ";"}]
    rest = [token for token in tokens if token not in POLITE_WORDS]
    if not {*tokens}.isdisjoint(_WORDS["thanks"]) and rest and {*rest} <= ACKNOWLEDGEMENTS:
        return None
    for words in (" ".join(tokens), " ".join(rest)):
        if words in _REMEMBERED:
            return _REMEMBERED[words]
        if verdict := verdict_of(words):
            return CallReply(verdict)
    verdicts = {verdict_of(token) for token in rest if not _is_name(token, names)}
    return CallReply(*verdicts) if len(verdicts) == 1 and None not in verdicts else None  # type: ignore[arg-type]


def _decisions_for_each(tokens: Sequence[str], names: Sequence[frozenset[str]]) -> list[ApprovalOutcome] | None:
    """Return the decision on each call: one for all, one for each in order, or by number, as in `1 and 3 yes, 2 no`."""
    count, said = len(names), {*tokens}
    by_number: dict[int, ApprovalOutcome] = {}
    numbers: list[int] = []
    in_order: list[ApprovalOutcome] = []
    for word in tokens:
        verdict = None if word in POLITE_WORDS and len(tokens) > 1 else verdict_of(word)
        if word.isdecimal():
            at = int(word) - 1
            is_ambiguous = any(_is_name(word, other) for index, other in enumerate(names) if index != at)
            if at not in range(count) or at in {*by_number, *numbers} or is_ambiguous:
                return None
            numbers.append(at)
        elif verdict and numbers:
            by_number |= dict.fromkeys(numbers, verdict)
            numbers = []
        elif verdict:
            in_order.append(verdict)
        elif word not in _FILLER_WORDS:
            return None
    if by_number or numbers:
        is_complete = len(by_number) == count and not in_order and not ALL_WORDS & said
        return [by_number[at] for at in range(count)] if is_complete else None
    if said & _LINK_WORDS or (ALL_WORDS & said and len(in_order) != 1):
        return None
    different = {*in_order}
    if len(different) > 1 and not said.isdisjoint(_WORDS["retract"]):
        return None
    in_order = in_order if len(in_order) == count else [*different] * count
    return in_order if len(in_order) == count else None


def _names_of(tool: str, params: dict[str, Any]) -> frozenset[str]:
    names = {stem_of(word) for word in words_of(tool)}
    for leaf in leaves(params):
        text = str(leaf.value).casefold()
        if len(text) <= _MAX_NAME_CHARS:
            names |= {text, *map(stem_of, tokens_of(text)), *map(stem_of, words_of(text))}
    return frozenset(names - LIMITING_WORDS)


def _is_name(token: str, names: frozenset[str]) -> bool:
    return token not in LIMITING_WORDS and verdict_of(token) is None and (token in names or stem_of(token) in names)
