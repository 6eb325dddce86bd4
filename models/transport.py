"""What can go wrong between here and a model, said in one line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from models.endpoint import shown
from models.json_decoding import shorten
from state.errors import DecisionError

_LIBRARY_ERRORS = (("openai", "OpenAIError"), ("httpx2", "HTTPError"), ("httpx", "HTTPError"))
"""openai leaves a connection that breaks while streaming to its HTTP library's errors."""


def model_label(model: BaseChatModel) -> str:
    """Return the model's name, and where it is reached, without anything secret."""
    name = getattr(model, "model_name", None) or type(model).__name__
    base_url = getattr(model, "openai_api_base", None)
    return f"{name} at {shown(base_url)}" if base_url else str(name)


@contextmanager
def named_errors(model: BaseChatModel) -> Iterator[None]:
    """Turn what the transport raises while the model is asked into a `DecisionError` that names model and endpoint."""
    try:
        yield
    except _transport_errors() as error:
        raise DecisionError(_without_key(model, f"{model_label(model)} {_what_happened(error)}")) from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # how langchain-openai meets rubbish
        raise DecisionError(
            f"{model_label(model)} answered with something that is no chat completion ({type(error).__name__}): "
            "check that the base URL is an OpenAI-compatible one; it usually ends in /v1"
        ) from error


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return the errors of those libraries that are loaded: importing them here would block the event loop."""
    loaded = [(sys.modules.get(module), error) for module, error in _LIBRARY_ERRORS]
    return (TimeoutError, *(getattr(module, error) for module, error in loaded if module))


def _without_key(model: BaseChatModel, text: str) -> str:
    """Return the text without the API key, which a server may have echoed."""
    key = getattr(model, "openai_api_key", None)
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    return text.replace(secret, "***") if len(secret) > 8 else text


def _what_happened(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in {401, 403}:
        return f"refuses the API key (HTTP {status}): check OPENAI_API_KEY"
    if status is not None:
        hint = "; check the model's name and the base URL" if status == 404 else ""
        return f"answered HTTP {status}: {shorten(str(error), 300)}{hint}"
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"APITimeoutError", "TimeoutError", "TimeoutException"}:
        return "did not answer in time: raise PACKETGATE_MODEL_TIMEOUT, in seconds, or check the server"
    if kinds & {"APIConnectionError", "TransportError"}:
        return "cannot be reached: check that the server runs and that the base URL is right"
    return f"failed: {type(error).__name__}"
