"""A model tried out: what held its answers, whether they were usable, and where its confidence comes from."""

import asyncio
import json
from pathlib import Path

import pytest
from support.gguf_model import write_tiny_gguf
from support.packets import CONTEXT, FILES
from support.prompts import review, sent
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Thinks, Token, Tokens
from support.tool_specs import a_tool
from support.tricky_schemas import SCHEMAS

from packetgate.deciders.language.probe import REQUEST, probe_model
from packetgate.models.endpoint import Endpoint
from packetgate.models.llama.model import LlamaCppModel
from packetgate.models.openai.connect import connect
from packetgate.models.openai.model import OpenAICompatible
from packetgate.state.base import ConfidenceSource
from packetgate.state.errors import DecisionError
from packetgate.tools.catalogue.catalogue import Catalogue

ABOUT = "It is about plans."
CALLS = [{"tool": "files.read_file", "params": {"path": "README.md"}}]
READ = json.dumps({"action": "call", "calls": CALLS, "complete": True})
APPROVAL = Tokens.of(
    '{"reviews":{"1":{"approved":',
    Token("true", {"true": 0.8, "false": 0.2}),
    ',"confidence":1.0,"reasoning":"fine"}}}',
)


@pytest.fixture(scope="module")
def terse(llama_cpp_installed: None, tmp_path_factory: pytest.TempPathFactory) -> LlamaCppModel:
    """A model whose nonsense ends."""
    path = write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "terse.gguf", terse=True, seed=6)
    return LlamaCppModel.load(str(path), {"seed": 1})


@pytest.fixture
async def served(scripted_openai: ScriptedOpenAI) -> OpenAICompatible:
    chat = await asyncio.to_thread(connect, "scripted", Endpoint(scripted_openai.base_url, None, timeout=10))
    return OpenAICompatible(chat)


async def test_a_gguf_is_constrained_and_measured_at_each_stage(terse: LlamaCppModel):
    seen = await probe_model(terse, FILES, CONTEXT)
    for trial in (seen.review, seen.selection):
        assert trial.problem == ""
        assert trial.confidence in (ConfidenceSource.MEASURED, ConfidenceSource.CALIBRATED)
        assert {timed.answer.held_by for timed in trial.answers} == {"grammar"}
        assert trial.answers[0].reading_speed
    assert seen.only_validated == ()


async def test_an_endless_call_is_reported_without_an_error(tiny_gguf: Path):
    context = CONTEXT.model_copy(update={"selection_max_tokens": 16})
    endless = Catalogue([a_tool("notes.add", "Add to the README.md file.", schema=SCHEMAS["lookaround"])])
    seen = await probe_model(LlamaCppModel.load(str(tiny_gguf)), endless, context)
    assert "tiny.gguf began a call of more than" in seen.selection.problem
    assert seen.review.confidence is ConfidenceSource.CALIBRATED


async def test_probabilities_of_only_the_review_are_reported(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(ABOUT, READ, APPROVAL)
    seen = await probe_model(served, FILES, CONTEXT)
    assert seen.review.confidence is ConfidenceSource.MEASURED
    assert seen.selection.confidence is ConfidenceSource.UNJUDGED
    assert [timed.answer.held_by for timed in seen.selection.answers] == ["tool_call"]
    assert seen.selection.answers[0].reading_speed is None
    assert seen.selection.answers[0].writing_speed
    assert REQUEST in sent(scripted_openai)[-1][1]


@pytest.mark.parametrize("answered", [[], [ABOUT], [ABOUT, "no JSON"]], ids=["at once", "later", "repair"])
async def test_an_unreachable_model_is_an_error(
    answered: list[str], served: OpenAICompatible, scripted_openai: ScriptedOpenAI
):
    scripted_openai.script(*answered, HttpError(500, "out of memory"))
    with pytest.raises(DecisionError, match=r"HTTP 500: .*out of memory"):
        await probe_model(served, FILES, CONTEXT)


async def test_thoughts_are_measured_at_each_stage(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    texts = [ABOUT, ABOUT, READ, review(0.9)]
    scripted_openai.script(*(Thinks(3_000, text, "billed") for text in texts))
    seen = await probe_model(served, FILES, CONTEXT)
    thoughts = {name: trial.usage.thought_tokens for name, trial in seen.stages.items()}
    assert thoughts == {"selection": 3_000, "review": 3_000, "answer": 6_000}
    assert not any(trial.problem for trial in seen.stages.values())


async def test_an_endless_thought_is_reported(served: OpenAICompatible, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(*[Thinks(90_000, "never")] * 9)
    seen = await probe_model(served, FILES, CONTEXT)
    for trial in seen.stages.values():
        assert "was cut off while thinking" in trial.problem
        assert "reasoning_effort=low" in trial.problem
