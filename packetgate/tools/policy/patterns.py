"""Patterns of argument values: what a policy line says of them, and what a value must be to fit.

`*` stands for anything within one part of a path, `**` for anything at all, a backslash before a character for that
character. A value is compared as its JSON if it is no text. What allows is read to the letter, and of a list every
element must fit. What asks or denies is read as the system may read a value, and holds if any element of it fits: a
path with its `..`, `%2e` and `~` resolved, an address by its host, port and path, whatever its case.
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
"""How often an encoded value is decoded: programs do it more than once by mistake, not without end."""
_FILE = re.compile(r"file:(?://localhost(?=/)|(?=/))/*")
_MAX_PATH = 4096
_BETWEEN = re.compile(r"""[\s,;|<>()\[\]{}"'`]+""")
"""What stands between the paths and addresses of a text that has several."""
_PLACED = re.compile(r"[/\\@]")
_MAILBOX = re.compile(r"(?:mailto:)?([^@\s]+@[^@?\s]+?)\.?(?:\?.*)?", re.DOTALL)


def exactly(value: Any) -> str:
    """Return the pattern that only this value fits."""
    return re.sub(r"[*\\]", r"\\\g<0>", text_of(value))


def fits(value: Any, pattern: str) -> bool:
    """Whether a value fits a pattern to the letter; behind a `*` no value climbs out of its folder."""
    if pattern == ANYTHING or _fits_whole(value, pattern):
        return True
    return isinstance(value, list) and bool(value) and all(_fits_whole(one, pattern) for one in value)


def _fits_whole(value: Any, pattern: str) -> bool:
    text = text_of(value)
    return compiled(pattern).fullmatch(text) is not None and not (exactly(value) != pattern and _climbs(text))


def may_fit(value: Any, pattern: str) -> bool:
    """Whether a value, an element of it, or what a system may make of either, fits a pattern."""
    wanted = _plain(_at_home(pattern))
    whole, site = compiled(wanted), site_meant(wanted)
    folder = wanted.removesuffix(_FOLDER) if wanted.endswith(_FOLDER) and wanted != _FOLDER else None
    return any(
        whole.fullmatch(form)
        or (folder and compiled(folder).fullmatch(form))
        or (site and any(one.may_be(site) for one in sites_of(form)))
        for text in _texts(value)
        for form in _forms(text)
    )


def text_of(value: Any) -> str:
    """Return a value as patterns see it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of number
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def is_moment(value: Any) -> bool:
    """Whether a value is a date, with or without a time, and nothing else."""
    if not isinstance(value, str) or "-" not in value:
        return False
    try:
        return bool(datetime.fromisoformat(value.strip()))
    except ValueError:
        return False


def is_number(value: Any) -> bool:
    """Whether a value is a number, and neither a flag nor a text."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _climbs(text: str) -> bool:
    return any({".", ".."} & {*re.split(r"[/\\]", form)} for form in _decoded(text)) or not text.isprintable()


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield a value as patterns see it, every element and name in it, and the paths and addresses within a text."""
    text = text_of(value)
    yield text
    if isinstance(value, str) and len(text) <= _MAX_PATH:
        yield from (part for part in _BETWEEN.split(text) if part != text and _PLACED.search(part))
    if depth < _MAX_DEPTH and isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(inner, depth + 1)


def _forms(text: str) -> set[str]:
    decoded = {form for one in _decoded(text) for form in (_plain(one), _plain(one).strip())}
    places = {_FILE.sub("/", form) for form in decoded if form}
    resolved = {normpath(_at_home(form.replace("\\", "/"))) for form in places}
    if "/" in text or "\\" in text:
        resolved.add(_plain(_followed(text.strip().replace("\\", "/"))))
    here = f"{_plain(str(Path.cwd()))}/"
    inside = {form.removeprefix(here) for form in resolved} | {form.lstrip("/") for form in resolved}
    mailboxes = {found[1] for form in decoded if (found := _MAILBOX.fullmatch(form))}
    return decoded | resolved | inside | mailboxes


def _followed(path: str) -> str:
    """Return where a path leads from the working folder, its links followed."""
    try:
        return str(Path(path).expanduser().resolve()) if len(path) <= _MAX_PATH else path
    except (OSError, RuntimeError, ValueError):  # no path: it holds a zero, or names a home that is not there
        return path


def _at_home(text: str) -> str:
    return f"{_plain(str(Path.home()))}{text[1:]}" if text == "~" or text.startswith("~/") else text


def _plain(text: str) -> str:
    """Return a text without case, without compatibility forms and without characters that nobody sees."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf"))


