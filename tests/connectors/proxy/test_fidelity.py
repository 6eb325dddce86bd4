"""What a server lists and returns arrives at a client of the proxy as it was sent."""

import base64
from pathlib import Path
from typing import Any

import mcp_types
from fastmcp import FastMCP
from fastmcp.tools import Tool, ToolResult
from support.proxies import Era, Make, Talk, gateway_over, served, talking

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n".ljust(500)).decode()
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
USER = {"audience": ["user"], "priority": 0.5}


class Raw(Tool):
    """A tool that answers exactly this."""

    answer: ToolResult

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return self.answer


def desk() -> FastMCP[None]:
    """Return a server whose answers have all that answers may have."""
    server: FastMCP[None] = FastMCP("desk")

    def offer(name: str, content: list[dict[str, Any]], **more: Any) -> None:
        blocks = mcp_types.CallToolResult.model_validate({"content": content}).content
        about = {key: more.pop(key) for key in ("title", "output_schema", "meta", "annotations") if key in more}
        answer = ToolResult(content=blocks, **more)
        read = {"readOnlyHint": True, **about.pop("annotations", {})}
        server.add_tool(
            Raw(
                name=name,
                description="Get it.",
                parameters={"type": "object"},
                answer=answer,
                annotations=read,
                **about,
            )
        )

    hints = {"idempotentHint": True}
    offer(
        "get_number", [], structured_content={"n": 3}, title="The number", output_schema=SCHEMA,
        meta={"shop.example/kind": "number"}, annotations=hints,
    )  # fmt: skip
    offer("get_words", [{"type": "text", "text": "three"}], structured_content={"n": 3}, output_schema=SCHEMA)
    offer("get_failure", [{"type": "text", "text": "no"}], structured_content={"code": 7}, is_error=True)
    parts = [
        {"type": "text", "text": "one", "annotations": USER, "_meta": {"shop.example/row": 1}},
        {"type": "image", "data": PNG, "mimeType": "image/png", "annotations": USER},
        {"type": "resource_link", "uri": "note://shelf/a", "name": "a", "description": "The note", "size": 3},
        {"type": "resource_link", "uri": "memo:b", "name": "b"},
        {"type": "resource_link", "uri": "https://example.com/c", "name": "c"},
        {"type": "resource", "resource": {"uri": "note://shelf/a", "mimeType": "text/plain", "text": "inside"}},
        {"type": "text", "text": "two"},
        {"type": "resource", "resource": {"uri": "no address", "text": "three"}},
    ]
    offer("get_nothing", [], structured_content={}, output_schema={"type": "object"})
    offer("get_parts", parts, meta={"shop.example/page": 2})
    server.resource("note://shelf/{name}", name="note")(lambda name: f"the note {name}")
    server.resource("memo:b", name="memo")(lambda: "the memo")
    return server


async def _called(talk: Talk, name: str) -> mcp_types.CallToolResult:
    ask = talk.client.call_tool_mcp if talk.make == "fastmcp" else talk.client.call_tool
    result: mcp_types.CallToolResult = await ask(name, {})
    return result


async def test_definitions_and_answers_arrive_as_they_were_sent(tmp_path: Path, make: Make, era: Era) -> None:
    async with (
        gateway_over(desk(), home=tmp_path) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        listed = {tool.name: tool for tool in await talk.tools()}
        number = listed["desk__get_number"]
        assert (number.title, number.output_schema) == ("The number", SCHEMA)
        assert (number.meta or {})["shop.example/kind"] == "number"
        assert number.annotations
        assert number.annotations.idempotent_hint is True
        assert listed["desk__get_parts"].output_schema is None

        said = await _called(talk, "desk__get_number")
        assert (said.structured_content, [one.text for one in said.content]) == ({"n": 3}, ['{"n": 3}'])
        said = await _called(talk, "desk__get_nothing")
        assert (said.is_error, said.structured_content, said.content) == (False, {}, [])
        said = await _called(talk, "desk__get_words")
        assert (said.structured_content, [one.text for one in said.content]) == ({"n": 3}, ["three", '{"n": 3}'])
        said = await _called(talk, "desk__get_failure")
        assert (said.is_error, said.structured_content) == (True, {"code": 7})
        assert [one.text for one in said.content] == ["no", '{"code": 7}']

        parts = (await _called(talk, "desk__get_parts")).content
        sent = [part.model_dump(by_alias=True, exclude_none=True, mode="json") for part in parts]
        assert sent[0] == {"type": "text", "text": "one", "annotations": USER, "_meta": {"shop.example/row": 1}}
        assert sent[1] == {"type": "text", "text": "[image image/png, 500 bytes]", "annotations": USER}  # not kept here
        assert sent[5:] == [
            {
                "type": "resource",
                "resource": {"uri": "note://desk/shelf/a", "mimeType": "text/plain", "text": "inside"},
            },
            {"type": "text", "text": "two"},
            {"type": "text", "text": "three"},
        ]
        assert [part["uri"] for part in sent[2:5]] == ["note://desk/shelf/a", "memo:desk/b", "https://example.com/c"]
        assert (sent[2]["name"], sent[2]["description"], sent[2]["size"]) == ("a", "The note", 3)
        for uri, text in (("note://desk/shelf/a", "the note a"), ("memo:desk/b", "the memo")):
            read = await talk.client.read_resource(uri)
            contents = read if talk.make == "fastmcp" else read.contents
            assert [one.text for one in contents] == [text]
