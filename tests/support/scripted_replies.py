"""Replies of the scripted server, and their format in HTTP responses."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from packetgate.tools.spec.descriptions import listed_name

NO_RETRY = {"x-should-retry": "false"}
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class HttpError:
    """Answer with this HTTP status, and unless `retry`, tell the client not to retry."""

    status: int
    message: str = "scripted error"
    param: str | None = None
    retry: bool = False
    code: str | None = None
    retry_after: str | None = None
    """The `Retry-After` header."""
    body: Any = None
    """The complete body, if it is not OpenAI's error object."""

    def response(self) -> Response:
        error = {"message": self.message, "type": "scripted", "param": self.param, "code": self.code}
        headers = {} if self.retry else dict(NO_RETRY)
        if self.retry_after is not None:
            headers["retry-after"] = self.retry_after
        return JSONResponse({"error": error} if self.body is None else self.body, self.status, headers)


@dataclass(frozen=True)
class Raw:
    """Answer with exactly this body and HTTP status 200."""

    body: str
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        return Response(self.body, media_type=self.content_type, headers=dict(self.headers))


@dataclass(frozen=True)
class Token:
    """A token of an answer, with the probabilities of the alternatives."""

    text: str
    probabilities: Mapping[str, float] = field(default_factory=dict)

    def listed(self, count: int) -> dict[str, Any]:
        known = {self.text: 1.0, **self.probabilities}
        top = sorted(self.probabilities, key=known.__getitem__, reverse=True)[:count]
        return _listed(self.text, known[self.text]) | {"top_logprobs": [_listed(one, known[one]) for one in top]}


@dataclass(frozen=True)
class Message:
    """Answer with an assistant message of these fields, and with the logprobs of tokens on request."""

    fields: Mapping[str, Any]
    finish_reason: str = "stop"
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Tokens:
    """Answer with these tokens, and with their logprobs on request."""

    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, *tokens: str | Token) -> "Tokens":
        return cls(tuple(one if isinstance(one, Token) else Token(one, {one: 1.0}) for one in tokens))

    @property
    def text(self) -> str:
        return "".join(one.text for one in self.tokens)


