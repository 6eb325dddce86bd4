"""Serve the scripted model of an agent. The agent's tools and last result determine which of three steps comes next.

It speaks chat completions, responses and Google's generateContent, and refuses requests that OpenAI would refuse.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.clients.agents.forms import FORMS, MODEL, Call, Form
from benchmarks.clients.agents.strictness import problem
from benchmarks.clients.model import listening, serving
from packetgate.connectors.serve.protocol import sse_event

REQUEST = "Show the counter, add 5 to it, and show it again"
ADDED = 5
PAUSE_S = 3.0
"""Seconds before the model repeats a call that waits for approval."""
MAX_CALLS = 8
"""Maximum number of times that the model makes the same call."""
COUNTER = re.compile(r"value (\d+) in process (\w+)")
ADDITION = re.compile(rf"added {ADDED} in process (\w+)")


@dataclass(frozen=True)
class Turn:
    """The last messages of an agent's request, and the model's reply."""

    at: float
    """Time of arrival, by the monotonic clock."""
    news: str
    """The messages after the model's last reply: a user message, or results."""
    reply: Call | str


@dataclass
class AgentModel:
    """The scripted model, and the requests that it received."""

    origin: str
    turns: list[Turn] = field(default_factory=list)
    refused: str = ""
    """The problem of the first invalid request; empty if all were valid."""

    @property
    def news(self) -> str:
        """The latest messages of the agent."""
        return self.turns[-1].news if self.turns else ""

    @property
    def is_done(self) -> bool:
        """Whether the model gave its last answer."""
        return bool(self.turns and isinstance(self.turns[-1].reply, str))

    async def reply(self, form: Form, body: dict[str, Any]) -> Call | str:
        """Return the model's reply to a valid request."""
        tools, news = form.tools(body), form.news(body)
        if not (context := _listed(tools, "set_context")):
            return "A counter"  # a title
        at, reply = time.monotonic(), self._next(tools, news, context)
        self.turns.append(Turn(at, news, reply))
        if waits(news):
            await asyncio.sleep(PAUSE_S)
        if isinstance(reply, str) and (final := _listed(tools, "final_answer")):
            return final, {"answer": reply}  # the only way to end in smolagents
        return reply

    def _next(self, tools: Mapping[str, Any], news: str, context: str) -> Call | str:
        if found := COUNTER.search(news):
            return self._call(tools, "add", {"n": ADDED}) if found[1] == "0" else f"The counter is {found[1]} now."
        if ADDITION.search(news) or "unknown_words" in news:
            return self._call(tools, "show", {})
        if waits(news) and len(self.turns) < MAX_CALLS + 3:
            return self._call(tools, "add", {"n": ADDED})
        if REQUEST in news:
            return context, {"query": REQUEST}
        return f"Stopped, because the last call returned: {news[:100]}"

    def _call(self, tools: Mapping[str, Any], name: str, arguments: dict[str, Any]) -> Call:
        if listed := _listed(tools, f"counter__{name}"):
            return listed, arguments
        caller = _listed(tools, "call_changing_tool" if name == "add" else "call_read_tool")
        schema = tools.get(caller) or {}
        required = {key: schema["properties"][key].get("default") for key in schema.get("required", ())}
        return caller, required | {"name": f"counter.{name}", "arguments": arguments}


def waits(news: str) -> bool:
    """Whether a result says that the call waits for approval."""
    return "NOT run" in news and " answer --session " in news


def adds(reply: Call | str) -> bool:
    """Whether the model calls the tool that writes."""
    return isinstance(reply, tuple) and "add" in {
        reply[1].get("name", "").rpartition(".")[2],
        reply[0].rpartition("_")[2],
    }


def _listed(tools: Mapping[str, Any], name: str) -> str:
    return next((listed for listed in tools if re.search(rf"(^|[_.]){name}$", listed)), "")


@contextmanager
def serve_agent_model() -> Iterator[AgentModel]:
    """Run the model on a free port of this machine."""
    with listening() as (listener, origin):
        model = AgentModel(origin)

        async def models(_request: Request) -> Response:
            return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "here"}]})

        async def answer(request: Request) -> Response:
            method = request.path_params.get("method", "")
            path = "generateContent" if method else request.url.path.removeprefix("/v1/")
            form, body = FORMS[path], await request.json()
            if refused := problem(path, body, form.tools(body)):
                model.refused = model.refused or refused
                error = {"message": refused, "type": "invalid_request_error", "param": None, "code": None}
                return JSONResponse({"error": error}, status_code=400)
            reply, fresh = await model.reply(form, body), f"call_{time.monotonic_ns()}"
            if not (body.get("stream") or method.endswith("streamGenerateContent")):
                return JSONResponse(form.whole(reply, fresh))

            async def events() -> AsyncIterator[str]:
                for event in form.events(reply, fresh):
                    yield f"data: {event}\n\n" if isinstance(event, str) else sse_event(event)

            return StreamingResponse(events(), media_type="text/event-stream")

        paths = ("/v1/chat/completions", "/v1/responses", "/v1beta/models/{method}")
        routes = [Route("/v1/models", models), *(Route(path, answer, methods=["POST"]) for path in paths)]
        with serving(routes, listener):
            yield model
