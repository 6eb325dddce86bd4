import pytest
from support.openai_models import model_at
from support.scripted_openai import ScriptedOpenAI

from packetgate.models.pool import ModelSource


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> ModelSource:
    """A chat model at the scripted server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def source():
        return await model_at(scripted_openai)

    return source
