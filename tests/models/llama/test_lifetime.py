"""A model in this process: many callers, program exit, and memory."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from support.grammar_walk import call_of, text_schema

from packetgate.models.llama.chat import LlamaCppChat
from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.engine import LlamaEngine, Request
from packetgate.models.llama.grammar import CallForm
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.schemas import object_schema

FORM = call_of(object_schema(tool={"enum": ["read", "write"]}, why=text_schema(20)))


def request(content: str = "Hello", max_tokens: int = 12, form: CallForm | None = None) -> Request:
    return Request([{"role": "user", "content": content}], {"max_tokens": max_tokens, "temperature": 0}, form=form)


async def test_every_event_loop_gets_its_own_answers(tiny_gguf: Path):
    model = LlamaCppChat(LlamaEngine(str(tiny_gguf), {"n_ctx": 512}))
    prompts = [f"question {at}" for at in range(20)]
    alone = [(await model.ainvoke(prompt, max_tokens=16, seed=1)).text for prompt in prompts]
    assert len(set(alone)) == len(prompts)

    async def ask(mine: list[str]) -> list[AIMessage]:
        return await asyncio.gather(*(model.ainvoke(prompt, max_tokens=16, seed=1) for prompt in mine))

    def in_own_loop(mine: list[str]) -> list[str]:
        return [answer.text for answer in asyncio.run(ask(mine))]

    shares = await asyncio.gather(*(asyncio.to_thread(in_own_loop, prompts[at::4]) for at in range(4)))
    assert list(shares) == [alone[at::4] for at in range(4)]


ENDINGS = {
    "an answer is being written": "engine.submit(request()); started.wait()",
    "more are waiting": "[engine.submit(request()) for _ in range(50)]; started.wait()",
    "a prompt is being read": "engine.submit(request('x' * 30_000))",
    "the model is deleted": "engine.submit(request(max_tokens=3)).result(); del engine",
    "a loop was left": "import asyncio; from packetgate.models.llama.chat import LlamaCppChat\n"
    "async def leave():\n"
    "    task = asyncio.create_task(LlamaCppChat(engine).ainvoke('Hello', max_tokens=32_000))\n"
    "    await asyncio.sleep(0)\n"
    "asyncio.run(leave())",
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_process_ends_without_waiting_for_answers(tiny_gguf: Path, ending: str):
    """Each answer of 32,000 tokens would take minutes."""
    script = (
        "import sys, threading\n"
        "from packetgate.models.llama.engine import LlamaEngine, Request\n"
        "started = threading.Event()\n"
        "def request(content='Hello', max_tokens=32_000):\n"
        "    return Request([{'role': 'user', 'content': content}], {'max_tokens': max_tokens, 'temperature': 0},\n"
        "                   on_text=lambda _: started.set())\n"
        "engine = LlamaEngine(sys.argv[1], {'n_ctx': 0})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + ending, str(tiny_gguf)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_dropped_model_is_freed(tiny_gguf: Path):
    freed = threading.Event()
    engine = LlamaEngine(str(tiny_gguf), {"n_ctx": 256})
    weakref.finalize(engine.weights, freed.set)
    for form in (None, FORM):
        engine.submit(request(form=form)).result(timeout=60)
    gc.disable()
    try:
        del engine
        assert freed.wait(30)
    finally:
        gc.enable()


def test_a_model_dropped_while_busy_is_freed_afterwards(tiny_gguf: Path):
    freed = threading.Event()
    engine = LlamaEngine(str(tiny_gguf), {"n_ctx": 256})
    weakref.finalize(engine.weights, freed.set)
    future = engine.submit(request(max_tokens=100))
    del engine
    assert len(future.result(timeout=60).tokens) == 100
    assert freed.wait(30)


def test_a_context_is_freed_before_its_weights(tiny_gguf: Path):
    """This also holds if both become garbage at the same time, in undefined order."""
    for _ in range(2):
        weights = LlamaWeights(str(tiny_gguf), {})
        context = LlamaContext(weights, {"n_ctx": 256})
        order: list[str] = []
        weakref.finalize(weights, order.append, "weights")
        weakref.finalize(context, order.append, "context")
        circle = [weights, context]
        circle.append(circle)  # type: ignore[arg-type]
        del weights, context, circle
        gc.collect()
        assert order == ["context", "weights"]


@pytest.mark.slow
def test_hundreds_of_answers_leak_no_memory(tiny_gguf: Path):
    script = (
        "import resource, sys\n"
        "from packetgate.models.schemas import object_schema\n"
        "from support.grammar_walk import call_of, text_schema\n"
        "from packetgate.models.llama.engine import LlamaEngine, Request\n"
        "engine = LlamaEngine(sys.argv[1], {'n_ctx': 1024})\n"
        "form = call_of(object_schema(tool={'enum': ['read', 'write']}, why=text_schema(20)))\n"
        "def peak_after(times):\n"
        "    for at in range(times):\n"
        "        chat = [{'role': 'user', 'content': f'question {at}'}]\n"
        "        sampling = {'max_tokens': 20, 'temperature': 1.0}\n"
        "        engine.submit(Request(chat, sampling, form=form if at % 2 else None, must_call=True)).result()\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak_after(100)\n"
        "print(peak_after(400) / before)\n"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    grown = subprocess.run(
        [sys.executable, "-c", script, str(tiny_gguf)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=paths,
    )
    assert float(grown.stdout) < 1.1
