"""The spans and metrics of a turn, with the real OpenTelemetry SDK."""

import logging
from dataclasses import replace

import pytest
from opentelemetry.trace import StatusCode
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted
from support.telemetry import Telemetry, told

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.protocols import Review
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

READ, WRITE, WEATHER = "notebook.read_note", "notebook.write_note", "notebook.check_weather"


class FailingReviewer:
    """Uses tokens and raises an error."""

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        raise DecisionError("bread is no note", TokenUsage(input_tokens=7, output_tokens=1))


async def test_each_stage_has_a_span(notebook: Notebook, telemetry: Telemetry):
    async with session(reflex_deciders(), notebook) as talk:
        packet = await talk.say("Read note name=b")
        steps = await talk.steps()
    spans = [span for span in telemetry.spans if span.name.startswith("packetgate ")]
    assert [span.name for span in spans] == [f"packetgate {step}" for step in steps]
    assert {told(span)["gen_ai.conversation.id"] for span in spans} == {"session"}
    assert {told(span)["packetgate.packet.id"] for span in spans} == {packet.header.packet_id}
    assert told(telemetry.stage("select_tool"))["packetgate.mode"] == "reflex"
    assert told(telemetry.stage("execute_tool"))["packetgate.tools.used"] == (READ,)
    loaded = told(telemetry.stage("build_palette"))["packetgate.tools.loaded"]
    assert loaded == tuple(entry.tool_name for entry in packet.context.palette)


async def test_each_tool_call_has_a_span(notebook: Notebook, telemetry: Telemetry):
    both = calls(wanted(READ, name="a"), wanted(WEATHER, city="Bern"))
    async with session(scripted(both), notebook) as talk:
        packet = await talk.say("Read a, and check the weather")
    parent = telemetry.stage("execute_tool")
    good, bad = packet.routing.all_calls
    for made, error in ((good, None), (bad, "tool_error")):
        (span,) = telemetry.named(f"execute_tool {made.tool_name}")
        expected = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": made.tool_name,
            "gen_ai.tool.call.id": made.call_id,
            "mcp.method.name": "tools/call",
            "packetgate.call.status": made.status.value,
            "packetgate.call.risk": "read",
        }
        assert dict(told(span)) == expected | ({"error.type": error} if error else {})
        assert span.status.status_code is (StatusCode.ERROR if error else StatusCode.UNSET)
        assert span.parent == parent.context
        assert made.result
        assert span.end_time - span.start_time == pytest.approx(made.result.execution_time_ms * 1e6, abs=1e3)
        assert parent.start_time <= span.start_time < span.end_time <= parent.end_time


async def test_a_review_is_recorded_as_an_evaluation(notebook: Notebook, telemetry: Telemetry):
    async with session(scripted(call(READ, name="a")), notebook) as talk:
        packet = await talk.say("Read a")
    (event,) = telemetry.stage("review_selection").events
    assert event.name == "gen_ai.evaluation.result"
    assert dict(event.attributes or {}) == {
        "gen_ai.evaluation.name": "selection_review",
        "gen_ai.evaluation.score.value": 0.9,
        "gen_ai.evaluation.score.label": "approved",
        "gen_ai.tool.call.id": packet.routing.all_calls[0].call_id,
        "gen_ai.tool.name": READ,
    }


async def test_a_failed_review_is_a_reported_error(notebook: Notebook, telemetry: Telemetry):
    deciders = scripted(call(READ, name="a"), reviewer=FailingReviewer())
    async with session(deciders, notebook, on_low_confidence="skip") as talk:
        await talk.say("Read a")
    span = telemetry.stage("review_selection")
    assert told(span)["packetgate.errors"] == told(span)["packetgate.calls.skipped"] == 1
    assert [(event.attributes or {})["gen_ai.evaluation.score.value"] for event in span.events] == [0.0]
    measured = telemetry.measured()
    tokens = measured["gen_ai.client.token.usage"]
    assert [(one.attributes["gen_ai.token.type"], one.sum) for one in tokens] == [("input", 7), ("output", 1)]
    errors = [one.attributes for one in measured["packetgate.stage.duration"] if "error.type" in one.attributes]
    assert [(one["packetgate.stage"], one["error.type"]) for one in errors] == [("review_selection", "reported_error")]


async def test_a_stopped_stage_records_its_error(notebook: Notebook, telemetry: Telemetry):
    deciders = replace(reflex_deciders(), responder=FailingReviewer())
    async with session(deciders, notebook) as talk:
        with pytest.raises(DecisionError):
            await talk.say("Hello")
    span = telemetry.stage("respond")
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert told(span)["error.type"] == "DecisionError"
    assert told(span)["gen_ai.usage.input_tokens"] == 7
    assert span.events == ()


async def test_durations_tokens_and_counts_are_measured(notebook: Notebook, telemetry: Telemetry):
    usage = TokenUsage(input_tokens=100, output_tokens=9)
    missing = call("notebook.sing").model_copy(update={"usage": usage, "is_fallback": True})
    async with session(scripted(missing, call(READ, name="a")), notebook) as talk:
        await talk.say("Read a")
    measured = telemetry.measured()
    stage = {"packetgate.stage": "select_tool"}
    chat = {"gen_ai.operation.name": "chat", **stage}
    assert [(one.sum, dict(one.attributes)) for one in measured["gen_ai.client.token.usage"]] == [
        (100, {**chat, "gen_ai.token.type": "input"}),
        (9, {**chat, "gen_ai.token.type": "output"}),
    ]
    assert [(one.count, dict(one.attributes)) for one in measured["gen_ai.client.operation.duration"]] == [(1, chat)]
    assert {
        name: [(one.value, dict(one.attributes)) for one in measured[f"packetgate.{name}"]]
        for name in ("misses", "fallbacks", "corrections")
    } == {
        "misses": [(1, stage)],
        "fallbacks": [(1, stage)],
        "corrections": [(1, {**stage, "packetgate.correction": "unknown_tool"})],
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": READ}
    assert [(one.count, dict(one.attributes)) for one in measured["gen_ai.execute_tool.duration"]] == [(1, tool)]
    counts = {one.attributes["packetgate.stage"]: one.count for one in measured["packetgate.stage.duration"]}
    assert (counts["select_tool"], counts["execute_tool"], counts["respond"]) == (2, 1, 1)


async def test_failing_telemetry_is_logged_once_and_the_turn_continues(
    notebook: Notebook, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
):
    telemetry.faulty.broken = True
    with caplog.at_level(logging.ERROR, logger="packetgate.graph.telemetry"):
        async with session(reflex_deciders(), notebook) as talk:
            packet = await talk.say("Hello")
    assert packet.response.candidate
    ours = [record for record in caplog.records if record.name == "packetgate.graph.telemetry"]
    logged = [record.getMessage() for record in ours if packet.header.packet_id in record.getMessage()]
    assert logged == [f"telemetry of packet {packet.header.packet_id!r} is incomplete"]
    assert all("the collector is full" in str(record.exc_info) for record in ours)
