from collections.abc import Sequence
from functools import cache

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from packetgate.models import kinds
from packetgate.models.answers import complete
from packetgate.models.kinds import REFLEX, ModelKind, ModelName, ModelSetup, known_kinds, parse_model, register_kind
from packetgate.models.model import Model
from packetgate.models.options import ModelOptions, Role
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ConfigError, ModelError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reflex", REFLEX),
        (" reflex ", REFLEX),
        ("openai:gpt-x", ModelName("openai", "gpt-x")),
        ("openai:qwen3:4b", ModelName("openai", "qwen3:4b")),
        ("ollama:qwen3:4b?seed=1", ModelName("ollama", "qwen3:4b", {"seed": "1"})),
        ("lmstudio:qwen/qwen3-4b", ModelName("lmstudio", "qwen/qwen3-4b")),
        ("openai:org/model?a=b&c=d%26+e", ModelName("openai", "org/model", {"a": "b", "c": "d& e"})),
        ("llamacpp:/m/a.gguf", ModelName("llamacpp", "/m/a.gguf")),
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
        ("llamacpp:?n_ctx=1", "`llamacpp:/path/model.gguf`"),
        ("reflex:x", "`reflex`"),
        ("gpt-x", "`openai:gpt-x`, or `ollama:gpt-x`"),
        ("Ollama:qwen3", "`ollama:NAME`"),
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


class ParrotKind(ModelKind):
    """A provider of somebody else: a LangChain chat model behind a prefix."""

    forms = ("parrot:NAME",)
    prefixes = ("parrot",)
    takes = ("temperature",)

    def parse(self, prefix: str, name: str, role: Role, options: ModelOptions) -> ModelSetup:
        return ModelSetup(prefix, name, f"{name} the parrot", options)

    async def check(self, setup: ModelSetup) -> None:
        if setup.name == "dead":
            raise ModelError("this parrot is no more")

    def open(self, setup: ModelSetup) -> Model:
        return Model(GenericFakeChatModel(messages=iter([AIMessage(f"{setup.name} wants a cracker")])), setup.options)

    def identity(self, setup: ModelSetup) -> Sequence[str]:
        return (setup.name,)


async def test_a_registered_kind_is_used_like_the_built_in_ones(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as changed:
        changed.setattr(kinds, "known_kinds", cache(known_kinds.__wrapped__))
        register_kind(ParrotKind())
        pool = ModelPool("parrot:Polly?temperature=0.5")
        await pool.check()
        lite = await pool.get("lite")
        assert lite is await pool.get("prime") is not None
        assert lite.options.temperature == 0.5
        assert (await complete(lite, [HumanMessage("Hi")], user_words="", temperature=0, max_tokens=9)).text.startswith(
            "Po"
        )
        assert (pool.describe("prime"), pool.is_hosted) == ("Polly the parrot", False)
        assert await pool.model_digest() != await ModelPool("parrot:Pete?temperature=0.5").model_digest()
        with pytest.raises(ModelError, match="no more"):
            await ModelPool("parrot:dead").check()
        with pytest.raises(ConfigError, match="parrot models take temperature"):
            ModelPool("parrot:Polly?n_ctx=9")
        with pytest.raises(ModelError, match="`parrot:NAME`"):
            parse_model("parot:Polly")
    with pytest.raises(ModelError):
        parse_model("parrot:Polly")
