"""Connect a sandboxed server only to the `hosts` of its entry, through a CONNECT proxy in this process.

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
from anyio.abc import ByteReceiveStream, SocketAttribute, SocketListener, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from packetgate.tools.text.hosts import fits_host, host_in
from packetgate.toolsets.servers import sandbox_port

MAX_CONNECTIONS = 64
"""Maximum concurrent connections of a server; others wait."""
HEAD_S, CONNECT_S, IDLE_S, LINGER_S = 30.0, 10.0, 600.0, 2.0
"""Longest wait for a request, for a host, for data in either direction, and for a refused client, in seconds."""
_MAX_HEAD = 65_536
_MAX_LOOKUPS = 4
_MAX_LOGGED = 100
"""Refused hosts that the log names."""
_PORT = 3128
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_CONNECT = re.compile(rb"CONNECT ([^/?#\s]+:(\d{1,5})) HTTP/1\.\d")
_ENDS = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""Exceptions of a connection that ended."""


class _RefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HostFilter:
    """The only way to the network from the sandbox of a server whose entry names `hosts`."""

    def __init__(self, hosts: tuple[str, ...], write_log: Callable[[bytes], object]) -> None:
        """Args:
        hosts: patterns of `packetgate.tools.text.hosts`.
        write_log: appends a line to the server's log. Blocking.
        """
        self._hosts = hosts
        self._write_log = write_log
        self._ours, self._theirs = socket.socketpair()
        self._lookups = anyio.CapacityLimiter(_MAX_LOOKUPS)
        self.refused: set[str] = set()
        """Hosts that the server could not reach."""

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
        """Variables of the proxy. Unless `hosts` list this machine, the server reaches its own ports directly."""
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
                    received = BufferedByteReceiveStream(client)
                    try:
                        upstream = await self._connect(received)
                    except _RefusedError as error:
                        idle.deadline = anyio.current_time() + LINGER_S
                        text = f"{error}\n".encode()
                        head = f"HTTP/1.1 {error.status} {error}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
                        await client.send(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
                        await client.send_eof()
                        while True:  # otherwise the client may lose the answer
                            await client.receive()
                    async with upstream, anyio.create_task_group() as tasks:
                        await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                        tasks.start_soon(_copy, received, upstream, idle)
                        await _copy(upstream, client, idle)
                        tasks.cancel_scope.cancel()
        finally:
            slots.release()

    async def _connect(self, received: BufferedByteReceiveStream) -> SocketStream:
        """Read a request, and return a connection to its host, which the server may reach."""
        try:
            head = await received.receive_until(b"\r\n\r\n", _MAX_HEAD)
        except (anyio.DelimiterNotFound, anyio.IncompleteRead):
            head = b""
        request = _CONNECT.fullmatch(head.partition(b"\r\n")[0])
        if request is None or not 0 < int(request[2]) < 2**16:
            raise _RefusedError(400, "Packetgate: this proxy accepts only CONNECT host:port: use https:// addresses")
        target, port = request[1].decode("ascii", "replace"), int(request[2])
        host = host_in(target)
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
        if host not in self.refused and len(self.refused) < _MAX_LOGGED:
            self.refused.add(host)
            await anyio.to_thread.run_sync(self._write_log, f"{reason}\n".encode())
        raise _RefusedError(403, reason)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_global and not address.is_multicast


async def _copy(source: ByteReceiveStream, target: SocketStream, idle: anyio.CancelScope) -> None:
    with suppress(*_ENDS):
        while True:
            idle.deadline = anyio.current_time() + IDLE_S
            await target.send(await source.receive())
    with suppress(*_ENDS):
        await target.send_eof()
