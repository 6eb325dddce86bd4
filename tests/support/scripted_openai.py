"""An HTTP server with OpenAI's protocol and scripted answers."""

import base64
import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from support.scripted_replies import (
    CutOff,
    HttpError,
    Message,
    Raw,
    Reply,
    Stall,
    Thinks,
    Token,
    Tokens,
    as_calls,
    as_text,
    envelope,
    event,
    read_selection,
)


def verdict(probability: float) -> Tokens:
    """Return the answer to the question whether a call is right, with this probability of yes."""
    words = {"yes": probability, "no": 1 - probability}
    return Tokens.of(Token(max(words, key=words.__getitem__), words))


def text_of(message: dict[str, Any]) -> str:
    """Return the text of a message of a request."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(one.get("text", "") for one in content)


EXHAUSTED = HttpError(410, "the script is exhausted")


@dataclass
class ScriptedOpenAI:
    """The server's scripted answers and recorded requests."""

    base_url: str
    models: list[str] = field(default_factory=lambda: ["scripted"])
    api_key: str | None = None
    """The only accepted key; None accepts any key."""
    models_status: int = 200
    """The HTTP status of /v1/models."""
    replies: list[Reply] = field(default_factory=list)
    otherwise: Reply = EXHAUSTED
    """The answer after the scripted answers."""
    refuses: dict[str, HttpError] = field(default_factory=dict)
    """Errors by feature of a request (see `features`). The first that applies replaces the scripted answer."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the requests for chat completions, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """The headers of the same requests."""
    verdict: Reply = field(default_factory=lambda: verdict(0.98))
    """The answer to each question whether a call is right."""
    reviews: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of these questions, which are not in `requests`."""

    warm_ups: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of requests that only evaluate a prompt, which are not in `requests`."""
    silent: dict[str, Any] | None = None
    """The last request that got a selection without a call and without text. If the same request returns, it gets the
    same answer and is not in `requests`."""

    def script(self, *replies: Reply) -> None:
        """Set the answers to the next chat completions, in order."""
        self.replies[:] = replies

    async def list_models(self, request: Request) -> Response:
        if self._unauthorized(request):
            return HttpError(401, "wrong key").response()
        if self.models_status != 200:
            return HttpError(self.models_status).response()
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.models]
        return JSONResponse({"object": "list", "data": data})

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        if body.get("max_tokens") == 1 and len(body["messages"]) > 1:
            self.warm_ups.append(body)
            return HttpError(401, "wrong key").response() if self._unauthorized(request) else _response("Hello", body)
        if self.silent and (body["messages"], body.get("tools")) == (self.silent["messages"], self.silent.get("tools")):
            self.silent = None
            return _response(Message({"content": ""}), body)
        is_review = text_of(body["messages"][-1]).rstrip().endswith("Is this call right?")
        (self.reviews if is_review else self.requests).append(body)
        if not is_review:
            self.headers.append(dict(request.headers))
        if self._unauthorized(request):
            return HttpError(401, "wrong key").response()
        if is_review:
            return _response(self.verdict, body)
        present = features(body)
        refusal = next((error for feature, error in self.refuses.items() if feature in present), None)
        return _response(refusal or self._next(body), body)

    def _next(self, body: dict[str, Any]) -> Reply:
        """Return the next reply, with a selection as native calls if tools are offered, else as calls in the text."""
        reply = self.replies.pop(0) if self.replies else self.otherwise
        if isinstance(reply, Thinks) and (thought := read_selection(reply.text)):
            return replace(reply, text=as_text(thought))
        chosen = read_selection(reply)
        self.silent = body if chosen and chosen["action"] == "none" else None
        if chosen is None:
            return reply
        return as_calls(chosen) if body.get("tools") else as_text(chosen)

    async def decide(self, request: Request) -> Response:
        """Answer a request for decisions as scripted."""
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        if self._unauthorized(request):
            return HttpError(401, "wrong key").response()
        reply = self.replies.pop(0) if self.replies else EXHAUSTED
        if isinstance(reply, CutOff | Stall):
            return reply.response(stream=False)
        return reply.response() if isinstance(reply, HttpError | Raw) else Response(str(reply), 200)

    async def embed(self, request: Request) -> Response:
        """Answer with a vector of letter counts, so that similar texts have similar vectors."""
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
def serve_scripted_openai(more: Sequence[Route] = ()) -> Iterator[ScriptedOpenAI]:
    """Run a server on a free loopback port until the end of the block; `more` are additional routes."""
    listener = socket.create_server(
        ("127.0.0.1", 0)
    )  # the socket already listens, so clients need not wait for uvicorn
    scripted = ScriptedOpenAI(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    routes = [
        Route("/v1/models", scripted.list_models),
        Route("/v1/chat/completions", scripted.complete, methods=["POST"]),
        Route("/v1/decisions", scripted.decide, methods=["POST"]),
        Route("/v1/systemone", scripted.decide, methods=["POST"]),
        Route("/v1/embeddings", scripted.embed, methods=["POST"]),
        *more,
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
    """Return a free loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def features(body: dict[str, Any]) -> set[str]:
    """Return the features of a request: its keys, `top_logprobs.N`, and `pictures` if it contains images.

    `schema.KEY` stands for the keys in the tools' schemas: keywords and names of properties.
    """
    found = {*body, f"top_logprobs.{body.get('top_logprobs')}"}
    found |= {f"streamed {name}" for name in body} if body.get("stream") else set()
    found |= {f"schema.{key}" for key in _keys([one["function"]["parameters"] for one in body.get("tools", ())])}
    return found | ({"pictures"} if any(isinstance(one["content"], list) for one in body["messages"]) else set())


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(one)


