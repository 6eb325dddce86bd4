from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from packetgate.models.llama.weights import LlamaWeights


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the machine's endpoints, keys and proxies from tests."""
    for who in ("OPENAI", "PACKETGATE_LITE", "PACKETGATE_PRIME"):
        for what in ("BASE_URL", "API_BASE", "API_KEY"):
            monkeypatch.delenv(f"{who}_{what}", raising=False)
    monkeypatch.delenv("PACKETGATE_MODEL_TIMEOUT", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
def plain_attention(llama_cpp_installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables flash attention, which adds in half precision, so that its rounding depends on the batch."""
    import llama_cpp

    params = llama_cpp.llama_context_default_params

    def plain() -> llama_cpp.llama_context_params:
        chosen = params()
        chosen.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        return chosen

    monkeypatch.setattr(llama_cpp, "llama_context_default_params", plain)


@pytest.fixture(scope="module")
def weights(tiny_gguf: Path) -> "LlamaWeights":
    """The weights of a tiny model."""
    from packetgate.models.llama.weights import LlamaWeights

    return LlamaWeights(str(tiny_gguf), {})
