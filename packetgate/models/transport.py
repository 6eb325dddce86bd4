"""Time limits and errors of model requests, for models behind an endpoint.

If an endpoint does not answer, the turn does not ask it again. Exceptions of a request become errors with a message of
one line.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry
from pydantic import SecretStr

from packetgate.state.base import storable
from packetgate.state.errors import DecisionError, NotAskedError, UnansweredError
from packetgate.state.printing import shorten, without_credentials

MAX_RETRIES = 2
"""Retries by the openai library after 408, 409, 429, 5xx or a broken connection."""
TIMEOUT_ADVICE = "raise PACKETGATE_MODEL_TIMEOUT or the model's own timeout, in seconds, or check the server"

_BAD_REQUEST = frozenset({400, 415, 422})
"""Statuses by which a server refuses a feature; with `_OTHER_REFUSALS`, only if the error names a feature."""
_OTHER_REFUSALS = frozenset({404, 413, 500, 501})
_FEATURES = re.compile(r"tool|function|schema|grammar|image|picture|vision|modal|mmproj", re.IGNORECASE)

_LIBRARY_ERRORS = (("openai", "OpenAIError"), ("httpx2", "HTTPError"), ("httpx", "HTTPError"))
_ADVICE = {
    404: "check the model's name and the base URL",
    429: "too many requests, or the quota is used up: wait, or use another model",
}
_LATE = {"APITimeoutError", "TimeoutError", "TimeoutException"}
_BROKEN = {"DecodingError", "RemoteProtocolError", "ReadError", "WriteError"}
_UNREACHED = {"APIConnectionError", "TransportError"}
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|too long|max_(?:completion_)?tokens is too large", re.IGNORECASE
)


def _wrapped_in(model: object) -> Sequence[Any]:
    """Return the models that LangChain's `with_fallbacks`, `with_retry`, `bind` or `with_config` has wrapped."""
    if isinstance(model, RunnableWithFallbacks):
        return [*model.runnables]
    return [model.bound] if isinstance(model, RunnableBindingBase) else []


def chat_models_in(model: object) -> tuple[Any, ...]:
    """Return the chat models that a model, or its LangChain wrapper, contains."""
    return tuple(chat for part in _wrapped_in(model) for chat in chat_models_in(part)) or (model,)


def has_bound_tools(model: object) -> bool:
    """Whether tools are bound to a chat model in a model."""
    is_bound = isinstance(model, RunnableBindingBase) and "tools" in model.kwargs
    return is_bound or any(map(has_bound_tools, _wrapped_in(model)))


def is_retried(model: object) -> bool:
    """Whether `with_retry` has wrapped a model. LangChain does not retry a stream."""
    return isinstance(model, RunnableRetry) or any(map(is_retried, _wrapped_in(model)))


def with_each_chat(model: Any, change: Callable[[Any], Runnable[Any, Any]]) -> Runnable[Any, Any]:
    """Return a model, wrapped as before, with each of its chat models changed. Values set with `bind` are kept."""
    if isinstance(model, RunnableWithFallbacks):
        first, *others = (with_each_chat(part, change) for part in model.runnables)
        return model.model_copy(update={"runnable": first, "fallbacks": others})
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": with_each_chat(model.bound, change)})
    return change(model)


def model_label(model: object) -> str:
    """Return the name and endpoint of a model, without secrets."""
    chat = chat_models_in(model)[0]
    name = getattr(chat, "model_name", None) or type(chat).__name__
    endpoint = endpoint_label(chat)
    return f"{name} at {endpoint}" if endpoint else str(name)


def endpoint_label(model: object) -> str:
    """Return the endpoint of a model, without secrets; empty for a model in this process."""
    return without_credentials(str(getattr(chat_models_in(model)[0], "openai_api_base", None) or ""))


def timeout_of(model: object) -> float | None:
    """Return the time limit of an answer, in seconds; None for a model in this process."""
    if parts := _wrapped_in(model):
        timeouts = [timeout for part in parts if (timeout := timeout_of(part)) is not None]
        attempts = model.max_attempt_number if isinstance(model, RunnableRetry) else 1
        return sum(timeouts) * attempts if len(timeouts) == len(parts) else None
    timeout = getattr(model, "request_timeout", None)
    return float(timeout) if isinstance(timeout, int | float) else None


