"""With every kind of vocabulary, a grammar holds calls, calls are measured, and prompts are reused."""

from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.palettes import palettes
from support.vocabularies import VOCABULARIES, Vocabulary, write_gguf

from packetgate.deciders.language.prompting import arguments_schema
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.llama.grammar import Vocabulary as GrammarVocabulary
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.model import OfferedTool
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call

MESSAGES = [SystemMessage("You choose a tool for the request, and say how sure you are. " * 5)]
TEXTS = ('{"action":"call","calls":[{"tool":"get_weather"', '":true', "true", " weather", ' "', "{", "\n", "ab\ncd")


@pytest.mark.parametrize("kind", VOCABULARIES, ids=lambda kind: kind.id)
async def test_calls_work_with_every_vocabulary(kind: Vocabulary, llama_cpp_installed: None, tmp_path: Path):
    model = LlamaCppModel.load(str(write_gguf(tmp_path / "tiny.gguf", kind)), {"n_ctx": 8192, "n_threads": 1})
    finished = 0
    for seed, tools in zip(range(4), palettes(), strict=False):
        offered = [OfferedTool(tool.name, tool.brief, arguments_schema(tool)) for tool in tools[:4]]
        asked = [*MESSAGES, HumanMessage(f"What is the weather in Paris on day {seed}?")]
        sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 600, "seed": seed}
        answer = await model.call(asked, offered, max_calls=2, sampling=sampling, must_call=True)
        finished += not answer.cut_off
        for call in answer.calls:
            assert call.name_probability is not None
            assert 0 < call.name_probability <= 1
            assert call.probabilities.keys() == call.arguments.keys()
            problems = check_call(call.name, call.arguments, frozenset(tool.name for tool in tools), Catalogue(tools))
            assert answer.widened_tools or not problems
    assert finished >= 2
    assert (await model.call(asked, offered, max_calls=1, sampling=sampling)).usage.cached_tokens > 20
    found = await model.word_probabilities(MESSAGES, ("yes", "no"))
    assert sum(found.by_word.values()) == pytest.approx(1)


@pytest.mark.parametrize("kind", VOCABULARIES, ids=lambda kind: kind.id)
def test_forced_text_is_written_exactly(kind: Vocabulary, llama_cpp_installed: None, tmp_path: Path):
    weights = LlamaWeights(str(write_gguf(tmp_path / "tiny.gguf", kind)), {})
    read = GrammarVocabulary(weights)
    for text in TEXTS:
        written = b"".join(weights.pieces[token] for token in read(text.encode()))
        assert text.encode().startswith(written)
        assert written == text.encode() or "\n" in text  # WordPiece has none
