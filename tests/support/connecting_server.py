"""An MCP server whose tools connect to given addresses, through the proxy or directly."""

import asyncio
import json
import os
import signal
import socket
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

sys.path.insert(0, str(Path(__file__).parent))
from plain_server import PlainServer

PROXY = ("127.0.0.1", int(os.environ.get("HTTP_PROXY", ":0").rpartition(":")[2]))
server = PlainServer("connecting")


def exchange(data: bytes) -> bytes:
    first, _, later = data.partition(b"<later>")
    with socket.create_connection(PROXY, 5) as client:
        client.sendall(first)
        answer = client.recv(65_536) if later else b""
        client.sendall(later)
        client.shutdown(socket.SHUT_WR)
        while chunk := client.recv(65_536):
            answer += chunk
    return answer


def numbers_in(folder: str) -> list[int]:
    return sorted(int(one.name) for one in Path(folder).iterdir() if one.name.isdigit())


@server.tool
async def send(requests: str) -> str:
    """Send each request to the proxy, in a connection of its own, and return the answers."""
    sent = [bytes.fromhex(request) for request in json.loads(requests)]
    return json.dumps([(await asyncio.to_thread(exchange, data)).decode("latin-1") for data in sent])


@server.tool
async def tunnel(authority: str, size: str) -> str:
    """Send bytes through a tunnel and end them; return the first and the number of the bytes that come back."""
    reader, writer = await asyncio.open_connection(*PROXY)
    writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: x\r\n\r\nxxxxx".encode())
    await reader.readuntil(b"\r\n\r\n")

    async def write() -> None:
        writer.write(b"x" * (int(size) - 5))
        writer.write_eof()

    _, received = await asyncio.gather(write(), reader.read(-1))
    writer.close()
    return f"{received[:16].decode()} {len(received)}"


def page_of(url: SplitResult) -> str:
    client = HTTPConnection(*PROXY, timeout=20)
    client.set_tunnel(str(url.hostname), url.port)
    client.request("GET", url.path)
    return client.getresponse().read().decode()


@server.tool
async def get(url: str) -> str:
    """Return a page, fetched through a tunnel."""
    return await asyncio.to_thread(page_of, urlsplit(url))


@server.tool
async def bypass(addresses: str) -> str:
    """Connect past the proxy, and return what worked."""
    worked = []
    for host, port in json.loads(addresses):
        for family, kind in (
            (socket.AF_INET, socket.SOCK_STREAM),
            (socket.AF_INET6, socket.SOCK_STREAM),
            *([] if host == "127.0.0.1" else [(socket.AF_INET, socket.SOCK_DGRAM)]),
        ):
            try:
                with socket.socket(family, kind) as client:
                    client.settimeout(2)
                    client.connect((host, port))
                    client.send(b"x")
                    worked.append([host, port, str(kind)])
            except OSError:
                continue
    return json.dumps(worked)


@server.tool
async def connect_abstract(name: str) -> str:
    """Connect to an abstract socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"\0{name}")
    return "connected"


@server.tool
async def hold(count: str) -> str:
    """Open connections that ask for nothing, and return how many the kernel takes."""
    held = []
    for _ in range(int(count)):
        try:
            held.append(socket.create_connection(PROXY, 0.2))
        except OSError:
            break
    for client in held:
        client.close()
    return str(len(held))


@server.tool
async def state() -> str:
    """Return what the server inherited."""
    return json.dumps(
        {
            "files": numbers_in("/proc/self/fd"),
            "parent": os.getppid(),
            "processes": numbers_in("/proc"),
            "no_proxy": os.environ.get("NO_PROXY"),
        }
    )


@server.tool
async def fork() -> str:
    """Leave a process behind that has the proxy's connections."""
    if os.fork() == 0:
        os.setsid()
        while True:
            signal.pause()
    return "forked"


server.run()
