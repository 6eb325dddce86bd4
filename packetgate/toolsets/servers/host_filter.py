"""Connect a server of the sandbox to the `hosts` of its entry and to no others: an HTTP proxy in Packetgate's process.

The proxy's port is in the server's own network, which has no other connection. Packetgate resolves the names.
"""

import re
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NoReturn, Self

import anyio
import h11
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from packetgate.tools.spec.hosts import fits_host, host_in
from packetgate.toolsets.servers import sandbox_port

MAX_CONNECTIONS = 64
"""Connections of a server at the same time; more wait."""
HEAD_S, CONNECT_S, IDLE_S, LINGER_S = 30.0, 10.0, 600.0, 2.0
"""Longest wait for a request, for a host, for data in either direction, and for a refused client, in seconds."""
_MAX_HEAD = 65_536
_MAX_LOOKUPS = 4
_MAX_NAMED = 100
"""Refused hosts that are named."""
_PORT = 3128
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOP_HEADERS = {b"host", b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"upgrade"}
_TUNNEL = re.compile(r"[^/?#]+:(\d{1,5})")
_PLAIN = re.compile(r"http://[^/?#]+?(?::(\d{1,5}))?(?:([/?][^#]*)|$)", re.IGNORECASE)
_ENDS = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, h11.ProtocolError)
"""Exceptions of a connection that ended."""


