"""Compare argument values with the patterns of policy rules and grants.

`*` matches anything within one part of a path, `**` anything, and a backslash makes the next character literal. Values
that are not text are compared as JSON. `fits` compares literally, and is for rules that allow. `may_fit` is for rules
that ask or deny: it also compares the other readings of a value, such as a path after `..` and `%2e` are resolved, or
an address by its host, port and path.
"""

import json
import re
import socket
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

ANYTHING = "**"
_FOLDER = "/**"
_MAX_DEPTH = 8
_DECODINGS = 3
"""Number of decoding rounds for a value: some programs decode twice by mistake."""
_MAX_PATH = 4096
_FILE = re.compile(r"file:(?://localhost(?=/)|(?=/))/*")
_SEPARATORS = re.compile(r"""[\s,;|<>()\[\]{}"'`]+""")
_PLACE_MARKS = re.compile(r"[/\\@]")
_MAILBOX = re.compile(r"(?:mailto:)?([^@\s]+@[^@?\s]+?)\.?(?:\?.*)?", re.DOTALL)
_PATTERN_PARTS = re.compile(r"\\.|\*\*|\*|[^*\\]+|\\", re.DOTALL)
_WITH_SCHEME = re.compile(r"([a-z*][a-z0-9+.*-]*):[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_WITHOUT_SCHEME = re.compile(r"()[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_SITE_PATTERN = re.compile(r"([a-z*][a-z0-9+.*-]*)://([^/?#]*)(.*)", re.DOTALL)
_HOST_PATTERN = re.compile(r"()([\w*-]+(?:\.[\w*-]+)*\.[a-z][\w-]+(?::\d+)?)(/.*|)", re.DOTALL)
_PATH_PARAMETERS = re.compile(r";[^/]*")
_PORT = re.compile(r"(.*?)(?::(\d*))?", re.DOTALL)
_IP_NUMBERS = re.compile(r"[0-9a-fx.]*\d[0-9a-fx.]*")
_WEB = frozenset({"http", "https", "ws", "wss"})
_DEFAULT_PORTS = frozenset({"", "80", "443"})


def literal_pattern(value: Any) -> str:
    """Return the pattern that matches only this value."""
    return re.sub(r"[*\\]", r"\\\g<0>", _text_of(value))


def fits(value: Any, pattern: str) -> bool:
    """Return whether a value, or every element of a list, fits a pattern literally; a path with `..` never does."""
    if pattern == ANYTHING or _fits_literally(value, pattern):
        return True
    return isinstance(value, list) and bool(value) and all(_fits_literally(part, pattern) for part in value)


def may_fit(value: Any, pattern: str) -> bool:
    """Return whether any reading of a value, or of a part of the value, fits a pattern."""
    pattern = _plain(_expand_home(pattern))
    whole, site = _compiled(pattern), _site_of_pattern(pattern)
    folder = pattern.removesuffix(_FOLDER) if pattern.endswith(_FOLDER) and pattern != _FOLDER else None
    return any(
        whole.fullmatch(form)
        or (folder and _compiled(folder).fullmatch(form))
        or (site and any(address.matches(site) for address in _sites_in(form)))
        for text in _texts(value)
        for form in _forms(text)
    )


def is_date(value: Any) -> bool:
    """Return whether a value is a date, with or without a time."""
    if not isinstance(value, str) or "-" not in value:
        return False
    try:
        return bool(datetime.fromisoformat(value.strip()))
    except ValueError:
        return False


@dataclass(frozen=True)
class _Site:
    """The parts of an address, or of a pattern for addresses."""

    scheme: str
    host: str
    port: str
    """Empty for a default port."""
    path: str

    def matches(self, pattern: "_Site") -> bool:
        """Return whether this address matches a pattern.

        All web schemes are equal. A pattern without a port or a path matches any port or path.
        """
        schemes_fit = {self.scheme, pattern.scheme} <= _WEB or self.scheme in ("", pattern.scheme)
        paths = (self.path, f"{self.path}/")
        return (
            (schemes_fit or not pattern.scheme or "*" in pattern.scheme)
            and pattern.port in ("", self.port)
            and _compiled(pattern.host).fullmatch(self.host) is not None
            and (not pattern.path or any(_compiled(pattern.path).fullmatch(path) for path in paths))
        )


def _fits_literally(value: Any, pattern: str) -> bool:
    text = _text_of(value)
    return _compiled(pattern).fullmatch(text) is not None and not (
        literal_pattern(value) != pattern and _leaves_folder(text)
    )


def _text_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has only one type of number
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _leaves_folder(text: str) -> bool:
    return any({".", ".."} & {*re.split(r"[/\\]", form)} for form in _decoded(text)) or not text.isprintable()


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield a value, its elements and names, and the paths and addresses in its texts."""
    text = _text_of(value)
    yield text
    if isinstance(value, str) and len(text) <= _MAX_PATH:
        yield from (part for part in _SEPARATORS.split(text) if part != text and _PLACE_MARKS.search(part))
    if depth < _MAX_DEPTH and isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1)


def _forms(text: str) -> set[str]:
    """Return the readings of a text: decoded, as a resolved path, relative to the working folder, and as a mailbox."""
    decodings = {form for decoded in _decoded(text) for form in (_plain(decoded), _plain(decoded).strip())}
    paths = {_FILE.sub("/", form) for form in decodings if form}
    resolved = {normpath(_expand_home(form.replace("\\", "/"))) for form in paths}
    if "/" in text or "\\" in text:
        resolved.add(_plain(_resolve_links(text.strip().replace("\\", "/"))))
    here = f"{_plain(str(Path.cwd()))}/"
    relative = {form.removeprefix(here) for form in resolved} | {form.lstrip("/") for form in resolved}
    mailboxes = {match[1] for form in decodings if (match := _MAILBOX.fullmatch(form))}
    return decodings | resolved | relative | mailboxes


def _resolve_links(path: str) -> str:
    try:
        return str(Path(path).expanduser().resolve()) if len(path) <= _MAX_PATH else path
    except (OSError, RuntimeError, ValueError):  # not a path, or an unknown home folder
        return path


def _expand_home(text: str) -> str:
    return f"{_plain(str(Path.home()))}{text[1:]}" if text == "~" or text.startswith("~/") else text


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf"))


def _decoded(text: str) -> list[str]:
    forms = [text]
    while len(forms) <= _DECODINGS and (more := unquote(forms[-1])) != forms[-1]:
        forms.append(more)
    return forms


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_regex, _PATTERN_PARTS.findall(pattern))), re.DOTALL)


def _regex(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    literal = part[1:] if part.startswith("\\") and len(part) > 1 else part
    return wild.get(part) or re.escape(literal)


@lru_cache(maxsize=1024)
def _site_of_pattern(pattern: str) -> _Site | None:
    match = _SITE_PATTERN.fullmatch(pattern) or _HOST_PATTERN.fullmatch(pattern)
    return _site(*match.groups()) if match else None


def _sites_in(text: str) -> list[_Site]:
    bare = re.sub(r"[\t\r\n]", "", text).strip()
    return [_site(*match.groups()) for form in (_WITH_SCHEME, _WITHOUT_SCHEME) if (match := form.fullmatch(bare))]


def _site(scheme: str, authority: str, rest: str) -> _Site:
    match = _PORT.fullmatch(authority.rpartition("@")[2])
    host, port = (match[1], match[2] or "") if match else (authority, "")
    path = re.split(r"[?#]", rest.replace("\\", "/"), maxsplit=1)[0]
    resolved = normpath(_PATH_PARAMETERS.sub("", path)).replace("//", "/") if path else "/" * bool(rest)
    return _Site(scheme, _host(host), "" if port in _DEFAULT_PORTS else port, f"{resolved}{rest[len(path) :]}")


def _host(text: str) -> str:
    host = unquote(text).casefold().replace("\u3002", ".").strip("[]").rstrip(".")
    try:
        if ":" in host:
            address = IPv6Address(host)
            return str(address.ipv4_mapped or address)
        if _IP_NUMBERS.fullmatch(host):
            return socket.inet_ntoa(socket.inet_aton(host))
        return ".".join(map(_without_punycode, host.split(".")))
    except (OSError, ValueError):
        return host


def _without_punycode(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    return unicodedata.normalize("NFKC", label[4:].encode().decode("punycode")).casefold()