def _decoded(text: str) -> list[str]:
    forms = [text]
    while len(forms) <= _DECODINGS and (more := unquote(forms[-1])) != forms[-1]:
        forms.append(more)
    return forms


_WILD = re.compile(r"\\.|\*\*|\*|[^*\\]+|\\", re.DOTALL)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of values as a regular expression."""
    return re.compile("".join(_regex(part) for part in _WILD.findall(pattern)), re.DOTALL)


def _regex(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    literal = part[1:] if part.startswith("\\") and len(part) > 1 else part
    return wild.get(part) or re.escape(literal)


_WITH_SCHEME = re.compile(r"([a-z*][a-z0-9+.*-]*):[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_WITHOUT = re.compile(r"()[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_PATTERN = re.compile(r"([a-z*][a-z0-9+.*-]*)://([^/?#]*)(.*)", re.DOTALL)
_HOST_PATTERN = re.compile(r"()([\w*-]+(?:\.[\w*-]+)*\.[a-z][\w-]+(?::\d+)?)(/.*|)", re.DOTALL)
"""What may be the name of a host, without a scheme."""
_PARAMETERS = re.compile(r";[^/]*")
"""Of a part of a path: some servers take them out before they look for what is meant."""
_PORT = re.compile(r"(.*?)(?::(\d*))?", re.DOTALL)
_NUMBERS = re.compile(r"[0-9a-fx.]*\d[0-9a-fx.]*")
_WEB = frozenset({"http", "https", "ws", "wss"})
_USUAL_PORTS = frozenset({"", "80", "443"})


@dataclass(frozen=True)
class Site:
    """An address in its parts, or a pattern of one."""

    scheme: str
    host: str
    port: str
    """Empty for the usual one."""
    path: str
    """With all that follows it."""

    def may_be(self, wanted: "Site") -> bool:
        """Whether this address is one that a pattern means: by any scheme of the web, and on any port if none is given.

        A pattern without a path means the whole site.
        """
        of_web = {self.scheme, wanted.scheme} <= _WEB
        return (
            (of_web or self.scheme in ("", wanted.scheme) or not wanted.scheme or "*" in wanted.scheme)
            and wanted.port in ("", self.port)
            and compiled(wanted.host).fullmatch(self.host) is not None
            and (not wanted.path or any(compiled(wanted.path).fullmatch(path) for path in (self.path, f"{self.path}/")))
        )


@lru_cache(maxsize=1024)
def site_meant(pattern: str) -> Site | None:
    """Return the parts of a pattern, folded, that begins as an address or as a host does; None for any other."""
    found = _PATTERN.fullmatch(pattern) or _HOST_PATTERN.fullmatch(pattern)
    return _site(*found.groups()) if found else None


def sites_of(text: str) -> list[Site]:
    """Return what a text, folded, may be read as where an address is wanted, with a scheme or without."""
    bare = re.sub(r"[\t\r\n]", "", text).strip()
    return [_site(*found.groups()) for form in (_WITH_SCHEME, _WITHOUT) if (found := form.fullmatch(bare))]


def _site(scheme: str, authority: str, rest: str) -> Site:
    found = _PORT.fullmatch(authority.rpartition("@")[2])
    host, port = (found[1], found[2] or "") if found else (authority, "")
    path = re.split(r"[?#]", rest.replace("\\", "/"), maxsplit=1)[0]
    resolved = normpath(_PARAMETERS.sub("", path)).replace("//", "/") if path else "/" * bool(rest)
    return Site(scheme, _host(host), "" if port in _USUAL_PORTS else port, f"{resolved}{rest[len(path) :]}")


def _host(said: str) -> str:
    host = unquote(said).casefold().replace("\u3002", ".").strip("[]").rstrip(".")
    try:
        if ":" in host:
            address = IPv6Address(host)
            return str(address.ipv4_mapped or address)
        if _NUMBERS.fullmatch(host):
            return socket.inet_ntoa(socket.inet_aton(host))
        return ".".join(_letters(part) for part in host.split("."))
    except (OSError, ValueError):
        return host


def _letters(part: str) -> str:
    """Return a part of a host's name in letters of any language, folded."""
    if not part.startswith("xn--"):
        return part
    return unicodedata.normalize("NFKC", part[4:].encode().decode("punycode")).casefold()
