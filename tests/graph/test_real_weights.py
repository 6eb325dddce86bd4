"""Turns on a real small model, SmolLM2 with 135M parameters. The quality of its decisions is not tested."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessageChunk
from support.graphs import session
from support.notebook import Notebook

from packetgate.connectors.turn import Say
from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.llama.model import LlamaCppModel
from packetgate.models.pool import ModelPool
from packetgate.state.routing import Risk
from packetgate.state.transitions import ToolExecutionStatus

pytestmark = pytest.mark.slow

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


async def test_turns_end_and_only_reads_run_without_a_question(deciders: Deciders, notebook: Notebook):
    async with session(deciders, notebook, answer_max_tokens=40) as talk:
        for request in REQUESTS:
            packet = (await talk.events(Say(request)))[-1].packet
            for call in packet.tool_routing.all_calls if packet.tool_routing else ():
                assert call.tool_name in packet.context.palette_names
                ran = call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}
                assert call.risk is Risk.READ or not ran
                assert call.evidence.keys() >= {"acts", "judged"}


async def test_a_streamed_answer_can_be_cancelled(model: LlamaCppModel):
    pieces = [piece async for piece in _some(model, 5)]
    assert len(pieces) == 5
    assert (await model.chat.ainvoke("Hi", max_tokens=3)).usage_metadata


async def _some(model: LlamaCppModel, most: int) -> AsyncIterator[AIMessageChunk]:
    stream = model.chat.astream("Count to a thousand.", max_tokens=4_000, temperature=0.0)
    for _ in range(most):
        chunk = await anext(stream)
        assert isinstance(chunk, AIMessageChunk)
        yield chunk
    await stream.aclose()  # type: ignore[attr-defined]