@dataclass(frozen=True)
class CutOff:
    """Send this much of an answer, then break the connection."""

    text: str

    def response(self, *, stream: bool) -> Response:
        if stream:
            return StreamingResponse(self._events(), media_type=EVENTS)
        body = json.dumps(envelope("chat.completion", "message", {"content": self.text}, "stop"))
        return StreamingResponse(
            self._body(body), media_type="application/json", headers={"content-length": str(len(body))}
        )

    async def _events(self) -> AsyncIterator[str]:
        yield event(envelope("chat.completion.chunk", "delta", {"content": self.text}, None))
        raise ConnectionResetError("scripted")

    async def _body(self, body: str) -> AsyncIterator[str]:
        yield body[: len(body) // 2]
        raise ConnectionResetError("scripted")


@dataclass(frozen=True)
class Stall:
    """Send this text, if any, then nothing until the client disconnects; with `drip`, send endless white space."""

    text: str | None = None
    drip: bool = False

    def response(self, *, stream: bool) -> Response:
        if self.text is None and not self.drip:
            return _Silence()
        return StreamingResponse(self._body(stream=stream), media_type=EVENTS if stream else "application/json")

    async def _body(self, *, stream: bool) -> AsyncIterator[str]:
        content = {"content": self.text or ""}
        yield event(envelope("chat.completion.chunk", "delta", content, None)) if stream else ' {"choices": '
        while self.drip:
            await asyncio.sleep(0.02)
            yield " "
        await asyncio.Event().wait()  # starlette cancels this when the client disconnects


@dataclass(frozen=True)
class Thinks:
    """Think for this many tokens, one word each, and then answer. The requested length may truncate both."""

    tokens: int
    text: str
    where: Literal["beside", "marks", "billed"] = "beside"
    """In `reasoning_content`, in the text between `<think>` marks, or only in the usage."""
    most: int = 1_000_000
    """The server's own limit on the length of an answer."""

    def response(self, body: Mapping[str, Any]) -> Response:
        limit = min(body.get("max_tokens") or body["max_completion_tokens"], self.most)
        thought, words = "so " * min(self.tokens, limit), self.text.split(" ")
        text = " ".join(words[: max(0, limit - self.tokens)])
        fields = {"content": text}
        if self.where == "beside":
            fields["reasoning_content"] = thought
        elif self.where == "marks":
            fields["content"] = f"<think>{thought}" + (f"</think>{text}" if self.tokens <= limit else "")
        written = min(self.tokens + len(words), limit)
        details = {"reasoning_tokens": min(self.tokens, limit) if self.where == "billed" else 0}
        usage = {"prompt_tokens": 9, "completion_tokens": written, "total_tokens": 9 + written}
        usage |= {"completion_tokens_details": details}
        reason = "length" if self.tokens + len(words) > limit else "stop"
        if not body.get("stream"):
            return JSONResponse(envelope("chat.completion", "message", fields, reason) | {"usage": usage})
        kind = "chat.completion.chunk"
        parts = [{name: part} for name in ("reasoning_content", "content") if (part := fields.get(name))]
        events = [event(envelope(kind, "delta", part, None)) for part in parts]
        events += [
            event(envelope(kind, "delta", None, reason)),
            event({**envelope(kind, "delta", None, None), "choices": [], "usage": usage}),
        ]
        return Response("".join([*events, "data: [DONE]\n\n"]), media_type=EVENTS)


Reply = str | HttpError | Raw | CutOff | Stall | Message | Tokens | Thinks


def read_selection(reply: Reply) -> dict[str, Any] | None:
    """Return the selection in a reply; None if the reply is not a selection."""
    try:
        value = json.loads(reply) if isinstance(reply, str) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) and "action" in value else None


def as_calls(chosen: Mapping[str, Any]) -> Message:
    """Return a selection as native tool calls, by the names under which tools are offered.

    A selection without a call has no text, because the answer is then requested separately.
    """
    match chosen["action"]:
        case "none":
            return Message({"content": ""})
        case "call":
            calls = [(one["tool"], one["params"]) for one in chosen["calls"]]
        case "clarify":
            calls = [("ask_user", {"question": chosen["question"]})]
        case _:
            calls = [("show_tools", {"names": chosen["tools"]})]
    written = [
        (listed_name(*name.split(".", 1)) if "." in name else name, json.dumps(arguments)) for name, arguments in calls
    ]
    return tool_calls(*written, content=chosen.get("reasoning"))


def tool_calls(*calls: tuple[str, str], content: str | None = None, finish_reason: str = "tool_calls") -> Message:
    """Return an answer with calls, whose arguments are strings, as in the protocol."""
    made = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    return Message({"content": content, "tool_calls": made}, finish_reason)


def as_text(chosen: Mapping[str, Any]) -> str:
    """Return a selection in the form of servers that leave calls in the text."""
    calls = as_calls(chosen).fields.get("tool_calls", ())
    return "".join(
        f'<tool_call>{{"name": "{one["name"]}", "arguments": {one["arguments"]}}}</tool_call>'
        for one in (call["function"] for call in calls)
    )


class _Silence(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


def envelope(
    kind: str, part: Literal["message", "delta"], fields: Mapping[str, Any] | None, finish_reason: str | None
) -> dict[str, Any]:
    """Return a completion, or a chunk of one, with one choice."""
    content = {} if fields is None else {"role": "assistant", **fields}
    choice = {"index": 0, part: content, "finish_reason": finish_reason}
    return {"id": "scripted", "object": kind, "created": 0, "model": "scripted", "choices": [choice]}


def event(data: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


def _listed(text: str, probability: float) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": math.log(probability)}
