"""A stand-in for a model: an endpoint with OpenAI's protocol that answers by a script."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def answer(asked: str, *, may_call: bool) -> str:
    """Return the model's answer: a call, whether a call is right, or words to the user."""
    if asked.rstrip().endswith("Is this call right?"):
        return "yes"
    if may_call:
        file = re.search(r"\w+\.(?:txt|md)", asked)
        call = {
            "name": "ai__read",
            "arguments": {"path": file[0] if file else "plan.txt"},
        }
        return f"<tool_call>{json.dumps(call)}</tool_call>"
    return "The gate opens at seven, and the roses get water an hour later."


class Endpoint(BaseHTTPRequestHandler):
    """Lists one model and completes chats, streamed or not."""

    def do_GET(self) -> None:
        """Answer `/models`."""
        self._send("application/json", json.dumps({"data": [{"id": "scripted"}]}))

    def do_POST(self) -> None:
        """Answer `/chat/completions`: a request with a call, and a result with words."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = body["messages"][-1]
        text = answer(
            last["content"], may_call="tools" in body and last["role"] == "user"
        )
        message = {"role": "assistant", "content": text}
        choice = {
            "index": 0,
            "message": message,
            "delta": message,
            "finish_reason": "stop",
        }
        answered = json.dumps({"id": "1", "model": "scripted", "choices": [choice]})
        if body.get("stream"):
            self._send("text/event-stream", f"data: {answered}\n\ndata: [DONE]\n\n")
        else:
            self._send("application/json", answered)

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def serve() -> str:
    """Serve for as long as this process lives, and return the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
