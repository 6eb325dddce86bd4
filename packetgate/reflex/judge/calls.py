"""Let the judge read a call: the request, the tool and each argument."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from packetgate.reflex.judge.judge import (
    CLS,
    JUDGE_WEIGHTS,
    MARKER,
    SEP,
    judge,
    load_encoder,
    parameter_text,
    tool_headline,
)
from packetgate.reflex.weights import without_surrogates
from packetgate.state.routing import Risk
from packetgate.tools.learned import logistic
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.named_paths import words_for_path
from packetgate.tools.text.values import fold_text, leaves

MAX_TOKENS, MAX_CHARS = 320, 1_000
_REQUEST_TOKENS, _TOOL_TOKENS = 140, 36
_GIVEN_TOKENS, _LACKING_TOKENS = 20, 14  # of a parameter's text, with and without an argument
_VALUE_HEAD, _VALUE_TAIL = 30, 12
_MAX_PARAMETERS = 12
_MAX_EARLIER = 120  # characters of a value of an earlier turn
_ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:[^\s\"'`/]+/){2,}[^\s\"'`/]*[^\s\"'`/.,;:!?]")
_CUT = 8  # BERT's [unused7]: a value was cut here


MIN_SERVES = 0.88
"""Probability that the tool serves the request, from which an agent's first call is judged."""
WEIGHTS = (2.61, 0.567)
"""Weights of 1 and of the log odds of such a call. One call in seven is assumed to be wrong, as with the best models on
BFCL. `python -m benchmarks.first_calls` fits both numbers."""


class Origin:
    """The token before a value, which states the source of the value's words: BERT's [unused0] and the next ones."""

    REQUEST = 1  # in the request, letter by letter
    FOLDED = 2  # in the request, except for case and marks
    PARTLY = 3  # some of its words are
    ABSENT = 4
    DEFAULT = 5  # of the schema
    CHOICE = 6  # one of several that the schema lists
    LACKING = 7  # the parameter has no argument


class Piece(NamedTuple):
    """A parameter as the judge reads it, with its argument, if it has one."""

    name: str
    text: str
    origin: int
    value: str | None


def pieces_of(request: str, spec: ToolSpec, params: Mapping[str, Any]) -> list[Piece]:
    """Return the parameters of a call: those with an argument, then the required ones, then the others."""
    folded = f" {_words(request)} "
    given = [name for name in spec.parameters if name in params] + [
        name for name in params if name not in spec.parameters
    ]
    lacking = sorted((n for n in spec.parameters if n not in params), key=lambda name: name not in spec.required)
    found = []
    for name in [*given, *lacking][:_MAX_PARAMETERS]:
        schema = spec.parameters.get(name, {})
        text = parameter_text(name, schema, required=name in spec.required)
        if name in params:
            value = params[name]
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            found.append(Piece(name, text, _origin(value, schema, request, folded), shown))
        else:
            found.append(Piece(name, text, Origin.LACKING, None))
    return found


def with_earlier(request: str, values: Iterable[object]) -> str:
    """Return a request followed by the values that a call takes from earlier turns."""
    earlier = ", ".join(str(value)[:_MAX_EARLIER] for value in values)
    return f"{request} ({earlier})" if earlier else request


def call_tokens(
    request: Sequence[int], headline: Sequence[int], pieces: Sequence[tuple[Sequence[int], int, Sequence[int] | None]]
) -> tuple[list[int], list[int]]:
    """Return (tokens, segments) of a call. Each piece is (tokens of the text, origin, tokens of the value)."""
    ids = [CLS, *request[:_REQUEST_TOKENS], SEP]
    before = len(ids)
    ids += headline[:_TOOL_TOKENS]
    for text, origin, value in pieces:
        part = [MARKER, *text[: _LACKING_TOKENS if value is None else _GIVEN_TOKENS], origin]
        if value is not None:
            part += (
                value
                if len(value) <= _VALUE_HEAD + _VALUE_TAIL
                else [*value[:_VALUE_HEAD], _CUT, *value[-_VALUE_TAIL:]]
            )
        if len(ids) + len(part) + 1 > MAX_TOKENS:
            break
        ids += part
    ids.append(SEP)
    return ids, [0] * before + [1] * (len(ids) - before)


