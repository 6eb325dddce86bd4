"""`reflex` decides if, and only if, the model cannot decide."""

from dataclasses import dataclass

import pytest
from support.packets import CONTEXT, FILES, packet
from support.scripted_deciders import ScriptedResponder

from packetgate.deciders.choosing import within_turn_budget
from packetgate.deciders.protocols import Answer
from packetgate.state.errors import DecisionError, ModelError
from packetgate.state.sections import StageError


@dataclass
class _Failing:
    error: Exception

    async def __call__(self, packet, catalogue, context) -> Answer:
        raise self.error


REFLEX = ScriptedResponder("by reflex")


async def test_a_models_decision_is_used():
    answer = await within_turn_budget(ScriptedResponder("by model"), REFLEX)(packet("Hi"), FILES, CONTEXT)
    assert (answer.text, answer.is_fallback, answer.errors("respond")) == ("by model", False, ())


async def test_reflex_decides_if_the_model_cannot():
    failing = _Failing(DecisionError("it rambled"))
    answer = await within_turn_budget(failing, REFLEX)(packet("Hi"), FILES, CONTEXT)
    assert (answer.text, answer.is_fallback, answer.fallback_reason) == ("by reflex", True, "it rambled")
    assert answer.errors("respond") == (StageError(stage="respond", message="it rambled"),)


@pytest.mark.parametrize("error", [ModelError("no such file"), RuntimeError("a bug"), KeyError("another")])
async def test_other_exceptions_are_raised(error: Exception):
    with pytest.raises(type(error)):
        await within_turn_budget(_Failing(error), REFLEX)(packet("Hi"), FILES, CONTEXT)
