"""Selections by the worst models there are: random weights, temperature 1, held by a grammar."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.gguf_model import write_tiny_gguf
from support.palettes import PALETTES, palettes

from deciders.language.forms import selection_form, tool_of
from deciders.language.selection import SelectionAnswer
from deciders.outcome import ALL
from models.llama.model import LlamaCppModel
from models.model import FormAnswer
from tools.catalogue.catalogue import Catalogue
from tools.checks.validation import check_call
from tools.spec.tool_spec import ToolSpec

SEEDS = (1, 2, 3, 4)
MAX_CALLS = 3
MESSAGES = [SystemMessage("Choose."), HumanMessage("Go.")]
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 700}


@pytest.mark.parametrize("part", range(len(SEEDS)))
async def test_constrained_selections(
    part: int, llama_cpp_installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = write_tiny_gguf(tmp_path / "random.gguf", seed=SEEDS[part], terse=part > 0)
    model = LlamaCppModel.load(str(file), {"n_ctx": 2048, "n_threads": 1, "seed": SEEDS[part]})
    counts: Counter[str] = Counter()
    for tools in list(palettes())[part :: len(SEEDS)]:
        sampling = {**SAMPLING, "seed": sum(counts.values())}
        form = selection_form(tools, MAX_CALLS, Catalogue(tools).groups)
        if counts["selections"] % 5:  # a model without sense hardly ever calls, and it is calls that matter here
            form = replace(form, body=form.body["anyOf"][0])
        answer = await model.answer(MESSAGES, form, sampling=sampling)
        counts.update(judged(answer, tools))
    with capsys.disabled():
        print(f"\nmodel {SEEDS[part]}: {dict(counts)}")  # noqa: T201  the figures are the point
    assert counts["selections"] == PALETTES // len(SEEDS)
    assert counts["calls"] > PALETTES // 50
    assert counts["cut off"] < counts["selections"]


def judged(answer: FormAnswer, tools: list[ToolSpec]) -> Iterator[str]:
    """Check one answer, and yield what is to be counted."""
    yield "selections"
    if answer.cut_off:
        with pytest.raises(ValueError, match=r"."):
            json.loads(answer.text)
        yield "cut off"
        return
    value = SelectionAnswer.model_validate(json.loads(answer.text))
    yield value.action
    names = frozenset(tool.name for tool in tools)
    catalogue = Catalogue(tools)
    assert {call.tool for call in value.calls} | {one.tool for one in value.alternatives} <= names
    assert set(value.tools) <= {*names, *catalogue.groups, ALL}
    widened = {tool_of(part, tools) for part in answer.widened}
    for call in value.calls:
        problems = check_call(call.tool, call.params, names, catalogue)
        yield "calls"
        if call.tool in widened:
            yield "only validated"
            continue
        assert problems == [], (call, problems)
