"""Results in the packet: a data field, a sketch, a ledger entry and a reflection for each call of any status."""

import pytest
from langgraph.runtime import Runtime
from support.packets import done, packet, with_error, with_output

from packetgate.nodes.inject_result import inject_result
from packetgate.state.context import RoutingContext
from packetgate.state.packet import PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus

S = ToolExecutionStatus
RUNTIME: Runtime[RoutingContext] = Runtime(context=RoutingContext())


async def inject(*calls: ToolCall, **routing) -> PacketUpdate:
    return await inject_result(packet("Do it", *calls, **routing), RUNTIME)


async def test_a_result_is_a_data_field_a_sketch_and_a_ledger_entry():
    call = with_output(done("files.read_file", path="a"), "apples")
    update = await inject(call)
    (field,) = update["content"].data_fields
    assert (field.key, field.type, field.source) == (
        f"tool_result:{call.call_id}",
        "tool_execution_result",
        "files.read_file",
    )
    assert field.value == {
        "tool": "files.read_file",
        "params": {"path": "a"},
        "status": "executed",
        "success": True,
        "output": "apples",
        "error": None,
    }
    assert [one.content for one in update["reasoning"].sketchpad] == ["apples"]
    assert [(one.tool_name, one.status, one.summary) for one in update["context"].result_ledger] == [
        ("files.read_file", "executed", "apples")
    ]
    assert update["context"].recent_tools == ("files.read_file",)


@pytest.mark.parametrize("status", [one for one in S if one is not S.EXECUTED])
async def test_only_executed_calls_count_as_successful(status: ToolExecutionStatus):
    """A successful result without the status executed, such as that of a dry run, does not count."""
    for call in (
        done("files.read_file", status, path="a"),
        with_error(done("files.read_file", status, path="a"), "boom"),
        with_output(done("files.read_file", status, path="a"), "would read", dry_run=True),
    ):
        update = await inject(call)
        value = update["content"].data_fields[0].value
        assert isinstance(value, dict)
        assert (value["success"], value["output"]) == (False, None)
        message = value["error"]
        assert isinstance(message, str)
        assert "was NOT run (dry run only): would read" in message or "has no result: it is " in message
        assert update["context"].recent_tools == ()
        assert update["context"].result_ledger[0].status == status.value
        assert update["reasoning"].reflection_log[-1].summary.startswith("0 of 1 succeeded")


async def test_several_calls_are_one_reinjection():
    calls = [with_output(done("files.read_file", path=name), name) for name in "abc"]
    update = await inject(*calls, reinjection_count=1)
    routing = update["tool_routing"]
    assert routing is not None
    assert routing.reinjection_count == 2
    assert len(update["content"].data_fields) == 3
    assert "3 of 3 succeeded; 2 of 3 reinjections used" in update["reasoning"].reflection_log[-1].summary
