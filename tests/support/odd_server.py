"""An MCP server that breaks the protocol as real ones do: over standard input and output, streamable HTTP, and SSE.

Its tools are named after what is odd about their answers; `log` has a line for each call that ran.
"""

import json
import queue
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

TEXT = b'"result": {"content": [{"type": "text", "text": "fine"}]}'

ANSWERS: dict[str, bytes] = {
    "plain": b'{"jsonrpc": "2.0", "id": ID, %s}' % TEXT,
    "half_emoji": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "hi \\ud83d"}]}}',
    "half_bytes": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "hi \xf0\x9f"}]}}',
    "no_version": b'{"id": ID, %s}' % TEXT,
    "null_error": b'{"jsonrpc": "2.0", "id": ID, "error": null, %s}' % TEXT,
    "zero_error": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": 0, "message": ""}, %s}' % TEXT,
    "null_flag": b'{"jsonrpc": "2.0", "id": ID, %s, "isError": null, "structuredContent": null}}' % TEXT[:-1],
    "text_id": b'{"jsonrpc": "2.0", "id": "ID", %s}' % TEXT,
    "batch": b'[{"jsonrpc": "2.0", "id": ID, %s}]' % TEXT,
    "bare_array": b'{"jsonrpc": "2.0", "id": ID, "result": [{"type": "text", "text": "fine"}]}',
    "bare_text": b'{"jsonrpc": "2.0", "id": ID, "result": "fine"}',
    "bare_object": b'{"jsonrpc": "2.0", "id": ID, "result": {"apples": 3}}',
    "not_a_number": b'{"jsonrpc": "2.0", "id": ID, %s, "structuredContent": {"n": NaN}}}' % TEXT[:-1],
    "null_parts": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine","annotations":null}]}}',
    "logged": b'INFO calling ID\n{"level": "warn", "id": ID, "error": "odd"}\n{"jsonrpc": "2.0", "id": ID, %s}' % TEXT,
    "foreign": b'{"jsonrpc": "2.0", "id": 99999, "result": {"content": []}}\n{"jsonrpc": "2.0", "id": ID, %s}' % TEXT,
    "prefixed": b'done: {"jsonrpc": "2.0", "id": ID, %s}' % TEXT,
    "stock": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"apples":3,"pears":12}}}',
    "price": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"cannot say"}],"isError":true,'
    b'"structuredContent":{"code":7}}}',
    "note": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource_link","uri":"note:a","name":"Rules",'
    b'"description":"The rules of the house"}]}}',
    "odd_part": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine"},{"type":"poem","x":1}]}}',
    "no_message": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000}}',
    "text_code": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": "ENOENT", "message": "no such file"}}',
    "own_32001": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -32001, "message": "Session not found: tab 3"}}',
    "own_32000": b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "Connection closed, it says"}}',
    "cut_off": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "fi',
    "cut_early": b'{"jsonrpc": "2.0", "result": {"content": [{"type": "te',
    "no_result": b'{"jsonrpc": "2.0", "id": ID}',
    "no_json": b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [undefined]}}',
}
PROGRESS = b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": TOKEN, "progress": N}}'
REPORTS = 15
"""Of its progress, that `reporting` makes before it answers, or for ever: `endless`."""
REPORT_S = 0.1


def answers(message: dict[str, Any], ran: Callable[[str], None]) -> Iterator[bytes]:
    """Yield what the server sends in answer to a message, a line each."""
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
        names = [*ANSWERS, "reporting", "endless", "hanging"]
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
    number = 0
    while tool == "endless" or (tool == "reporting" and number < REPORTS):
        number += 1
        time.sleep(REPORT_S)
        token = json.dumps(params.get("_meta", {}).get("progressToken")).encode()
        yield PROGRESS.replace(b"TOKEN", token).replace(b"N", str(number).encode())
    yield ANSWERS.get(tool, ANSWERS["plain"]).replace(b"ID", json.dumps(request).encode())


class OddHttp:
    """The server over HTTP, on a free port: what it does next can be set, what it did is counted."""

    def __init__(self, *, sse: bool = False) -> None:
        self.sse = sse
        self.as_events = False
        """Whether it answers by a stream of events."""
        self.ran: list[str] = []
        self.initialized = 0
        self.sessions: dict[str, queue.Queue[bytes | None]] = {}
        self.refusal: tuple[int, str] = (404, "")
        """Status and body for a session that it does not know; `ID` stands for the request's id."""
        self.next: list[tuple[int, dict[str, str], str]] = []
        """Status, headers and body of the next answers to calls, or to other `refused` requests as well."""
        self.refused = {"tools/call"}
        self.url = ""
        self._stopped = Event()

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
                odd._stream(self)

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
            self.url = f"http://127.0.0.1:{server.server_port}/{'sse' if self.sse else 'mcp'}"
            try:
                yield self
            finally:
                self._stopped.set()
                server.shutdown()

    def _answer(self, handler: Any, message: dict[str, Any]) -> None:
        method, request = message.get("method"), message.get("id")
        session = handler.path.partition("?s=")[2] if self.sse else handler.headers.get("mcp-session-id", "")
        if method == "server/discover":
            return handler.send(400, {}, b"")
        headers = {"content-type": "application/json"}
        if method == "initialize":
            self.initialized += 1
            session = session if self.sse else uuid4().hex
            if not self.sse:
                self.sessions[session] = queue.Queue()
                headers["mcp-session-id"] = session
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
        if self.sse:
            handler.send(202, {}, b"")
            for one in sent:
                self.sessions[session].put(one)
        elif self.as_events:
            self._begin_events(handler, headers)
            for one in sent:
                _send_event(handler, one)
            handler.close_connection = True
        else:
            handler.send(200, headers, list(sent)[-1])
        return None

    def _stream(self, handler: Any) -> None:
        if not self.sse:
            return handler.send(405, {}, b"")
        session = uuid4().hex
        events = self.sessions[session] = queue.Queue()
        self._begin_events(handler, {})
        _send_event(handler, f"/messages?s={session}".encode(), "endpoint")
        while not self._stopped.is_set():
            try:
                event = events.get(timeout=0.1)
            except queue.Empty:
                continue
            if event is None:
                break
            _send_event(handler, event)
        handler.close_connection = True
        return None

    def _begin_events(self, handler: Any, headers: dict[str, str]) -> None:
        handler.send_response(200)
        for name, value in {**headers, "content-type": "text/event-stream"}.items():
            handler.send_header(name, value)
        handler.send_header("connection", "close")
        handler.end_headers()


def _send_event(handler: Any, data: bytes, event: str = "message") -> None:
    lines = b"".join(b"data: %s\n" % line for line in data.split(b"\n"))
    handler.wfile.write(b"event: %s\n%s\n" % (event.encode(), lines))
    handler.wfile.flush()


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
