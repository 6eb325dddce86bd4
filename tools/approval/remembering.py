"""What an approval would stand for if it were remembered: shown before it is given, and exactly that is kept.

The pattern lets vary what a call carries, and what the user says themself: another text to the same folder, another
message to somebody whom they name. What came from elsewhere, and a command, is remembered to the letter.
"""

from datetime import timedelta
from hashlib import sha256
from posixpath import dirname
from typing import Any, Literal
from urllib.parse import urlsplit

from state.base import now
from state.errors import RequestError
from state.packet import CognitionPacket, PacketUpdate
from state.routing import Risk, ToolCall
from state.sections import ApprovalOutcome, Question
from state.transitions import ToolExecutionStatus
from tools.catalogue.catalogue import Catalogue
from tools.execution.grants import ID_LENGTH, Grant
from tools.execution.permission import need_of
from tools.policy.patterns import ANYTHING, exactly
from tools.policy.rules import arguments_line

Word = Literal["session", "always", "never"]
"""What the user says to have their word remembered."""
_OFFERED: dict[str, tuple[Word, ...]] = {"session": ("session",), "always": ("session", "always", "never")}
"""By how far the configuration lets approvals be remembered."""
_SESSION_DAYS = 1


def offers(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> dict[str, str]:
    """Return what a remembered answer about a call would stand for: a line, by the word that gives it."""
    policy = catalogue.preferences.policy
    words = _words(call, packet, catalogue)
    if not words:
        return {}
    allow = f"allow {call.tool_name}{arguments_line(*_like(call))}, asked in {packet.header.origin}"
    deny = f"deny {call.tool_name}{arguments_line(_place(call))}, asked in {packet.header.origin}"
    lines: dict[Word, str] = {
        "session": f"{allow}: {policy.remember_uses} times in this session, for a day",
        "always": f"{allow}: {policy.remember_uses} times in {policy.remember_days} days",
        "never": f"{deny}, until you take it back",
    }
    return {word: lines[word] for word in words}


def grants_of(decided: PacketUpdate, question: Question, packet: CognitionPacket, catalogue: Catalogue) -> list[Grant]:
    """Return what the user's word on calls stands for from now on; `decided` is what their reply changes.

    Raises:
        RequestError: the question did not offer that, or would offer something else by now.
    """
    calls = {call.call_id: call for call in packet.routing.calls}
    shown = {one.call_id: one.remember for one in question.calls}
    governance = decided.get("governance") or packet.governance
    grants = []
    for one in governance.approvals:
        if not one.remember or one in packet.governance.approvals:
            continue
        word: Word = "never" if one.outcome is ApprovalOutcome.DENIED else one.remember
        call = calls[one.call_id]
        line = shown.get(call.call_id, {}).get(word)
        if line is None or line != offers(call, packet, catalogue).get(word):
            can = ", ".join(["yes", "no", *shown.get(call.call_id, {})])
            raise RequestError(f"{call.tool_name}: {word!r} is not offered; answer one of {can}")
        grants.append(_grant(word, call, question.question_id, packet, catalogue))
    return grants


def _words(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> list[Word]:
    """Return what can be remembered of an answer: an approval only where it would spare the next question."""
    spec = catalogue.get(call.tool_name)
    if spec is None or call.status is not ToolExecutionStatus.AWAITING_APPROVAL or call.is_loud:
        return []
    words = _OFFERED.get(catalogue.preferences.policy.remember, ())
    given = {word: _grant(word, call, "", packet, catalogue) for word in words}
    return [
        word
        for word, grant in given.items()
        if grant.effect == "deny" or need_of(call, spec, packet, grant).grant_id == grant.grant_id
    ]


def _place(call: ToolCall) -> dict[str, str]:
    """Return the pattern that calls fit which do the same in the same place."""
    if call.risk is Risk.EXECUTE:
        return {name: exactly(value) for name, value in call.params.items()}
    return {name: _varied(value, call.role_of(name)) for name, value in call.params.items()}


def _like(call: ToolCall) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the pattern of calls like this one, and the arguments that may be anything that the user says themself."""
    pattern = _place(call)
    varies = call.risk is not Risk.EXECUTE
    said = tuple(name for name, wanted in pattern.items() if varies and call.is_said(name) and "*" not in wanted)
    return {name: wanted for name, wanted in pattern.items() if name not in said}, said


def _varied(value: Any, role: str) -> str:
    if role == "payload":
        return ANYTHING
    if role != "destination" or not isinstance(value, str):
        return exactly(value)
    site = _site(value)
    if site:
        return f"{exactly(site)}/{ANYTHING}"
    folder = dirname(value)
    is_path = folder not in {"", "/"} and "@" not in value and ":" not in value
    return f"{exactly(folder)}/*" if is_path else exactly(value)


def _site(value: str) -> str:
    """Return the scheme and host of a web address; empty where it is none, or hides another host."""
    try:
        address = urlsplit(value)
        is_web = address.scheme in {"http", "https"} and bool(address.hostname) and "@" not in address.netloc
    except ValueError:
        return ""
    return f"{address.scheme}://{address.netloc}" if is_web else ""


def _grant(word: Word, call: ToolCall, question_id: str, packet: CognitionPacket, catalogue: Catalogue) -> Grant:
    """Return the grant, the same one however often a reply is read."""
    policy = catalogue.preferences.policy
    arguments, said = (_place(call), ()) if word == "never" else _like(call)
    days = {"session": _SESSION_DAYS, "always": policy.remember_days}
    return Grant(
        grant_id=sha256(f"{question_id}:{call.call_id}".encode()).hexdigest()[:ID_LENGTH],
        effect="deny" if word == "never" else "allow",
        tool=call.tool_name,
        digest=catalogue[call.tool_name].digest,
        arguments=arguments,
        said=said,
        channel=packet.header.origin,
        session_id=packet.header.session_id if word == "session" else None,
        uses=policy.remember_uses,
        expires_at=now() + timedelta(days=days[word]) if word in days else None,
        question_id=question_id,
    )
