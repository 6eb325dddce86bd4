import asyncio

import pytest
from support.scripted_openai import ScriptedOpenAI

from deciders.language.prompting import ModelSource
from models.endpoint import Endpoint
from models.openai_compatible import connect


@pytest.fixture
def model(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> ModelSource:
    """A real chat model against the scripted server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def source():
        return await asyncio.to_thread(connect, "scripted", Endpoint(scripted_openai.base_url, None, timeout=10))

    return source
