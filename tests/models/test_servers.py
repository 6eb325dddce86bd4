"""Servers by name: their addresses, their keys, and whether they have the model."""

import pytest
from support.scripted_openai import ScriptedOpenAI

from packetgate.models.openai.servers import base_url_of, endpoint_of
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ModelError


@pytest.mark.parametrize(
    ("host", "base_url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9", "http://127.0.0.1:9/v1"),
        (":9", "http://127.0.0.1:9/v1"),
        ("box", "http://box:11434/v1"),
        ("http://box", "http://box:80/v1"),
        ("https://box/behind/", "https://box:443/behind/v1"),
        ("[::1]:9", "http://[::1]:9/v1"),
    ],
)
def test_ollamas_address_follows_ollama_host(host: str, base_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert base_url_of("ollama") == base_url


def test_a_key_is_sent_only_to_its_server(monkeypatch: pytest.MonkeyPatch):
    for variable in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(variable, variable)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1")
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    ollama, groq = endpoint_of("lite", server="ollama"), endpoint_of("lite", server="groq")
    assert (ollama.base_url, ollama.api_key) == ("http://127.0.0.1:11434/v1", None)
    assert (groq.base_url, groq.api_key) == ("https://api.groq.com/openai/v1", "GROQ_API_KEY")
    assert endpoint_of("lite").api_key == "OPENAI_API_KEY"

    monkeypatch.setenv("PACKETGATE_LITE_BASE_URL", "http://localhost:8/v1")
    assert [endpoint_of("lite", server=one).base_url for one in ("ollama", "groq")] == ["http://localhost:8/v1"] * 2
    assert [endpoint_of("lite", server=one).api_key for one in ("ollama", "groq")] == [None, None]
    monkeypatch.setenv("PACKETGATE_LITE_API_KEY", "own")
    assert endpoint_of("lite", server="groq").api_key == "own"


@pytest.mark.parametrize(
    ("name", "known", "says"),
    [
        ("qwen3:4b", ["qwen3:4b"], ""),
        ("qwen3", ["qwen3:latest"], ""),
        ("Qwen3:4B", ["qwen3:4b"], ""),
        (
            "qwen3:8b",
            ["llama3.2:1b", "qwen3:4b"],
            r"no model 'qwen3:8b': write ollama:qwen3:4b or .*`ollama pull qwen3:8b`",
        ),
        ("qwen3:8b", [], "no model .*get it with `ollama pull qwen3:8b`"),
    ],
)
async def test_a_missing_ollama_model_lists_the_existing_models(
    name: str, known: list[str], says: str, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    scripted_openai.models = known
    monkeypatch.setenv("OLLAMA_HOST", scripted_openai.base_url.removesuffix("/v1"))
    pool = ModelPool(f"ollama:{name}")
    if says:
        with pytest.raises(ModelError, match=says):
            await pool.check()
    else:
        await pool.check()
