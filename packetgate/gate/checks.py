"""The gate's checks. Each looks at one call and the facts, and returns a verdict or None; the strictest verdict
applies.

A check of your own is a function of the same form. `create_router` and `PacketgateMiddleware` take it as
`checks=[...]`, and a plug-in names it in its `checks`:

    def no_mail_at_night(call, facts):
        if call.tool_name.startswith("mail.") and not 7 <= datetime.now().hour < 22:
            return Verdict(effect="ask", why="mails at night need approval")
"""

from collections.abc import Iterable
from secrets import token_hex
from typing import Protocol, runtime_checkable

from packetgate.gate.facts import Facts
from packetgate.state.codes import Code
from packetgate.state.redaction import has_redaction_mark
from packetgate.state.routing import NO_OBJECTION, Correction, Risk, ToolCall, Verdict
from packetgate.tools.checks.validation import check_call
from packetgate.tools.policy.rules import Effect, strictest_rule
from packetgate.tools.risk.call import UNCONFIRMED_READ
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of
from packetgate.tools.text.result_store import HANDLE_PREFIX

_CHANNELS_OF_OTHERS = frozenset({"discord", "serve"})
"""Channels in which people other than the operator ask: they cannot approve an unconfirmed read if writes are off."""
_CODES = {"unknown_tool": Code.TOOL_UNKNOWN, "alias": Code.TOOL_UNKNOWN, "off_palette": Code.TOOL_NOT_OFFERED}
_STRICTEST = ("refuse", "dry_run", "ask", "allow")
_PROCESS_KEY = token_hex(16)
"""Part of each verdict's digest: stored verdicts of other processes are not trusted."""


@runtime_checkable
class Check(Protocol):
    """A function that looks at one call. An added check runs in a thread, and must not wait for anything slow."""

    def __call__(self, call: ToolCall, facts: Facts, /) -> Verdict | None:
        """Return a verdict, or None without an objection."""
        ...


def listed(call: ToolCall, facts: Facts) -> Verdict | None:
    """Refuse a tool that the allow-list leaves out."""
    if facts.settings.allows_tool(call.tool_name):
        return None
    why = (
        f"{call.tool_name} is not in the allow-list (allowed_tools): use an allowed tool, or add {call.tool_name} to "
        "the list"
    )
    return Verdict(effect="refuse", why=why, code=Code.TOOL_NOT_ALLOWED)


def valid(call: ToolCall, facts: Facts) -> Verdict | None:
    """Refuse a tool that was not offered, and arguments that the tool's schema does not accept."""
    problems = check_call(call.tool_name, call.params, facts.offered, facts.catalogue)
    if problems:
        why = " ".join(problem.message for problem in problems).removesuffix(".")
        return Verdict(effect="refuse", why=why, code=refusal_code(problems[0]))
    if call.tool_name in facts.results_only and not str(call.params.get("path")).startswith(HANDLE_PREFIX):
        why = (
            f"{call.tool_name} can read only stored results in this turn: use a path that begins with {HANDLE_PREFIX!r}"
        )
        return Verdict(effect="refuse", why=why, code=Code.TOOL_NOT_OFFERED)
    return None


def policy(call: ToolCall, facts: Facts) -> Verdict | None:
    """Apply the owner's strictest rule for the call."""
    spec = facts.catalogue.get(call.tool_name)
    if spec is None or not spec.rules:
        return None
    rule = strictest_rule(spec.rules, call.params, spec.parameters, facts.header.origin)
    if rule is None:
        return None
    if rule.effect is Effect.DENY:
        why = f"{call.tool_name} is denied by a policy rule: {rule.line}"
        return Verdict(effect="refuse", why=why, code=Code.POLICY_DENIED)
    if rule.effect is Effect.ASK:
        return _question(call, facts, f"a policy rule asks about this call: {rule.line}")
    is_on = facts.settings.allows(call.risk)
    return Verdict(effect="allow", by=f"the policy: {rule.line}") if is_on and call.risk is not Risk.READ else None


def granted(call: ToolCall, facts: Facts) -> Verdict | None:
    """Apply the remembered answer that covers the call."""
    grant = facts.grants.get(call.call_id)
    if grant is None:
        return None
    if grant.effect == "deny":
        why = f"{call.tool_name} is denied by a remembered answer: {grant.line} (grant {grant.grant_id})"
        return Verdict(effect="refuse", why=why, code=Code.GRANT_DENIED)
    if call.risk is Risk.READ or not (facts.settings.allows(call.risk) or grant.effect == "trust"):
        return None
    return Verdict(effect="allow", by=f"grant {grant.grant_id}: {grant.line}", grant_id=grant.grant_id)


