"""A stand-in for the Hugging Face hub with one file, which a second host serves, like the hub's storage."""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "c" * 40


@dataclass
class Hub:
    """The served file, and the received requests."""

    content: bytes
    name: str = "owner/repo/model.gguf"
    endpoint: str = ""
    etag: str = ""
    """The checksum that the hub states; by default the right checksum."""
    size: int = 0
    """The size that the hub states; by default the right size."""
    cut: int | None = None
    """Number of bytes after which the storage closes the connection; later requests fail."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers of each request."""

    def sent(self, method: str, path: str) -> list[dict[str, str]]:
        """Return the headers of the requests below a path."""
        return [headers for verb, where, headers in self.requests if verb == method and where.startswith(path)]


@contextmanager
def serve_hub(content: bytes) -> Iterator[Hub]:
    """Run the stand-in; clients connect to it with `HF_ENDPOINT=hub.endpoint`."""
    hub = Hub(content)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            hub.requests.append((self.command, self.path, {name.lower(): text for name, text in self.headers.items()}))
            owner, repo, file = hub.name.split("/", 2)
            if self.path == "/storage":
                self.send_file()
            elif re.fullmatch(rf"/{owner}/{repo}/resolve/\w+/{re.escape(file)}", self.path):
                etag = hub.etag or hashlib.sha256(hub.content).hexdigest()
                port = self.server.server_address[1]
                self.answer(
                    302,
                    **{"Location": f"http://localhost:{port}/storage", "ETag": '"pointer"', "X-Repo-Commit": COMMIT},
                    **{"X-Linked-ETag": f'"{etag}"', "X-Linked-Size": str(hub.size or len(hub.content))},
                )
            else:
                self.answer(404, **{"X-Error-Code": "EntryNotFound"})

        def send_file(self) -> None:
            if hub.cut == 0:
                self.answer(503)
                return
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
            start = int(asked[1]) if asked else 0
            body = hub.content[start:]
            span = {"Content-Range": f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}"} if asked else {}
            self.answer(206 if asked else 200, body[: hub.cut], length=len(body), **span)
            if hub.cut is not None:
                hub.cut = 0
                self.close_connection = True

        def answer(self, status: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
            self.send_response(status)
            for name, text in {"Content-Length": str(len(body) if length is None else length), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def left_in(home: Path) -> list[str]:
    """Return the names of the files among the downloaded models."""
    return sorted(path.name for path in (home / "models").rglob("*") if path.is_file())
