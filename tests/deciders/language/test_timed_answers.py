"""What is told of a model at work: how long it took to be ready, what it is, how fast it reads and writes."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from packetgate.deciders.language.probe import TimedAnswer, TimedModel, load
from packetgate.models.calling import Timing
from packetgate.models.model import FormAnswer, Model
from packetgate.models.pool import ModelPool
from packetgate.models.schemas import AnswerForm, Choice, object_schema
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

FORM = AnswerForm(
    "verdict", object_schema(yes={"type": "boolean"}), choices=(Choice.among("yes", values=[True, False]),)
)
SAMPLING = {"temperature": 0.0, "max_tokens": 50}


async def loaded(path: Path, options: str = "") -> Model:
    found = await load(ModelPool(f"llamacpp:{path}{options}"), "lite")
    assert found is not None
    model, seconds = found
    assert seconds > 0
    return model


@dataclass(frozen=True)
class Speeds:
    name: str
    usage: TokenUsage
    timing: Timing | None
    reading: float | None
    writing: float | None


SPEEDS = [
    Speeds("in this process", TokenUsage(input_tokens=300, output_tokens=20), Timing(2.0, 4.0), 150, 5),
    Speeds(
        "some known already", TokenUsage(input_tokens=300, cached_tokens=200, output_tokens=20), Timing(2.0, 4.0), 50, 5
    ),
    Speeds("elsewhere", TokenUsage(input_tokens=300, output_tokens=20), None, None, 2),
    Speeds("not counted", TokenUsage(), None, None, None),
]


@pytest.mark.parametrize("speeds", SPEEDS, ids=lambda speeds: speeds.name)
def test_speeds_are_computed_from_tokens_and_times(speeds: Speeds):
    timed = TimedAnswer(FormAnswer("{}", speeds.usage, timing=speeds.timing), seconds=10.0)
    assert (timed.reading_speed, timed.writing_speed) == (speeds.reading, speeds.writing)


async def test_every_answer_is_recorded_with_its_time(tiny_gguf: Path):
    timed_model = TimedModel(await loaded(tiny_gguf))
    given = [await timed_model.answer([HumanMessage(text)], FORM, sampling=SAMPLING) for text in ("Is it?", "Or not?")]
    assert [timed.answer for timed in timed_model.answers] == given
    assert timed_model.unanswered == 0
    for timed in timed_model.answers:
        timing = timed.answer.timing
        assert timing is not None
        assert 0 < timing.reading_s + timing.writing_s < timed.seconds
        assert timed.reading_speed == timed.evaluated / timing.reading_s
        assert timed.writing_speed == timed.answer.usage.output_tokens / timing.writing_s


async def test_a_failed_request_is_recorded(tiny_gguf: Path):
    timed_model = TimedModel(await loaded(tiny_gguf, "?n_ctx=256"))
    with pytest.raises(DecisionError, match="too long"):
        await timed_model.answer([HumanMessage("word " * 100)], FORM, sampling=SAMPLING)
    assert (timed_model.unanswered, timed_model.answers) == (1, [])
