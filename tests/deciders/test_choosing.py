"""The token counter for the selecting model."""

from pathlib import Path

import pytest
from support.openai_models import model_at
from support.packets import CONTEXT, FILES, packet
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders, reflex_deciders, token_counter
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.model import Model
from packetgate.state.errors import ModelError
from packetgate.tools.text.tokens import ESTIMATE

TEXT = '{"type":"string"}'


async def no_model() -> Model:
    raise ModelError("no such file: /models/small.gguf")


async def test_without_a_model_tokens_are_estimated():
    assert await token_counter(reflex_deciders().lite) is ESTIMATE


async def test_a_local_models_tokenizer_counts(tiny_gguf: Path):
    async def lite() -> Model:
        return LlamaCppModel.load(str(tiny_gguf), {"n_ctx": 256})

    counter = await token_counter(lite)
    assert (counter.count(TEXT), counter.is_exact) == (len(TEXT), True)


async def test_for_a_remote_model_tokens_are_estimated(scripted_openai: ScriptedOpenAI):
    async def lite() -> Model:
        return await model_at(scripted_openai)

    assert await token_counter(lite) is ESTIMATE


async def test_for_a_model_that_cannot_be_loaded_tokens_are_estimated():
    deciders = language_deciders(no_model, no_model)
    assert await token_counter(deciders.lite) is ESTIMATE
    with pytest.raises(ModelError, match="no such file"):
        await deciders.selector(packet("Read a"), FILES, CONTEXT)
