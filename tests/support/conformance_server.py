"""A server for the protocol's conformance suite, and a wrapper that removes the proxy's prefix from names."""

import asyncio
import base64
import json
import struct
from typing import Any

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.resources import ResourceContent, ResourceResult
from mcp.shared.message import ServerMessageMetadata
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Sent
from support.mcp_servers import RawTool
from support.pictures import png

NAME = "conformance"
SCHEME = "test://"
PAUSE_S = 0.05
ADDRESS_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}},
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
PNG = png()
WAV = b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
WAV += b"data" + struct.pack("<IH", 2, 0x8080)
"""Two samples of silence."""


def picture() -> mcp_types.ImageContent:
    return mcp_types.ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")


def page(uri: str, text: str, mime_type: str = "text/plain") -> mcp_types.EmbeddedResource:
    return mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents(uri=uri, text=text, mime_type=mime_type))


def conformance_server() -> FastMCP[Any]:
    """Return the server."""
    server: FastMCP[Any] = FastMCP(NAME, dereference_schemas=False)
    _add_tools(server)
    _add_resources(server)
    _add_prompts(server)
    _add_questions(server)
    return server


def _add_tools(server: FastMCP[Any]) -> None:
    """Add tools with content of each kind, and a tool that reports progress."""

    @server.tool(name="test_simple_text")
    def text() -> str:
        """Get a simple text."""
        return "a simple text"

    @server.tool(name="test_tool_with_logging")
    async def messages(ctx: Context) -> str:
        """Log what is done."""
        for what in ("started", "processes data", "ended"):
            await ctx.info(what)
            await asyncio.sleep(PAUSE_S)
        return "three messages"

    @server.tool(name="test_image_content")
    def image() -> mcp_types.ImageContent:
        """Get a picture."""
        return picture()

    @server.tool(name="test_audio_content")
    def audio() -> mcp_types.AudioContent:
        """Get a sound."""
        return mcp_types.AudioContent(data=base64.b64encode(WAV).decode(), mime_type="audio/wav")

    @server.tool(name="test_embedded_resource")
    def embedded() -> mcp_types.EmbeddedResource:
        """Get a resource."""
        return page("test://embedded-resource", "a resource in a result")

    @server.tool(name="test_multiple_content_types")
    def mixed() -> list[mcp_types.ContentBlock]:
        """Get a text, a picture and a resource."""
        text = mcp_types.TextContent(text="a text, a picture and a resource")
        return [text, picture(), page("test://mixed-content-resource", '{"beside": 2}', "application/json")]

    @server.tool(name="test_error_handling")
    def error() -> str:
        """Get an error."""
        raise ToolError("this tool always fails")

    @server.tool(name="test_tool_with_progress")
    async def progress(ctx: Context) -> str:
        """Get a text, slowly, and its progress."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await asyncio.sleep(PAUSE_S)
        return "all is done"

    about = "Get what takes an address."
    server.add_tool(RawTool(name="json_schema_2020_12_tool", description=about, parameters=ADDRESS_SCHEMA))


def _add_resources(server: FastMCP[Any]) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def text() -> str:
        """Return a text."""
        return "a text that stays"

    @server.resource("test://static-binary", mime_type="image/png")
    def binary() -> ResourceResult:
        """Return a picture."""
        return ResourceResult([ResourceContent(PNG, mime_type="image/png")])

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """Return a text that somebody may watch."""
        return "a text to watch"

    @server.resource("test://template/{number}/data", mime_type="text/plain")
    def data(number: str) -> str:
        """Return the data of a number."""
        return f"the data of {number}"


def _add_prompts(server: FastMCP[Any]) -> None:
    @server.prompt(name="test_simple_prompt")
    def simple() -> str:
        """Say something."""
        return "Say something."

    @server.prompt(name="test_prompt_with_arguments")
    def with_arguments(arg1: str, arg2: str) -> str:
        """Say two things."""
        return f"Say {arg1} and {arg2}."

    @server.prompt(name="test_prompt_with_embedded_resource")
    def with_resource(resourceUri: str) -> list[Message]:  # noqa: N803 - the suite's word
        """Say what a resource is about."""
        return [Message(page(resourceUri, "a resource in a prompt")), Message("What is this about?")]

    @server.prompt(name="test_prompt_with_image")
    def with_image() -> list[Message]:
        """Say what a picture shows."""
        return [Message(picture()), Message("What does this show?")]


def _add_questions(server: FastMCP[Any]) -> None:
    """Add tools that ask the client, and completions."""

    async def ask(ctx: Context, message: str, properties: dict[str, Any]) -> str:
        schema = {"type": "object", "properties": properties}
        answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
        return f"action={answer.action}, content={answer.content}"

    @server.tool(name="test_elicitation")
    async def elicitation(ctx: Context, message: str) -> str:
        """Get what the user says."""
        return await ask(ctx, message, {"username": {"type": "string"}, "email": {"type": "string"}})

    @server.tool(name="test_elicitation_sep1034_defaults")
    async def defaults(ctx: Context) -> str:
        """Get values that have defaults."""
        status = {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}
        numbers = {"age": {"type": "integer", "default": 30}, "score": {"type": "number", "default": 95.5}}
        name, verified = {"type": "string", "default": "John Doe"}, {"type": "boolean", "default": True}
        return await ask(ctx, "Who is it?", {"name": name, **numbers, "status": status, "verified": verified})

    @server.tool(name="test_elicitation_sep1330_enums")
    async def choices(ctx: Context) -> str:
        """Get chosen values."""
        plain = {"type": "string", "enum": ["option1", "option2", "option3"]}
        titled = [{"const": f"value{number}", "title": f"Value {number}"} for number in (1, 2, 3)]
        names = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]}
        properties = {
            "untitledSingle": plain,
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", **names},
            "untitledMulti": {"type": "array", "items": plain},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        }
        return await ask(ctx, "Which ones?", properties)

    @server.tool(name="test_sampling")
    async def sampling(ctx: Context, prompt: str) -> str:
        """Get words of the client's model."""
        message = mcp_types.SamplingMessage(role="user", content=mcp_types.TextContent(text=prompt))
        request = mcp_types.CreateMessageRequest(
            params=mcp_types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        )
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        answer = await ctx.session.send_request(request, mcp_types.CreateMessageResult, metadata=related)
        return f"the model says {answer.content}"

    @server.completion
    def complete(_ref: Any, argument: mcp_types.CompletionArgument, _context: Any) -> list[str]:
        return [f"{argument.value}{end}" for end in ("ed", "er")]


