from pathlib import Path

import pytest

from packetgate.models.spec import REFLEX, ModelSpec, parse_model
from packetgate.state.errors import ModelError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reflex", REFLEX),
        (" reflex ", REFLEX),
        ("openai:gpt-x", ModelSpec("openai", "gpt-x")),
        ("openai:qwen3:4b", ModelSpec("openai", "qwen3:4b")),
        ("ollama:qwen3:4b?seed=1", ModelSpec("openai", "qwen3:4b", {"seed": "1"}, "ollama")),
        ("lmstudio:qwen/qwen3-4b", ModelSpec("openai", "qwen/qwen3-4b", server="lmstudio")),
        ("openai:org/model?a=b&c=d%26+e", ModelSpec("openai", "org/model", {"a": "b", "c": "d& e"})),
        ("llamacpp:/m/a.gguf", ModelSpec("llamacpp", "/m/a.gguf")),
        ("llamacpp:a b.gguf", ModelSpec("llamacpp", "a b.gguf")),
        (
            "llamacpp:/m/a.gguf?n_ctx=4096&n_gpu_layers=-1",
            ModelSpec("llamacpp", "/m/a.gguf", {"n_ctx": "4096", "n_gpu_layers": "-1"}),
        ),
    ],
)
def test_parse(text: str, expected: ModelSpec):
    assert parse_model(text) == expected


def test_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert parse_model("llamacpp:~/a.gguf").name == str(Path("/home/someone/a.gguf"))


@pytest.mark.parametrize(
    "text", ["", "gpt-4", "openai", "openai:", "openai: ", "llamacpp:", "llamacpp:?n_ctx=1", "reflex:x", "OPENAI:x"]
)
def test_unknown_form_names_the_string_and_the_forms(text: str):
    with pytest.raises(ModelError) as caught:
        parse_model(text)
    assert repr(text) in str(caught.value)
    for form in ("`reflex`", "`openai:NAME`", "`llamacpp:/path/model.gguf"):
        assert form in str(caught.value)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("gpt-x", "`openai:gpt-x`, or `ollama:gpt-x`"),
        ("qwen3:4b", "`ollama:qwen3:4b`"),
        ("llama2:7b", "`ollama:llama2:7b`"),
        ("mistral-nemo:12b", "`ollama:mistral-nemo:12b`"),
        ("hf.co/org/model:Q4_K_M", "`ollama:hf.co/org/model:Q4_K_M`"),
        ("Ollama:qwen3", "`ollama:qwen3`"),
        ("olama:qwen3", "`ollama:qwen3`"),
        ("LM Studio:qwen3", "`lmstudio:qwen3`"),
        ("ollama/qwen3:4b", "`ollama:qwen3:4b`"),
        ("openai/gpt-x", "`openai:gpt-x`"),
        ("ollama", "`ollama:NAME`"),
        ("/models/a b.gguf", "`llamacpp:/models/a b.gguf`"),
        ("llama.cpp:a.gguf", "`llamacpp:a.gguf`"),
        ("gguf:~/a.gguf?n_ctx=1", "`llamacpp:~/a.gguf?n_ctx=1`"),
        ("llamacpp:?n_ctx=1", "`llamacpp:/path/model.gguf?n_ctx=1`"),
        ("Reflex", "`reflex`"),
        ("http://localhost:9/v1", "`openai:NAME`, and set OPENAI_BASE_URL to http://localhost:9/v1"),
    ],
)
def test_a_refused_name_says_what_to_write_instead(text: str, instead: str):
    with pytest.raises(ModelError) as caught:
        parse_model(text)
    assert f"{text!r} is not a model name: write {instead}" in str(caught.value)


def test_what_is_no_list_of_options_is_named():
    with pytest.raises(ModelError, match="'n_ctx' is not a list of options"):
        parse_model("llamacpp:a.gguf?n_ctx")
