"""Servers that speak OpenAI's protocol, by the name before a model's, as in `ollama:qwen3:4b`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

OPENAI = "openai"
"""The prefix of OpenAI, or of the server at `OPENAI_BASE_URL`."""


@dataclass(frozen=True)
class Server:
    """A program on this machine, or a provider."""

    title: str
    base_url: str
    start: str = ""
    """Command that starts it; empty for a provider."""
    key_variable: str = ""
    """Environment variable of a provider's key; a program on this machine is sent only the role's own key."""


SERVERS: Mapping[str, Server] = {
    "ollama": Server("Ollama", "http://127.0.0.1:11434/v1", "ollama serve"),
    "lmstudio": Server("LM Studio", "http://127.0.0.1:1234/v1", "lms server start"),
    "llama-server": Server("llama.cpp's server", "http://127.0.0.1:8080/v1", "llama-server -m FILE.gguf"),
    "vllm": Server("vLLM", "http://127.0.0.1:8000/v1", "vllm serve NAME"),
    "anthropic": Server("Anthropic", "https://api.anthropic.com/v1/", key_variable="ANTHROPIC_API_KEY"),
    "deepseek": Server("DeepSeek", "https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
    "gemini": Server(
        "Google", "https://generativelanguage.googleapis.com/v1beta/openai/", key_variable="GEMINI_API_KEY"
    ),
    "groq": Server("Groq", "https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "mistralai": Server("Mistral", "https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY"),
    "openrouter": Server("OpenRouter", "https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"),
}
LOCAL: tuple[str, ...] = tuple(name for name, server in SERVERS.items() if not server.key_variable)
HOSTED: Mapping[str, str] = {OPENAI: "OPENAI_API_KEY"} | {
    name: server.key_variable for name, server in SERVERS.items() if server.key_variable
}
"""Providers' prefixes, and the variables of their keys."""


def base_url_of(name: str) -> str:
    """Return a server's base URL; Ollama's follows `OLLAMA_HOST`."""
    host = os.environ.get("OLLAMA_HOST", "").strip(" '\"") if name == "ollama" else ""
    return _ollama_url(host) if host else SERVERS[name].base_url


def is_here(base_url: str) -> bool:
    """Whether a base URL is on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _ollama_url(host: str) -> str:
    scheme, has_scheme, rest = host.rpartition("://")
    port = {"https": 443, "http": 80}.get(scheme, 11434) if has_scheme else 11434
    place, _, path = rest.partition("/")
    try:
        parts = urlsplit(f"//{place if place.count(':') < 2 or place.startswith('[') else f'[{place}]'}")
        name, port = parts.hostname or "127.0.0.1", parts.port or port
        name = "127.0.0.1" if name in {"0.0.0.0", "::"} else name  # noqa: S104
    except ValueError:
        name = place
    path = f"/{path.strip('/')}" if path.strip("/") else ""
    return f"{scheme or 'http'}://{f'[{name}]' if ':' in name else name}:{port}{path}/v1"