def right_log_odds(request: str, spec: ToolSpec, params: Mapping[str, Any]) -> float:
    """Return the log odds that a call fulfils the request. Cached; otherwise blocking.

    The request's words replace a path: `the server log` instead of `logs/server.log`.
    """
    params = {name: _as_named(value, name, spec, request) for name, value in params.items()}
    return _right_log_odds(request, spec, json.dumps(params, ensure_ascii=False, default=str))


def first_call_probability(words: str, spec: ToolSpec, params: Mapping[str, Any], below: float) -> float | None:
    """Return the probability that an agent's first call is right; None if it is not below a bound, or was not measured.

    The judge learned from requests that one call serves. Many calls of agents are intermediate steps, for which its log
    odds say little. Measurements show that they hold for a first call whose tool serves the request by itself. Cached;
    otherwise blocking: one run of the encoder, and two for a call in doubt.

    Args:
        params: values from the user's words, and defaults.
    """
    if len(words) > MAX_CHARS:
        return None
    probability = logistic((1.0, right_log_odds(words, spec, params)), WEIGHTS)
    return probability if probability < below and judge(words, [spec])[0] >= MIN_SERVES else None


def _as_named(value: Any, name: str, spec: ToolSpec, request: str) -> Any:
    """Return the words for a path of a read, or of a tool that finds the same path by these words."""
    words = words_for_path(value, request) if isinstance(value, str) else ""
    if not words or words == value:
        return value
    if spec.resolve_arguments is None:
        return words if spec.apparent_risk is Risk.READ else value
    found = spec.resolve_arguments({name: words}).get(name)
    return words if found == spec.resolve_arguments({name: value}).get(name) else value


@lru_cache(maxsize=1_024)
def _right_log_odds(request: str, spec: ToolSpec, params: str) -> float:
    encoder, (request, params) = load_encoder(JUDGE_WEIGHTS), _with_short_paths(request, params)
    pieces = [
        (
            _ids(one.text, encoder.tokenizer),
            one.origin,
            None if one.value is None else _ids(one.value, encoder.tokenizer),
        )
        for one in pieces_of(request, spec, json.loads(params))
    ]
    ids, segments = call_tokens(_ids(request, encoder.tokenizer), _ids(tool_headline(spec), encoder.tokenizer), pieces)
    return encoder.log_odds("right", ids, segments)


def _with_short_paths(request: str, params: str) -> tuple[str, str]:
    """Return both texts without the first folders of absolute paths that both contain: their names say nothing."""
    paths = {path: "/".join(["", *path.split("/")[-2:]]) for path in _ABSOLUTE.findall(request) if path in params}
    if len({*paths.values()}) == len(paths):
        for path, short in sorted(paths.items(), key=lambda one: -len(one[0])):
            request, params = request.replace(path, short), params.replace(path, short)
    return request, params


def _ids(text: str, tokenizer: Tokenizer) -> list[int]:
    encoded: list[int] = tokenizer.encode(without_surrogates(text[:MAX_CHARS]), add_special_tokens=False).ids
    return encoded


def _origin(value: Any, schema: Mapping[str, Any], request: str, folded: str) -> int:
    if "default" in schema and value == schema["default"] and type(value) is type(schema["default"]):
        return Origin.DEFAULT
    if isinstance(value, bool):
        return Origin.CHOICE
    parts = [str(one.value) for one in leaves(value, "")] or [str(value)]
    kinds = [_origin_of_text(part, request, folded) for part in parts[:20]]
    worst = max(kinds)
    if worst == Origin.ABSENT and min(kinds) != Origin.ABSENT:
        return Origin.PARTLY
    return Origin.CHOICE if worst == Origin.ABSENT and schema.get("enum") else worst


def _origin_of_text(text: str, request: str, folded: str) -> int:
    if text and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", request):
        return Origin.REQUEST
    words = _words(text)
    if words and f" {words} " in folded:
        return Origin.FOLDED
    return Origin.PARTLY if any(f" {word} " in folded for word in words.split()) else Origin.ABSENT


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", fold_text(text)))
