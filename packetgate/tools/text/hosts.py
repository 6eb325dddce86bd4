"""Parse the host of an address as every program does, and compare hosts with patterns."""

import re
import unicodedata
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import unquote

_ADDRESS = re.compile(r"(?:(?:https?|wss?|ftps?|sftp|ssh|git|smtp|imap)://)?([^/?#@\\]+)(?:[/?#]\S*)?", re.IGNORECASE)
_NETWORK_PATH = re.compile(r"(?:file:)?[/\\]{2}([^/?#@\\]+)[/\\][^\s@]*", re.IGNORECASE)
_COPY_PATH = re.compile(r"[\w.+-]+@([^\s/:@\\]+):[^\s@]+|(?!file:)(\w[\w.-]+):(?:~|/(?!/))[^\s@]*", re.IGNORECASE)
_MACHINE = re.compile(rf"file://(?!/[^/\\])|[/\\]{{2}}|{_COPY_PATH.pattern}", re.IGNORECASE)
_NAME = re.compile(r"(?<=//)[^\s/?#@:]+|\[[0-9a-f:.]+\]|(?<![\w-])[\w-]+(?:\.[\w-]+)+")
_PORT = re.compile(r":\d{1,5}$")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|\d+")
_MAX_CHARS = 253


def host_in(address: str) -> str:
    """Return the host of an address in lower case, as ASCII; "" if programs may read another host.

    An address is a URL, `host[:port][/path]`, or a path on another machine (see `names_machine`). Other names with user
    information, backslashes, spaces or percent signs, and numbers that some programs read as an IP address, have no
    certain host.
    """
    patterns = (_ADDRESS, _NETWORK_PATH, _COPY_PATH) if address.isprintable() and " " not in address else ()
    match = next(filter(None, (pattern.fullmatch(address) for pattern in patterns)), None)
    if match is None:
        return ""
    authority = match[match.lastindex or 0]
    if authority.startswith("["):
        inner, bracket, port = authority[1:].partition("]")
        return _ip_in(inner) if bracket and ":" in inner and (not port or _PORT.fullmatch(port)) else ""
    host = _ascii_host(_PORT.sub("", authority).lower().removesuffix("."))
    labels = host.split(".")
    if len(host) > _MAX_CHARS or not all(map(_LABEL.fullmatch, labels)):
        return ""
    return _ip_in(host) if _NUMBER.fullmatch(labels[-1]) else host


def names_machine(path: str) -> bool:
    """Return whether a path is on another machine, as `//host/x` (or backslashes), `file://host/x`, `user@host:x`."""
    return _MACHINE.match(path) is not None


def hosts_in(text: str) -> set[str]:
    """Return each host that a text names, in any spelling."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("\u3002", ".")
    forms = {folded, unquote(folded), unquote(unquote(folded))}
    return {host for form in forms for name in _NAME.findall(form) if (host := host_in(name.strip("-")))}


def host_pattern(text: str) -> str:
    """Return a pattern of hosts in canonical form: a host, `*.` with a host for everything below it, or `*`.

    Raises:
        ValueError: the text is not such a pattern.
    """
    wildcard = "*." if text.startswith("*.") else ""
    host = host_in(text.removeprefix(wildcard))
    is_bare = not {*"/@\\"} & {*text} and not {*"?#"} & {*text} and not _PORT.search(text.rpartition("]")[2])
    if text == "*":
        return text
    if not host or not is_bare or (wildcard and _ip_in(host)):
        raise ValueError(
            f"{text[:60]!a} is not a host: write example.org, *.example.org for the hosts below it, an IP address, or "
            "* for all hosts; without a scheme, port or path"
        )
    return wildcard + host


def fits_host(host: str, patterns: Iterable[str]) -> bool:
    """Return whether a host fits a pattern of `host_pattern`. An unknown host ("") fits only `*`."""
    return any(
        pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:])) for pattern in patterns
    )


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        encoded = host.encode("idna").decode()
        return encoded if encoded.encode().decode("idna") == host else ""
    except UnicodeError:
        return ""


def _ip_in(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        return ""