class _RefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HostFilter:
    """The only way out of a server's sandbox."""

    def __init__(self, hosts: tuple[str, ...], write_log: Callable[[bytes], object]) -> None:
        """Args:
        hosts: patterns of `packetgate.tools.spec.hosts`.
        write_log: appends a line to the server's log. Blocking.
        """
        self._hosts = hosts
        self._write_log = write_log
        self._ours, self._theirs = socket.socketpair()
        self._lookups = anyio.CapacityLimiter(_MAX_LOOKUPS)
        self.refused: list[str] = []
        """Hosts that the server could not reach, in the order of its first attempts."""

    @property
    def command(self) -> list[str]:
        """The command line to prepend to the server's, within the sandbox."""
        return [sys.executable, "-I", "-S", sandbox_port.__file__, str(self.channel), str(_PORT)]

    @property
    def channel(self) -> int:
        """The file descriptor that this command must inherit."""
        return self._theirs.fileno()

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which programs find the proxy. Without listed hosts of this machine, the server reaches its own
        ports directly.
        """
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), f"http://127.0.0.1:{_PORT}")
        own = "" if any(host in self._hosts for host in _LOOPBACK) else ",".join(_LOOPBACK)
        names = {**proxies, "NO_PROXY": own}
        return {**names, **{name.lower(): value for name, value in names.items()}, "NODE_USE_ENV_PROXY": "1"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._theirs.close()

    async def serve(self) -> None:
        """Answer the connections of the server, which has started, until cancelled."""
        self._theirs.close()
        await anyio.wait_readable(self._ours)
        descriptors = socket.recv_fds(self._ours, 1, 1, socket.MSG_CMSG_CLOEXEC)[1]
        if not descriptors:  # the server did not start
            return
        port = await SocketListener.from_socket(socket.socket(fileno=descriptors[0]))
        slots = anyio.Semaphore(MAX_CONNECTIONS)
        async with port, anyio.create_task_group() as tasks:
            while True:
                await slots.acquire()
                try:
                    tasks.start_soon(self._serve_client, await port.accept(), slots)
                except OSError:  # no file descriptor is left
                    slots.release()
                    await anyio.sleep(LINGER_S)

    async def _serve_client(self, client: SocketStream, slots: anyio.Semaphore) -> None:
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + HEAD_S) as idle, suppress(*_ENDS):
                async with client:
                    try:
                        await self._connect_client(client, idle)
                    except _RefusedError as error:
                        idle.deadline = anyio.current_time() + LINGER_S
                        text = f"{error}\n".encode()
                        head = f"HTTP/1.1 {error.status} {error}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
                        await client.send(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
                        await client.send_eof()
                        await _discard(client)  # else the client may lose the answer
        finally:
            slots.release()

    async def _connect_client(self, client: SocketStream, idle: anyio.CancelScope) -> None:
        incoming = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        try:
            while (request := incoming.next_event()) is h11.NEED_DATA:
                incoming.receive_data(await client.receive())
        except h11.RemoteProtocolError as error:
            raise _RefusedError(400, str(error)) from error
        assert isinstance(request, h11.Request)  # noqa: S101
        target, is_tunnel = request.target.decode("ascii"), request.method == b"CONNECT"
        address = (_TUNNEL if is_tunnel else _PLAIN).fullmatch(target)
        if address is None or not 0 < int(address[1] or 80) < 2**16:
            raise _RefusedError(400, "this is an HTTP proxy: it takes CONNECT host:port and http:// addresses")
        host, port = host_in(target), int(address[1] or 80)
        async with await self._connect(host, port, target) as upstream:
            if is_tunnel:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await upstream.send(incoming.trailing_data[0])
                send = partial(_copy, client, upstream, idle)
            else:
                send = partial(
                    _send_request, _request(request, host, port, address[2]), incoming, client, upstream, idle
                )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                await _copy(upstream, client, idle)
                tasks.cancel_scope.cancel()

    async def _connect(self, host: str, port: int, target: str) -> SocketStream:
        """Return a connection to a host that the server may reach."""
        if not host or not fits_host(host, self._hosts):
            await self._refuse(host or ascii(target[:100]), "it is not among")
        try:
            lookup = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
            found = await anyio.to_thread.run_sync(lookup, limiter=self._lookups, abandon_on_cancel=True)
        except (OSError, UnicodeError) as error:
            raise _RefusedError(502, f"{host} has no address: {error}") from error
        for address in dict.fromkeys(ip_address(info[4][0]) for info in found):
            is_listed = str(address) in self._hosts or (host == "localhost" and address.is_loopback)
            if not is_listed and not _is_public(address):
                await self._refuse(host, f"its address {address} is not public, and not among")
            with suppress(OSError, TimeoutError), anyio.fail_after(CONNECT_S):
                stream = await anyio.connect_tcp(str(address), port)
                own: socket.socket = stream.extra_attributes[SocketAttribute.raw_socket]()
                if is_listed or own.getsockname()[0] != own.getpeername()[0]:
                    return stream
                await stream.aclose()
                await self._refuse(host, f"its address {address} is this machine's, and not among")
        raise _RefusedError(502, f"{host} does not answer on port {port}")

    async def _refuse(self, host: str, why: str) -> NoReturn:
        reason = f'Packetgate: no connection to {host}: {why} the "hosts" of this server in mcp.json'
        if host not in self.refused and len(self.refused) < _MAX_NAMED:
            self.refused.append(host)
            await anyio.to_thread.run_sync(self._write_log, f"{reason}\n".encode())
        raise _RefusedError(403, reason)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_global and not address.is_multicast


def _request(request: h11.Request, host: str, port: int, path: str | None) -> h11.Request:
    """Return a request as its host expects it, for one request in this connection."""
    headers = [(bytes(name), bytes(value)) for name, value in request.headers if name not in _HOP_HEADERS]
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    named = [(b"host", authority.removesuffix(":80").encode()), (b"connection", b"close")]
    path = path if path and path[0] == "/" else f"/{path or ''}"
    return h11.Request(method=request.method, target=path, headers=[*named, *headers])


async def _send_request(
    request: h11.Request,
    incoming: h11.Connection,
    client: SocketStream,
    upstream: SocketStream,
    idle: anyio.CancelScope,
) -> None:
    """Send a request with its body, and nothing that follows it, because that may be for another host."""
    outgoing = h11.Connection(h11.CLIENT)
    with suppress(*_ENDS):
        await upstream.send(outgoing.send(request) or b"")
        while not isinstance(event := incoming.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                await upstream.send(outgoing.send(event) or b"")
            else:
                incoming.receive_data(await client.receive())
                idle.deadline = anyio.current_time() + IDLE_S
        await upstream.send(outgoing.send(event) or b"")
        await _discard(client)
    with suppress(*_ENDS):
        await upstream.send_eof()


async def _copy(source: SocketStream, target: SocketStream, idle: anyio.CancelScope) -> None:
    with suppress(*_ENDS):
        while True:
            idle.deadline = anyio.current_time() + IDLE_S
            await target.send(await source.receive())
    with suppress(*_ENDS):
        await target.send_eof()


async def _discard(stream: SocketStream) -> None:
    while True:
        await stream.receive()
