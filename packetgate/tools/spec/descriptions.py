"""Brief descriptions, derived from the full ones."""

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from inspect import cleandoc
from typing import Any

BRIEF_WORDS = 100
_MARGIN = re.compile(r"[^\S\n]+$", re.MULTILINE)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n|\n(?=\s*[-*#])")
_PARAMETERS = re.compile(
    r"^[\s#*_-]*(args|arguments|parameters|params|inputs?|returns?|raises|examples?)[*_]*\s*(:|$)"
    r"|^\s*[:@](param|arg|returns?|raises)\b",
    re.IGNORECASE | re.MULTILINE,
)


def brief_of(full: str, most: int = BRIEF_WORDS) -> str:
    """Return whole sentences of `full`, at most `most` words, up to where it turns to its parameters."""
    kept: list[str] = []
    words = 0
    heading = _PARAMETERS.search(full)
    about = full[: heading.start()] if heading else full
    for raw in _SENTENCE_END.split(about.strip()):
        if _PARAMETERS.match(raw):
            break
        sentence = " ".join(raw.split())
        count = len(sentence.split())
        if words + count > most:
            break
        kept.append(sentence)
        words += count
    if kept:
        return " ".join(kept).strip()
    return " ".join(full.split()[:most])


def without_margins(text: str) -> str:
    """Return a description without the indentation that all its lines share, and without space at their ends."""
    return _MARGIN.sub("", cleandoc(text)).strip()


META = "packetgate/idempotency-key"
_NAMES = frozenset({"idempotencykey", "xidempotencykey"})


def key_parameter(parameters: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the parameter that takes a key, by its name and as it takes text; None where there is none."""
    return next((name for name, schema in parameters.items() if _is_for_keys(name) and _takes_text(schema)), None)


def without_duty(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's schema such that nobody else has to give the key. Servers may publish any nonsense."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return schema
    name = key_parameter({key: value for key, value in properties.items() if isinstance(value, dict)})
    return {**schema, "required": [one for one in required if one != name]} if name in required else schema


def with_key(params: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Return the arguments with the key where the tool has a parameter for it, and nobody gave another."""
    name = key_parameter(parameters)
    return {**params, name: key} if name and key and not params.get(name) else {**params}


def _is_for_keys(name: str) -> bool:
    return name.lower().replace("_", "").replace("-", "") in _NAMES


def _takes_text(schema: Mapping[str, Any]) -> bool:
    options = schema.get("anyOf")
    parts = [schema, *(one for one in (options if isinstance(options, list) else []) if isinstance(one, dict))]
    kinds = [one.get("type") for one in parts]
    return any(kind == "string" or (isinstance(kind, list) and "string" in kind) for kind in kinds)


MAX_CHARS = 64
SEPARATOR = "__"
HASH_CHARS = 8

_KEPT_CHARS = MAX_CHARS - HASH_CHARS - 1
_OTHER = re.compile(r"[^a-zA-Z0-9_-]+")
_HASHED = re.compile(rf"_[0-9a-f]{{{HASH_CHARS}}}$")


@lru_cache(maxsize=20_000)
def listed_name(server: str, name: str) -> str:
    """Return `server__name`, in at most 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`.

    The result depends on these two names alone, so that it stays when other servers come or go. Where it does not tell
    both names exactly, it ends in a hash of them: where characters were replaced or cut off, or where another server
    and name could give the same.
    """
    plain = _OTHER.sub("_", f"{server}{SEPARATOR}{name}")
    is_exact = (
        plain == f"{server}{SEPARATOR}{name}"
        and len(plain) <= MAX_CHARS
        and SEPARATOR not in server
        and not server.endswith("_")
        and not _HASHED.search(plain)
    )
    if is_exact:
        return plain
    digest = sha256(f"{server}.{name}".encode(errors="replace")).hexdigest()[:HASH_CHARS]
    return f"{plain[:_KEPT_CHARS]}_{digest}"


def may_be_of(server: str, name: str) -> bool:
    """Whether a listed or a canonical name can be one of this server's."""
    return name.startswith((f"{server}.", _OTHER.sub("_", f"{server}{SEPARATOR}")[:_KEPT_CHARS]))
