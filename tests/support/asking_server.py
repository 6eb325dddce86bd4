"""A server that asks questions during its calls, in the form of each protocol. As a script, it uses standard input."""

import asyncio
from typing import Any

import mcp_types
from fastmcp import Context, FastMCP
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

READS = mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
TITLE = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
LOGIN = "https://login.example/now"


class Title(BaseModel):
    """The form of `ask_in_session`."""

    title: str


def asking_server(name: str = "desk") -> FastMCP[Any]:
    """Return the server. Its questions contain the argument `topic`."""
    server: FastMCP[Any] = FastMCP(name)

    async def answer_of(ctx: Context, question: Any, form: Any = mcp_types.ElicitResult) -> Any:
        """Return the client's answer as text; if the protocol has no server requests, return the result that asks."""
        assert ctx.request_context is not None
        if ctx.request_context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            related = ServerMessageMetadata(related_request_id=ctx.request_id)
            answer = await ctx.session.send_request(question, form, metadata=related)
        elif not ctx.input_responses:
            return mcp_types.InputRequiredResult(input_requests={"it": question})
        else:
            answer = ctx.input_responses["it"]
        return answer.model_dump_json(exclude_none=True, include={"action", "content", "model"})

    @server.tool(annotations=READS)
    async def ask_title(
        ctx: Context, topic: str, hint: str = "", times: int = 1
    ) -> str | mcp_types.InputRequiredResult:
        """Ask the person for a title; the form contains a hint."""
        field = {"type": "string"} | ({"description": hint * times} if hint else {})
        form = TITLE | {"properties": {"title": field}}
        params = mcp_types.ElicitRequestFormParams(message=f"Which title for {topic}?", requested_schema=form)
        return await answer_of(ctx, mcp_types.ElicitRequest(params=params))

    @server.tool(annotations=READS)
    async def ask_often(ctx: Context, number: int) -> str | mcp_types.InputRequiredResult:
        """Ask many questions at once."""
        params = mcp_types.ElicitRequestFormParams(message="Which title?", requested_schema=TITLE)
        questions: Any = {str(at): mcp_types.ElicitRequest(params=params) for at in range(number)}
        return "asked" if ctx.input_responses else mcp_types.InputRequiredResult(input_requests=questions)

    @server.tool(annotations=READS)
    async def ask_in_session(ctx: Context, topic: str) -> str:
        """Ask by a request of the server, as protocols before 2026-07-28 have it."""
        return (await ctx.elicit(f"Which title for {topic}?", response_type=Title)).action

    @server.tool(annotations=READS)
    async def ask_login(ctx: Context, topic: str, page: str = LOGIN) -> str | mcp_types.InputRequiredResult:
        """Ask the person to log in on a page."""
        params = mcp_types.ElicitRequestURLParams(message=f"Log in for {topic}", url=page, elicitation_id=topic)
        return await answer_of(ctx, mcp_types.ElicitRequest(params=params))

    @server.tool(annotations=READS)
    async def ask_model(ctx: Context, topic: str) -> str | mcp_types.InputRequiredResult:
        """Ask the client's model for a word."""
        message = mcp_types.SamplingMessage(role="user", content=mcp_types.TextContent(text=f"A word for {topic}?"))
        params = mcp_types.CreateMessageRequestParams(messages=[message], max_tokens=5)
        return await answer_of(ctx, mcp_types.CreateMessageRequest(params=params), mcp_types.CreateMessageResult)

    @server.tool(annotations=READS)
    async def read_abilities(ctx: Context) -> str:
        """Read what the client can do."""
        declared = ctx.session.client_capabilities
        return declared.model_dump_json(exclude_none=True, exclude={"extensions"}) if declared else ""

    @server.tool(annotations=READS)
    async def read_slowly(seconds: float) -> str:
        """Read for some time."""
        await asyncio.sleep(seconds)
        return "read"

    @server.resource("desk://drawer/{label}")
    def drawer(label: str) -> str:
        """Return a drawer."""
        return label

    @server.prompt
    def sort_desk(label: str) -> str:
        """Sort the desk."""
        return label

    @server.completion
    def complete(ref: Any, argument: mcp_types.CompletionArgument, context: Any) -> list[str]:
        key = getattr(ref, "name", None) or ref.uri
        return [f"{key} {argument.name} {argument.value} {context.arguments if context else None}"]

    return server


if __name__ == "__main__":
    asking_server().run(show_banner=False)
