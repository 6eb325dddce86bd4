import pytest

from packetgate.models.kinds import REFLEX, ModelName, known_kinds, parse_model
from packetgate.models.options import ModelOptions
from packetgate.state.errors import ModelError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reflex", REFLEX),
        (" reflex ", REFLEX),
        ("ollama:qwen3:4b?seed=1", ModelName("ollama", "qwen3:4b", {"seed": "1"})),
        ("lmstudio:qwen/qwen3-4b", ModelName("lmstudio", "qwen/qwen3-4b")),
        ("openai:org/model?a=b&c=d%26+e", ModelName("openai", "org/model", {"a": "b", "c": "d& e"})),
        ("llamacpp:a b.gguf", ModelName("llamacpp", "a b.gguf")),
        (
            "llamacpp:/m/a.gguf?n_ctx=4096&n_gpu_layers=-1",
            ModelName("llamacpp", "/m/a.gguf", {"n_ctx": "4096", "n_gpu_layers": "-1"}),
        ),
    ],
)
def test_model_names_are_parsed(text: str, expected: ModelName):
    assert parse_model(text) == expected


def test_the_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert (
        known_kinds()["llamacpp"].parse("llamacpp", "~/a.gguf", "lite", ModelOptions()).name == "/home/someone/a.gguf"
    )


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "`reflex`"),
        ("openai:", "`openai:NAME`"),
        ("reflex:x", "`reflex`"),
        ("gpt-x", "`openai:gpt-x`, or `ollama:gpt-x`"),
        ("olama:qwen3", "`ollama:NAME`"),
        ("/models/a b.gguf", "`llamacpp:/models/a b.gguf`"),
        ("http://localhost:9/v1", "`openai:NAME`, and set OPENAI_BASE_URL to http://localhost:9/v1"),
    ],
)
def test_an_invalid_name_gets_a_suggestion(text: str, advice: str):
    with pytest.raises(ModelError) as caught:
        parse_model(text)
    assert repr(text) in str(caught.value)
    assert advice in str(caught.value)


def test_invalid_options_are_named():
    with pytest.raises(ModelError, match="'n_ctx' is not a list of options"):
        parse_model("llamacpp:a.gguf?n_ctx")
