import asyncio
import importlib.util
import socket
from pathlib import Path

import pytest
from support.scripted_openai import ScriptedOpenAI, free_port

from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.pool import ModelPool
from packetgate.state.errors import InputError, ModelError


async def test_reflex_has_no_model():
    pool = ModelPool()
    await pool.check()
    assert await pool.get("lite") is None
    assert await pool.get("prime") is None
    assert pool.describe("lite") == "reflex (no model)"


@pytest.mark.parametrize("given", [{"lite": "openai:m"}, {"prime": "openai:m"}])
async def test_one_model_serves_both_roles(given: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(f"PACKETGATE_{next(iter(given)).upper()}_BASE_URL", "http://localhost:1/v1")
    pool = ModelPool(**given)
    assert await pool.get("lite") is await pool.get("prime") is not None
    assert pool.describe("lite") == pool.describe("prime") == "m at http://localhost:1/v1"


async def test_a_shared_file_is_loaded_once(tiny_gguf: Path):
    spec = f"llamacpp:{tiny_gguf}?n_ctx=256"
    pool = ModelPool(spec, spec)
    models = await asyncio.gather(*(pool.get(role) for role in ("lite", "prime", "lite")))
    assert isinstance(models[0], LlamaCppModel)
    assert models[0] is models[1] is models[2]
    assert pool.describe("prime") == "tiny.gguf in llama.cpp"


async def test_one_name_at_two_endpoints_is_two_models(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PACKETGATE_LITE_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:2/v1")
    pool = ModelPool("openai:m", "openai:m")
    assert await pool.get("lite") is not await pool.get("prime")
    assert pool.describe("lite") == "m at http://localhost:1/v1"
    assert pool.describe("prime") == "m at http://localhost:2/v1"


async def test_each_role_has_its_own_key(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "shared")
    monkeypatch.setenv("PACKETGATE_LITE_API_KEY", "own")
    pool = ModelPool("openai:m", "openai:m")
    monkeypatch.delenv("OPENAI_API_KEY")
    without = ModelPool("openai:m")
    monkeypatch.delenv("PACKETGATE_LITE_API_KEY")
    keyless = ModelPool("openai:m")
    await keyless.check()
    scripted_openai.script("a", "b", "c", "d")
    for model in [
        await pool.get("lite"),
        await pool.get("prime"),
        await without.get("lite"),
        await keyless.get("prime"),
    ]:
        assert model
        await model.chat.ainvoke("Hello")
    sent = [headers["authorization"].removeprefix("Bearer ") for headers in scripted_openai.headers]
    assert sent == ["own", "shared", "own", "none"]


@pytest.mark.parametrize("status", [404, 405, 429])
async def test_a_server_without_a_model_list_passes(
    status: int, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    scripted_openai.models_status = status
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    await ModelPool("openai:m").check()


@pytest.mark.parametrize(
    ("lite", "prime", "named"),
    [
        ("openai:m", "reflex", "OPENAI_API_KEY"),
        ("groq:m", "reflex", "groq:m needs an API key: set GROQ_API_KEY"),
        ("ollama:m", "reflex", r"cannot be reached: .*; start Ollama \(`ollama serve`\), or set OLLAMA_HOST"),
        ("reflex", "decisions:d", "OPENAI_API_KEY"),
        ("reflex", "llamacpp:/nowhere/a.gguf", r"no model file at .*a\.gguf"),
        ("reflex", f"llamacpp:{__file__}", "is not a GGUF model"),
    ],
)
async def test_check_names_the_missing_part(lite: str, prime: str, named: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{free_port()}")
    with pytest.raises(ModelError, match=named):
        await ModelPool(lite, prime).check()


async def test_openai_has_no_system_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PACKETGATE_PRIME_BASE_URL", "https://api.openai.com/v1")
    with pytest.raises(ModelError, match="OpenAI has no System One endpoint: set PACKETGATE_PRIME_BASE_URL"):
        await ModelPool("reflex", "systemone:d").check()


async def test_check_names_a_server_that_fails(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch):
    scripted_openai.models_status = 503
    absent = f"http://127.0.0.1:{free_port()}/v1"
    for base_url, problem in ((scripted_openai.base_url, "answered HTTP 503"), (absent, "cannot be reached")):
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        with pytest.raises(ModelError, match=f"{base_url} {problem}"):
            await ModelPool("openai:m").check()


async def test_check_has_a_time_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("packetgate.models.openai.local_servers.CHECK_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base_url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        with pytest.raises(ModelError, match=rf"{base_url} did not answer in time: no answer within 0\.2 s"):
            await ModelPool("openai:m").check()


async def test_check_names_the_missing_package(tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install '\.\[local\]'"):
        await ModelPool(f"llamacpp:{tiny_gguf}").check()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("OPENAI_BASE_URL", url) for url in ("localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1")),
        *(("PACKETGATE_MODEL_TIMEOUT", seconds) for seconds in ("soon", "0", "-1", "nan", "inf")),
    ],
)
def test_an_invalid_variable_is_refused(variable: str, value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=variable):
        ModelPool("openai:m")


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:pw@host/v1?key=k")
    assert ModelPool("openai:m").describe("lite") == "m at https://host/v1"


async def test_with_a_decision_endpoint_the_lite_model_answers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PACKETGATE_PRIME_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("PACKETGATE_LITE_BASE_URL", "http://localhost:2/v1")
    alone, beside = ModelPool(prime="decisions:d"), ModelPool("openai:m", "decisions:d")
    assert (alone.is_reflex, alone.has_reviewer, await alone.get("prime")) == (True, True, None)
    assert alone.describe("prime") == "reflex (no model); d at http://localhost:1/v1 reviews"
    assert (beside.is_reflex, beside.has_reviewer) == (False, True)
    assert await beside.get("prime") is await beside.get("lite") is not None
    for pool in (alone, beside):
        assert (await pool.reviewer()).model == "d"
    with pytest.raises(ModelError, match="localhost:1/v1 cannot be reached"):
        await alone.check()


async def test_a_decision_endpoint_cannot_be_lite():
    with pytest.raises(ModelError, match="with --prime or PACKETGATE_PRIME"):
        ModelPool("decisions:d")
    with pytest.raises(ModelError, match="decisions:NAME"):
        await ModelPool().reviewer()
