"""Malformed input: JSON values of every shape, documents with one part replaced, and both as files."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from support.palettes import NIGHTLY

HOSTILE = [
    *("", " ", "\0", "\n", "\x1b[2J", "\u202e", "\ufeff", "\u2028", "yes", "no", "always", "null", "{}", "[]", "-"),
    *("--help", "__proto__", "../../etc/passwd", "${HOME}", "${}", "$(id)", "%s%n", "{0.__class__}", "<script>"),
    *("[" * 5_000, "9" * 5_000, "1e999", "NaN", "\ud800", "\U0001f600", "x" * 20_000, '{"type": "approve"}'),
]
NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 0.0, -0.0, 1e308, float("nan"), float("inf")]

texts = st.sampled_from(HOSTILE) | st.text(max_size=12)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.sampled_from(NUMBERS) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def fuzzed(examples: int, nightly: int) -> settings:
    """Return settings with this many reproducible examples."""
    most = nightly if NIGHTLY else examples
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=checks)


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """Return the document with some parts replaced, removed or extended."""
    made = deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        made = _mutated_once(draw, made)
    return made


def _mutated_once(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.integers(0, 9)):
            case 0:
                return {name: inner for name, inner in value.items() if name != key}
            case 1:
                return {**value, draw(texts): draw(values)}
        return {**value, key: _mutated_once(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], _mutated_once(draw, value[index]), *value[index + draw(st.integers(0, 1)) :]]
    return draw(values)


def as_json(value: Any) -> bytes:
    """Return JSON, even for text that is not valid Unicode."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def as_toml(table: Any) -> bytes:
    """Return TOML with a line for each key. Values that TOML cannot express appear as JSON, which is invalid TOML."""
    lines = (
        [f"{_toml_text(key)} = {_toml(value)}" for key, value in table.items()]
        if isinstance(table, dict)
        else [_toml(table)]
    )
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_toml_text(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case str():
            return _toml_text(value)
        case float():
            return repr(value)
    return json.dumps(value)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
