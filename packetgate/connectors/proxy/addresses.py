"""The addresses of resources through the proxy: each names its server."""

import re

from fastmcp.server.transforms.namespace import Namespace

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(?!//)(.*)", re.DOTALL)


class ResourceNamespace(Namespace):
    """Resources as `scheme://server/path`, or `scheme:server/path`; names stay as they are."""

    def _transform_uri(self, uri: str) -> str:
        short = _SCHEME.fullmatch(uri)
        return f"{short[1]}{self._prefix}/{short[2]}" if short else super()._transform_uri(uri)

    def _reverse_uri(self, uri: str) -> str | None:
        short = _SCHEME.fullmatch(uri)
        if short is None:
            return super()._reverse_uri(uri)
        own = short[2].removeprefix(f"{self._prefix}/")
        return f"{short[1]}{own}" if own != short[2] else None

    def _transform_name(self, name: str) -> str:
        return name

    def _reverse_name(self, name: str) -> str:
        return name


def address_through(server: str, uri: str) -> str:
    """Return the address by which a client reads a server's resource; one on the web it reads there."""
    return uri if uri.startswith(("http://", "https://")) else ResourceNamespace(server)._transform_uri(uri)
