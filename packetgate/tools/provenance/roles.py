"""What an argument is to its tool: where it sends something, what it sends, or neither."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from packetgate.state.origins import ArgumentRole
from packetgate.tools.provenance.values import is_address, leaves
from packetgate.tools.provenance.words import (
    COMMANDS,
    DESTINATION_FORMATS,
    DESTINATIONS,
    IDENTIFIERS,
    PAYLOADS,
    PLACES,
    PROGRAMS,
    QUANTITIES,
    SECRET_NAMES,
)
from packetgate.tools.text.words import words_of


def role_of(keys: Sequence[str], schema: Mapping[str, Any], value: Any) -> ArgumentRole:
    """Return the role of a value that stands below these names, the innermost that tells."""
    if schema.get("format") in DESTINATION_FORMATS:
        return ArgumentRole.DESTINATION
    for key in reversed(keys):
        role = _of_name(key)
        if role is not None:
            return role
    if isinstance(value, str) and is_address(value):
        return ArgumentRole.DESTINATION
    if keys and _is_place(keys[-1], value):
        return ArgumentRole.PAYLOAD
    return _of_words(str(schema.get("description", "")).partition(".")[0]) or ArgumentRole.OTHER


def is_id(name: str) -> bool:
    """Whether a parameter of this name says which of several things is meant."""
    return {*_words(name)[-1:]} <= IDENTIFIERS


def is_quantity(name: str) -> bool:
    """Whether a parameter of this name says how much or how many."""
    return bool(QUANTITIES & {*_words(name)}) and not is_id(name)


def is_program(name: str) -> bool:
    """Whether what a parameter of this name holds is a program's: a statement, a query, code."""
    return bool(PROGRAMS & {*_words(name)})


def _of_name(name: str) -> ArgumentRole | None:
    words = _words(name)
    if not words or words[-1] in IDENTIFIERS:
        return ArgumentRole.OTHER if words else None
    for word in reversed(words):
        if word in DESTINATIONS:
            return ArgumentRole.DESTINATION
        if word in PAYLOADS:
            return ArgumentRole.PAYLOAD
    return None


def _of_words(about: str) -> ArgumentRole | None:
    words = [_singular(word) for word in words_of(about)]
    return ArgumentRole.DESTINATION if {"recipient", "url", "iban", "payee"} & {*words} else None


def _is_place(name: str, value: Any) -> bool:
    is_path = isinstance(value, str) and ("/" in value or "\\" in value)
    words = {*_words(name)}
    return bool(words) and words <= PLACES and not is_path


def _words(name: str) -> list[str]:
    return [_singular(word) for word in words_of(name) if not word.isdigit()]


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


_NAME = re.compile(rf"(?:{'|'.join(SECRET_NAMES)})", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_TOKENS = re.compile(r"[\s\"'`;|&<>()=:,]+")
_SLASHES = re.compile(r"[/\\]")
_HARMLESS = re.compile(r"\.env\.(?:example|sample|template|dist)|.*\.pub", re.IGNORECASE)
MAX_CHARS = 20_000
"""Of one value: a path or a command is shorter."""


def sensitive_part(value: Any, *keys: str) -> str:
    """Return the part of an argument that names a file of secrets, or begins a private key; empty where none does.

    Names count where something is read, written or run, not in what is only told: `keys` say which of them it is.
    """
    for leaf in leaves(value, *keys):
        text = leaf.value if isinstance(leaf.value, str) else ""
        if key := _PRIVATE_KEY.search(text):
            return key[0]
        words = {word for name in leaf.keys for word in words_of(name)}
        told = role_of(leaf.keys, {}, text) is ArgumentRole.PAYLOAD and not words & COMMANDS
        if told or "\n" in text.strip() or len(text) > MAX_CHARS:
            continue
        tokens = _TOKENS.split(text)
        for token in tokens:
            for part in _SLASHES.split(token):
                is_path = len(tokens) == 1 or part != token or "." in part
                if is_path and _NAME.fullmatch(part.rstrip("*")) and not _HARMLESS.fullmatch(part):
                    return part
    return ""
