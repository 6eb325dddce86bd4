"""The complete graph on llama.cpp: random weights, and a real model with 135M parameters."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gguf_model import write_tiny_gguf
from support.graphs import session
from support.notebook import Notebook

from packetgate.connectors.turn import Say
from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.options import ModelOptions
from packetgate.models.pool import ModelPool
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk
from packetgate.state.transitions import ToolExecutionStatus

Load = Callable[..., Deciders]
OPTIONS = {"n_ctx": 16_384, "n_threads": 1}


@pytest.fixture
def load(llama_cpp_installed: None, tmp_path: Path) -> Load:
    """Return deciders with a model of random weights that terminates its JSON answers."""

    def loaded(**options: int) -> Deciders:
        file = write_tiny_gguf(tmp_path / "random.gguf", seed=6, terse=True)
        chat = LlamaCppModel.load(str(file), {**OPTIONS, **options}).chat
        model = LlamaCppModel(chat, ModelOptions(seed=6))

        async def source() -> LlamaCppModel:
            return model

        return language_deciders(source, source)

    return loaded


@pytest.mark.slow
async def test_the_second_turn_evaluates_little(load: Load, notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    async with session(load(), notebook, on_low_confidence="skip") as talk:
        first, second = [await talk.say(text) for text in ("Tell me of the sea", "Tell me of the sea")]
    assert first.context.palette == second.context.palette, "the prompts show the same tools"
    first_count, second_count = evaluated_tokens(first), evaluated_tokens(second)
    with capsys.disabled():
        print(f"\nprompt tokens evaluated: {first_count} in the first turn, {second_count} in the second")  # noqa: T201
    assert second.metrics.token_usage.keys() >= {"select_tool", "respond"}
    assert second_count <= 0.2 * first_count


def evaluated_tokens(packet: CognitionPacket) -> int:
    """Return the number of prompt tokens that the turn evaluated."""
    return sum(usage.input_tokens - usage.cached_tokens for usage in packet.metrics.token_usage.values())


REQUESTS = ("Read note a", "Write hello into note b", "Hello", "Delete note a", "Who wrote Hamlet?")


@pytest.fixture(scope="module")
def model(smollm2: Path) -> LlamaCppModel:
    model = asyncio.run(ModelPool(f"llamacpp:{smollm2}?n_threads=1&n_ctx=8192&seed=1").get("lite"))
    assert isinstance(model, LlamaCppModel)
    return model


@pytest.fixture
def deciders(model: LlamaCppModel) -> Deciders:
    async def source() -> LlamaCppModel:
        return model

    return language_deciders(source, source)


@pytest.mark.slow
async def test_turns_end_and_only_reads_run_without_a_question(deciders: Deciders, notebook: Notebook):
    async with session(deciders, notebook, answer_max_tokens=40) as talk:
        for request in REQUESTS:
            packet = (await talk.events(Say(request)))[-1].packet
            for call in packet.tool_routing.all_calls if packet.tool_routing else ():
                assert call.tool_name in packet.context.palette_names
                ran = call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}
                assert call.risk is Risk.READ or not ran
                assert call.evidence.keys() >= {"acts", "judged"}
