"""A real HTTP server that speaks OpenAI's protocol and answers what the test scripted."""

import base64
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

NO_RETRY = {"x-should-retry": "false"}


@dataclass(frozen=True)
class HttpError:
    """Answer with this HTTP status. The client is told not to retry unless `retry`."""

    status: int
    message: str = "scripted error"
    param: str | None = None
    retry: bool = False


@dataclass(frozen=True)
class Raw:
    """Answer with exactly this body and HTTP status 200."""

    body: str
    content_type: str = "application/json"


@dataclass(frozen=True)
class CutOff:
    """Stream this text, then break the connection."""

    text: str


Reply = str | HttpError | Raw | CutOff


@dataclass
class ScriptedOpenAI:
    """The server as a test sees it: what it will answer, and what it was asked."""

    base_url: str
    models: list[str] = field(default_factory=lambda: ["scripted"])
    api_key: str | None = None
    """The only key accepted; None accepts any."""
    models_status: int = 200
    """What /v1/models answers with."""
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the chat completions asked for, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """The headers of the same requests."""

    def script(self, *replies: Reply) -> None:
        """Set the answers to the next chat completions, in order."""
        self.replies[:] = replies

    async def list_models(self, request: Request) -> Response:
        if self._unauthorized(request):
            return _error(HttpError(401, "wrong key"))
        if self.models_status != 200:
            return _error(HttpError(self.models_status))
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.models]
        return JSONResponse({"object": "list", "data": data})

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if self._unauthorized(request):
            return _error(HttpError(401, "wrong key"))
        reply = self.replies.pop(0) if self.replies else HttpError(400, "the script is exhausted")
        if isinstance(reply, HttpError):
            return _error(reply)
        if isinstance(reply, Raw):
            return Response(reply.body, media_type=reply.content_type)
        if isinstance(reply, CutOff):
            return StreamingResponse(_cut_off(reply.text), media_type="text/event-stream")
        usage = _usage(body, reply)
        if not body.get("stream"):
            return JSONResponse(_envelope("chat.completion", "message", reply, "stop") | {"usage": usage})
        with_usage = (body.get("stream_options") or {}).get("include_usage")
        return StreamingResponse(_events(reply, usage if with_usage else None), media_type="text/event-stream")

    async def embed(self, request: Request) -> Response:
        """Answer with a vector that says which letters a text holds: near texts share letters."""
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [[float(text.lower().count(letter)) + 0.01 for letter in ascii_lowercase] for text in texts]
        packed = [base64.b64encode(struct.pack(f"<{len(one)}f", *one)).decode() for one in vectors]
        chosen = packed if body.get("encoding_format") == "base64" else vectors
        data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(chosen)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return JSONResponse({"object": "list", "data": data, "model": "scripted", "usage": usage})

    def _unauthorized(self, request: Request) -> bool:
        return self.api_key is not None and request.headers.get("authorization") != f"Bearer {self.api_key}"


@contextmanager
def serve_scripted_openai() -> Iterator[ScriptedOpenAI]:
    """Run a server on a free loopback port for as long as the context lasts."""
    listener = socket.create_server(("127.0.0.1", 0))  # listens already: nobody need wait for uvicorn
    scripted = ScriptedOpenAI(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    routes = [
        Route("/v1/models", scripted.list_models),
        Route("/v1/chat/completions", scripted.complete, methods=["POST"]),
        Route("/v1/embeddings", scripted.embed, methods=["POST"]),
    ]
    config = uvicorn.Config(
        Starlette(routes=routes), log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield scripted
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _error(reply: HttpError) -> Response:
    body = {"error": {"message": reply.message, "type": "scripted", "param": reply.param, "code": None}}
    return JSONResponse(body, status_code=reply.status, headers={} if reply.retry else NO_RETRY)


def _usage(body: dict[str, Any], text: str) -> dict[str, int]:
    """Count words as tokens."""
    asked = sum(len(str(message["content"]).split()) for message in body["messages"])
    answered = len(text.split())
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def _envelope(
    kind: str, part: Literal["message", "delta"], text: str | None, finish_reason: str | None
) -> dict[str, Any]:
    content = {} if text is None else {"role": "assistant", "content": text}
    choice = {"index": 0, part: content, "finish_reason": finish_reason}
    return {"id": "scripted", "object": kind, "created": 0, "model": "scripted", "choices": [choice]}


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


async def _events(text: str, usage: dict[str, int] | None) -> Any:
    for at in range(0, len(text), 8):
        yield _event(_envelope("chat.completion.chunk", "delta", text[at : at + 8], None))
    yield _event(_envelope("chat.completion.chunk", "delta", None, "stop"))
    if usage:
        yield _event(_envelope("chat.completion.chunk", "delta", None, None) | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


async def _cut_off(text: str) -> Any:
    yield _event(_envelope("chat.completion.chunk", "delta", text, None))
    raise ConnectionResetError("scripted")
