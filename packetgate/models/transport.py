"""Errors between here and a model, each in one line."""

import json
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from email.utils import mktime_tz, parsedate_tz

from langchain_core.messages import AIMessage
from pydantic import SecretStr

from packetgate.models.endpoint import shown
from packetgate.state.errors import DecisionError
from packetgate.state.printing import shorten

MAX_RETRIES = 2
"""Retries by the openai library after 408, 409, 429, 5xx or a broken connection."""
TIMEOUT_WAY_OUT = "raise PACKETGATE_MODEL_TIMEOUT or the model's own timeout, in seconds, or check the server"

_LIBRARY_ERRORS = (("openai", "OpenAIError"), ("httpx2", "HTTPError"), ("httpx", "HTTPError"))

ESSENTIAL = frozenset({"model", "messages", "stream", "response_format", "tools", "tool_choice", "timeout"})
OF_THE_FORM = ("response_format", "json_schema", "json_object", "schema", "grammar", "tool")
"""Words by which refusals name what holds an answer to its form."""

_HINTS = {
    404: "check the model's name and the base URL",
    429: "it is asked too often, or its quota is used up: wait, or use another model",
}


def model_label(model: object) -> str:
    """Return name and endpoint of a model, without secrets."""
    name = getattr(model, "model_name", None) or type(model).__name__
    base_url = getattr(model, "openai_api_base", None)
    return f"{name} at {shown(base_url)}" if base_url else str(name)


def timeout_of(model: object) -> float | None:
    """Return the time limit of an answer, in seconds; None for a model in this process."""
    timeout = getattr(model, "request_timeout", None)
    return float(timeout) if isinstance(timeout, int | float) else None


def endpoint_label(model: object) -> str:
    """Return the endpoint of a model, without secrets."""
    return shown(str(getattr(model, "openai_api_base", None) or ""))


