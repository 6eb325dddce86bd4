"""Model names: `reflex`, `openai:NAME?option=value`, `ollama:NAME`, `llamacpp:PATH`, or `decisions:NAME`."""

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from packetgate.models.endpoint import OPENAI, SERVERS
from packetgate.state.errors import ModelError

Provider = Literal["reflex", "openai", "llamacpp", "decisions"]
DECIDING: tuple[str, ...] = ("decisions", "systemone")
"""Prefixes of endpoints that answer questions with probabilities: the form that they are asked in."""

FORMS = (
    "`reflex`, `ollama:NAME`, `lmstudio:NAME`, `openai:NAME`, `llamacpp:/path/model.gguf`, or, as prime, "
    "`decisions:NAME` or `systemone:NAME`; options follow a `?`, as in `openai:NAME?reasoning_effort=low&seed=1`"
)
PREFIXES: tuple[str, ...] = (OPENAI, *SERVERS, "llamacpp", *DECIDING)

_ALIKE = 0.9
"""Least similarity of a misspelt prefix."""
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_PLAIN_NAME = re.compile(r"[\w.@+-]+(/[\w.@+-]+)*(:[\w.-]+)?")


@dataclass(frozen=True)
class ModelSpec:
    """A parsed model name: provider, name or path, and options as text."""

    provider: Provider
    name: str = ""
    options: dict[str, str] = field(default_factory=dict)
    server: str = OPENAI
    """For an `openai` model: a key of `SERVERS`, or `openai`. For `decisions`: the form of requests."""

    @property
    def prefix(self) -> str:
        """The prefix of its model name."""
        return self.server if self.provider in {"openai", "decisions"} else self.provider


REFLEX = ModelSpec("reflex")


def parse_model(text: str) -> ModelSpec:
    """Parse a model name.

    Raises:
        ModelError: it has no known form; the message suggests one.
    """
    prefix, _, rest = text.strip().partition(":")
    if prefix == "reflex" and not rest:
        return REFLEX
    name, _, query = rest.partition("?")
    name = name.strip()
    if name and (prefix == OPENAI or prefix in SERVERS):
        return ModelSpec("openai", name, _options(text, query), prefix)
    if name and prefix in DECIDING:
        return ModelSpec("decisions", name, _options(text, query), prefix)
    if name and prefix == "llamacpp":
        return ModelSpec("llamacpp", str(Path(name).expanduser()), _options(text, query))
    instead = _suggestion(text.strip())
    raise ModelError(f"{text!r} is not a model name: {f'write {instead}. The forms are' if instead else 'use'} {FORMS}")


def _suggestion(text: str) -> str:
    """Return what to write instead of an unknown form; empty if nothing is likely."""
    prefix, colon, rest = text.partition(":")
    if text.startswith(("http://", "https://")):
        return f"`openai:NAME`, and set OPENAI_BASE_URL to {text}"
    for written, name in ((prefix, rest.strip()), text.split("/", 1) if "/" in text else ("", "")):
        known = _known_prefix(written)
        if known == "reflex":
            return "`reflex`"
        if known:
            example = "/path/model.gguf" if known == "llamacpp" else "NAME"
            return f"`{known}:{example if name.startswith('?') or not name else ''}{name}`"
    if (path := rest if colon and len(prefix) > 1 else text).lower().partition("?")[0].endswith(".gguf"):
        return f"`llamacpp:{path}`"
    if not _PLAIN_NAME.fullmatch(text):
        return ""
    return f"{'' if colon else f'`openai:{text}`, or '}`ollama:{text}` for a model that Ollama has"


def _known_prefix(written: str) -> str | None:
    # in another case or punctuation, or misspelt in letters alone: `llama2`, `mistral-nemo` are names of models
    letters = {_NO_LETTER.sub("", one): one for one in ("reflex", *PREFIXES)}
    word = _NO_LETTER.sub("", written.lower())
    near = get_close_matches(word, letters, n=1, cutoff=_ALIKE) if written.isalpha() else []
    return letters.get(near[0] if near else word)


def _options(text: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ModelError(f"{text!r}: {query!r} is not a list of options: use {FORMS}") from error
