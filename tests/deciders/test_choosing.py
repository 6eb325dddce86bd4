"""The token counter of the selecting model, and the fallback if the model cannot decide."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from support.openai_models import model_at, source_of
from support.packets import CONTEXT, FILES, packet
from support.scripted_deciders import ScriptedResponder
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import in_one_turn, language_deciders, palette_measure, reflex_deciders
from packetgate.deciders.protocols import Answer
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.model import Model
from packetgate.state.errors import DecisionError, ModelError
from packetgate.state.sections import StageError
from packetgate.tools.text.tokens import ESTIMATE

TEXT = '{"type":"string"}'


async def no_model() -> Model:
    raise ModelError("no such file: /models/small.gguf")


async def test_without_a_model_tokens_are_estimated():
    assert (await palette_measure(reflex_deciders().lite))[0] is ESTIMATE


async def test_a_local_models_tokenizer_counts(tiny_gguf: Path):
    counter, _ = await palette_measure(source_of(LlamaCppModel.load(str(tiny_gguf), {"n_ctx": 256})))
    assert (counter.count(TEXT), counter.is_exact) == (len(TEXT), True)


async def test_for_a_remote_model_tokens_are_estimated(scripted_openai: ScriptedOpenAI):
    assert (await palette_measure(source_of(await model_at(scripted_openai))))[0] is ESTIMATE


async def test_for_a_model_that_cannot_be_loaded_tokens_are_estimated():
    deciders = language_deciders(no_model, no_model)
    assert (await palette_measure(deciders.lite))[0] is ESTIMATE
    with pytest.raises(ModelError, match="no such file"):
        await deciders.selector(packet("Read a"), FILES, CONTEXT)


@dataclass
class _Failing:
    error: Exception

    async def __call__(self, packet, catalogue, context) -> Answer:
        raise self.error


REFLEX = ScriptedResponder("by reflex")


async def test_a_models_decision_is_used():
    answer = await in_one_turn(ScriptedResponder("by model"), REFLEX)(packet("Hi"), FILES, CONTEXT)
    assert (answer.text, answer.is_fallback, answer.errors("respond")) == ("by model", False, ())


async def test_reflex_decides_if_the_model_cannot():
    failing = _Failing(DecisionError("it rambled"))
    answer = await in_one_turn(failing, REFLEX)(packet("Hi"), FILES, CONTEXT)
    assert (answer.text, answer.is_fallback, answer.fallback_reason) == ("by reflex", True, "it rambled")
    assert answer.errors("respond") == (StageError(stage="respond", message="it rambled"),)


@pytest.mark.parametrize("error", [ModelError("no such file"), RuntimeError("a bug"), KeyError("another")])
async def test_other_exceptions_are_raised(error: Exception):
    with pytest.raises(type(error)):
        await in_one_turn(_Failing(error), REFLEX)(packet("Hi"), FILES, CONTEXT)
