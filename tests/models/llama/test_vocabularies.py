"""Whatever kind of vocabulary a model has, a grammar holds it, its choices are measured, and prompts are reused."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.palettes import palettes
from support.vocabularies import VOCABULARIES, Vocabulary, write_gguf

from packetgate.deciders.language.review import review_form
from packetgate.deciders.language.selection import SelectionAnswer, selection_form
from packetgate.models.llama.grammar import Vocabulary as GrammarVocabulary
from packetgate.models.llama.model import LlamaCppModel
from packetgate.models.llama.weights import LlamaWeights
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call

MESSAGES = [SystemMessage("You choose a tool for the request, and say how sure you are. " * 5)]
TEXTS = ('{"action":"call","calls":[{"tool":"get_weather"', '":true', "true", " weather", ' "', "{", "\n", "ab\ncd")


@pytest.mark.parametrize("kind", VOCABULARIES, ids=lambda kind: kind.id)
async def test_selections_and_reviews_work_with_every_vocabulary(
    kind: Vocabulary, llama_cpp_installed: None, tmp_path: Path
):
    model = LlamaCppModel.load(str(write_gguf(tmp_path / "tiny.gguf", kind)), {"n_ctx": 4096, "n_threads": 1})
    finished = 0
    for seed, tools in zip(range(6), palettes(), strict=False):
        form = selection_form(tools, 2) if seed % 2 else review_form(2)
        asked = [*MESSAGES, HumanMessage(f"What is the weather in Paris on day {seed}?")]
        sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 600, "seed": seed}
        answer = await model.answer(asked, form, sampling=sampling)
        assert seed == 0 or answer.usage.cached_tokens > 20
        if answer.cut_off:
            continue
        finished += 1
        measured = {one.path: one.probability for one in answer.choices}
        assert all(0 < probability <= 1 for probability in measured.values())
        if form.name == "review":
            assert len(json.loads(answer.text)["reviews"]) == 2
            assert measured.keys() == {("reviews", "1", "approved"), ("reviews", "2", "approved")}
            continue
        value = SelectionAnswer.model_validate(json.loads(answer.text))
        assert ("action",) in measured
        for at, call in enumerate(value.calls):
            assert ("calls", at, "tool") in measured
            problems = check_call(call.tool, call.params, frozenset(tool.name for tool in tools), Catalogue(tools))
            assert answer.widened or not problems
    assert finished >= 3


@pytest.mark.parametrize("kind", VOCABULARIES, ids=lambda kind: kind.id)
def test_forced_text_is_written_exactly(kind: Vocabulary, llama_cpp_installed: None, tmp_path: Path):
    weights = LlamaWeights(str(write_gguf(tmp_path / "tiny.gguf", kind)), {})
    read = GrammarVocabulary(weights)
    for text in TEXTS:
        written = b"".join(weights.pieces[token] for token in read(text.encode()))
        assert text.encode().startswith(written)
        assert written == text.encode() or "\n" in text  # WordPiece has none
