"""Web addresses as systems read them: the same site however it is written."""

import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote

from tools.policy.wildcards import compiled

_WITH_SCHEME = re.compile(r"([a-z*][a-z0-9+.*-]*):[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_WITHOUT = re.compile(r"()[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_PATTERN = re.compile(r"([a-z*][a-z0-9+.*-]*)://([^/?#]*)(.*)", re.DOTALL)
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
            (of_web or self.scheme in ("", wanted.scheme) or "*" in wanted.scheme)
            and wanted.port in ("", self.port)
            and compiled(wanted.host).fullmatch(self.host) is not None
            and (not wanted.path or any(compiled(wanted.path).fullmatch(path) for path in (self.path, f"{self.path}/")))
        )


@lru_cache(maxsize=1024)
def site_meant(pattern: str) -> Site | None:
    """Return the parts of a pattern that begins as an address does, folded; None for any other."""
    found = _PATTERN.fullmatch(pattern)
    return _site(*found.groups()) if found else None


def sites_of(text: str) -> list[Site]:
    """Return what a text, folded, may be read as where an address is wanted, with a scheme or without."""
    bare = re.sub(r"[\t\r\n]", "", text).strip()
    return [_site(*found.groups()) for form in (_WITH_SCHEME, _WITHOUT) if (found := form.fullmatch(bare))]


def _site(scheme: str, authority: str, rest: str) -> Site:
    found = _PORT.fullmatch(authority.rpartition("@")[2])
    host, port = (found[1], found[2] or "") if found else (authority, "")
    path = re.split(r"[?#]", rest.replace("\\", "/"), maxsplit=1)[0]
    resolved = normpath(path).replace("//", "/") if path else "/" * bool(rest)
    return Site(scheme, _host(host), "" if port in _USUAL_PORTS else port, f"{resolved}{rest[len(path) :]}")


def _host(said: str) -> str:
    host = unquote(said).replace("\u3002", ".").strip("[]").rstrip(".")
    if _NUMBERS.fullmatch(host):
        try:
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            return host
    try:
        return ".".join(part if part.isascii() else part.encode("idna").decode() for part in host.split("."))
    except UnicodeError:
        return host
