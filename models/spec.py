"""How a model is named: `reflex`, `openai:NAME?option=value`, `llamacpp:PATH?option=value`, or `decisions:NAME`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from state.errors import ModelError

Provider = Literal["reflex", "openai", "llamacpp", "decisions"]

FORMS = (
    "`reflex`, `openai:NAME`, `llamacpp:/path/model.gguf`, or, as prime, `decisions:NAME`; "
    "options follow a `?`, as in `openai:NAME?reasoning_effort=low&seed=1`"
)


@dataclass(frozen=True)
class ModelSpec:
    """One model: who provides it, its name (the file's path for llama.cpp), and its options as they are written."""

    provider: Provider
    name: str = ""
    options: dict[str, str] = field(default_factory=dict)


REFLEX = ModelSpec("reflex")


def parse_model(text: str) -> ModelSpec:
    """Parse a model string.

    Raises:
        ModelError: it has none of the known forms.
    """
    provider, _, rest = text.strip().partition(":")
    if provider == "reflex" and not rest:
        return REFLEX
    name, _, query = rest.partition("?")
    name = name.strip()
    if name and provider in {"openai", "decisions"}:
        return ModelSpec("openai" if provider == "openai" else "decisions", name, _options(text, query))
    if name and provider == "llamacpp":
        return ModelSpec("llamacpp", str(Path(name).expanduser()), _options(text, query))
    raise ModelError(f"{text!r} names no model: use {FORMS}")


def _options(text: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ModelError(f"{text!r}: {query!r} is not a list of options: use {FORMS}") from error
