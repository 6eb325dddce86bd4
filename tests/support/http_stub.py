"""An HTTP server that is not a LangGraph-API server, and gives every request the same answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Answer = tuple[int, str, str]
"""Status, content type and body."""


@contextmanager
def answering_all(answer: Callable[[dict[str, str]], Answer]) -> Iterator[str]:
    """Run a server that answers each request by its headers, named in lower case; return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, kind, body = answer({name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
