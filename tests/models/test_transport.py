import pytest
from support.scripted_openai import CutOff, ScriptedOpenAI

from packetgate.models.endpoint import Endpoint
from packetgate.models.openai.connect import connect
from packetgate.models.transport import model_label, named_errors
from packetgate.state.errors import DecisionError


def test_label_shows_no_secret():
    model = connect("m", Endpoint("http://me:password@host:1/v1?key=k", "sk-secret", timeout=1))
    assert model_label(model) == "m at http://host:1/v1"


async def test_stream(scripted_openai: ScriptedOpenAI):
    model = connect("scripted", Endpoint(scripted_openai.base_url, None, timeout=10))
    scripted_openai.script("Hello, you there!")
    chunks = [chunk async for chunk in model.astream("Say hello")]
    assert "".join(chunk.text for chunk in chunks) == "Hello, you there!"
    assert [chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata] == [3]


async def test_stream_that_breaks_off(scripted_openai: ScriptedOpenAI):
    model = connect("scripted", Endpoint(scripted_openai.base_url, None, timeout=10))
    scripted_openai.script(CutOff("Hello"))
    seen = []
    with pytest.raises(DecisionError, match=r"scripted at http.* broke off"), named_errors(model):  # noqa: PT012
        async for chunk in model.astream("Say hello"):
            seen.append(chunk.text)  # noqa: PERF401
    assert seen == ["Hello"]
