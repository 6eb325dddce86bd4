"""Serve MCP tools with the schemas of a JSON file, on standard input and output or over HTTP.

The server answers every call. It can refuse protocol versions, as some servers do.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

INFO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "found", "version": "1"}}


class FoundServer:
    """The answers of the server."""

    def __init__(self, schemas: dict[str, Any], refusal: dict[str, Any] | None = None) -> None:
        """`refusal`: the answer to versions other than `speaks`, a JSON-RPC `error` or HTTP `status` and `body`."""
        self._tools = [
            {"name": name, "description": "Take a value.", "inputSchema": one} for name, one in schemas.items()
        ]
        self._refusal = refusal or {}

    def refuses(self, version: str | None) -> bool:
        """Whether the server refuses a protocol version."""
        return bool(version and self._refusal and version != self._refusal["speaks"])

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a message; None for a notification."""
        params, answered = message.get("params") or {}, {"jsonrpc": "2.0", "id": message.get("id")}
        match message.get("method"):
            case "initialize" if self.refuses(params["protocolVersion"]) and "error" in self._refusal:
                return {**answered, "error": self._refusal["error"]}
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": params["protocolVersion"], **INFO}
            case "tools/list":
                result = {"tools": self._tools}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "taken"}]}
            case "server/discover" if self._refusal:
                return {**answered, "error": {"code": -32601, "message": "Method not found"}}
            case _:
                result = {}
        return {**answered, "result": result} if "id" in message else None

    @contextmanager
    def over_http(self) -> Iterator[str]:
        """Serve over HTTP, and yield the address."""
        found = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["content-length"])))
                version = self.headers.get("mcp-protocol-version") or (message.get("params") or {}).get(
                    "protocolVersion"
                )
                if found.refuses(version) and "body" in found._refusal:
                    self._send(found._refusal["status"], found._refusal["body"])
                else:
                    answer = found.answer(message)
                    self._send(200 if answer else 202, json.dumps(answer) if answer else "")

            def do_GET(self) -> None:
                self._send(405, "")

            def _send(self, status: int, body: str) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json" if body.startswith("{") else "text/plain")
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/mcp"
            server.shutdown()


def main() -> None:
    """Serve the schemas in the file of the first argument until standard input ends. The second is a refusal."""
    schemas: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if any(sys.argv[1:2]) else {}
    server = FoundServer(schemas, json.loads(sys.argv[2]) if sys.argv[2:] else None)
    for line in sys.stdin:
        if answer := server.answer(json.loads(line)):
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