@contextmanager
def as_decision_errors(model: object, timeout_advice: str = TIMEOUT_ADVICE) -> Iterator[None]:
    """Convert exceptions of a model request to an `UnansweredError` that names the model and its endpoint."""
    try:
        yield
    except _transport_errors() as error:
        raise UnansweredError(f"{model_label(model)} {_described(model, error, timeout_advice)}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        problem = f"{model_label(model)} raised {type(error).__name__}: {shorten(str(error), 300)}"
        if endpoint_label(model):  # langchain-openai raises these errors for an answer of another protocol
            problem += "; check that the base URL is an OpenAI-compatible one: it usually ends in /v1"
        raise UnansweredError(problem) from error


def check_not_refused(model: object, answer: AIMessage) -> None:
    """Raise `DecisionError` if the model refused to answer or a content filter stopped it."""
    if refusal := answer.additional_kwargs.get("refusal"):
        problem = f"refuses to answer: {_quoted(model, str(refusal))}"
    elif answer.response_metadata.get("finish_reason") == "content_filter":
        problem = "stopped at its content filter"
    else:
        return
    raise DecisionError(f"{model_label(model)} {problem}; reword the request, or use another model")


def error_text(error: BaseException) -> str:
    """Return the message of an error response, or its whole body if it has none."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    if body is None or (isinstance(message, str) and message):
        return str(error)
    return f"{error} - {body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)}"


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status of an error; None if it has none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def is_refusal(error: BaseException | None) -> bool:
    """Whether the server refused a feature of the request, and not its length."""
    if error is None or is_too_long(error):
        return False
    names_feature = status_of(error) in _OTHER_REFUSALS and bool(_FEATURES.search(error_text(error)))
    return status_of(error) in _BAD_REQUEST or names_feature


def is_too_long(error: BaseException | None) -> bool:
    """Whether the prompt or the requested answer is too long for the server."""
    if error is None or status_of(error) is None:
        return False
    return bool(_TOO_LONG.search(f"{error_text(error)} {getattr(error, 'code', '')}"))


def is_unanswered(error: BaseException | None) -> bool:
    """Whether no model answered: no connection, a timeout, or a gateway error."""
    kinds = _kinds(error)
    late_or_unreached = bool(kinds & _LATE) or (bool(kinds & _UNREACHED) and not kinds & _BROKEN)
    return status_of(error) in {502, 503, 504} or late_or_unreached


def _transport_errors() -> tuple[type[Exception], ...]:
    loaded = [(sys.modules.get(module), error) for module, error in _LIBRARY_ERRORS]
    return (TimeoutError, *(getattr(module, error) for module, error in loaded if module))


def _quoted(model: object, text: str) -> str:
    key = getattr(chat_models_in(model)[0], "openai_api_key", None)
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    return shorten(text.replace(secret, "***") if len(secret) > 8 else text, 300)


def _described(model: object, error: Exception, timeout_advice: str) -> str:
    status, key = status_of(error), getattr(chat_models_in(model)[0], "key_variable", "OPENAI_API_KEY")
    quoted = _quoted(model, error_text(error))
    if status == 401:
        return f"refuses the API key (HTTP 401): check {key}"
    if status == 403:
        return f"does not allow this (HTTP 403): {quoted}; check {key} and its permissions"
    if status is not None:
        advice = _ADVICE.get(status) or ("try again later, or check the server" if status >= 500 else "")
        return f"answered HTTP {status}: {quoted}{f'; {advice}' if advice else ''}"
    kinds = _kinds(error)
    if kinds & _LATE:
        return f"did not answer in time: {timeout_advice}"
    if kinds & _BROKEN:
        return "closed the connection, or its answer is not HTTP: check the server and the base URL"
    if kinds & _UNREACHED:
        return "cannot be reached: check that the server runs and that the base URL is right"
    return f"failed: {type(error).__name__}: {quoted}"


def _kinds(error: BaseException | None) -> set[str]:
    found: set[str] = set()
    while error is not None:
        found |= {kind.__name__ for kind in type(error).__mro__}
        error = error.__cause__
    return found


STREAM_S = 120.0
"""Shortest time limit of a streamed answer, in seconds."""
_MAX_TURNS = 1_000

_errors: ContextVar[list[str] | None] = ContextVar("errors", default=None)


@contextmanager
def collect_requests() -> Iterator[list[str]]:
    """Collect the error of each request of the block and its tasks; an empty string for a request without an error."""
    errors: list[str] = []
    token = _errors.set(errors)
    try:
        yield errors
    finally:
        _errors.reset(token)


@contextmanager
def _record_request() -> Iterator[None]:
    problem, errors = "", _errors.get()
    try:
        yield
    except DecisionError as error:
        problem = storable(str(error))
        raise
    finally:
        if errors is not None:
            errors.append(problem)


_skipped: dict[str, set[str]] = {}
"""By the packet id of a turn, the endpoints and models that it does not ask again."""
_turn: ContextVar[str] = ContextVar("turn", default="")


@contextmanager
def one_turn(packet_id: str) -> Iterator[None]:
    """Within the block and the turn's other blocks, do not ask again an endpoint that did not answer."""
    token = _turn.set(packet_id)
    try:
        yield
    finally:
        _turn.reset(token)


@contextmanager
def limited_request(chat: object, *, streamed: bool = False, double_timeout: bool = False) -> Iterator[float | None]:
    """Record one request, and yield its deadline on the clock of `time.monotonic`; None for a model in this process.

    Args:
        streamed: the answer arrives in pieces, and users see its progress.
        double_timeout: double the time limit.

    Raises:
        NotAskedError: the endpoint did not answer earlier in this turn.
    """
    timeout, label, where = timeout_of(chat), model_label(chat), endpoint_label(chat)
    if timeout is None:
        with _record_request():
            yield None
        return
    if _skipped.get(_turn.get(), set()) & {label, where}:
        raise NotAskedError(f"{label} failed in this turn, so it was not called again")
    longest = max(timeout * (2 if double_timeout else 1), STREAM_S if streamed else 0)
    try:
        with _record_request():
            yield monotonic() + longest
    except DecisionError as error:
        if is_unanswered(error.__cause__):
            skip_model(where)
        elif status_of(error.__cause__) == 401:
            skip_model(label)
        raise


def skip_model(label: str) -> None:
    """Do not ask this model or endpoint again in this turn."""
    if turn := _turn.get():
        _skipped.setdefault(turn, set()).add(label)
        while len(_skipped) > _MAX_TURNS:
            del _skipped[next(iter(_skipped))]
