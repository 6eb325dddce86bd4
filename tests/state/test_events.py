"""Events of stages are plain data that older and newer readers understand."""

import json

import pytest
from pydantic import ValidationError

from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.events import EVENT_VERSION, StageFinished, StageStarted, StageStopped, read_event
from packetgate.state.sections import Reflection, StageError

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
    mode="model",
    is_fallback=True,
    decisions=(DECIDED,),
    duration_ms=1.5,
    usage=TokenUsage(input_tokens=3, output_tokens=2, cached_tokens=1),
    loaded=("a.b",),
    added=("a.b",),
    removed=("a.c",),
    shift="from tasks to web",
    used=("a.b",),
    missed=("a.d",),
    escalated=("a.b",),
    escalation="approval",
    calls={"executed": 1},
    corrections=("off_palette",),
    reinjection_count=1,
    violations=2,
    errors=(StageError(stage="select_tool", message="slow"),),
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


def test_type_and_version_of_each_event():
    assert [(event.type, event.version) for event in EVENTS] == [
        ("stage_started", EVENT_VERSION),
        ("stage_finished", EVENT_VERSION),
        ("stage_stopped", EVENT_VERSION),
    ]


def test_unknown_fields_of_a_newer_version_are_ignored():
    newer = {"type": "stage_started", "stage": "respond", "version": EVENT_VERSION + 1, "mood": "good"}
    assert read_event(json.dumps(newer)) == StageStarted(stage="respond", version=EVENT_VERSION + 1)


@pytest.mark.parametrize("data", ["{}", '{"type": "stage_begun", "stage": "respond"}', "[1]", "nonsense"])
def test_invalid_events_are_refused(data: str):
    with pytest.raises(ValidationError):
        read_event(data)
