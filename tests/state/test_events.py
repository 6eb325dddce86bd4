"""Events of stages are plain data that older and newer readers can parse."""

import json

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as attributes
from pydantic import ValidationError

from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.events import EVENT_VERSION, StageFinished, StageStarted, StageStopped, read_event
from packetgate.state.sections import Reflection

DECIDED = Reflection(
    step="select_tool",
    summary="a tool",
    confidence=0.9,
    confidence_source=ConfidenceSource.MEASURED,
    decided_by="model",
)
FULL = StageFinished(
    stage="select_tool",
    session_id="s",
    packet_id="p",
    decisions=(DECIDED,),
    duration_ms=1.5,
    input_tokens=3,
    output_tokens=2,
    cached_tokens=1,
    thought_tokens=1,
)
EVENTS = [
    StageStarted(stage="respond"),
    FULL,
    StageStopped(stage="ask_user", reason="interrupt", error="GraphInterrupt", duration_ms=0.5),
]


def test_the_full_event_leaves_no_field_at_its_default():
    blank = StageFinished(stage="select_tool")
    same = {name for name in StageFinished.model_fields if getattr(FULL, name) == getattr(blank, name)}
    assert same == {"version", "type", "stage"}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_an_event_survives_json(event: StageStarted | StageFinished | StageStopped):
    assert read_event(event.model_dump_json()) == event
    assert read_event(json.dumps(event.model_dump(mode="json"))) == event


def test_json_has_the_names_of_opentelemetry():
    named = {name for name in FULL.model_dump() if name.startswith("gen_ai.")}
    assert named == {attributes.GEN_AI_CONVERSATION_ID} | {
        f"gen_ai.usage.{kind}_tokens" for kind in ("input", "output", "cache_read.input", "reasoning.output")
    }
    assert named <= {value for name, value in vars(attributes).items() if name.startswith("GEN_AI_")}
    assert EVENTS[2].model_dump()["error.type"] == "GraphInterrupt"
    assert FULL.usage == TokenUsage(input_tokens=3, output_tokens=2, cached_tokens=1, thought_tokens=1)


def test_unknown_fields_of_a_newer_version_are_ignored():
    newer = {"type": "stage_started", "stage": "respond", "version": EVENT_VERSION + 1, "mood": "good"}
    assert read_event(json.dumps(newer)) == StageStarted(stage="respond", version=EVENT_VERSION + 1)


@pytest.mark.parametrize("data", ["{}", '{"type": "stage_begun", "stage": "respond"}', "[1]", "nonsense"])
def test_invalid_events_are_refused(data: str):
    with pytest.raises(ValidationError):
        read_event(data)
