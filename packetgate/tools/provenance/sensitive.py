"""Files that hold keys or secrets, and what a private key looks like."""

import re
from typing import Any

from packetgate.state.origins import Role
from packetgate.tools.provenance.roles import role_of
from packetgate.tools.provenance.values import leaves
from packetgate.tools.provenance.words import COMMANDS, SECRET_NAMES
from packetgate.tools.text.words import words_of

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
        told = role_of(leaf.keys, {}, text) is Role.PAYLOAD and not words & COMMANDS
        if told or "\n" in text.strip() or len(text) > MAX_CHARS:
            continue
        tokens = _TOKENS.split(text)
        for token in tokens:
            for part in _SLASHES.split(token):
                is_path = len(tokens) == 1 or part != token or "." in part
                if is_path and _NAME.fullmatch(part.rstrip("*")) and not _HARMLESS.fullmatch(part):
                    return part
    return ""
