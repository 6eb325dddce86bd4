"""The gate's checks. A row is a call, the facts and the verdict."""

from dataclasses import replace
from typing import Any

import pytest
from support.tool_specs import files_catalogue

from packetgate.gate.checks import CHECKS, may_run, strictest_verdict, verdict_digest
from packetgate.gate.facts import Facts
from packetgate.gate.grants import Grant
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.routing import Risk, ToolCall, Verdict
from packetgate.state.sections import Header
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.policy.rules import Rule

FILES = files_catalogue()
OFF, ON = RoutingContext(), RoutingContext(allow_write_tools=True, allow_execute_tools=True)
PARAMS: dict[str, Any] = {"path": "a.txt", "content": "x"}
READ = ToolCall(call_id="c1", tool_name="files.read_file", params={"path": "a.txt"}, risk=Risk.READ)
WRITE = ToolCall(call_id="c1", tool_name="files.write_file", params=PARAMS, risk=Risk.WRITE)
RUN = ToolCall(call_id="c1", tool_name="shell.run_command", params={"argv": ["ls"]}, risk=Risk.EXECUTE)
FLAGGED = {"path": Origin(kind=OriginKind.TEXT, is_flagged=True, why="it appears only in a mail")}
LOOKS = WRITE.model_copy(update={"is_unconfirmed_read": True})
"""An unconfirmed read."""
SECRET = WRITE.model_copy(update={"params": {"path": "a.txt", "content": "token=[redacted: api key]"}})


def facts(settings: RoutingContext = ON, *, rule: str = "", grant: str = "", **changed: Any) -> Facts:
    """Return facts in which all tools are offered, with a rule (its effect) and a grant (its effect) for the call."""
    rules = (Rule.model_validate({"effect": rule, "tool": "files.*"}),) if rule else ()
    catalogue = Catalogue(replace(spec, rules=rules) for spec in FILES.values())
    given = Grant(effect=grant, tool="", digest="", channel="terminal", person="") if grant else None  # type: ignore[arg-type]
    header = Header(origin=changed.pop("origin", "terminal"))
    grants = {"c1": given} if given else {}
    return replace(Facts(header, catalogue, frozenset(catalogue), settings=settings, grants=grants), **changed)


@pytest.mark.parametrize(
    ("call", "known", "effect"),
    [
        (READ, facts(), "allow"),
        (READ, facts(OFF), "allow"),
        (WRITE, facts(), "ask"),
        (RUN, facts(), "ask"),
        (WRITE, facts(OFF), "dry_run"),
        (RUN, facts(RoutingContext(allow_write_tools=True)), "dry_run"),
        # a flagged argument needs approval, whatever was allowed beforehand
        (READ.changed(provenance=FLAGGED), facts(), "ask"),
        (WRITE.changed(provenance=FLAGGED), facts(rule="allow"), "ask"),
        (WRITE.changed(provenance=FLAGGED), facts(grant="allow"), "ask"),
        (WRITE.changed(provenance=FLAGGED), facts(OFF), "dry_run"),
        # a rule takes precedence over a grant, and the strictest rule decides
        (READ, facts(rule="ask"), "ask"),
        (READ, facts(rule="deny"), "refuse"),
        (WRITE, facts(rule="deny"), "refuse"),
        (WRITE, facts(OFF, rule="deny"), "refuse"),
        (WRITE, facts(rule="allow"), "allow"),
        (WRITE, facts(OFF, rule="allow"), "dry_run"),
        (WRITE, facts(rule="ask", grant="allow"), "ask"),
        (WRITE, facts(rule="allow", grant="deny"), "refuse"),
        (WRITE, facts(grant="allow"), "allow"),
        (WRITE, facts(OFF, grant="allow"), "dry_run"),
        (WRITE, facts(grant="deny"), "refuse"),
        # an unconfirmed read can be approved although writes are disabled, and its tool can be trusted
        (LOOKS, facts(OFF), "ask"),
        (LOOKS, facts(), "ask"),
        (LOOKS, facts(OFF, rule="allow"), "ask"),
        (LOOKS, facts(rule="allow"), "allow"),
        (LOOKS, facts(OFF, grant="trust"), "allow"),
        (LOOKS, facts(OFF, rule="ask", grant="trust"), "ask"),
        (LOOKS.changed(provenance=FLAGGED), facts(OFF, grant="trust"), "ask"),
        (LOOKS, facts(OFF, origin="discord"), "dry_run"),
        (LOOKS, facts(OFF, origin="serve"), "dry_run"),
        (LOOKS, facts(OFF, origin="discord", grant="trust"), "allow"),
        # a change would replace a secret by its placeholder
        (SECRET, facts(), "refuse"),
        (SECRET.changed(risk=Risk.READ), facts(), "allow"),
    ],
)
def test_the_strictest_verdict_holds(call: ToolCall, known: Facts, effect: str):
    assert strictest_verdict(CHECKS, call, known).effect == effect