class Unprefixed:
    """Lets a client use names without the prefix that the proxy adds."""

    def __init__(self, app: ASGIApp, server: str) -> None:
        self._app = app
        self._server = server
        self._scheme = f"{SCHEME}{server}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request with prefixed names, and its answer with unprefixed ones."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        there = self._there(body)
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        headers.append((b"content-length", str(len(there)).encode()))
        given = iter([{"type": "http.request", "body": there, "more_body": False}])

        async def received() -> Sent:
            return next(given, None) or await receive()

        async def sent(message: Sent) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": self._here(message.get("body", b""))}
            elif message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name != b"content-length"]
                message = {**message, "headers": kept}
            await send(message)

        await self._app({**scope, "headers": headers}, received, sent)

    def _there(self, body: bytes) -> bytes:
        message = json.loads(body)
        params = message.get("params", {})
        if message.get("method") == "tools/call":
            params["name"] = f"{self._server}__{params['name']}"
        elif message.get("method") == "prompts/get":
            params["name"] = f"{self._server}_{params['name']}"
        elif message.get("method") == "completion/complete":
            params["ref"]["name"] = f"{self._server}_{params['ref']['name']}"
        elif message.get("method", "").startswith("resources/") and "uri" in params:
            params["uri"] = params["uri"].replace(SCHEME, self._scheme, 1)
        return json.dumps(message).encode()

    def _here(self, body: bytes) -> bytes:
        body = body.replace(f'"{self._server}__'.encode(), b'"').replace(f'"{self._server}_'.encode(), b'"')
        return body.replace(self._scheme.encode(), SCHEME.encode())
