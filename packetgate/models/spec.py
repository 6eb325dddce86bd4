"""Model names: `reflex`, `openai:NAME?option=value`, `ollama:NAME`, `llamacpp:PATH`, or `decisions:NAME`."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from packetgate.models.endpoint import OPENAI, SERVERS
from packetgate.state.errors import ModelError

Provider = Literal["reflex", "openai", "llamacpp", "decisions"]
DECISION_PREFIXES: tuple[str, ...] = ("decisions", "systemone")
"""Prefixes of decision endpoints; the prefix is the format of requests."""

FORMS = (
    "`reflex`, `ollama:NAME`, `lmstudio:NAME`, `openai:NAME`, `llamacpp:/path/model.gguf`, or, for prime only, "
    "`decisions:NAME` or `systemone:NAME`; options follow a `?`, as in `openai:NAME?reasoning_effort=low&seed=1`"
)
PREFIXES: tuple[str, ...] = (OPENAI, *SERVERS, "llamacpp", *DECISION_PREFIXES)


@dataclass(frozen=True)
class ModelSpec:
    """A parsed model name: provider, name or path, and unparsed options."""

    provider: Provider
    name: str = ""
    options: dict[str, str] = field(default_factory=dict)
    server: str = OPENAI
    """For an `openai` model: a key of `SERVERS`, or `openai`. For `decisions`: the format of requests."""

    @property
    def prefix(self) -> str:
        """The prefix of the model name."""
        return self.server if self.provider in {"openai", "decisions"} else self.provider


REFLEX = ModelSpec("reflex")


def parse_model(text: str) -> ModelSpec:
    """Parse a model name. Raise ModelError if the name is invalid; the message suggests a valid name."""
    prefix, _, rest = text.strip().partition(":")
    if prefix == "reflex" and not rest:
        return REFLEX
    name, _, query = rest.partition("?")
    name = name.strip()
    if name and (prefix == OPENAI or prefix in SERVERS):
        return ModelSpec("openai", name, _options(text, query), prefix)
    if name and prefix in DECISION_PREFIXES:
        return ModelSpec("decisions", name, _options(text, query), prefix)
    if name and prefix == "llamacpp":
        return ModelSpec("llamacpp", str(Path(name).expanduser()), _options(text, query))
    raise ModelError(f"{text!r} is not a model name: {_suggestion(text.strip())}")


def _suggestion(text: str) -> str:
    if text.startswith(("http://", "https://")):
        return f"write `openai:NAME`, and set OPENAI_BASE_URL to {text}"
    if text.partition("?")[0].lower().endswith(".gguf"):
        return f"write `llamacpp:{text}`"
    near = get_close_matches(text.partition(":")[0], PREFIXES, n=1) if ":" in text else []
    if near:
        return f"write `{near[0]}:NAME`. The forms are {FORMS}"
    hint = f"write `openai:{text}`, or `ollama:{text}` for a model that Ollama has. " if text.isprintable() else ""
    return f"{hint if text and ':' not in text else ''}The forms are {FORMS}"


def _options(text: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ModelError(f"{text!r}: {query!r} is not a list of options: use {FORMS}") from error
