"""A model in this process that thinks before calls: up to its budget, and then the grammar holds."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from support.gguf_model import write_tiny_gguf

from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.model import OfferedTool
from packetgate.models.options import ModelOptions
from packetgate.models.pool import ModelPool

FIVE = OfferedTool("t", "", {"const": {"a": 5}})
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
OPENS = TEMPLATE + "{% if enable_thinking %}<think>\n{% endif %}"
KNOWS = TEMPLATE + "{# <think> #}"


@dataclass(frozen=True)
class Case:
    template: str
    enable: bool | None
    thought: int
    budget: int = 30
    n_ctx: int = 4096


CASES = {
    "a thought that the template opens": Case(OPENS, True, 30),
    "a thought that the template leaves to the model": Case(KNOWS, True, 30),
    "not asked to think": Case(OPENS, None, 0),
    "asked not to think": Case(OPENS, False, 0),
    "a template that knows of no thoughts": Case(TEMPLATE, True, 0),
    "no more than there is room for": Case(OPENS, True, 0, n_ctx=2048, budget=100_000),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_thought_precedes_calls(case: Case, llama_cpp_installed: None, tmp_path: Path):
    file = write_tiny_gguf(tmp_path / "tiny.gguf", template=case.template)
    chat = LlamaCppModel.load(str(file), {"n_ctx": case.n_ctx, "n_threads": 1}).chat
    model = LlamaCppModel(chat, ModelOptions(enable_thinking=case.enable, thinking_budget=case.budget))
    sampling = model.sampling(temperature=0.0, max_tokens=120)
    answer = await model.call([HumanMessage("Hello")], [FIVE], max_calls=1, sampling=sampling, must_call=True)
    assert ([call.arguments for call in answer.calls], answer.cut_off) == ([{"a": 5}], False)
    if case.n_ctx == 2048:
        assert 0 < answer.usage.thought_tokens < 2048
    else:
        assert answer.usage.thought_tokens == case.thought
    assert answer.usage.output_tokens > answer.usage.thought_tokens


async def test_roles_with_different_options_share_a_file(tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PACKETGATE_PRIME_TEMPERATURE", "1")
    pool = ModelPool(f"llamacpp:{tiny_gguf}?n_ctx=256&seed=1")
    lite, prime = await pool.get("lite"), await pool.get("prime")
    assert lite is not None is not prime is not lite
    assert lite.chat is prime.chat
    assert lite.sampling(temperature=0.5) == {"temperature": 0.5, "seed": 1}
    assert prime.sampling(temperature=0.5) == {"temperature": 1.0, "seed": 1}


@pytest.mark.parametrize(("template", "room"), [(TEMPLATE, 0), (OPENS, 8_000)])
async def test_thoughts_get_room_if_the_template_supports_them(
    template: str, room: int, llama_cpp_installed: None, tmp_path: Path
):
    file = write_tiny_gguf(tmp_path / "tiny.gguf", template=template)
    assert LlamaCppModel.load(str(file), {"n_ctx": 256, "n_threads": 1}).thoughts.token_limit == room
