import base64
from hashlib import sha256
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

from packetgate.state.routing import MAX_ATTACHMENTS, ToolResult
from packetgate.tools.attached.media import UNKNOWN_TYPE
from packetgate.toolsets.servers.results import MAX_OUTPUT_CHARS, result_of_answer

BYTES = base64.b64encode(b"x" * 3000).decode()
PNG, WAV = (base64.b64encode(mark.ljust(3000)).decode() for mark in (b"\x89PNG\r\n\x1a\n", b"RIFF....WAVE"))


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


async def result_of(
    *content: ContentBlock, structured: dict[str, Any] | None = None, fails: bool = False
) -> ToolResult:
    """Return the result of an answer that passed through a real server and client."""
    server: FastMCP[None] = FastMCP("a")

    @server.tool(output_schema=None)
    def get() -> Answer:
        return Answer(content=list(content), structured_content=structured, is_error=fails)

    async with Client(server) as client:
        answer = await client.call_tool_mcp("get", {})
    return (await result_of_answer(answer, 1.5)).model_copy(update={"meta": None})


async def test_text_is_the_output():
    assert await result_of() == ToolResult(success=True, execution_time_ms=1.5)
    result = await result_of(text("one\n"), text("two 漢字 🚪"))
    parts = ({"type": "text", "text": "one\n"}, {"type": "text", "text": "two 漢字 🚪"})
    assert result == ToolResult(success=True, output="one\n\ntwo 漢字 🚪", execution_time_ms=1.5, parts=parts)


@pytest.mark.parametrize(
    ("block", "output"),
    [
        (ImageContent(type="image", data=PNG, mime_type="image/png"), "[image image/png, 3 kB]"),
        (ImageContent(type="image", data=BYTES, mime_type="image/png"), "[binary declared as image/png, 3 kB]"),
        (ImageContent(type="image", data="?", mime_type="a\nb"), f"[image {UNKNOWN_TYPE}, left out: invalid base64]"),
        (AudioContent(type="audio", data=WAV, mime_type="Audio/X-Wav; q=1"), "[audio audio/wav, 3 kB]"),
        (AudioContent(type="audio", data=PNG, mime_type="audio/aac"), "[binary declared as audio/aac, 3 kB]"),
        (ResourceLink(type="resource_link", name="a", uri="file:///a.txt"), "[resource a, file:///a.txt]"),
        (
            ResourceLink(
                type="resource_link",
                name="a",
                title="A",
                uri="f:a",
                mime_type="text/plain",
                size=9,
                description="One\nA.",
            ),
            "[resource a, A, f:a, text/plain, 9 bytes: One A.]",
        ),
        (
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a.txt", text="inside")),
            "inside",
        ),
        (
            EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///a.bin", blob=BYTES)),
            f"[resource file:///a.bin, {UNKNOWN_TYPE}, 3 kB]",
        ),
    ],
)
async def test_parts_that_are_not_text_are_named_in_brackets(block: ContentBlock, output: str):
    assert (await result_of(block)).output == output
    assert (await result_of(text("before"), block, text("after"))).output == f"before\n{output}\nafter"


@pytest.mark.parametrize(
    ("words", "error"),
    [(" no such file \n", "no such file"), (" \n", "the tool reported an error without a message")],
)
async def test_an_error_has_a_message(words: str, error: str):
    result = await result_of(text(words), fails=True)
    assert (result.success, result.error, result.output) == (False, error, "")


@pytest.mark.parametrize("fails", [True, False])
async def test_a_long_text_is_cut(fails: bool):
    result = await result_of(text("x" * (MAX_OUTPUT_CHARS + 1)), fails=fails)
    words = (result.error if fails else result.output) or ""
    assert result.truncated
    assert words.count("x") == MAX_OUTPUT_CHARS
    assert "100,001" in words
    longest = await result_of(text("x" * MAX_OUTPUT_CHARS))
    assert (len(longest.output), longest.truncated) == (MAX_OUTPUT_CHARS, False)


@pytest.mark.parametrize(
    ("words", "structured", "shown"),
    [
        ("found 2", {"hits": [1, 2]}, '\n{"hits": [1, 2]}'),
        ("not { json", {"hits": 1}, '\n{"hits": 1}'),
        ('{\n "hits": [1, 2]}', {"hits": [1, 2]}, None),
        ("plain", {"result": "plain"}, None),
        ("[" * 5_000, {"hits": 1}, '\n{"hits": 1}'),
        ("9" * 5_000, {"hits": 1}, '\n{"hits": 1}'),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("fails", [True, False])
async def test_structured_content_is_shown_if_it_has_more(
    words: str, structured: dict[str, Any], shown: str | None, fails: bool
):
    result = await result_of(text(words), structured=structured, fails=fails)
    assert (result.error if fails else result.output) == words + (shown or "")
    restated = {result.output_field: words} if result.output_field else result.structured_in_output
    assert (result.structured, restated) == ((structured, None) if shown else (None, structured))
    assert result.server_text == (words + (shown or "") if fails else words)


@pytest.mark.parametrize(
    ("words", "structured"),
    [
        ("[1, 2]", {"result": [1, 2]}),
        ("a.txt\nb.txt", {"result": ["a.txt", "b.txt"]}),
        ('{"a": 1}\n{"a": 2}', {"items": [{"a": 1}, {"a": 2}]}),
        ("nothing", {}),
    ],
)
async def test_structured_content_is_not_shown_if_the_text_has_all_of_it(words: str, structured: dict[str, Any]):
    assert (await result_of(text(words), structured=structured)).output == words


async def test_structured_content_alone_is_the_output():
    result = await result_of(structured={"hits": [1, 2]})
    assert (result.output, result.structured, result.server_text) == ('{"hits": [1, 2]}', {"hits": [1, 2]}, "")
    large = await result_of(structured={"hits": "x" * MAX_OUTPUT_CHARS})
    assert large.output.startswith('{\n  "hits": "xxx')
    assert (large.structured, large.truncated, large.server_text) == (None, True, large.output)


async def test_the_result_has_no_base64():
    png = ImageContent(type="image", data=PNG, mime_type="image/png")
    result = await result_of(text("a picture"), png, png, structured={"": "", "inner": [{"data": PNG}], "n": 1})
    (one,) = result.attachments
    assert (one.kind, one.mime_type, one.size, one.handle) == ("image", "image/png", 3000, "")
    assert one.sha256 == sha256(base64.b64decode(PNG)).hexdigest()
    assert result.structured == {"": "", "inner": [{"data": "[image image/png, 3 kB]"}], "n": 1}
    assert PNG[:40] not in result.model_dump_json()
    assert [part.get("sha256") for part in result.parts] == [None, one.sha256, one.sha256]


async def test_attachments_are_limited():
    pictures = [
        ImageContent(type="image", data=base64.b64encode(b"GIF89a%d" % number).decode(), mime_type="image/gif")
        for number in range(MAX_ATTACHMENTS + 1)
    ]
    result = await result_of(*pictures, fails=True)
    assert len(result.attachments) == MAX_ATTACHMENTS
    assert (result.error or "").count("[image image/gif, 7 bytes]") == MAX_ATTACHMENTS
    assert (result.error or "").endswith("[image image/gif, left out: a result has at most 8 attachments]")
