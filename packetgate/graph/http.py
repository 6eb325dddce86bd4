"""Beside a LangGraph server's own routes: the settings of assistants and runs are checked before they are kept.

The server itself takes any settings for an assistant, and drops those that it does not know.
"""

import json
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from packetgate.state.context import routing_context
from packetgate.state.errors import ConfigError


class ContextCheck:
    """Answers 422, and names the field, where a request's `context` holds settings that there are not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
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
    """Return what is wrong with the settings in a request, or in each of several; empty where nothing is."""
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError):  # for the server to refuse
        return ""
    for one in asked if isinstance(asked, list) else [asked]:
        context = one.get("context") if isinstance(one, dict) else None
        try:
            routing_context(context if isinstance(context, dict) else None)
        except ConfigError as error:
            return str(error)
    return ""


app = Starlette(middleware=[Middleware(ContextCheck)])
