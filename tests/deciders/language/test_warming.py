"""Models on this machine evaluate prompts before the first message. The first turn evaluates the rest."""

import asyncio
from pathlib import Path

import pytest
from support.gguf_model import write_tiny_gguf
from support.openai_models import model_at, source_of
from support.packets import CONTEXT, FILES, FILES_TOOLBOX, packet
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.call_syntax import DEFAULT_SYNTAX
from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.model import Model
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.ranking.choice import PaletteRequest, whole_palette
from packetgate.state.errors import ModelError
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access

HOSTED = Endpoint("https://models.example/v1", None, timeout=1)
READ = DEFAULT_SYNTAX.write([("files.read_file", {"path": "a.txt"})])


def deciders_of(model: Model) -> Deciders:
    return language_deciders(source_of(model), source_of(model))


async def warm(deciders: Deciders) -> None:
    assert deciders.warm is not None
    await deciders.warm(FILES_TOOLBOX, CONTEXT)


def first_packet(request: str) -> CognitionPacket:
    """Return the packet of a session's first turn, which shows the whole catalogue."""
    wanted = PaletteRequest(request, Access.READ, CONTEXT.palette_size, CONTEXT.palette_token_budget)
    full_palette = whole_palette(wanted, FILES)
    assert full_palette is not None
    new = packet(request)
    return new.model_copy(update={"context": new.context.changed(palette=full_palette.entries)})


@pytest.fixture
def model(llama_cpp_installed: None, tmp_path: Path) -> LlamaCppModel:
    """A model in this process that makes a call."""
    return LlamaCppModel.load(str(write_tiny_gguf(tmp_path / "a.gguf", READ)), {"n_threads": 1, "n_ctx": 16_384})


@pytest.mark.parametrize("meanwhile", [False, True])
async def test_the_first_turn_evaluates_only_its_request(model: LlamaCppModel, meanwhile: bool):
    deciders = deciders_of(model)
    warming = asyncio.create_task(warm(deciders))
    await (asyncio.sleep(0) if meanwhile else warming)  # the evaluation has begun or has ended
    chosen = await deciders.selector(first_packet("What was it that I put into a.txt?"), FILES, CONTEXT)
    await warming
    assert [call.tool_name for call in chosen.calls] == ["files.read_file"]
    assert chosen.usage.cached_tokens > 0.9 * chosen.usage.input_tokens > 1_000


async def test_a_turn_that_has_begun_is_not_followed_by_an_evaluation(model: LlamaCppModel):
    deciders = deciders_of(model)
    await deciders.selector(first_packet("What was it that I put into a.txt?"), FILES, CONTEXT)
    await warm(deciders)
    again = await deciders.selector(first_packet("What was it that I put into b.txt?"), FILES, CONTEXT)
    assert again.usage.cached_tokens > 0.9 * again.usage.input_tokens


async def test_a_server_on_this_machine_evaluates_both_prompts(scripted_openai: ScriptedOpenAI):
    deciders = deciders_of(await model_at(scripted_openai))
    await warm(deciders)
    assert scripted_openai.requests == scripted_openai.reviews == []
    question, tools = scripted_openai.warm_ups
    scripted_openai.script("Hello.")
    await deciders.selector(first_packet("What is this?"), FILES, CONTEXT)
    (request,) = scripted_openai.requests
    assert (tools["tools"], tools["messages"][:-1]) == (request["tools"], request["messages"][:-1])
    assert "tools" not in question


async def test_a_failure_is_left_to_the_turn(scripted_openai: ScriptedOpenAI):
    scripted_openai.api_key = "another"
    deciders = deciders_of(await model_at(scripted_openai))
    await warm(deciders)
    assert scripted_openai.warm_ups
    with pytest.raises(ModelError, match="401"):
        await deciders.selector(first_packet("What is this?"), FILES, CONTEXT)


async def test_a_hosted_model_is_not_asked(scripted_openai: ScriptedOpenAI):
    hosted = await model_at(scripted_openai)
    hosted.runs_here = OpenAICompatible(await asyncio.to_thread(connect, "hosted", HOSTED)).runs_here
    deciders = deciders_of(hosted)
    await warm(deciders)
    assert scripted_openai.warm_ups == []
