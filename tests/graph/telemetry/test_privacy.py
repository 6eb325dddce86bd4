"""Telemetry contains no user text, arguments or results unless the user allows it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted
from support.telemetry import Telemetry, recording, told

from packetgate.gate.confidence import CallReview

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
READ, WEATHER = "notebook.read_note", "notebook.check_weather"
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    """The telemetry recorded during the test."""
    monkeypatch.delenv(CAPTURE, raising=False)
    recorded = recording()
    recorded.clear()
    yield recorded
    recorded.clear()


async def confidential_turn() -> None:
    """Run a turn with a miss, a read and a failure, in which every word is secret."""
    missing = call("sing_zanzibar")
    both = calls(wanted(READ, name="aardvark"), wanted(WEATHER, city="zanzibar"))
    deciders = scripted(missing, both)
    deciders.reviewer.judge = lambda one: CallReview(  # type: ignore[attr-defined]
        call_id=one.call_id, approved=True, confidence=0.9, reasoning="aardvarks may be read"
    )
    async with session(deciders, Notebook(aardvark="quinquereme")) as talk:
        packet = await talk.say("Tell me of the aardvark in zanzibar")
    assert "quinquereme" in packet.response.candidate


SECRETS = ("aardvark", "zanzibar", "quinquereme", "burned down")


def all_that_was_told(telemetry: Telemetry) -> str:
    return "\n".join([*(span.to_json() for span in telemetry.everyones), repr(telemetry.measured())])


async def test_content_is_not_recorded(telemetry: Telemetry):
    await confidential_turn()
    said = all_that_was_told(telemetry)
    assert "execute_tool notebook.check_weather" in said
    assert [secret for secret in SECRETS if secret in said] == []
    missed = telemetry.named("packetgate select_tool")[0]
    assert "packetgate.tools.missed" not in told(missed)
    assert told(missed)["packetgate.correction"] == ("unknown_tool",)


@pytest.mark.parametrize("value", ["true", "SPAN_ONLY", "span_and_event"])
async def test_content_is_recorded_if_allowed(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv(CAPTURE, value)
    await confidential_turn()
    (read,) = telemetry.named(f"execute_tool {READ}")
    (weather,) = telemetry.named(f"execute_tool {WEATHER}")
    assert told(read)["gen_ai.tool.call.arguments"] == '{"name": "aardvark"}'
    assert told(read)["gen_ai.tool.call.result"] == "quinquereme"
    assert "burned down" in told(weather)["gen_ai.tool.call.result"]
    explained = [event.attributes for event in telemetry.stage("review_selection").events]
    assert {each["gen_ai.evaluation.explanation"] for each in explained if each} == {"aardvarks may be read"}
    assert told(telemetry.named("packetgate select_tool")[0])["packetgate.tools.missed"] == ("sing_zanzibar",)


def test_without_an_sdk_nothing_is_recorded():
    program = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n"
        "from packetgate.graph.telemetry import stage_span\n"
        "with stage_span('respond', 'p') as span: print(span.is_recording())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