def _response(reply: Reply, body: dict[str, Any]) -> Response:
    if isinstance(reply, HttpError | Raw):
        return reply.response()
    if isinstance(reply, CutOff | Stall):
        return reply.response(stream=bool(body.get("stream")))
    if isinstance(reply, Thinks):
        return reply.response(body)
    if isinstance(reply, Message):
        usage = _usage(body, f"{reply.fields.get('content') or ''} {reply.fields.get('tool_calls') or ''}")
        if body.get("stream"):
            return StreamingResponse(_message_events(reply, usage), media_type="text/event-stream")
        answer = envelope("chat.completion", "message", reply.fields, reply.finish_reason) | {"usage": usage}
        return JSONResponse(_with_logprobs(answer, reply.tokens, body))
    text = reply.text if isinstance(reply, Tokens) else reply
    usage = _usage(body, text)
    if body.get("stream"):
        with_usage = (body.get("stream_options") or {}).get("include_usage")
        return StreamingResponse(_events(text, usage if with_usage else None), media_type="text/event-stream")
    answer = envelope("chat.completion", "message", {"content": text}, "stop") | {"usage": usage}
    return JSONResponse(_with_logprobs(answer, reply.tokens if isinstance(reply, Tokens) else (), body))


def _with_logprobs(answer: dict[str, Any], tokens: Sequence[Token], body: dict[str, Any]) -> dict[str, Any]:
    if tokens and body.get("logprobs"):
        content = [token.listed(body.get("top_logprobs") or 0) for token in tokens]
        answer["choices"][0]["logprobs"] = {"content": content, "refusal": None}
    return answer


def _usage(body: dict[str, Any], text: str) -> dict[str, int]:
    """Count words as tokens."""
    asked = sum(len(str(message["content"]).split()) for message in body["messages"])
    answered = len(text.split())
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


async def _message_events(reply: Message, usage: dict[str, int]) -> AsyncIterator[str]:
    kind = "chat.completion.chunk"
    calls = reply.fields.get("tool_calls") or ()
    yield event(envelope(kind, "delta", {**reply.fields, "tool_calls": None}, None))
    for at, call in enumerate(calls):
        function = call["function"]
        yield event(_call_delta({**call, "index": at, "function": {**function, "arguments": ""}}))
        for begin in range(0, len(function["arguments"]), 8):
            yield event(_call_delta({"index": at, "function": {"arguments": function["arguments"][begin : begin + 8]}}))
    yield event(envelope(kind, "delta", None, reply.finish_reason))
    yield event(envelope(kind, "delta", None, None) | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _call_delta(call: dict[str, Any]) -> dict[str, Any]:
    return envelope("chat.completion.chunk", "delta", {"tool_calls": [call]}, None)


async def _events(text: str, usage: dict[str, int] | None) -> AsyncIterator[str]:
    for at in range(0, len(text), 8):
        yield event(envelope("chat.completion.chunk", "delta", {"content": text[at : at + 8]}, None))
    yield event(envelope("chat.completion.chunk", "delta", None, "stop"))
    if usage:
        yield event(envelope("chat.completion.chunk", "delta", None, None) | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"