@contextmanager
def named_errors(
    model: object, too_slow: Callable[[], str] = lambda: TIMEOUT_WAY_OUT, answer: str = "chat completion"
) -> Iterator[None]:
    """Turn what is raised while the model is asked into a `DecisionError` that names model and endpoint.

    Args:
        too_slow: returns the advice after a timeout.
        answer: what an endpoint was asked for.
    """
    try:
        yield
    except _transport_errors() as error:
        happened = _what_happened(model, error, _quoted(model, error_text(error)), too_slow())
        raise DecisionError(f"{model_label(model)} {happened}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # how langchain-openai meets rubbish
        kind = type(error).__name__
        if not endpoint_label(model):  # a model of the caller's own
            raise DecisionError(f"{model_label(model)} raised {kind}: {shorten(str(error), 300)}") from error
        raise DecisionError(
            f"{model_label(model)} answered with something that is no {answer} ({kind}): "
            "check that the base URL is an OpenAI-compatible one; it usually ends in /v1"
        ) from error


def check_answered(model: object, answer: AIMessage) -> None:
    """Raise `DecisionError` if the model refused to answer or a content filter stopped it."""
    refusal = answer.additional_kwargs.get("refusal")
    if refusal:
        why = _quoted(model, str(refusal))
        raise DecisionError(f"{model_label(model)} refuses to answer: {why}; reword the request, or use another model")
    if answer.response_metadata.get("finish_reason") == "content_filter":
        raise DecisionError(
            f"{model_label(model)} stopped at its content filter: reword the request, or use another model"
        )


def error_text(error: BaseException) -> str:
    """Return the message of an error response, or its whole body if it has none."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    if body is None or (isinstance(message, str) and message):
        return str(error)
    return f"{error} - {body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)}"


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status of an error; None: it has none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def named_in(error: BaseException | None, names: Collection[str], others: Collection[str] = OF_THE_FORM) -> str | None:
    """Return the first of these parameters that a refusal names; None if it names another thing first.

    Args:
        others: words for other things that the text may be about.
    """
    param = re.split(r"[.\[]", str(getattr(error, "param", None) or ""))[0]
    if error is None or param in {*names, *ESSENTIAL}:
        return param if param in names else None
    text = error_text(error)
    found = [(name, re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)) for name in names]
    places = {name: match.start() for name, match in found if match}
    places |= {word: at for word in others if (at := text.lower().find(word)) >= 0}
    first = min(places, key=places.__getitem__, default="")
    return first if first in names else None


def wish_in(wishes: Mapping[str, str], error: BaseException | None) -> str:
    """Return the description of the user's own parameter that a server refuses; empty: none."""
    refuses = status_of(error) in {400, 403, 404, 415, 422, 500}
    name = named_in(error, wishes) if refuses and not is_too_long(error) else None
    return wishes[name] if name else ""


def _transport_errors() -> tuple[type[Exception], ...]:
    loaded = [(sys.modules.get(module), error) for module, error in _LIBRARY_ERRORS]
    return (TimeoutError, *(getattr(module, error) for module, error in loaded if module))


def _quoted(model: object, text: str) -> str:
    key = getattr(model, "openai_api_key", None)
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    return shorten(text.replace(secret, "***") if len(secret) > 8 else text, 300)


def _key_variable(model: object) -> str:
    return str(getattr(model, "key_variable", "OPENAI_API_KEY"))


def _what_happened(model: object, error: Exception, quoted: str, too_slow: str) -> str:
    status, key = status_of(error), _key_variable(model)
    if status == 401:
        return f"refuses the API key (HTTP 401): check {key}"
    if status == 403:
        return f"does not allow this (HTTP 403): {quoted}; check {key}, and what it allows"
    if status is not None:
        wait = requested_wait(error)
        hint = _HINTS.get(status) or ("try again later, or check the server" if status >= 500 else "")
        wish = wish_in(getattr(model, "wishes", {}), error)
        hint = f"{wish}: change it, or leave it out" if wish else hint
        hint = f"it wants to be left alone for {wait:,.0f} s: wait, or use another model" if wait else hint
        return f"answered HTTP {status}: {quoted}{f'; {hint}' if hint else ''}"
    kinds = _kinds(error)
    if kinds & _LATE:
        return f"did not answer in time: {too_slow}"
    if kinds & _BROKEN:
        return "broke off, or answered with something that is no HTTP: check the server and the base URL"
    if kinds & _UNREACHED:
        return "cannot be reached: check that the server runs and that the base URL is right"
    return f"failed: {type(error).__name__}: {quoted}"


_LATE = {"APITimeoutError", "TimeoutError", "TimeoutException"}
_BROKEN = {"DecodingError", "RemoteProtocolError", "ReadError", "WriteError"}
_UNREACHED = {"APIConnectionError", "TransportError"}


def is_absent(error: BaseException | None) -> bool:
    """Whether nothing answered: no connection, a timeout, or a gateway error."""
    if getattr(error, "status_code", None) in {502, 503, 504}:
        return True
    kinds = _kinds(error)
    return bool(kinds & _LATE) or (bool(kinds & _UNREACHED) and not kinds & _BROKEN)


def refuses_key(error: BaseException | None) -> bool:
    """Whether a server refused the key."""
    return getattr(error, "status_code", None) == 401


def is_too_long(error: BaseException | None) -> bool:
    """Whether a server has no room for the prompt or the answer."""
    text = f"{error_text(error)} {getattr(error, 'code', None)}".lower() if error else ""
    return hasattr(error, "status_code") and any(words in text for words in _TOO_LONG)


_TOO_LONG = (
    *("context length", "context_length", "context window", "context size", "context_size", "too long"),
    *("max_tokens is too large", "max_completion_tokens is too large"),
)


def requested_wait(error: BaseException | None) -> float:
    """Return the seconds that a server asks to wait; 0 if it does not say."""
    return retry_after(getattr(getattr(error, "response", None), "headers", None) or {})


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds in `Retry-After`, a number or a date; 0 without one."""
    text = headers.get("retry-after", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        date = parsedate_tz(text)
    try:
        return max(0.0, mktime_tz(date) - time.time()) if date else 0.0
    except (ValueError, OverflowError):  # a year that there is not
        return 0.0


def _kinds(error: BaseException | None) -> set[str]:
    return {kind.__name__ for one in _with_causes(error) for kind in type(one).__mro__}


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
