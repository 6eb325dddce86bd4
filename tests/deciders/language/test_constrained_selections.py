"""A grammar keeps the calls of a model with random weights valid, at temperature 1."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.gguf_model import write_tiny_gguf
from support.palettes import PALETTES, palettes

from packetgate.deciders.language.prompting import ASK_USER_TOOL, arguments_schema
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.model import ModelAnswer, OfferedTool
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call
from packetgate.tools.spec.tool_spec import ToolSpec

SEEDS = (1, 2)
PARTS = 10
MAX_CALLS = 3
MESSAGES = [SystemMessage("Choose."), HumanMessage("Go.")]
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 700}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(SEEDS)))
async def test_a_grammar_allows_only_valid_selections(part: int, llama_cpp_installed: None, tmp_path: Path):
    file = write_tiny_gguf(tmp_path / "random.gguf", seed=SEEDS[part], terse=part > 0)
    model = LlamaCppModel.load(str(file), {"n_ctx": 16_384, "n_threads": 1})
    counts: Counter[str] = Counter()
    for tools in list(palettes())[part::PARTS]:
        sampling = {**SAMPLING, "seed": sum(counts.values())}
        offered = [OfferedTool(tool.name, tool.full, arguments_schema(tool)) for tool in tools]
        # a model with random weights rarely makes a call, so a call is required
        answer = await model.call(
            MESSAGES, [*offered, ASK_USER_TOOL], max_calls=MAX_CALLS, sampling=sampling, must_call=True
        )
        counts.update(judged(answer, tools))
    assert counts["selections"] == PALETTES // PARTS
    assert counts["calls"] > PALETTES // PARTS // 5
    assert counts["cut off"] < counts["selections"]


def judged(answer: ModelAnswer, tools: list[ToolSpec]) -> Iterator[str]:
    """Check one answer, and yield the kinds of its content."""
    yield "selections"
    if answer.cut_off:
        yield "cut off"
    names = frozenset(tool.name for tool in tools)
    catalogue = Catalogue(tools)
    assert {call.name for call in answer.calls} <= {*names, ASK_USER_TOOL.name}
    for call in answer.calls:
        yield "calls"
        if call.name == ASK_USER_TOOL.name:
            assert call.arguments.keys() == {"question"}
            continue
        assert call.name_probability is not None
        assert 0 < call.name_probability <= 1
        assert call.probabilities.keys() == call.arguments.keys()
        problems = check_call(call.name, call.arguments, names, catalogue)
        if call.name in answer.widened_tools:
            yield "only validated"
            continue
        assert problems == [], (call, problems)
