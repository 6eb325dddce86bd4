"""Where an OpenAI-compatible model is reached, as the environment says."""

import math
import os
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from state.errors import ConfigError, ModelError

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

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI itself and not a server that speaks the same protocol."""
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname

    def key_for(self, model: str) -> SecretStr:
        """Return what is sent as the key: servers of one's own may take any.

        Raises:
            ModelError: OpenAI itself is meant and there is no key.
        """
        if self.is_openai and not self.api_key:
            raise ModelError(
                f"openai:{model} needs an API key: set {self.key_variable}, "
                "or OPENAI_BASE_URL to a server that needs none"
            )
        return SecretStr(self.api_key or "none")


def endpoint_of(role: Role | Literal["embeddings"], timeout: float | None = None) -> Endpoint:
    """Read a role's endpoint from the environment; the role's own variables win over OPENAI_*.

    Args:
        timeout: in place of the environment's.

    Raises:
        ModelError: the base URL is not one.
        ConfigError: the time-out is not a positive number of seconds.
    """
    base_url = _read(role, "BASE_URL") or OPENAI_URL
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ModelError(
            f"the base URL of the {role} model, {shown(base_url)!r}, is no http or https address: "
            f"set PACKETGATE_{role.upper()}_BASE_URL or OPENAI_BASE_URL to one, such as http://localhost:11434/v1"
        )
    variable = _key_variable(role)
    return Endpoint(base_url, os.environ.get(variable, "").strip() or None, timeout or _timeout(), variable)


def shown(base_url: str) -> str:
    """Return the base URL as it may be shown: without user name, password and query."""
    scheme, separator, rest = base_url.partition("?")[0].partition("#")[0].partition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _key_variable(role: str) -> str:
    """A server of the role's own never gets the key meant for another: it has its own key, or none."""
    own = f"PACKETGATE_{role.upper()}_API_KEY"
    has_own = any(os.environ.get(one, "").strip() for one in (own, f"PACKETGATE_{role.upper()}_BASE_URL"))
    return own if has_own else "OPENAI_API_KEY"


def _read(role: str, name: str) -> str | None:
    variables = (f"PACKETGATE_{role.upper()}_{name}", f"OPENAI_{name}")
    return next(filter(None, (os.environ.get(one, "").strip() for one in variables)), None)


def _timeout() -> float:
    text = os.environ.get("PACKETGATE_MODEL_TIMEOUT", "").strip() or str(TIMEOUT_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ConfigError(f"PACKETGATE_MODEL_TIMEOUT must be a positive number of seconds, not {text!r}")
    return seconds
