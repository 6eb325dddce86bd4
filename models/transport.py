"""What can go wrong between here and a model, said in one line."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_core.messages import AIMessage
from pydantic import SecretStr

from models.endpoint import shown
from state.errors import DecisionError
from state.printing import shorten

MAX_RETRIES = 2
"""How often the openai library tries again after 408, 409, 429, 5xx, a time-out, or a broken connection."""
MAX_RETRY_AFTER_S = 120.0
"""The longest `Retry-After` that it waits for; one that asks for more ends the request at once."""

_LIBRARY_ERRORS = (("openai", "OpenAIError"), ("httpx2", "HTTPError"), ("httpx", "HTTPError"))
"""openai leaves a connection that breaks while streaming to its HTTP library's errors."""

_HINTS = {
    404: "check the model's name and the base URL",
    429: "it is asked too often, or its quota is used up: wait, or use another model",
}


def model_label(model: object) -> str:
    """Return the model's name, and where it is reached, without anything secret."""
    name = getattr(model, "model_name", None) or type(model).__name__
    base_url = getattr(model, "openai_api_base", None)
    return f"{name} at {shown(base_url)}" if base_url else str(name)


def patience(model: object) -> float | None:
    """Return how long one answer may take in all, in seconds; None: as long as it takes.

    A time-out by itself bounds only the wait for the next byte, and a server can drip.
    """
    timeout = getattr(model, "request_timeout", None)
    if not isinstance(timeout, int | float):
        return None
    return (MAX_RETRIES + 1) * timeout + MAX_RETRIES * MAX_RETRY_AFTER_S


@contextmanager
def named_errors(model: object) -> Iterator[None]:
    """Turn what the transport raises while the model is asked into a `DecisionError` that names model and endpoint."""
    try:
        yield
    except _transport_errors() as error:
        raise DecisionError(f"{model_label(model)} {_what_happened(error, _quoted(model, said(error)))}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # how langchain-openai meets rubbish
        raise DecisionError(
            f"{model_label(model)} answered with something that is no chat completion ({type(error).__name__}): "
            "check that the base URL is an OpenAI-compatible one; it usually ends in /v1"
        ) from error


def check_answered(model: object, answer: AIMessage) -> None:
    """Make sure that the answer is the model's own.

    Raises:
        DecisionError: the model refused to answer, or a content filter stopped it.
    """
    refusal = answer.additional_kwargs.get("refusal")
    if refusal:
        why = _quoted(model, str(refusal))
        raise DecisionError(f"{model_label(model)} refuses to answer: {why}; reword the request, or use another model")
    if answer.response_metadata.get("finish_reason") == "content_filter":
        raise DecisionError(
            f"{model_label(model)} stopped at its content filter: reword the request, or use another model"
        )


def said(error: BaseException) -> str:
    """Return all that a server said when it refused: its message, or its whole body where that holds none."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    if body is None or (isinstance(message, str) and message):
        return str(error)
    return f"{error} - {body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)}"


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return the errors of those libraries that are loaded: importing them here would block the event loop."""
    loaded = [(sys.modules.get(module), error) for module, error in _LIBRARY_ERRORS]
    return (TimeoutError, *(getattr(module, error) for module, error in loaded if module))


def _quoted(model: object, text: str) -> str:
    """Return the beginning of what a server said, without the API key, which it may have echoed."""
    key = getattr(model, "openai_api_key", None)
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    return shorten(text.replace(secret, "***") if len(secret) > 8 else text, 300)


def _what_happened(error: Exception, quoted: str) -> str:
    status = getattr(error, "status_code", None)
    if status == 401:
        return "refuses the API key (HTTP 401): check OPENAI_API_KEY"
    if status == 403:
        return f"does not allow this (HTTP 403): {quoted}; check OPENAI_API_KEY, and what it allows"
    if status is not None:
        hint = _HINTS.get(status) or ("try again later, or check the server" if status >= 500 else "")
        return f"answered HTTP {status}: {quoted}{f'; {hint}' if hint else ''}"
    kinds = {kind.__name__ for one in _with_causes(error) for kind in type(one).__mro__}
    if kinds & {"APITimeoutError", "TimeoutError", "TimeoutException"}:
        return "did not answer in time: raise PACKETGATE_MODEL_TIMEOUT, in seconds, or check the server"
    if kinds & {"DecodingError", "RemoteProtocolError", "ReadError", "WriteError"}:
        return "broke off, or answered with something that is no HTTP: check the server and the base URL"
    if kinds & {"APIConnectionError", "TransportError"}:
        return "cannot be reached: check that the server runs and that the base URL is right"
    return f"failed: {type(error).__name__}: {quoted}"


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
