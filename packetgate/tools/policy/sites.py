"""Web addresses as systems read them: the same site however it is written."""

import re
import socket
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from posixpath import normpath
from urllib.parse import unquote

from packetgate.tools.policy.wildcards import compiled

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