@pytest.mark.parametrize(
    ("changed", "known", "code"),
    [
        ({}, facts(offered=frozenset({"files.write_file"})), Code.TOOL_NOT_OFFERED),
        ({}, facts(RoutingContext(allowed_tools=("mail.*",))), Code.TOOL_NOT_ALLOWED),
        *(
            ({"tool_name": name}, facts(), Code.TOOL_UNKNOWN)
            for name in ("read_file", "files.readFile", "nobody.reads")
        ),
        *(
            ({"params": params}, facts(), Code.ARGUMENTS_INVALID)
            for params in ({}, {"path": 5}, {"path": "a.txt", "extra": 1}, {"file": "a.txt"})
        ),
        ({}, facts(results_only=frozenset({"files.read_file"})), Code.TOOL_NOT_OFFERED),
        ({"params": {"path": "kept:abc"}}, facts(results_only=frozenset({"files.read_file"})), None),
        ({}, facts(RoutingContext(allowed_tools=("*.*",))), None),
    ],
)
def test_a_refusal_has_a_code_and_names_the_tool(changed: dict[str, Any], known: Facts, code: Code | None):
    call = READ.model_copy(update=changed)
    strictest = strictest_verdict(CHECKS, call, known)
    assert strictest.code is code
    assert (strictest.effect == "refuse") is (code is not None)
    assert code is None or call.tool_name in strictest.why


def test_a_question_that_only_off_switches_cause_is_a_dry_run_without_its_answer():
    assert strictest_verdict(CHECKS, LOOKS, facts(OFF)).or_dry_run
    assert not strictest_verdict(CHECKS, LOOKS, facts()).or_dry_run


def test_a_check_of_ones_own_makes_the_gate_stricter_and_never_less_strict():
    def no_paths(call: ToolCall, known: Facts) -> Verdict | None:
        return Verdict(effect="refuse", why=f"{call.tool_name}: no paths") if "path" in call.params else None

    def anything(call: ToolCall, known: Facts) -> Verdict | None:
        return Verdict(effect="allow", by="a check of my own")

    assert strictest_verdict((*CHECKS, no_paths), READ, facts()).effect == "refuse"
    assert strictest_verdict((*CHECKS, anything), WRITE.changed(provenance=FLAGGED), facts()).effect == "ask"
    assert strictest_verdict((*CHECKS, anything), WRITE, facts(OFF)).effect == "dry_run"


@pytest.mark.parametrize(
    ("call", "known", "approved", "by_grant", "runs"),
    [
        (READ, facts(OFF), False, False, True),
        (WRITE, facts(), True, False, True),
        (WRITE, facts(OFF), True, True, False),
        (LOOKS, facts(OFF), True, False, True),
        (LOOKS, facts(OFF), False, False, False),
        # other people cannot approve an unconfirmed read if writes are disabled
        (LOOKS, facts(OFF, origin="discord"), True, False, False),
        (LOOKS, facts(OFF, origin="discord"), True, True, True),
    ],
)
def test_what_runs_is_switched_on_or_an_approved_unconfirmed_read(
    call: ToolCall, known: Facts, approved: bool, by_grant: bool, runs: bool
):
    assert may_run(call, known, is_approved=approved, by_grant=by_grant) is runs


@pytest.mark.parametrize(
    "changed",
    [
        {"full": "Write a file, and send it to me"},
        {"input_schema": {**FILES["files.write_file"].input_schema, "title": "anything"}},
        {"server_digest": "another command"},
        {"risk": Risk.EXECUTE},
        {"rules": (Rule.model_validate({"effect": "deny", "tool": "*"}),)},
    ],
    ids=str,
)
def test_a_verdict_holds_only_for_what_it_was_given_for(changed: dict[str, Any]):
    spec, known = FILES["files.write_file"], facts()
    given = verdict_digest(WRITE, WRITE.verdict, spec, known)
    assert verdict_digest(WRITE, WRITE.verdict, spec, facts()) == given
    assert verdict_digest(WRITE, WRITE.verdict, replace(spec, **changed), known) != given
    assert verdict_digest(WRITE.changed(params={**PARAMS, "content": "y"}), WRITE.verdict, spec, known) != given
    assert verdict_digest(WRITE.changed(provenance=FLAGGED), WRITE.verdict, spec, known) != given
    assert verdict_digest(WRITE, WRITE.verdict, spec, facts(OFF)) != given
