"""The complete graph on llama.cpp: its prompt cache across turns and sessions."""

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
from packetgate.models.llama.model import LlamaCppModel
from packetgate.state.packet import CognitionPacket

pytestmark = pytest.mark.slow

Load = Callable[..., Deciders]

OPTIONS = {"n_ctx": 16_384, "n_threads": 1, "seed": 6}


@pytest.fixture
def load(llama_cpp_installed: None, tmp_path: Path) -> Load:
    """Return deciders with a model of random weights whose JSON answers end."""

    def loaded(**options: int) -> Deciders:
        file = write_tiny_gguf(tmp_path / "random.gguf", seed=6, terse=True)
        model = LlamaCppModel.load(str(file), {**OPTIONS, **options})

        async def source() -> LlamaCppModel:
            return model

        return language_deciders(source, source)

    return loaded


async def test_the_second_turn_evaluates_little(load: Load, notebook: Notebook, capsys: pytest.CaptureFixture[str]):
    async with session(load(), notebook, on_low_confidence="skip") as talk:
        first, second = [await talk.say(text) for text in ("Tell me of the sea", "Tell me of the sea")]
    assert first.context.palette == second.context.palette, "whose tools are shown alike"
    whole, again = evaluated(first), evaluated(second)
    with capsys.disabled():
        print(f"\nprompt tokens evaluated: {whole} in the first turn, {again} in the second")  # noqa: T201
    assert second.metrics.token_usage.keys() >= {"select_tool", "respond"}
    assert again <= 0.2 * whole


async def test_a_cancelled_turn_frees_the_model(llama_cpp_installed: None, tmp_path: Path, notebook: Notebook):
    """Its answers rarely end, so only the cancellation can end one before the limit."""
    file = write_tiny_gguf(tmp_path / "endless.gguf", seed=6)
    model = LlamaCppModel.load(str(file), {**OPTIONS, "n_ctx": 32_768})
    finished: list[str] = []
    answering = asyncio.Event()
    submit = model.chat._engine.submit

    def watched(request):
        future = submit(request)
        future.add_done_callback(
            lambda done: finished.append("dropped" if done.cancelled() else done.result().finish_reason)
        )
        if request.words_only:
            answering.set()  # submitting happens on the event loop
        return future

    model.chat._engine.submit = watched  # type: ignore[method-assign]

    async def source() -> LlamaCppModel:
        return model

    async with session(language_deciders(source, source), notebook, answer_max_tokens=8_000) as talk:
        turn = asyncio.create_task(talk.events(Say("Why is the sky blue?")))
        await answering.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    answer = await model.chat.ainvoke("Hello", max_tokens=4)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] <= 4
    assert {"cancelled", "dropped"} & set(finished[:-1])


def evaluated(packet: CognitionPacket) -> int:
    """Return how many prompt tokens of the turn were evaluated."""
    return sum(usage.input_tokens - usage.cached_tokens for usage in packet.metrics.token_usage.values())
