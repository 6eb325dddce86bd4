"""Servers in the sandbox reach only the `hosts` of their entries."""

import asyncio
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from support import plain_server
from support.mcp_servers import sandboxed, until
from support.programs import descendants, require

from packetgate.toolsets.builtin.sandbox import SandboxSettings
from packetgate.toolsets.servers.config import read_server_entry
from packetgate.toolsets.servers.confined import server_confinement
from packetgate.toolsets.servers.host_filter import MAX_CONNECTIONS
from packetgate.toolsets.servers.hub import McpHub

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's"), pytest.mark.slow]
SCRIPT = Path(plain_server.__file__).with_name("connecting_server.py")
LISTED, OTHER = "127.0.0.1", "127.0.0.2"


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = f"{self.server.server_address[0]} {self.path} {self.headers['Host']}"
        self.server.requests.append(text)  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def sites() -> Iterator[tuple[int, list[str], list[str]]]:
    """The port of two web sites, and the requests to the listed and to the other site."""
    listed = ThreadingHTTPServer((LISTED, 0), _Site)
    other = ThreadingHTTPServer((OTHER, listed.server_port), _Site)
    for site in (listed, other):
        site.requests = []  # type: ignore[attr-defined]
        threading.Thread(target=site.serve_forever, daemon=True).start()
    yield listed.server_port, listed.requests, other.requests  # type: ignore[attr-defined]
    for site in (listed, other):
        site.shutdown()
        site.server_close()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require("bwrap")
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HTTPS_PROXY", "http://192.0.2.1:1")  # the user's proxy, which the server cannot reach
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "data"


@asynccontextmanager
async def running(data: Path, *hosts: str, **entry: Any) -> AsyncIterator[McpHub]:
    async with sandboxed(data, sys.executable, str(SCRIPT), hosts=list(hosts), **entry) as hub:
        assert [(one.state, one.problem) for one in hub.health()] == [("ready", "")]
        yield hub


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def answers(hub: McpHub, *requests: str) -> list[str]:
    result = await hub.call("it.send", {"requests": json.dumps([text.encode("latin-1").hex() for text in requests])})
    assert result.success, result.error
    return list(json.loads(result.output))


async def test_a_listed_host_is_reached_and_no_other(data: Path, sites: tuple[int, list[str], list[str]]):
    port, _, reached = sites
    async with running(data, LISTED) as hub:
        page = await hub.call("it.get", {"url": f"http://{LISTED}:{port}/a"})
        refused = [await hub.call("it.get", {"url": f"http://{OTHER}:{port}/"}) for _ in range(2)]
        secure = await hub.call("it.get", {"url": "https://refused.example:443/"})
        past = await hub.call("it.bypass", {"addresses": json.dumps([[LISTED, port], ["1.1.1.1", 53], ["::1", port]])})
        abstract = f"packetgate-{port}"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"\0{abstract}")
            listening.listen()
            connected = await hub.call("it.connect_abstract", {"name": abstract})

    assert page.output == f"{LISTED} /a {LISTED}:{port}"
    for result in (*refused, secure):
        assert "403" in str(result.error)
        assert ': it is not among the "hosts" of this server in mcp.json' in str(result.error)
        assert '"hosts" of its entry' in str(result.error)
    assert json.loads(past.output) == []
    assert not connected.success
    assert reached == []
    log = (data / "logs" / "it.log").read_text().splitlines()
    assert [line for line in log if "no connection to" in line] == [
        f'Packetgate: no connection to {host}: it is not among the "hosts" of this server in mcp.json'
        for host in (OTHER, "refused.example")
    ]


async def test_no_request_is_mistaken_for_another_hosts(data: Path, sites: tuple[int, list[str], list[str]]):
    port, listed, reached = sites
    authorities = (
        f"{OTHER}:{port} {OTHER}.:{port} localhost:{port} {LISTED}@{OTHER}:{port} {LISTED}:{port}@{OTHER}:{port} "
        f"{LISTED}%40{OTHER}:{port} {LISTED}\\@{OTHER}:{port} 2130706434:{port} 0x7f000002:{port} 127.2:{port} "
        f"0177.0.0.2:{port} [::ffff:{OTHER}]:{port} [::1]:{port} ::1:{port} {LISTED}.evil.example:{port} "
        f"EVIL.example:22 {LISTED}:99999 {LISTED}: {LISTED}"
    )
    requests = [f"CONNECT {one} HTTP/1.1\r\nHost: {LISTED}\r\n\r\n" for one in ["", *authorities.split()]]
    requests += [
        f"GET http://{LISTED}:{port}/ HTTP/1.1\r\nHost: {LISTED}:{port}\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: {OTHER}:{port}\r\n\r\n",
        f"CONNECT http://{LISTED}:{port} HTTP/1.1\r\nHost: {LISTED}\r\n\r\n",
        f"CONNECT {LISTED}:{port}\r\n HTTP/1.1\r\n\r\n",
        f"CONNECT {LISTED}:{port} {OTHER}:{port} HTTP/1.1\r\n\r\n",
        f" CONNECT {LISTED}:{port} HTTP/1.1\r\n\r\n",
        "CONNECT " + "x" * 200_000,
        "\0" * 100,
        "SSH-2.0-OpenSSH\r\n\r\n",
    ]
    async with running(data, LISTED) as hub:
        refused = await answers(hub, *requests)
    assert [text for text in refused if not text.startswith(("HTTP/1.1 403 Pack", "HTTP/1.1 400 Pack"))] == []
    assert listed == reached == []


