"""Where an argument points: an address outside of this machine, or not."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from packetgate.tools.text.words import words_of

_URL = re.compile(r"\b([a-z][a-z0-9+.-]{0,31})://([^\s\"'<>]+)|\b(?:mailto|data|javascript):", re.IGNORECASE)
_HOST = re.compile(
    r"(?:(?:[\w-]+\.)+[a-z][a-z0-9-]{1,62}\.?|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]+\])(?::\d+)?(?:/\S*)?", re.IGNORECASE
)
_MAIL = re.compile(r"[^\s@<>\"']{1,64}@(?:[\w-]{1,63}\.){1,9}[a-z]{2,63}", re.IGNORECASE)
_AT_HOME = frozenset({"localhost", "ip6-localhost", "host.docker.internal"})
_LOCAL_SCHEMES = frozenset({"file", "memory", "about"})
_HOLDS_ADDRESS = frozenset("address addresses endpoint host hostname link links site uri uris url urls website".split())
MAX_DEPTH = 8


def outside_address(name: str, value: Any, depth: int = 0) -> str:
    """Return the first address outside of this machine within an argument, empty where there is none.

    A URL and a mail address count wherever they stand; a bare host only where the parameter's name says that it is one.
    """
    if depth > MAX_DEPTH:
        return str(value)[:80]
    if isinstance(value, dict):
        inner: Iterator[tuple[str, Any]] = iter(value.items())
    elif isinstance(value, list | tuple):
        inner = ((name, one) for one in value)
    else:
        return _outside(name, value) if isinstance(value, str) else ""
    return next((found for key, one in inner if (found := outside_address(str(key), one, depth + 1))), "")


def _outside(name: str, text: str) -> str:
    for match in _URL.finditer(text):
        if match[1] is None or (match[1].lower() not in _LOCAL_SCHEMES and not _is_local(match[0])):
            return match[0][:80]
    mail = _MAIL.search(text)
    if mail:
        return mail[0][:80]
    words = set(words_of(name))
    if words & _HOLDS_ADDRESS and _HOST.fullmatch(text.strip()) and not _is_local(f"//{text.strip()}"):
        return text.strip()[:80]
    return ""


def _is_local(url: str) -> bool:
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if host in _AT_HOME or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
