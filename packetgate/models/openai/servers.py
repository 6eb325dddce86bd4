"""OpenAI-compatible servers, and the endpoint of each role from the environment."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from packetgate.models.options import Role
from packetgate.state.errors import ConfigError, ModelError
from packetgate.state.printing import without_credentials

OPENAI, LLAMA_SERVER = "openai", "llama-server"


@dataclass(frozen=True)
class ModelServer:
    """A known model server: a local program or a provider."""

    title: str
    base_url: str
    start_command: str = ""
    """Command that starts the server; empty for a provider."""
    key_variable: str = ""


SERVERS: Mapping[str, ModelServer] = {
    "ollama": ModelServer("Ollama", "http://127.0.0.1:11434/v1", "ollama serve"),
    "lmstudio": ModelServer("LM Studio", "http://127.0.0.1:1234/v1", "lms server start"),
    LLAMA_SERVER: ModelServer("llama.cpp's server", "http://127.0.0.1:8080/v1", "llama-server -m FILE.gguf"),
    "vllm": ModelServer("vLLM", "http://127.0.0.1:8000/v1", "vllm serve NAME"),
    "anthropic": ModelServer("Anthropic", "https://api.anthropic.com/v1/", key_variable="ANTHROPIC_API_KEY"),
    "deepseek": ModelServer("DeepSeek", "https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
    "gemini": ModelServer(
        "Google", "https://generativelanguage.googleapis.com/v1beta/openai/", key_variable="GEMINI_API_KEY"
    ),
    "groq": ModelServer("Groq", "https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "mistralai": ModelServer("Mistral", "https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY"),
    "openrouter": ModelServer("OpenRouter", "https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"),
}
LOCAL_SERVERS: tuple[str, ...] = tuple(name for name, server in SERVERS.items() if not server.key_variable)
PROVIDER_KEYS: Mapping[str, str] = {OPENAI: "OPENAI_API_KEY"} | {
    name: server.key_variable for name, server in SERVERS.items() if server.key_variable
}
"""The environment variable of the API key, by provider prefix."""


def base_url_of(name: str) -> str:
    """Return a server's base URL; for Ollama, `OLLAMA_HOST` overrides it."""
    host = os.environ.get("OLLAMA_HOST", "").strip(" '\"") if name == "ollama" else ""
    return _ollama_url(host) if host else SERVERS[name].base_url


def is_local_url(base_url: str) -> bool:
    """Whether a base URL is on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _ollama_url(host: str) -> str:
    parts = urlsplit(host if "://" in host else f"//{host}")
    try:
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 11434)
    except ValueError:
        return host  # `endpoint_of` refuses it
    name = parts.hostname or "127.0.0.1"
    name = "127.0.0.1" if name in {"0.0.0.0", "::"} else name  # noqa: S104
    return f"{parts.scheme or 'http'}://{f'[{name}]' if ':' in name else name}:{port}{parts.path.rstrip('/')}/v1"


OPENAI_URL = "https://api.openai.com/v1"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Endpoint:
    """A base URL, its key, and the timeout of an answer, in seconds."""

    base_url: str
    api_key: str | None = field(repr=False)
    timeout: float
    key_variable: str = "OPENAI_API_KEY"
    server: str = OPENAI
    """A key of `SERVERS`; `openai` for a base URL that the user sets."""

    @property
    def is_openai(self) -> bool:
        """Whether the base URL is OpenAI's own."""
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname

    def key_for(self, model: str) -> SecretStr:
        """Return the key to send; the user's own servers accept any key. Raise ModelError if a provider has no key."""
        if self.server != OPENAI and SERVERS[self.server].key_variable and not self.api_key:
            raise ModelError(f"{self.server}:{model} needs an API key: set {self.key_variable}")
        if self.is_openai and not self.api_key:
            raise ModelError(
                f"openai:{model} needs an API key: set {self.key_variable}, "
                "or OPENAI_BASE_URL to a server that needs none"
            )
        return SecretStr(self.api_key or "none")


def endpoint_of(role: Role | Literal["embeddings"], timeout: float | None = None, server: str = OPENAI) -> Endpoint:
    """Read a role's endpoint from the environment; the role's variables override the server's.

    Args:
        timeout: replaces the timeout from the environment.
        server: the prefix of the model's name. OPENAI_* apply only to `openai`.

    Raises:
        ModelError: the base URL is invalid.
        ConfigError: the timeout is not a positive number of seconds.
    """
    own_url = _value(f"PACKETGATE_{role.upper()}_BASE_URL")
    server = OPENAI if own_url else server
    base_url = own_url or (_value("OPENAI_BASE_URL") or OPENAI_URL if server == OPENAI else base_url_of(server))
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        other = "OLLAMA_HOST" if server == "ollama" else "OPENAI_BASE_URL"
        raise ModelError(
            f"the base URL of the {role} model, {without_credentials(base_url)!r}, is not an http or https URL: "
            f"set PACKETGATE_{role.upper()}_BASE_URL or {other} to a URL such as http://localhost:11434/v1"
        )
    variable = _key_variable(role, server)
    return Endpoint(base_url, _value(variable), timeout or _timeout(), variable, server)


def _key_variable(role: str, server: str) -> str:
    own = f"PACKETGATE_{role.upper()}_API_KEY"
    if _value(own) or _value(f"PACKETGATE_{role.upper()}_BASE_URL"):
        return own
    return "OPENAI_API_KEY" if server == OPENAI else SERVERS[server].key_variable or own


def _value(variable: str) -> str | None:
    return os.environ.get(variable, "").strip() or None


def _timeout() -> float:
    text = os.environ.get("PACKETGATE_MODEL_TIMEOUT", "").strip() or str(_TIMEOUT_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ConfigError(f"PACKETGATE_MODEL_TIMEOUT must be a positive number of seconds, not {text!r}")
    return seconds
