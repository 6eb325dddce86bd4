"""Kinds of models, and the parsing of model names. Each kind registers its prefixes, and no module imports it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl

from packetgate.models.options import ModelOptions, Role
from packetgate.plugins import installed
from packetgate.state.errors import ModelError


@dataclass(frozen=True)
class ModelSetup:
    """A role's model, not loaded yet. Two roles with equal setups share the model."""

    prefix: str
    name: str
    """The name at the endpoint, or the path of a file."""
    description: str
    options: ModelOptions
    place: Any = None
    """The place of the model, in a form that its kind defines."""
    is_hosted: bool = False
    """Whether another company runs the model: `packetgate init` sends it nothing."""


@dataclass(frozen=True)
class ModelOffer:
    """A model that is ready to use."""

    model: str
    where: str
    size: int | None = None
    """Size in bytes; None for a model on a server."""


@dataclass(frozen=True)
class FoundModels:
    """The models and keys that a kind finds on this machine."""

    offers: tuple[ModelOffer, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    """Prefixes of hosted models, each with the environment variable that has its key."""
    notes: tuple[str, ...] = ()
    """Messages about models and servers that exist but cannot be used yet."""


@runtime_checkable
class ModelKind(Protocol):
    """The meaning of model names with some prefixes, such as `openai:NAME`."""

    forms: tuple[str, ...]
    """Names to show as examples, such as `openai:NAME`."""
    prefixes: tuple[str, ...]
    takes: tuple[str, ...]
    """The options of `ModelOptions` that such a model takes."""
    only_reviews: bool = False
    """Whether such a model is a decision model: it answers typed questions, and writes no text."""

    def parse(self, prefix: str, name: str, role: Role, options: ModelOptions) -> ModelSetup:
        """Return the setup of a role's model, without loading anything. Raise ModelError if the model cannot be
        used."""
        ...

    async def check(self, setup: ModelSetup) -> None:
        """Check that the model is available, without loading it. Raise ModelError with a message that says what to
        do."""
        ...

    def open(self, setup: ModelSetup) -> Any:
        """Return a `Model`, or a decision model if the kind `only_reviews`; blocks. Raise ModelError if it fails."""
        ...

    def identity(self, setup: ModelSetup) -> Sequence[str]:
        """Return the identity of this model, which does not depend on the place of a file; blocks."""
        ...

    async def find(self, folders: Sequence[Path]) -> FoundModels:
        """Return the models of this kind on this machine. Send no key, and contact no other machine."""
        return FoundModels()


@cache
def known_kinds() -> dict[str, ModelKind]:
    """Return the kinds of the installed plug-ins, including OpenAI and llama.cpp, by prefix."""
    return {prefix: kind for kind in installed().parts("model_kinds") for prefix in kind.prefixes}


async def discover(folders: Sequence[Path] = ()) -> FoundModels:
    """Return the models of all kinds on this machine; `folders` are searched in addition to the usual folders."""
    found = await asyncio.gather(*(kind.find(folders) for kind in dict.fromkeys(known_kinds().values())))
    return FoundModels(
        tuple(offer for one in found for offer in one.offers),
        tuple(key for one in found for key in one.keys),
        tuple(note for one in found for note in one.notes),
    )


def register_kind(kind: ModelKind) -> None:
    """Make the prefixes of a kind usable in model names. A later kind replaces a prefix of an earlier one."""
    known_kinds().update(dict.fromkeys(kind.prefixes, kind))


@dataclass(frozen=True)
class ModelName:
    """A parsed model name, with its unparsed options."""

    prefix: str
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> ModelKind | None:
        """The kind of the model; None for `reflex`."""
        return known_kinds().get(self.prefix)

    @property
    def only_reviews(self) -> bool:
        """Whether it is a decision model."""
        return self.kind is not None and self.kind.only_reviews


REFLEX = ModelName("reflex")


def parse_model(text: str) -> ModelName:
    """Parse a model name. Raise ModelError if the name is invalid; the message suggests a valid name."""
    prefix, _, rest = text.strip().partition(":")
    if prefix == REFLEX.prefix and not rest:
        return REFLEX
    name, _, query = rest.partition("?")
    if not name.strip() or prefix not in known_kinds():
        raise ModelError(f"{text!r} is not a model name: {_suggestion(text.strip())}")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ModelError(f"{text!r}: {query!r} is not a list of options: use {_forms()}") from error
    return ModelName(prefix, name.strip(), options)


def _forms() -> str:
    kinds = dict.fromkeys(known_kinds().values())
    asked = ", ".join(f"`{form}`" for kind in kinds if not kind.only_reviews for form in kind.forms)
    reviewing = " or ".join(f"`{form}`" for kind in kinds if kind.only_reviews for form in kind.forms)
    return (
        f"`reflex`, {asked}, or, for prime only, {reviewing}; "
        "options follow a `?`, as in `openai:NAME?reasoning_effort=low&seed=1`"
    )


def _suggestion(text: str) -> str:
    if text.startswith(("http://", "https://")):
        return f"write `openai:NAME`, and set OPENAI_BASE_URL to {text}"
    if text.partition("?")[0].lower().endswith(".gguf"):
        return f"write `llamacpp:{text}`"
    near = get_close_matches(text.partition(":")[0], known_kinds(), n=1) if ":" in text else []
    if near:
        return f"write `{near[0]}:NAME`. The forms are {_forms()}"
    hint = f"write `openai:{text}`, or `ollama:{text}` for a model that Ollama has. " if text.isprintable() else ""
    return f"{hint if text and ':' not in text else ''}The forms are {_forms()}"
