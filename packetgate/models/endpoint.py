"""Where an OpenAI-compatible model is reached, as the environment says."""

import math
import os
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from packetgate.models.servers import OPENAI, SERVERS, base_url_of
from packetgate.state.errors import ConfigError, ModelError

Role = Literal["lite", "prime"]

OPENAI_URL = "https://api.openai.com/v1"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Endpoint:
    """A base URL, the key it takes, and how long to wait for an answer, in seconds."""

    base_url: str
    api_key: str | None = field(repr=False)
    timeout: float
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that the key is from, or would be."""
    server: str = OPENAI
    """The name in `SERVERS` whose own address this is; OpenAI's for any other address."""

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI itself and not a server that speaks the same protocol."""
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname

    def key_for(self, model: str) -> SecretStr:
        """Return what is sent as the key: servers of one's own may take any.

        Raises:
            ModelError: a provider is meant and there is no key.
        """
        if self.server != OPENAI and SERVERS[self.server].key_variable and not self.api_key:
            raise ModelError(f"{self.server}:{model} needs an API key: set {self.key_variable}")
        if self.is_openai and not self.api_key:
            raise ModelError(
                f"openai:{model} needs an API key: set {self.key_variable}, "
                "or OPENAI_BASE_URL to a server that needs none"
            )
        return SecretStr(self.api_key or "none")


def endpoint_of(role: Role | Literal["embeddings"], timeout: float | None = None, server: str = OPENAI) -> Endpoint:
    """Read a role's endpoint from the environment; the role's own variables win over the server's.

    Args:
        timeout: in place of the environment's.
        server: the name before the model's. Only OpenAI's takes notice of OPENAI_*.

    Raises:
        ModelError: the base URL is not one.
        ConfigError: the time-out is not a positive number of seconds.
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
            f"the base URL of the {role} model, {shown(base_url)!r}, is no http or https address: "
            f"set PACKETGATE_{role.upper()}_BASE_URL or {other} to one, such as http://localhost:11434/v1"
        )
    variable = _key_variable(role, server)
    return Endpoint(base_url, _value(variable), timeout or _timeout(), variable, server)


def shown(base_url: str) -> str:
    """Return the base URL as it may be shown: without user name, password and query."""
    scheme, separator, rest = base_url.partition("?")[0].partition("#")[0].partition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _key_variable(role: str, server: str) -> str:
    own = f"PACKETGATE_{role.upper()}_API_KEY"
    if _value(own) or _value(f"PACKETGATE_{role.upper()}_BASE_URL"):
        return own
    return "OPENAI_API_KEY" if server == OPENAI else SERVERS[server].key_variable or own


def _value(variable: str) -> str | None:
    return os.environ.get(variable, "").strip() or None


def _timeout() -> float:
    text = os.environ.get("PACKETGATE_MODEL_TIMEOUT", "").strip() or str(TIMEOUT_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ConfigError(f"PACKETGATE_MODEL_TIMEOUT must be a positive number of seconds, not {text!r}")
    return seconds
