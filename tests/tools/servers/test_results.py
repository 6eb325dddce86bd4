import base64
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.tools import ToolResult as Answer
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from state.routing import ToolResult
from tools.servers.content import text_of
from tools.servers.results import MAX_OUTPUT_CHARS, to_result

BYTES = base64.b64encode(b"x" * 3000).decode()


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


async def result_of(
    *content: ContentBlock, structured: dict[str, Any] | None = None, fails: bool = False
) -> ToolResult:
    """Return what is made of an answer that came through a real server and client."""
    server: FastMCP[None] = FastMCP("a")

    @server.tool(output_schema=None)
    def get() -> Answer:
        return Answer(content=list(content), structured_content=structured, is_error=fails)

    async with Client(server) as client:
        answer = await client.call_tool_mcp("get", {})
    return to_result(text_of(answer.content), answer.structured_content, 1.5, is_error=answer.is_error)


async def test_text_is_the_output():
    result = await result_of(text("one\n"), text("two 漢字 🚪"))
    assert result == ToolResult(success=True, output="one\n\ntwo 漢字 🚪", execution_time_ms=1.5)


async def test_nothing_is_an_empty_output():
    assert await result_of() == ToolResult(success=True, execution_time_ms=1.5)


@pytest.mark.parametrize(
    ("block", "output"),
    [
        (ImageContent(type="image", data=BYTES, mime_type="image/png"), "[image image/png, 3,000 bytes]"),
        (AudioContent(type="audio", data=BYTES, mime_type="audio/wav"), "[audio audio/wav, 3,000 bytes]"),
        (ResourceLink(type="resource_link", name="a", uri="file:///a.txt"), "[resource file:///a.txt]"),
        (
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a.txt", text="inside")),
            "inside",
        ),
        (
            EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///a.bin", blob=BYTES)),
            "[resource file:///a.bin, 3,000 bytes]",
        ),
    ],
)
async def test_what_is_not_text_is_named_in_brackets(block: ContentBlock, output: str):
    assert (await result_of(block)).output == output
    assert (await result_of(text("before"), block, text("after"))).output == f"before\n{output}\nafter"


async def test_an_error_carries_its_words():
    result = await result_of(text(" no such file \n"), fails=True)
    assert (result.success, result.error, result.output) == (False, "no such file", "")


@pytest.mark.parametrize("content", [[], [text("")], [text(" \n")]])
async def test_an_error_without_words_says_so(content: list[ContentBlock]):
    result = await result_of(*content, fails=True)
    assert (result.success, result.error) == (False, "the tool reported an error without saying which")


@pytest.mark.parametrize("fails", [True, False])
async def test_too_long_is_cut_and_says_so(fails: bool):
    result = await result_of(text("x" * (MAX_OUTPUT_CHARS + 1)), fails=fails)
    words = (result.error if fails else result.output) or ""
    assert result.truncated
    assert words.endswith("x\n[cut here: 100,001 characters in all]")
    assert words.count("x") == MAX_OUTPUT_CHARS


async def test_the_longest_is_not_cut():
    result = await result_of(text("x" * MAX_OUTPUT_CHARS))
    assert (len(result.output), result.truncated) == (MAX_OUTPUT_CHARS, False)


@pytest.mark.parametrize(
    ("words", "structured", "kept"),
    [
        ("found 2", {"hits": [1, 2]}, True),
        ("not { json", {"hits": 1}, True),
        ('{"hits": [1, 2]}', {"hits": [1, 2]}, False),
        ("plain", {"result": "plain"}, False),
        ("found many", {"hits": "x" * (MAX_OUTPUT_CHARS + 1)}, False),
        ("[" * 50_000, {"hits": 1}, True),
        ("9" * 5_000, {"hits": 1}, True),
    ],
)
async def test_structured_content_is_kept_where_it_says_more(words: str, structured: dict[str, Any], kept: bool):
    result = await result_of(text(words), structured=structured)
    assert result.output == words
    assert result.structured == (structured if kept else None)
