"""Determine the role of an argument (destination, payload or neither), and find names of secret files in arguments."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any

from packetgate.state.origins import ArgumentRole
from packetgate.tools.text.argument_words import WORDS
from packetgate.tools.text.values import is_address, leaves
from packetgate.tools.text.words import words_of

_MAX_CHARS = 20_000
_FIRST_WORDS = 3
_DESTINATION_WORDS = frozenset({"recipient", "url", "iban", "payee"})
SECRET_FILES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("secret_files.toml").read_text("utf-8"))
"""Names of files that contain secrets or configure what may run; `secret_files.toml` describes each list."""


def _names(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)), re.IGNORECASE)


_SECRET_NAME = _names(
    chain(
        SECRET_FILES["secrets"],
        SECRET_FILES["rights"],
        map("".join, product(SECRET_FILES["words"], ("", *SECRET_FILES["endings"]))),
    )
)
_SECRET_BELOW = {folder: _names(names) for folder, names in SECRET_FILES["below"].items()}
_HARMLESS_NAME = _names(SECRET_FILES["harmless"])
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_TOKEN_SEPARATORS = re.compile(r"[\s\"'`;|&<>()=:,]+")
_SLASHES = re.compile(r"[/\\]")


def role_of(keys: Sequence[str], schema: Mapping[str, Any], value: Any) -> ArgumentRole:
    """Return the role of a value; `keys` are the names that lead to the value."""
    if schema.get("format") in WORDS["destination_formats"]:
        return ArgumentRole.DESTINATION
    for key in reversed(keys):
        role = _role_of_name(key)
        if role is not None:
            return role
    if isinstance(value, str) and is_address(value):
        return ArgumentRole.DESTINATION
    if keys and _is_venue(keys[-1], value):
        return ArgumentRole.PAYLOAD
    description_words = _singulars(str(schema.get("description", "")).partition(".")[0])
    return ArgumentRole.OTHER if _DESTINATION_WORDS.isdisjoint(description_words) else ArgumentRole.DESTINATION


def names_address(keys: Sequence[str], schema: Mapping[str, Any]) -> bool:
    """Return whether a parameter takes an address or host, by the names that lead to its value, format or description.

    Postal and e-mail addresses count as well, unless the text says that they are e-mail addresses.
    """
    if schema.get("format") in WORDS["destination_formats"]:
        return "email" not in str(schema["format"])
    description = _singulars(str(schema.get("description", "")).partition(".")[0])
    is_payload = bool(keys) and _role_of_name(keys[-1]) is ArgumentRole.PAYLOAD
    about = description[:_FIRST_WORDS] if is_payload else description  # a text may mention addresses
    words = {word for key in keys for word in _words(key)} | {*about}
    return bool(words & WORDS["addresses"]) and not words & {"email", "mail"}


def is_id(name: str) -> bool:
    """Return whether a parameter takes an id."""
    return {*_words(name)[-1:]} <= WORDS["identifiers"]


def is_quantity(name: str) -> bool:
    """Return whether a parameter takes a quantity."""
    return bool(WORDS["quantities"] & {*_words(name)}) and not is_id(name)


def holds_quantity(name: str, value: Any) -> bool:
    """Return whether an argument is or contains a quantity: a number that is not an id, or a text in its place."""
    if is_quantity(name):
        return True
    parts = ((leaf.value, leaf.keys[-1]) for leaf in leaves(value, name))
    return any(
        is_quantity(key) or (isinstance(part, int | float) and not isinstance(part, bool) and not is_id(key))
        for part, key in parts
    )


def is_program(name: str) -> bool:
    """Return whether a parameter takes code, a query or a command."""
    return bool(WORDS["programs"] & {*_words(name)})


def secret_reference_in(value: Any, *keys: str) -> str:
    """Return the part of an argument that names a secret file or begins a private key, or an empty string.

    File names in a payload do not count, unless the payload is a command.
    """
    for leaf in leaves(value, *keys):
        text = leaf.value if isinstance(leaf.value, str) else ""
        if private_key := _PRIVATE_KEY.search(text):
            return private_key[0]
        is_command = any(word in WORDS["commands"] for name in leaf.keys for word in words_of(name))
        is_content = not is_command and role_of(leaf.keys, {}, text) is ArgumentRole.PAYLOAD
        if not (is_content or "\n" in text.strip() or len(text) > _MAX_CHARS) and (part := _secret_name_in(text)):
            return part
    return ""


def _secret_name_in(text: str) -> str:
    tokens = _TOKEN_SEPARATORS.split(text)
    for token in tokens:
        parts = _SLASHES.split(token)
        for folder, part in pairwise(parts):
            if (names := _SECRET_BELOW.get(folder.casefold())) and names.fullmatch(part.rstrip("*")):
                return f"{folder}/{part}"
        for part in parts:
            is_path = len(tokens) == 1 or part != token or "." in part
            if is_path and _SECRET_NAME.fullmatch(part.rstrip("*")) and not _HARMLESS_NAME.fullmatch(part):
                return part
    return ""


def _role_of_name(name: str) -> ArgumentRole | None:
    words = _words(name)
    if words and words[-1] in WORDS["identifiers"]:
        return ArgumentRole.OTHER
    for word in reversed(words):
        if word in WORDS["destinations"]:
            return ArgumentRole.DESTINATION
        if word in WORDS["payloads"]:
            return ArgumentRole.PAYLOAD
    return None


def _is_venue(name: str, value: Any) -> bool:
    is_path = isinstance(value, str) and ("/" in value or "\\" in value)
    words = {*_words(name)}
    return bool(words) and words <= WORDS["venues"] and not is_path


def _words(name: str) -> list[str]:
    return [word for word in _singulars(name) if not word.isdigit()]


def _singulars(text: str) -> list[str]:
    words = words_of(text)
    return [word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word for word in words]