def risk(call: ToolCall, facts: Facts) -> Verdict | None:
    """Ask about a change, or make it a dry run if its risk is switched off.

    An unconfirmed read can be approved although writes are off.
    """
    if call.risk is Risk.READ:
        return None
    if not facts.settings.allows(call.risk) and not (
        call.is_unconfirmed_read and (_asker_decides(facts) or _is_trusted(call, facts))
    ):
        return Verdict(effect="dry_run")
    why = f"{call.tool_name} {UNCONFIRMED_READ}" if call.is_unconfirmed_read else f"{call.risk} tools need approval"
    return _question(call, facts, why, may_be_allowed=True)


def provenance(call: ToolCall, facts: Facts) -> Verdict | None:
    """Require approval of a call with a flagged argument, even if a rule or remembered answer allows it."""
    flagged = "; ".join(f"`{name}`: {origin.why}" for name, origin in call.provenance.items() if origin.is_flagged)
    return _question(call, facts, flagged) if flagged else None


def redaction(call: ToolCall, facts: Facts) -> Verdict | None:
    """Refuse a change that would replace a secret by its placeholder."""
    if call.risk is Risk.READ or not has_redaction_mark(call.params):
        return None
    why = (
        f"{call.tool_name} may {call.risk}, and its arguments contain the placeholder of a redacted secret: the call "
        "would replace the secret by the placeholder. Leave out the secret, or make the change by hand"
    )
    return Verdict(effect="refuse", why=why, code=Code.MARKED_ARGUMENT)


def accepted(call: ToolCall, facts: Facts) -> Verdict | None:
    """Refuse a call whose arguments the server rejects in advance."""
    hints = facts.hints.get(call.call_id)
    if hints is None or not hints.refusal:
        return None
    why = f"the server of {call.tool_name} refuses these arguments: {hints.refusal}"
    return Verdict(effect="refuse", why=why, code=Code.ARGUMENTS_INVALID)


CHECKS: tuple[Check, ...] = (listed, valid, accepted, provenance, policy, granted, redaction, risk)
"""The checks of every gate. The first of equally strict verdicts applies."""
BEFORE_HINTS: tuple[Check, ...] = (listed, valid, redaction, provenance, policy)
"""The checks that a call passes before its server is asked about it, because the server receives the arguments."""


def strictest_verdict(checks: Iterable[Check], call: ToolCall, facts: Facts) -> Verdict:
    """Return the strictest verdict on a call. Blocking."""
    verdicts = [verdict for check in checks if (verdict := check(call, facts)) is not None]
    allowing = next((verdict for verdict in verdicts if verdict.effect == "allow"), None)
    verdicts = [verdict for verdict in verdicts if not (allowing and verdict.may_be_allowed)]
    return min(verdicts, key=lambda verdict: _STRICTEST.index(verdict.effect), default=NO_OBJECTION)


def verdict_digest(call: ToolCall, verdict: Verdict | None, spec: ToolSpec, facts: Facts) -> str:
    """Return the digest of a call's verdict, and of everything that it depends on and that may change until the run."""
    settings, flagged = facts.settings, [name for name, origin in call.provenance.items() if origin.is_flagged]
    switches = [settings.allow_write_tools, settings.allow_execute_tools, settings.allowed_tools]
    rules = [rule.line for rule in spec.rules]
    stated = verdict.model_dump(mode="json") if verdict else None
    return digest_of([_PROCESS_KEY, stated, call_digest(call, spec), call.tool_name, flagged, switches, rules])


def call_digest(call: ToolCall, spec: ToolSpec) -> str:
    """Return the digest of a call's arguments, tool definition and server. An approval is valid for one digest."""
    return digest_of([spec.digest, call.params])


def refusal_code(correction: Correction) -> Code:
    """Return the code of the refusal for an invalid call."""
    return _CODES.get(correction.problem, Code.ARGUMENTS_INVALID)


def may_run(call: ToolCall, facts: Facts, *, is_approved: bool, by_grant: bool) -> bool:
    """Return whether a permitted call runs; otherwise it is a dry run.

    With writes switched off, an unconfirmed read may run if it was approved.
    """
    if facts.settings.allows(call.risk):
        return True
    return call.is_unconfirmed_read and is_approved and (_asker_decides(facts) or by_grant)


def _question(call: ToolCall, facts: Facts, why: str, *, may_be_allowed: bool = False) -> Verdict:
    is_off = not facts.settings.allows(call.risk)
    return Verdict(effect="ask", why=why, may_be_allowed=may_be_allowed, or_dry_run=is_off)


def _asker_decides(facts: Facts) -> bool:
    return facts.header.origin not in _CHANNELS_OF_OTHERS


def _is_trusted(call: ToolCall, facts: Facts) -> bool:
    grant = facts.grants.get(call.call_id)
    return grant is not None and grant.effect == "trust"
