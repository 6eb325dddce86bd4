import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.gguf_model import ROLES, TEMPLATE, write_tiny_gguf

from packetgate.models.llama.chat import LlamaCppChat, LlamaCppModel
from packetgate.models.llama.engine import LlamaEngine, Request
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ModelError


@pytest.fixture(scope="module")
def tiny(tiny_gguf: Path) -> LlamaCppChat:
    return LlamaCppChat(LlamaEngine(str(tiny_gguf), {"n_ctx": 512}))


async def test_answers_have_usage_metadata(tiny: LlamaCppChat):
    answer = await tiny.ainvoke([SystemMessage("ab"), HumanMessage("cde")], max_tokens=12, seed=1)
    prompt = 1 + (1 + 2 + 1) + (1 + 3 + 1) + 1  # <s>, two messages between role and </s>, <|assistant|>
    usage = answer.usage_metadata
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (prompt, 12, prompt + 12)
    assert answer.response_metadata["finish_reason"] == "length"


async def test_bound_parameters_apply(tiny: LlamaCppChat):
    answer = (await tiny.ainvoke("Hello", max_tokens=12, seed=1)).text
    assert (await tiny.bind(max_tokens=12, seed=1).ainvoke("Hello")).text == answer
    with pytest.raises(ValueError, match="stop"):
        await tiny.ainvoke("Hello", stop=[answer[5]])


async def test_answers_are_streamed(tiny: LlamaCppChat):
    answer = await tiny.ainvoke("Hello", max_tokens=12, seed=1)
    chunks = [chunk async for chunk in tiny.astream("Hello", max_tokens=12, seed=1)]
    assert len(chunks) > 3
    assert "".join(chunk.text for chunk in chunks) == answer.text
    (usage,) = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    # The number of cached prompt tokens depends on the previous request.
    assert usage | {"input_token_details": None} == answer.usage_metadata | {"input_token_details": None}


async def test_leaving_a_stream_cancels_the_request(tiny: LlamaCppChat, monkeypatch: pytest.MonkeyPatch):
    submit, events, submitted = tiny._engine.submit, [], asyncio.Event()

    def watched(request: Request):
        events.append(request.cancelled)
        submitted.set()
        return submit(request)

    monkeypatch.setattr(tiny._engine, "submit", watched)
    stream = tiny.astream("Hello", max_tokens=400)
    await anext(stream)
    await stream.aclose()
    submitted.clear()
    answer = asyncio.create_task(tiny.ainvoke("Hello", max_tokens=400))
    await submitted.wait()
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    assert [event.is_set() for event in events] == [True, True]
    assert (await tiny.ainvoke("Hello", max_tokens=4)).text


@pytest.mark.parametrize("kept", [10, 200, 400_000])
def test_a_corrupt_file_is_reported(tiny_gguf: Path, tmp_path: Path, kept: int):
    path = tmp_path / "half.gguf"
    path.write_bytes(tiny_gguf.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"cannot load .*half\.gguf: .+; download the file again"):
        LlamaCppChat(LlamaEngine(str(path)))


async def test_loading_and_answering_print_nothing(tiny_gguf: Path, capfd: pytest.CaptureFixture[str]):
    assert (await LlamaCppChat(LlamaEngine(str(tiny_gguf))).ainvoke("Hello", max_tokens=4)).text
    assert capfd.readouterr() == ("", "")


async def test_roles_with_different_options_share_a_file(tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PACKETGATE_PRIME_TEMPERATURE", "1")
    pool = ModelPool(f"llamacpp:{tiny_gguf}?n_ctx=256&seed=1")
    lite, prime = await pool.get("lite"), await pool.get("prime")
    assert lite is not None is not prime is not lite
    assert lite.chat is prime.chat
    assert lite.sampling(temperature=0.5) == {"temperature": 0.5, "seed": 1}
    assert prime.sampling(temperature=0.5) == {"temperature": 1.0, "seed": 1}


@pytest.mark.parametrize(
    ("template", "room"), [(TEMPLATE, 0), (TEMPLATE + "{% if enable_thinking %}<think>\n{% endif %}", 8_000)]
)
async def test_thoughts_get_room_if_the_template_supports_them(
    template: str, room: int, llama_cpp_installed: None, tmp_path: Path
):
    file = write_tiny_gguf(tmp_path / "tiny.gguf", template=template)
    assert LlamaCppModel.load(str(file), {"n_ctx": 256, "n_threads": 1}).thoughts.token_limit == room


async def test_counted_tokens_are_those_of_the_prompt(tiny: LlamaCppChat):
    for text in ("", "读文件 🙂 né", "a\x00b\ud800c", f"</s><s>{''.join(ROLES)}<unk><0x41>"):
        shorter, longer = [
            (await tiny.ainvoke([HumanMessage(one)], max_tokens=0)).usage_metadata["input_tokens"] for one in ("", text)
        ]
        assert LlamaCppModel(tiny).token_counter(text) == longer - shorter
