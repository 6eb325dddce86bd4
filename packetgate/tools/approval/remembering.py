"""What an approval would stand for if it were remembered: shown before it is given, and exactly that is kept.

The pattern lets vary what a call carries, when and how much, and where it goes as far as the user says so themself or a
field that the tool's own server gave: another text to the same folder, another message to somebody whom they name,
another event of those that were listed. All else, and a command, is remembered to the letter.
"""

from collections import defaultdict
from datetime import timedelta
from hashlib import sha256
from posixpath import dirname
from typing import Any, Literal
from urllib.parse import urlsplit

from packetgate.state.base import now
from packetgate.state.errors import RequestError
from packetgate.state.origins import ArgumentRole
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import ApprovalOutcome, Question
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.grants import ID_LENGTH, Grant
from packetgate.tools.execution.permission import need_of
from packetgate.tools.policy.patterns import ANYTHING, exactly, is_moment
from packetgate.tools.provenance.roles import is_carried_out, is_how_much, is_which, role_of
from packetgate.tools.spec.tool_spec import ToolSpec

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
    bounds: dict[Word, str] = {
        "session": f": {policy.remember_uses} times in this session, for a day",
        "always": f": {policy.remember_uses} times in {policy.remember_days} days",
        "never": ", until you take it back",
    }
    grants = {word: _grant(word, call, "", packet, catalogue) for word in words}
    return {word: f"{grant.terms}, {grant.asked}{bounds[word]}" for word, grant in grants.items()}


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
    if spec is None or call.status is not ToolExecutionStatus.AWAITING_APPROVAL or call.is_flagged:
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
    roles = {name: call.role_of(name) for name in call.params}
    return {
        name: ANYTHING if roles[name] is ArgumentRole.PAYLOAD else _varied(value, roles[name])
        for name, value in call.params.items()
    }


def _like(call: ToolCall, spec: ToolSpec) -> dict[str, Any]:
    """Return what calls like this one fit: the patterns of a grant, and how far it lets each argument vary."""
    if call.risk is Risk.EXECUTE:
        return {"arguments": _place(call)}
    arguments: dict[str, str] = {}
    leeway: defaultdict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys([*call.params, *spec.parameters]):
        is_given = name in call.params
        role = call.role_of(name) if is_given else role_of((name,), spec.parameters[name], None)
        if _is_whichever(name, call.params.get(name), role):
            arguments[name] = ANYTHING
            continue
        wanted = _varied(call.params[name], role) if is_given else ""
        if "*" not in wanted:
            leeway[_leeway(name, role) if is_given else "said"].append(name)
        if is_given and ("*" in wanted or not call.is_said(name)):
            arguments[name] = wanted
    return {"arguments": arguments, **leeway}


def _is_whichever(name: str, value: Any, role: ArgumentRole) -> bool:
    """Whether an argument is what a call carries, or when it is for."""
    if role is ArgumentRole.PAYLOAD:
        return not is_carried_out(name)
    return role is ArgumentRole.OTHER and is_moment(value) and not is_which(name)


def _leeway(name: str, role: ArgumentRole) -> Literal["said", "given_back", "counted"]:
    """Return which words of a grant an argument falls under."""
    if role is ArgumentRole.DESTINATION or is_which(name):
        return "given_back"
    return "counted" if role is ArgumentRole.OTHER and is_how_much(name) else "said"


def _varied(value: Any, role: ArgumentRole) -> str:
    if role is not ArgumentRole.DESTINATION or not isinstance(value, str):
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
    spec = catalogue[call.tool_name]
    like = {"arguments": _place(call)} if word == "never" else _like(call, spec)
    days = {"session": _SESSION_DAYS, "always": policy.remember_days}
    return Grant(
        grant_id=sha256(f"{question_id}:{call.call_id}".encode()).hexdigest()[:ID_LENGTH],
        effect="deny" if word == "never" else "allow",
        tool=call.tool_name,
        digest=spec.digest,
        **like,
        channel=packet.header.origin,
        person=packet.header.person,
        session_id=packet.header.session_id if word == "session" else None,
        uses=policy.remember_uses,
        expires_at=now() + timedelta(days=days[word]) if word in days else None,
        question_id=question_id,
    )
