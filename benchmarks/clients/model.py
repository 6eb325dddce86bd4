"""Serve the scripted model behind Packetgate: it approves every call, and answers with the tool output."""

import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from packetgate.connectors.serve.protocol import sse_event
from packetgate.models.call_syntax import DEFAULT_SYNTAX

TITLE, TAG, NEXT = "Plan of the day", "planning", "Which line is the last?"
"""The model's answers when a client requests a title, tags or follow-up suggestions."""

ADD = "Add a line to"
"""A request that the model answers with a question."""

_OUTPUT = re.compile(r"<<<tool output \S+ [^\n]*\n(.*?)\n<<<end of tool output", re.DOTALL)
_FILE, _QUOTED = re.compile(r"\b\w+\.txt\b"), re.compile(r'Append "([^"]+)"')


@dataclass
class ScriptedModel:
    """The scripted model, and the requests that it received."""

    base_url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the received requests."""

    def has_system_words(self, words: str) -> bool:
        """Whether a system prompt contained this text."""
        return any(words in _text(one) for body in self.asked for one in body["messages"] if one["role"] == "system")

    async def complete(self, request: Request) -> Response:
        """Answer one request."""
        body = await request.json()
        self.asked.append(body)
        text = said(body["messages"], may_call="tools" in body)
        frame = {"id": "scripted", "created": 0, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return JSONResponse({**frame, "object": "chat.completion", "choices": [choice], "usage": usage})

        async def events() -> AsyncIterator[str]:
            for delta, ended in (({"role": "assistant", "content": text}, None), ({}, "stop")):
                choice = {"index": 0, "delta": delta, "finish_reason": ended}
                yield sse_event({**frame, "object": "chat.completion.chunk", "choices": [choice]})
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")


def said(messages: list[dict[str, Any]], *, may_call: bool) -> str:
    """Return the answer to these messages."""
    system, last = _text(messages[0]), _text(messages[-1])
    if last.rstrip().endswith("Is this call right?"):
        return "yes"
    if may_call and (called := calls(last.partition("\n\n(")[0])):
        return called
    if outputs := _OUTPUT.findall(last):
        return "The tools say: " + " / ".join(outputs)
    known = {'"title"': {"title": TITLE}, '"tags"': {"tags": [TAG]}, '"follow_ups"': {"follow_ups": [NEXT]}}
    for name, answer in known.items():
        if name in last:
            return json.dumps(answer)
    return TITLE if "title" in f"{system}\n{last}".lower() else f"I was told: {last.strip()[:200]}"


def calls(request: str) -> str:
    """Return the calls for a request that names files and a text to append; empty for any other request."""
    files, quoted = _FILE.findall(request), _QUOTED.search(request)
    if _OUTPUT.search(request):
        return ""
    chosen: list[tuple[str, dict[str, str]]] = [("ai__read", {"path": name}) for name in dict.fromkeys(files)]
    if ADD in request and not quoted:
        chosen = [("ask_user", {"question": "Which line?"})]
    elif quoted and files:
        chosen = [("ai__append", {"path": files[0], "text": quoted[1]})]
    return DEFAULT_SYNTAX.write(chosen) if chosen else ""


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


@contextmanager
def serve_model() -> Iterator[ScriptedModel]:
    """Run the model on a free port of this machine."""
    with listening() as (listener, origin):
        model = ScriptedModel(f"{origin}/v1")

        async def models(_request: Request) -> Response:
            return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "here"}]})

        routes = [Route("/v1/models", models), Route("/v1/chat/completions", model.complete, methods=["POST"])]
        with serving(routes, listener):
            yield model


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """Open a free port of this machine, and yield its socket and its origin."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def serving(routes: list[Route], listener: socket.socket) -> Iterator[None]:
    """Serve routes in a thread until the context ends."""
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)
