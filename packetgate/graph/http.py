"""Checks the settings of assistants and runs in front of a LangGraph server, which ignores unknown settings."""

import json
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from packetgate.state.context import routing_context
from packetgate.state.errors import ConfigError


class ContextCheck:
    """Answers 422 to requests whose `context` has unknown or invalid settings; the answer names the field."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or refuse it."""
        if scope["type"] != "http" or scope["method"] not in {"POST", "PATCH"}:
            await self._app(scope, receive, send)
            return
        messages: list[Message] = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        problem = _problem(b"".join(message.get("body", b"") for message in messages))

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        answer = JSONResponse({"detail": problem}, status_code=422) if problem else self._app
        await answer(scope, replay, send)


def _problem(body: bytes) -> str:
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):  # the server itself refuses such a body
        return ""
    for request in content if isinstance(content, list) else [content]:
        context = request.get("context") if isinstance(request, dict) else None
        try:
            routing_context(context if isinstance(context, dict) else None)
        except ConfigError as error:
            return str(error)
    return ""


app = Starlette(middleware=[Middleware(ContextCheck)])
