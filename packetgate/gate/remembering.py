"""Offer to remember an approval. The question shows the terms, and exactly these terms are stored."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from posixpath import dirname
from typing import Any, Literal
from urllib.parse import urlsplit

from packetgate.gate.checks import CHECKS, strictest_verdict
from packetgate.gate.facts import Facts
from packetgate.gate.grants import ID_LENGTH, OPERATOR_CHANNELS, Grant
from packetgate.state.base import now
from packetgate.state.codes import Code
from packetgate.state.errors import RequestError
from packetgate.state.origins import ArgumentRole
from packetgate.state.printing import printable
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.policy.patterns import ANYTHING, is_date, literal_pattern
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.roles import holds_quantity, is_id, is_program, role_of

RememberWord = Literal["session", "always", "trust", "never"]
_OFFERED_WORDS: dict[str, tuple[RememberWord, ...]] = {
    "session": ("session",),
    "always": ("session", "always", "never"),
}
_SESSION_DAYS = 1
_MAX_DESCRIPTION = 300


def remember_offers(call: ToolCall, facts: Facts) -> dict[str, str]:
    """Return, for each offered word (session, always, trust, never), a line with the terms that the word stores."""
    policy = facts.catalogue.preferences.policy
    bounds: dict[RememberWord, str] = {
        "session": f": {policy.remember_uses} times in this session, for a day",
        "always": f": {policy.remember_uses} times in {policy.remember_days} days",
        "trust": ", until you revoke it, or the tool or its server changes",
        "never": ", until you revoke it",
    }
    grants = _offered_grants(call, facts)
    lines: dict[str, str] = {
        word: f"{grant.terms}, {grant.requester_line}{bounds[word]}" for word, grant in grants.items()
    }
    if "trust" in lines:
        description = printable(" ".join(facts.catalogue[call.tool_name].full.split()))
        lines["trust"] += f". Its server describes it: {description[:_MAX_DESCRIPTION]}"
    return lines


def grants_of(
    approvals: Iterable[Approval], calls: Iterable[ToolCall], question: OpenQuestion, facts: Facts
) -> list[Grant]:
    """Return the grants that new decisions on `calls` store.

    Raises:
        RequestError: the question did not offer the word, or would now offer other terms.
    """
    by_id = {call.call_id: call for call in calls}
    offers = {asked.call_id: asked.remember for asked in question.calls}
    grants = []
    for approval in approvals:
        if not approval.remember:
            continue
        word: RememberWord = "never" if approval.outcome is ApprovalOutcome.DENIED else approval.remember
        call = by_id[approval.call_id]
        line = offers.get(call.call_id, {}).get(word)
        if line is None or line != remember_offers(call, facts).get(word):
            choices = ", ".join(["yes", "no", *offers.get(call.call_id, {})])
            message = f"{call.tool_name}: {word!r} is not offered; use one of: {choices}"
            raise RequestError(message, Code.NOT_OFFERED)
        grants.append(_grant(word, call, question.question_id, facts))
    return grants


def _offered_grants(call: ToolCall, facts: Facts) -> dict[RememberWord, Grant]:
    spec = facts.catalogue.get(call.tool_name)
    policy = facts.catalogue.preferences.policy
    may_trust = policy.remember == "always" or (facts.header.origin in OPERATOR_CHANNELS and policy.remembers_trust)
    offers_trust = call.is_unconfirmed_read and may_trust and not call.started_at
    if (
        spec is None
        or call.is_flagged
        or not (call.status is ToolExecutionStatus.AWAITING_APPROVAL or (offers_trust and call.status.awaits_user))
    ):
        return {}
    words = _OFFERED_WORDS.get(policy.remember, ())
    if offers_trust:
        words = ("trust", *(word for word in words if word == "never"))
    grants = {word: _grant(word, call, "", facts) for word in words}
    return {  # an approval is offered only if it would allow this call
        word: grant for word, grant in grants.items() if grant.effect == "deny" or _would_allow(grant, call, facts)
    }


def _would_allow(grant: Grant, call: ToolCall, facts: Facts) -> bool:
    covered = replace(facts, grants={call.call_id: grant})
    return strictest_verdict(CHECKS, call, covered).grant_id == grant.grant_id


def _grant(word: RememberWord, call: ToolCall, question_id: str, facts: Facts) -> Grant:
    policy = facts.catalogue.preferences.policy
    spec = facts.catalogue[call.tool_name]
    effects: dict[str, Literal["deny", "trust"]] = {"never": "deny", "trust": "trust"}
    days = {"session": _SESSION_DAYS, "always": policy.remember_days}
    return Grant(
        grant_id=sha256(f"{question_id}:{call.call_id}".encode()).hexdigest()[:ID_LENGTH],
        effect=effects.get(word, "allow"),
        tool=call.tool_name,
        digest=spec.digest,
        **({} if word == "trust" else _terms(word, call, spec)),
        channel=facts.header.origin,
        person=facts.header.person,
        session_id=facts.header.session_id if word == "session" else None,
        uses=policy.remember_uses,
        expires_at=now() + timedelta(days=days[word]) if word in days else None,
        question_id=question_id,
    )


def _terms(word: RememberWord, call: ToolCall, spec: ToolSpec) -> dict[str, Any]:
    """Return the fields of a grant that define the covered arguments."""
    roles = {name: call.role_of(name) for name in call.params}
    if call.risk is Risk.EXECUTE:
        return {"arguments": {name: literal_pattern(value) for name, value in call.params.items()}}
    patterns = {name: _pattern(value, roles[name]) for name, value in call.params.items()}
    if word == "never":
        payloads = {name: ANYTHING for name, role in roles.items() if role is ArgumentRole.PAYLOAD}
        return {"arguments": patterns | payloads}
    arguments: dict[str, str] = {}
    alternatives: dict[str, list[str]] = {"from_user": [], "from_server": []}
    at_most: dict[str, float] = {}
    for name in dict.fromkeys([*call.params, *spec.parameters]):
        value, role = call.params.get(name), roles.get(name) or role_of((name,), spec.parameters[name], None)
        may_be_amount = role is not ArgumentRole.DESTINATION and not is_id(name) and not isinstance(value, bool)
        if may_be_amount and isinstance(value, int | float) and value >= 0:
            at_most[name] = value
        elif _may_be_anything(name, value, role) and not holds_quantity(name, value):
            arguments[name] = ANYTHING
        elif name not in call.params:
            if not holds_quantity(name, None):
                alternatives["from_user"].append(name)
        else:
            is_exact = holds_quantity(name, value)
            if "*" not in patterns[name] and not is_exact:
                is_field = role is ArgumentRole.DESTINATION or is_id(name)
                alternatives["from_server" if is_field else "from_user"].append(name)
            if "*" in patterns[name] or is_exact or not call.is_from_user(name):
                arguments[name] = patterns[name]
    return {"arguments": arguments, **alternatives, "at_most": at_most}


def _may_be_anything(name: str, value: Any, role: ArgumentRole) -> bool:
    if role is ArgumentRole.PAYLOAD:
        return not is_program(name)
    return role is ArgumentRole.OTHER and is_date(value) and not is_id(name)


def _pattern(value: Any, role: ArgumentRole) -> str:
    if role is not ArgumentRole.DESTINATION or not isinstance(value, str):
        return literal_pattern(value)
    if site := _site(value):
        return f"{literal_pattern(site)}/{ANYTHING}"
    folder = dirname(value)
    is_path = folder not in {"", "/"} and "@" not in value and ":" not in value
    return f"{literal_pattern(folder)}/*" if is_path else literal_pattern(value)


def _site(value: str) -> str:
    try:
        address = urlsplit(value)
        is_web = address.scheme in {"http", "https"} and bool(address.hostname) and "@" not in address.netloc
    except ValueError:
        return ""
    return f"{address.scheme}://{address.netloc}" if is_web else ""
