"""How a model is named: `reflex`, `openai:NAME`, `llamacpp:PATH?option=value`; and `decisions:NAME`, which reviews."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from state.errors import ModelError

Provider = Literal["reflex", "openai", "llamacpp", "decisions"]

FORMS = (
    "`reflex`, `openai:NAME`, `llamacpp:/path/model.gguf?n_ctx=8192&n_gpu_layers=-1`, or, as prime, `decisions:NAME`"
)

LLAMACPP_OPTIONS = {"n_ctx": 0, "n_gpu_layers": -1, "n_batch": 1, "n_threads": 1, "seed": 0}
"""What may follow the `?`: whole numbers, with the smallest allowed. `n_ctx=0` takes the model's own context length."""


@dataclass(frozen=True)
class ModelSpec:
    """One model: who provides it, its name (the file's path for llama.cpp), and its options."""

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
    if provider in {"openai", "decisions"} and rest.strip():
        return ModelSpec("openai" if provider == "openai" else "decisions", rest.strip())
    if provider == "llamacpp":
        path, _, query = rest.partition("?")
        if path.strip():
            return ModelSpec("llamacpp", str(Path(path.strip()).expanduser()), _options(text, query))
    raise ModelError(f"{text!r} names no model: use {FORMS}")


def _options(text: str, query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ModelError(f"{text!r}: {query!r} is not a list of options: use {FORMS}") from error
    for name, value in options.items():
        least = LLAMACPP_OPTIONS.get(name)
        if least is None:
            raise ModelError(f"{text!r}: no option {name!r}; there are {', '.join(LLAMACPP_OPTIONS)}")
        if not _is_whole(value) or int(value) < least:
            raise ModelError(f"{text!r}: {name} must be a whole number of at least {least}, not {value!r}")
    return options


def _is_whole(value: str) -> bool:
    return value.isascii() and value.removeprefix("-").isdigit() and len(value) < 12
