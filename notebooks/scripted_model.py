"""A stand-in for a model: an endpoint with OpenAI's protocol that answers by a script."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def answer(form: str, asked: str) -> str:
    """Return the model's answer in a form, or its words to the user without a form."""
    file = re.search(r"\w+\.(?:txt|md)", asked)
    call = {"tool": "ai.read", "params": {"path": file[0] if file else "plan.txt"}}
    if form == "selection":
        return json.dumps({"action": "call", "calls": [call], "complete": True})
    if asked.rstrip().endswith("Is this call right?"):
        return "yes"
    return "The gate opens at seven, and the roses get water an hour later."


class Endpoint(BaseHTTPRequestHandler):
    """Lists one model and completes chats, streamed or not."""

    def do_GET(self) -> None:
        """Answer `/models`."""
        self._send("application/json", json.dumps({"data": [{"id": "scripted"}]}))

    def do_POST(self) -> None:
        """Answer `/chat/completions`; refuse tools, so that calls are asked for in a form."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "tools" in body:
            refusal = {"error": {"message": "tools are not supported"}}
            self._send("application/json", json.dumps(refusal), status=400)
            return
        form = body.get("response_format", {}).get("json_schema", {}).get("name", "")
        text = answer(form, body["messages"][-1]["content"])
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "delta": message, "finish_reason": "stop"}
        answered = json.dumps({"id": "1", "model": "scripted", "choices": [choice]})
        if body.get("stream"):
            self._send("text/event-stream", f"data: {answered}\n\ndata: [DONE]\n\n")
        else:
            self._send("application/json", answered)

    def _send(self, kind: str, text: str, status: int = 200) -> None:
        self.send_response(status)
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
