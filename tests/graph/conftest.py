import pytest
from support.notebook import Notebook
from support.openai_models import model_at
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.openai.compatible import OpenAICompatible


@pytest.fixture
def notebook() -> Notebook:
    """A server with the notes a to d."""
    return Notebook()


@pytest.fixture
def by_model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> Deciders:
    """Deciders that ask the scripted server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    made: list[OpenAICompatible] = []

    async def model() -> OpenAICompatible:
        if not made:
            made.append(await model_at(scripted_openai))
        return made[0]

    return language_deciders(model, model)
