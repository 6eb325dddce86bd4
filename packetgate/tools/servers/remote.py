"""Servers that are reached over HTTP: by streamable HTTP, or by the older SSE."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from fastmcp.client.transports import ClientTransport, SSETransport, StreamableHttpTransport
from fastmcp.client.transports.base import TransportOptions
from mcp import ClientSession

from packetgate.tools.servers.http import LenientHttp, LenientSse, lenient_http

_SSE_PATH = re.compile(r"/sse(/|$)")
_NO_ANSWER_TO_THE_WAY = frozenset({401, 403, 407, 408, 425, 429})
"""Statuses that speak of who asks or when: the other way would be refused as well."""


class RemoteTransport(ClientTransport):
    """One way to a server at a URL."""

    def __init__(self, entry: Mapping[str, Any], *, sse: bool = False) -> None:
        """Take an entry of `mcp.json`, its variables filled in."""
        self._entry = entry
        by_path = entry.get("transport") is None and _SSE_PATH.search(urlsplit(entry["url"]).path)
        self._sse = sse or entry.get("transport") == "sse" or bool(by_path)
        self._status = 0
        given: dict[str, Any] = {"headers": entry.get("headers"), "auth": entry.get("auth")}
        given["httpx_client_factory"] = self._client
        self._inner: ClientTransport = (
            SSETransport(entry["url"], sse_read_timeout=entry.get("sse_read_timeout"), **given)
            if self._sse
            else StreamableHttpTransport(entry["url"], **given)
        )
        self.legacy_only = self._inner.legacy_only

    def other_way(self) -> "RemoteTransport | None":
        """Return the way by SSE where the server refused the request itself, as one does that knows only that."""
        refused = 400 <= self._status < 500 and self._status not in _NO_ANSWER_TO_THE_WAY
        return RemoteTransport(self._entry, sse=True) if refused and not self._sse else None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        """Open a session as the inner transport does."""
        async with self._inner.connect_session(transport_options=transport_options, **session) as opened:
            yield opened

    def get_session_id(self) -> str | None:
        """Return the id that the server gave to the session."""
        return self._inner.get_session_id()

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()  # type: ignore[no-untyped-call]

    def _client(self, *given: Any, **named: Any) -> httpx2.AsyncClient:
        client = lenient_http(*given, kind=LenientSse if self._sse else LenientHttp, **named)
        client.event_hooks["response"].append(self._note)
        return client

    async def _note(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self._status = response.status_code
