"""The checks directly before execution."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.tool_specs import files_catalogue

from packetgate.state.base import now
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome, Context, Governance, PaletteEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.grants import Grant
from packetgate.tools.execution.permission import call_digest, check_permission, may_run, need_of
from packetgate.tools.policy.rules import Rule

FILES = files_catalogue()
OFF, ON = RoutingContext(), RoutingContext(allow_write_tools=True, allow_execute_tools=True)
PARAMS: dict[str, Any] = {"path": "a.txt", "content": "x"}
READ = ToolCall(call_id="c1", tool_name="files.read_file", params={"path": "a.txt"}, risk=Risk.READ)
WRITE = ToolCall(call_id="c1", tool_name="files.write_file", params=PARAMS, risk=Risk.WRITE)
RUN = ToolCall(call_id="c1", tool_name="shell.run_command", params={"argv": ["ls"]}, risk=Risk.EXECUTE)


def packet(*approvals: Approval, palette: tuple[str, ...] = tuple(FILES)) -> CognitionPacket:
    entries = (PaletteEntry(tool_name=name, detail="brief", reason="ranked", risk=FILES[name].risk) for name in palette)
    return CognitionPacket(context=Context(palette=tuple(entries)), governance=Governance(approvals=approvals))


def approval(call: ToolCall, outcome: ApprovalOutcome = ApprovalOutcome.APPROVED, **changed: Any) -> Approval:
    asked = call.model_copy(update={name: changed.pop(name) for name in ("tool_name", "params") if name in changed})
    given = {
        "call_id": call.call_id,
        "tool_name": asked.tool_name,
        "params": asked.params,
        "outcome": outcome,
        "digest": call_digest(asked, FILES[asked.tool_name]),
        "expires_at": now() + timedelta(hours=1),
    }
    return Approval.model_validate({**given, **changed})


def refusal(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, settings: RoutingContext) -> Code | None:
    governance = packet.governance.model_copy(update={"settings": settings})
    refused: CallRefusedError | None = None
    try:
        check_permission(call, packet.with_update({"governance": governance}), catalogue)
    except CallRefusedError as error:
        refused = error
    assert refused is None or call.tool_name in str(refused)
    return refused.code if refused else None


def test_a_read_on_the_palette_may_run():
    assert refusal(READ, packet(), FILES, OFF) is None
    assert refusal(READ, packet(), FILES, ON) is None


@pytest.mark.parametrize("call", [READ, WRITE, RUN])
def test_off_the_palette_no_call_runs(call: ToolCall):
    others = tuple(name for name in FILES if name != call.tool_name)
    assert refusal(call, packet(approval(call), palette=others), FILES, ON) is Code.TOOL_NOT_OFFERED
    assert refusal(call, packet(approval(call)), FILES, ON) is None


@pytest.mark.parametrize("name", ["read_file", "files.readFile", "files_read_file"])
def test_an_alias_does_not_run(name: str):
    call = READ.model_copy(update={"tool_name": name})
    assert refusal(call, packet(), FILES, ON) is Code.TOOL_UNKNOWN


@pytest.mark.parametrize(
    "params", [{}, {"path": 5}, {"path": "a.txt", "extra": 1}, {"file": "a.txt"}, {"path": "a.txt", "lines": "x"}]
)
def test_invalid_arguments_do_not_run(params: dict[str, Any]):
    call = READ.model_copy(update={"params": params})
    assert refusal(call, packet(), FILES, ON) is Code.ARGUMENTS_INVALID
    assert refusal(call, packet(approval(call)), FILES, ON) is Code.ARGUMENTS_INVALID


@pytest.mark.parametrize("call", [WRITE, RUN])
def test_writes_and_commands_need_an_approval(call: ToolCall):
    assert refusal(call, packet(), FILES, ON) is Code.APPROVAL_MISSING
    assert refusal(call, packet(approval(call)), FILES, ON) is None
    assert refusal(call, packet(approval(call, ApprovalOutcome.EDITED)), FILES, ON) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"params": {**PARAMS, "content": "y"}},
        {"params": {**PARAMS, "path": "A.txt"}},
        {"params": {**PARAMS, "mode": "append"}},
        {"params": {"path": "a.txt"}},
        {"params": {}},
        {"call_id": "c2"},
        {"tool_name": "shell.run_command"},
        {"digest": ""},
        {"expires_at": None},
        {"expires_at": datetime(2026, 2, 28, tzinfo=UTC)},
        *({"outcome": one} for one in ApprovalOutcome if one not in {ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED}),
    ],
    ids=str,
)
def test_another_approval_does_not_count(changed: dict[str, Any]):
    assert refusal(WRITE, packet(approval(WRITE, **changed)), FILES, ON) is Code.APPROVAL_MISSING


@pytest.mark.parametrize(
    "changed",
    [
        {"full": "Write a file, and send it to me"},
        {"input_schema": {**FILES["files.write_file"].input_schema, "title": "anything"}},
        {"server_digest": "another command"},
        {"upstream_name": "write_files"},
        {"risk": Risk.EXECUTE},
        {"has_dry_run": True},
    ],
    ids=str,
)
def test_a_changed_tool_needs_another_approval(changed: dict[str, Any]):
    now_there = Catalogue([replace(FILES["files.write_file"], **changed)])
    assert refusal(WRITE, packet(approval(WRITE)), now_there, ON) is Code.APPROVAL_MISSING


@pytest.mark.parametrize("changed", [{"brief": "Writes"}, {"examples": ("write it",)}, {"assigned_category": "files"}])
def test_how_a_tool_is_presented_does_not_matter(changed: dict[str, Any]):
    seen = Catalogue([replace(FILES["files.write_file"], **changed)])
    assert refusal(WRITE, packet(approval(WRITE)), seen, ON) is None


def test_one_valid_approval_among_others_counts():
    others = [approval(WRITE, call_id="c2"), approval(WRITE, ApprovalOutcome.DENIED), approval(WRITE)]
    assert refusal(WRITE, packet(*others), FILES, ON) is None


def test_the_order_of_arguments_does_not_matter_and_their_type_does():
    reordered = dict(reversed(list(PARAMS.items())))
    assert refusal(WRITE, packet(approval(WRITE, params=reordered)), FILES, ON) is None
    call = READ.model_copy(update={"tool_name": "shell.run_command", "params": {"argv": ["1"]}})
    assert refusal(call, packet(approval(call, params={"argv": [1]})), FILES, ON) is Code.APPROVAL_MISSING


@pytest.mark.parametrize("call", [WRITE, RUN])
def test_the_risk_that_a_call_states_does_not_count(call: ToolCall):
    lying = call.model_copy(
        update={"risk": Risk.READ, "status": ToolExecutionStatus.APPROVED, "review_confidence": 1.0}
    )
    assert refusal(lying, packet(), FILES, ON) is Code.APPROVAL_MISSING


@pytest.mark.parametrize("call", [READ, WRITE, RUN])
def test_tools_outside_the_allow_list_do_not_run(call: ToolCall):
    only = ON.model_copy(update={"allowed_tools": ("mail.*", "files.read")})
    assert refusal(call, packet(approval(call)), FILES, only) is Code.TOOL_NOT_ALLOWED
    assert refusal(call, packet(approval(call)), FILES, ON.model_copy(update={"allowed_tools": ("*.*",)})) is None


def test_each_switch_is_for_its_own_risk():
    only_write = RoutingContext(allow_write_tools=True)
    assert refusal(WRITE, packet(), FILES, only_write) is Code.APPROVAL_MISSING
    assert refusal(RUN, packet(), FILES, only_write) is None, "switched off: a dry run, which needs no approval"


FLAGGED = Origin(kind=OriginKind.TEXT, is_flagged=True, why="it appears only in a mail")
LOOKS = replace(FILES["files.write_file"], is_unconfirmed_read=True)
LOOKING = Catalogue({**FILES, "files.write_file": LOOKS}.values())
SEEN = WRITE.model_copy(update={"is_unconfirmed_read": True, "params": {"path": "a.txt", "content": "x"}})


def with_settings(settings: RoutingContext, *approvals: Approval, origin: str = "terminal") -> CognitionPacket:
    base = packet(*approvals)
    governance = base.governance.model_copy(update={"settings": settings})
    header = base.header.model_copy(update={"origin": origin})
    return base.with_update({"governance": governance, "header": header})


def trust(channel: str, **changed: Any) -> Grant:
    digest = LOOKS.digest
    return Grant.model_validate(
        {"effect": "trust", "tool": LOOKS.name, "digest": digest, "channel": channel, "person": "", **changed}
    )


@pytest.mark.parametrize("settings", [OFF, ON])
def test_an_apparent_read_needs_an_approval_also_with_writes_off(settings: RoutingContext) -> None:
    need = need_of(SEEN, LOOKS, with_settings(settings))
    assert (need.kind, need.or_dry_run) == ("approval", settings is OFF)
    assert "looks like a read" in need.why
    raised = SEEN.model_copy(update={"is_unconfirmed_read": False})
    assert need_of(raised, LOOKS, with_settings(OFF)).kind == "nothing"  # a dry run
    assert not may_run(raised, with_settings(OFF), approval(SEEN))
    assert may_run(SEEN, with_settings(OFF), approval(SEEN))
    assert not may_run(SEEN, with_settings(OFF), None)


@pytest.mark.parametrize("origin", ["discord", "serve"])
def test_other_people_cannot_approve_an_apparent_read_with_writes_off(origin: str) -> None:
    asked = with_settings(OFF, origin=origin)
    assert need_of(SEEN, LOOKS, asked).kind == "nothing"
    assert not may_run(SEEN, asked, approval(SEEN))
    trusted = need_of(SEEN, LOOKS, asked, trust("terminal"))
    assert trusted.allowed_by
    assert may_run(SEEN, asked, approval(SEEN, grant_id=trusted.grant_id))


def test_trust_of_an_operator_holds_everywhere_and_of_others_only_for_themselves() -> None:
    header = with_settings(OFF, origin="proxy").header
    raised = SEEN.model_copy(update={"is_unconfirmed_read": False})
    assert trust("terminal", person="ann").covers(SEEN, LOOKS.digest, header)
    assert trust("proxy").covers(SEEN, LOOKS.digest, header)
    assert not trust("proxy", person="eve").covers(SEEN, LOOKS.digest, header)
    assert not trust("server").covers(SEEN, LOOKS.digest, header)
    assert not trust("terminal").covers(SEEN, LOOKS.digest + "x", header)
    assert not trust("terminal").covers(raised, LOOKS.digest, header)
    assert not trust("terminal", tool="files.read_file").covers(SEEN, LOOKS.digest, header)


def test_trust_does_not_cover_a_flagged_call_or_a_rule() -> None:
    flagged = SEEN.model_copy(update={"provenance": {"path": FLAGGED}})
    assert need_of(flagged, LOOKS, with_settings(OFF), trust("terminal")).kind == "approval"
    asks = replace(LOOKS, rules=(Rule.model_validate({"effect": "ask", "tool": LOOKS.name}),))
    assert need_of(SEEN, asks, with_settings(OFF), trust("terminal")).kind == "approval"
    denies = replace(LOOKS, rules=(Rule.model_validate({"effect": "deny", "tool": LOOKS.name}),))
    assert need_of(SEEN, denies, with_settings(OFF), trust("terminal")).kind == "refusal"
    allows = replace(LOOKS, rules=(Rule.model_validate({"effect": "allow", "tool": LOOKS.name}),))
    assert need_of(SEEN, allows, with_settings(OFF)).kind == "approval"  # a rule allows nothing that is off
    assert need_of(SEEN, allows, with_settings(ON)).kind == "nothing"


def test_a_dry_run_has_no_approvals() -> None:
    dry = with_settings(ON, approval(SEEN)).governance.as_dry_run()
    assert not dry.approvals
