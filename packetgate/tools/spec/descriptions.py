"""Brief descriptions, names for other programs, and parameters for idempotency keys."""

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from inspect import cleandoc
from typing import Any

BRIEF_WORDS = 100
_LINE_END = re.compile(r"[^\S\n]+$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n|\n(?=\s*[-*#])")
_PARAMETERS = re.compile(
    r"^[\s#*_-]*(args|arguments|parameters|params|inputs?|returns?|raises|examples?)[*_]*\s*(:|$)"
    r"|^\s*[:@](param|arg|returns?|raises)\b",
    re.IGNORECASE | re.MULTILINE,
)


def brief_of(full: str, max_words: int = BRIEF_WORDS) -> str:
    """Return the first sentences of a description before its parameters, at most `max_words` words."""
    brief: list[str] = []
    heading = _PARAMETERS.search(full)
    about = full[: heading.start()] if heading else full
    for raw in _SENTENCE_END.split(about.strip()):
        words = raw.split()
        if _PARAMETERS.match(raw) or len(brief) + len(words) > max_words:
            break
        brief += words
    return " ".join(brief or full.split()[:max_words])


def dedent_description(text: str) -> str:
    """Return a description without common indentation and trailing spaces."""
    return _LINE_END.sub("", cleandoc(text)).strip()


META = "packetgate/idempotency-key"
_KEY_NAMES = frozenset({"idempotencykey", "xidempotencykey"})


def key_parameter(parameters: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the text parameter that takes an idempotency key; None if there is none."""
    for name, schema in parameters.items():
        if name.lower().replace("_", "").replace("-", "") in _KEY_NAMES and _takes_text(schema):
            return name
    return None


def without_required_key(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's schema that does not require the idempotency key."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return schema
    name = key_parameter({key: value for key, value in properties.items() if isinstance(value, dict)})
    return {**schema, "required": [one for one in required if one != name]} if name in required else schema


def _takes_text(schema: Mapping[str, Any]) -> bool:
    options = schema.get("anyOf")
    schemas = [
        schema,
        *(option for option in (options if isinstance(options, list) else []) if isinstance(option, dict)),
    ]
    kinds = [option.get("type") for option in schemas]
    return any(kind == "string" or (isinstance(kind, list) and "string" in kind) for kind in kinds)


MAX_LISTED_CHARS = 64
SEPARATOR = "__"
HASH_CHARS = 8

_PLAIN_CHARS = MAX_LISTED_CHARS - HASH_CHARS - 1
_OTHER = re.compile(r"[^a-zA-Z0-9_-]+")
_HASHED = re.compile(rf"_[0-9a-f]{{{HASH_CHARS}}}$")


@lru_cache(maxsize=20_000)
def listed_name(server: str, name: str) -> str:
    """Return `server__name`, in at most 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`.

    If that does not identify server and name (replaced or cut characters, ambiguous parts), it ends in their hash. The
    name depends on no other tool, so it does not change when other servers connect or disconnect.
    """
    exact = f"{server}{SEPARATOR}{name}"
    plain = _OTHER.sub("_", exact)
    is_ambiguous = SEPARATOR in server or server.endswith("_") or _HASHED.search(plain)
    if plain == exact and len(plain) <= MAX_LISTED_CHARS and not is_ambiguous:
        return plain
    digest = sha256(f"{server}.{name}".encode(errors="replace")).hexdigest()[:HASH_CHARS]
    return f"{plain[:_PLAIN_CHARS]}_{digest}"


def may_be_tool_of(server: str, name: str) -> bool:
    """Whether a listed or a canonical name can belong to this server."""
    return name.startswith((f"{server}.", _OTHER.sub("_", f"{server}{SEPARATOR}")[:_PLAIN_CHARS]))
