import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No endpoint, key or proxy of the machine reaches a test."""
    for who in ("OPENAI", "PACKETGATE_LITE", "PACKETGATE_PRIME"):
        for what in ("BASE_URL", "API_BASE", "API_KEY"):
            monkeypatch.delenv(f"{who}_{what}", raising=False)
    monkeypatch.delenv("PACKETGATE_MODEL_TIMEOUT", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
