"""An MCP server with the protocol errors of real servers, over stdio and streamable HTTP.

Each tool is named after the fault in its answers. `log` contains a line for each call that ran.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

TEXT = b'"result": {"content": [{"type": "text", "text": "fine"}]}'

ANSWERS: dict[str, bytes] = {
    "plain": b'{"jsonrpc": "2.0", "id": ID, %s}' % TEXT,
    "large": b'{"jsonrpc": "2.0", "id": ID, %s}' % TEXT.replace(b"fine", b"fine" * 500_000),
    "half_emoji": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "hi \\ud83d"}]}}',
    "half_bytes": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "hi \xf0\x9f"}]}}',
    "no_version": b'{"id": ID, %s}' % TEXT,
    "null_error": b'{"jsonrpc": "2.0", "id": ID, "error": null, %s}' % TEXT,
    "null_flag": b'{"jsonrpc": "2.0", "id": ID, %s, "isError": null, "structuredContent": null}}' % TEXT[:-1],
    "text_id": b'{"jsonrpc": "2.0", "id": "ID", %s}' % TEXT,
    "not_a_number": b'{"jsonrpc": "2.0", "id": ID, %s, "structuredContent": {"n": NaN}}}' % TEXT[:-1],
    "null_parts": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine","annotations":null}]}}',
    "odd_part": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine"},{"type":"poem","x":1}]}}',
    "own_32001": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -32001, "message": "Session not found: tab 3"}}',
    "own_32000": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "Connection closed, it says"}}',
    "cut_off": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "fi',
    "no_result": b'{"jsonrpc": "2.0", "id": ID}',
    "no_json": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [undefined]}}',
}
PROGRESS = b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": TOKEN, "progress": N}}'
REPORTS = 15
"""Number of progress reports before `reporting` answers; `endless` never stops reporting."""
REPORT_S = 0.1
VAST = 100_000_000
"""Size of the answer of `vast` in bytes."""


def answers(message: dict[str, Any], ran: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the lines that the server sends in answer to a message."""
    request, params = message.get("id"), message.get("params") or {}
    method = message.get("method")
    if request is None or method == "hangs":
        return
    result: dict[str, Any] | None = None
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": None}, "instructions": None}
        result["serverInfo"] = {"name": "odd", "version": "1"}
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        names = [*ANSWERS, "reporting", "endless", "hanging", "vast"]
        schema = {"type": "object", "properties": {}}
        hint = {"readOnlyHint": True}
        result = {"tools": [{"name": f"get_{name}", "inputSchema": schema, "annotations": hint} for name in names]}
        result["tools"].append({"name": "send_word", "inputSchema": schema, "annotations": {"readOnlyHint": False}})
    if result is not None:
        yield json.dumps({"jsonrpc": "2.0", "id": request, "result": result}).encode()
        return
    if method != "tools/call":
        error = {"code": -32601, "message": f"no method {method}"}
        yield json.dumps({"jsonrpc": "2.0", "id": request, "error": error}).encode()
        return
    tool = params["name"].removeprefix("get_")
    ran(tool)
    if tool == "hanging":
        time.sleep(3600)
    if tool == "vast":
        yield ANSWERS["plain"].replace(b"fine", b"x" * VAST)
        return
    number = 0
    while tool == "endless" or (tool == "reporting" and number < REPORTS):
        number += 1
        time.sleep(REPORT_S)
        token = json.dumps(params.get("_meta", {}).get("progressToken")).encode()
        yield PROGRESS.replace(b"TOKEN", token).replace(b"N", str(number).encode())
    yield ANSWERS.get(tool, ANSWERS["plain"]).replace(b"ID", json.dumps(request).encode())


class OddHttp:
    """The server over HTTP on a free port, with configurable behaviour and counters."""

    def __init__(self) -> None:
        self.as_events = False
        """Whether the server answers with a stream of events."""
        self.ran: list[str] = []
        self.initialized = 0
        self.sessions: set[str] = set()
        self.refusal: tuple[int, str] = (404, "")
        """Status and body for an unknown session; `ID` stands for the request's id."""
        self.next: list[tuple[int, dict[str, str], str]] = []
        """Status, headers and body of the next answers to calls, and to other `refused` requests."""
        self.refused = {"tools/call"}
        self.url = ""

    def forget(self) -> None:
        """Forget all sessions, as after a restart."""
        self.sessions.clear()

    @contextmanager
    def serving(self) -> Iterator["OddHttp"]:
        """Serve in threads."""
        odd = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
                odd._answer(self, message)

            def do_GET(self) -> None:
                self.send(405, {}, b"")

            def do_DELETE(self) -> None:
                self.send(200, {}, b"")

            def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            server.block_on_close = False
            Thread(target=server.serve_forever, daemon=True).start()
            self.url = f"http://127.0.0.1:{server.server_port}/mcp"
            try:
                yield self
            finally:
                server.shutdown()

    def _answer(self, handler: Any, message: dict[str, Any]) -> None:
        method, request = message.get("method"), message.get("id")
        session = handler.headers.get("mcp-session-id", "")
        if method == "server/discover":
            return handler.send(400, {}, b"")
        headers = {"content-type": "application/json"}
        if method == "initialize":
            self.initialized += 1
            session = headers["mcp-session-id"] = uuid4().hex
            self.sessions.add(session)
        if session not in self.sessions:
            status, body = self.refusal
            kind = {"content-type": "application/json" if body.startswith("{") else "text/plain"}
            return handler.send(status, kind, body.replace("ID", json.dumps(request)).encode())
        if method in self.refused and self.next:
            status, more, body = self.next.pop(0)
            return handler.send(status, {"content-type": "text/plain", **more}, body.encode())
        if request is None:
            return handler.send(202, {}, b"")
        sent = answers(message, self.ran.append)
        if self.as_events:
            handler.send_response(200)
            for name, value in {**headers, "content-type": "text/event-stream", "connection": "close"}.items():
                handler.send_header(name, value)
            handler.end_headers()
            for one in sent:
                data = b"".join(b"data: %s\n" % line for line in one.split(b"\n"))
                handler.wfile.write(b"event: message\n%s\n" % data)
                handler.wfile.flush()
            handler.close_connection = True
        else:
            handler.send(200, headers, list(sent)[-1])
        return None


def main(log: Path) -> None:
    """Serve on standard input and output."""

    def ran(tool: str) -> None:
        with log.open("a") as file:
            file.write(f"{tool}\n")

    ran("start")
    for line in sys.stdin:
        for one in answers(json.loads(line), ran):
            sys.stdout.buffer.write(one + b"\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
