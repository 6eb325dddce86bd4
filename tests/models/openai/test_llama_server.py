"""A real llama.cpp server, and the probabilities that it returns."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from support.llama_server import program_path
from support.packets import CONTEXT, FILES, FILES_TOOLBOX, packet
from support.scripted_openai import free_port

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.language.review import yes_or_no
from packetgate.deciders.language.selection import select_by_model
from packetgate.models.answers import streaming_caller
from packetgate.models.model import OfferedTool
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.options import ModelOptions
from packetgate.models.schemas import object_schema

READ = OfferedTool("read", "Read a file.", object_schema(path={"type": "string"}))
SAMPLING = {"temperature": 0.0, "max_tokens": 60}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def llama_server(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a server with SmolLM2."""
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    options = ["--host", "127.0.0.1", "--port", str(port), "-t", "1", "-c", "4096", "--jinja", "--no-repack"]
    with log.open("wb") as file:
        process = subprocess.Popen([program_path(), "-m", str(smollm2), *options], stdout=file, stderr=file)
    try:
        for _ in range(600):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health").is_success:
                    break
            except httpx.TransportError:
                assert process.poll() is None, log.read_text(errors="replace")[-500:]
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


async def test_words_and_calls_are_measured(llama_server: str):
    model = OpenAICompatible(connect("smollm2", Endpoint(llama_server, None, timeout=120)))
    found = await model.word_probabilities([HumanMessage("Is Paris in France? Answer yes or no.")], ("yes", "no"))
    assert sum(found.by_word.values()) == pytest.approx(1)
    line = '{"name": "read", "arguments": {"path": "a.txt"}}'
    shown = [HumanMessage(f"Repeat this line: {line}"), AIMessage(line)] * 2
    answer = await model.call([*shown, shown[0]], [READ], max_calls=1, sampling=SAMPLING)
    assert answer.call_probability is not None
    (call,) = answer.calls
    assert call.name == "read"
    assert call.name_probability is not None
    assert call.probabilities.keys() == call.arguments.keys()


async def test_a_first_turn_evaluates_only_its_request(llama_server: str):
    async def source() -> OpenAICompatible:
        return model

    short = ModelOptions(thinking_budget=0, temperature=0.0)
    model = OpenAICompatible(connect("smollm2", Endpoint(llama_server, None, timeout=120), short), short)
    deciders = language_deciders(source, source)
    assert deciders.warm is not None
    await deciders.warm(FILES_TOOLBOX, CONTEXT)
    context = CONTEXT.model_copy(update={"selection_max_tokens": 20, "answer_max_tokens": 20})
    usage = (await select_by_model(source, packet("Hello"), FILES, context)).usage
    assert usage.cached_tokens > 0.9 * usage.input_tokens  # the template of SmolLM2 shows no tools
    verdict = await yes_or_no(model, "Read a.txt", FILES["files.read_file"], {"path": "a.txt"})
    assert verdict.usage.cached_tokens > 0.7 * verdict.usage.input_tokens


async def test_a_streamed_answer_is_not_measured(llama_server: str):
    model = OpenAICompatible(connect("smollm2", Endpoint(llama_server, None, timeout=120)))
    for _ in range(2):
        caller = streaming_caller("")
        answer = await model.call([HumanMessage("Hello")], [READ], max_calls=1, sampling=SAMPLING, caller=caller)
        assert answer.call_probability is None
        assert not model.measures_streamed_calls
    assert (await model.word_probabilities([HumanMessage("Say yes.")], ("yes", "no"))).by_word