async def test_a_name_with_an_address_of_this_network_is_refused(
    data: Path, sites: tuple[int, list[str], list[str]], monkeypatch: pytest.MonkeyPatch
):
    port, reached, _ = sites
    private = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "224.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1", "0.0.0.0")
    names = {f"{number}.example.org": address for number, address in enumerate(private)}
    resolve = socket.getaddrinfo

    def resolve_here(host: Any, *args: Any, **options: Any) -> Any:
        return resolve(names.get(host, host), *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_here)  # as the owner of the name could
    request = "CONNECT {}:{} HTTP/1.1\r\n\r\n<later>GET / HTTP/1.0\r\nHost: x\r\n\r\n"
    async with running(data, "*.example.org") as hub:
        refused = await answers(hub, *(request.format(name, port) for name in names))
    for name, text in zip(names, refused, strict=True):
        assert text.startswith(
            f"HTTP/1.1 403 Packetgate: no connection to {name}: its address {ip_address(names[name])} "
        )
    assert reached == []
    async with running(data, "*.example.org", LISTED) as hub:
        [answer] = await answers(hub, request.format("0.example.org", port))
    async with running(data, "localhost") as hub:
        [local] = await answers(hub, request.format("localhost", port))
    assert answer.endswith(f"{LISTED} / x")
    assert local.endswith(f"{LISTED} / x")


async def test_a_tunnel_carries_bytes_both_ways(data: Path):
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello ")
        while chunk := await reader.read(65_536):
            writer.write(chunk.upper())
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, LISTED, 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with running(data, LISTED) as hub:
            result = await hub.call("it.tunnel", {"authority": f"{LISTED}:{port}", "size": "3000000"})
    assert result.output == f"hello {'X' * 10} 3000006"


async def test_idle_connections_do_not_stop_others(data: Path, sites: tuple[int, list[str], list[str]]):
    port, _, _ = sites
    files = open_files()
    async with running(data, LISTED) as hub:
        held = int((await hub.call("it.hold", {"count": "2000"})).output)
        assert held > MAX_CONNECTIONS
        assert (await hub.call("it.get", {"url": f"http://{LISTED}:{port}/"})).success
    await until(lambda: open_files() <= files)


async def test_a_server_with_hosts_starts_like_one_without(data: Path):
    states, ignored = [], []
    show = 'grep SigIgn /proc/self/status >&2; exec "$0" "$1"'  # Python itself ignores signals
    for hosts in (["example.org"], []):
        async with sandboxed(data, "sh", "-c", show, sys.executable, str(SCRIPT), hosts=hosts) as hub:
            states.append(json.loads((await hub.call("it.state", {})).output))
        ignored.append((data / "logs" / "it.log").read_text())
    assert ignored[0].startswith("SigIgn")
    assert ignored[0] == ignored[1]
    filtered, bare = states
    assert filtered.pop("no_proxy") == "localhost,127.0.0.1,::1"
    assert bare.pop("no_proxy") is None
    assert filtered == bare
    assert filtered["parent"] == 1


async def test_a_kill_of_packetgate_leaves_no_process(data: Path):
    program = f"""
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {str(SCRIPT.parents[1])!r})
from support.mcp_servers import sandboxed
async def main():
    async with sandboxed(Path({str(data)!r}), {sys.executable!r}, {str(SCRIPT)!r}, hosts=["example.org"]) as hub:
        print((await hub.call("it.fork", {{}})).output, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"forked\n"
    started = descendants(process.pid)
    assert sum("connecting_server" in command for command in started.values()) >= 3
    process.kill()
    await process.wait()
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))


@pytest.mark.parametrize(
    ("hosts", "network", "filtered"),
    [
        (None, True, ()),
        (["*"], True, ()),
        ([], False, ()),
        (["A.example.", "*.B.org"], False, ("a.example", "*.b.org")),
    ],
)
def test_hosts_decide_about_the_network(data: Path, hosts: Any, network: bool, filtered: tuple[str, ...]):
    entry = read_server_entry({"command": "x", "hosts": hosts}).fields
    confinement = server_confinement("it", entry, SandboxSettings(), data)
    assert confinement is not None
    assert (confinement.network, confinement.hosts) == (network, filtered)
