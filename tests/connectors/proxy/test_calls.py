"""Every call through the proxy passes the pipeline, and its result arrives unchanged from the server."""

import base64
import json
from pathlib import Path
from typing import Any

import mcp_types
from fastmcp import FastMCP
from fastmcp.tools import ToolResult
from support import media_server
from support.command_line import CommandLine
from support.plain_server import entry
from support.proxies import ADD, Offering, Protocol, Talk, configured_client, ledger_server, proxy_client, talking


async def test_after_an_unrelated_context_any_tool_can_be_found_and_called(
    tmp_path: Path, kind: Protocol, written: list[str]
) -> None:
    written.append("one")
    async with proxy_client(tmp_path, ledger_server(written, tools=60), kind=kind) as talk:
        context = await talk.set_context("turn lamp number 7 of the greenhouse")
        found = await talk.call("search_tools", query="list the entries of the ledger", **context)
        best = found.structured["tools"][0]["name"]
        result = await talk.call("call_read_tool", name=best, **context)
        assert (result.is_error, result.structured["status"]) == (False, "executed")
        assert "one" in result.text


async def test_a_tool_is_called_by_its_own_name_only_if_it_was_shown(tmp_path: Path, written: list[str]) -> None:
    async with proxy_client(tmp_path, ledger_server(written, tools=60)) as talk:
        assert "call_read_tool" in (await talk.call("ledger.list_entries")).text
        await talk.set_context("list the entries of the ledger")
        assert not (await talk.call("ledger.list_entries")).is_error


async def test_names_and_arguments_are_corrected_or_the_error_names_them(
    tmp_path: Path, kind: Protocol, written: list[str]
) -> None:
    async with proxy_client(tmp_path, ledger_server(written, tools=60), kind=kind) as talk:
        lamp = {"colour": "red", "hour": "7", "day": "today"}
        corrected = await talk.call("call_changing_tool", name="ledger_lamp_3", arguments=lamp)
        assert corrected.structured["tool"] == "ledger.lamp_3"
        assert any("`hour`" in correction for correction in corrected.structured["corrections"])
        for name, arguments, problem in (
            ("ledger.add_entry", {"words": 3}, "text"),
            ("ledger.list_entrys_now", {}, "ledger__list_entries"),
        ):
            result = await talk.call("call_changing_tool", name=name, arguments=arguments)
            assert result.is_error
            assert problem in result.text
        changing = await talk.call("call_read_tool", **ADD)
        assert (changing.is_error, "call_changing_tool" in changing.text) == (True, True)
        off = await talk.call("call_changing_tool", **ADD)
        assert (off.structured["status"], "--allow-writes" in off.text, written) == ("skipped", True, [])
        unknown = await talk.call("search_tools", query="list", context_id="ctx_guessed")
        assert unknown.is_error


async def test_descriptions_are_returned_by_name_and_for_all_tools(tmp_path: Path) -> None:
    async with proxy_client(tmp_path, ledger_server([], tools=60)) as talk:
        found = await talk.call("fetch_tool_description", names=["ledger__add_entry", "nothing.like_it"])
        assert [tool["name"] for tool in found.structured["tools"]] == ["ledger__add_entry"]
        assert found.structured["tools"][0]["input_schema"]["required"] == ["text"]
        assert "nothing.like_it" in found.structured["unknown"]
        of_all = await talk.call("fetch_tool_description", names=["*"])
        assert (len(of_all.structured["tools"]), of_all.structured["left_out"]) == (50, 13)


async def test_long_texts_are_cut_by_bytes(tmp_path: Path) -> None:
    server: FastMCP[None] = FastMCP("books")
    texts = {"controls": "\x1b" * 100_000, "words": "words " * 50_000, "faces": "\U0001f642" * 99_000}
    server.tool(lambda title: texts[title], name="get_book", description="Get a book.")
    async with proxy_client(tmp_path, server) as talk:
        for title, text in texts.items():
            result = await talk.call("call_read_tool", name="books.get_book", arguments={"title": title})
            assert result.text[:50_000] == text[:50_000]
            assert "[cut here: " in result.text[50_000:]


async def test_pictures_arrive_if_there_is_room(tmp_path: Path, kind: Protocol) -> None:
    async with configured_client(tmp_path, tmp_path / "home", {"media": entry(media_server.SCRIPT)}, kind) as talk:
        content = (await talk.client.call_tool_mcp("call_read_tool", {"name": "media.get_map"})).content
    pictures = [part.data for part in content if isinstance(part, mcp_types.ImageContent)]
    texts = [part.text for part in content if isinstance(part, mcp_types.TextContent)]
    assert pictures == [media_server.encoded(media_server.PNG)]
    assert texts[0].startswith("[image image/png, 1.5 MB, kept:")
    assert texts[1:] == ["drawn"]


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n".ljust(500)).decode()
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
USER = {"audience": ["user"], "priority": 0.5}
PARTS = [
    {"type": "text", "text": "one", "annotations": USER, "_meta": {"shop.example/row": 1}},
    {"type": "image", "data": PNG, "mimeType": "image/png", "annotations": USER},
    {"type": "resource_link", "uri": "note://shelf/a", "name": "a", "description": "The note", "size": 3},
    {"type": "resource_link", "uri": "memo:b", "name": "b"},
    {"type": "resource_link", "uri": "https://example.com/c", "name": "c"},
    {"type": "resource", "resource": {"uri": "note://shelf/a", "mimeType": "text/plain", "text": "inside"}},
    {"type": "resource", "resource": {"uri": "no address", "text": "three"}},
]


def desk_server() -> FastMCP[Any]:
    """Return a server whose answers contain every kind of content."""
    desk, hints = Offering("desk"), {"readOnlyHint": True, "idempotentHint": True}

    def offer(name: str, content: list[dict[str, Any]], structured: Any = None, **more: Any) -> None:
        blocks = mcp_types.CallToolResult.model_validate({"content": content}).content
        result = ToolResult(content=blocks, structured_content=structured, is_error=more.pop("is_error", False))
        desk.offer(name, result=result, annotations=hints, **more)

    offer("get_number", [], {"n": 3}, title="The number", output_schema=SCHEMA, meta={"shop.example/kind": "number"})
    offer("get_words", [{"type": "text", "text": "three"}], {"n": 3}, output_schema=SCHEMA)
    offer("get_failure", [{"type": "text", "text": "no"}], {"code": 7}, is_error=True)
    offer("get_nothing", [], {}, output_schema={"type": "object"})
    offer("get_parts", PARTS)
    desk.server.resource("note://shelf/{name}", name="note")(lambda name: f"the note {name}")
    desk.server.resource("memo:b", name="memo")(lambda: "the memo")
    return desk.server


async def test_definitions_and_results_arrive_unchanged(tmp_path: Path, kind: Protocol) -> None:
    async with proxy_client(tmp_path, desk_server(), kind=kind) as talk:
        listed = {tool.name: tool for tool in await talk.client.list_tools()}
        number = listed["desk__get_number"]
        assert (number.title, number.output_schema) == ("The number", SCHEMA)
        assert (number.meta or {})["shop.example/kind"] == "number"
        assert number.annotations
        assert number.annotations.idempotent_hint is True
        assert listed["desk__get_parts"].output_schema is None
        for name, is_error, structured, texts in (
            ("number", False, {"n": 3}, ['{"n": 3}']),
            ("nothing", False, {}, []),
            ("words", False, {"n": 3}, ["three", '{"n": 3}']),
            ("failure", True, {"code": 7}, ["no", '{"code": 7}']),
        ):
            result = await talk.client.call_tool_mcp(f"desk__get_{name}", {})
            assert (bool(result.is_error), result.structured_content) == (is_error, structured)
            assert [part.text for part in result.content] == texts
        await _parts_and_links_are_right(talk)


async def _parts_and_links_are_right(talk: Talk) -> None:
    parts = (await talk.client.call_tool_mcp("desk__get_parts", {})).content
    sent = [part.model_dump(by_alias=True, exclude_none=True, mode="json") for part in parts]
    assert sent[0] == PARTS[0]
    assert sent[1] == {"type": "text", "text": "[image image/png, 500 bytes]", "annotations": USER}  # not stored
    assert [part["uri"] for part in sent[2:5]] == ["note://desk/shelf/a", "memo:b", "https://example.com/c"]
    assert (sent[2]["name"], sent[2]["description"], sent[2]["size"]) == ("a", "The note", 3)
    inside = {"uri": "note://desk/shelf/a", "mimeType": "text/plain", "text": "inside"}
    assert sent[5:] == [{"type": "resource", "resource": inside}, {"type": "text", "text": "three"}]
    for uri, text in (("note://desk/shelf/a", "the note a"), ("memo:b", "the memo")):
        read = await talk.client.read_resource(uri)
        assert [content.text for content in read] == [text]


async def test_a_read_is_one_row_of_the_audit(cli: CommandLine) -> None:
    async with (
        configured_client(cli.folder, cli.home, {}) as talk,
        talking(talk.gateway, talk.url) as without_context,
    ):
        assert not (await without_context.call("call_read_tool", name="ai.list")).is_error
        await talk.set_context("what does the plan say")
        assert (await talk.call("ai.read", path="plan.txt")).text == "The gate opens at seven.\n"
    rows = [json.loads(line) for line in cli.run("audit", "--json").out.splitlines()]
    assert [row["event"] for row in rows if row["event"] != "client_labelled"] == ["call_read", "call_read"]
    described = cli.run("audit").out
    read = 'read, by proxy local: ai.read {"path": "plan.txt"}: executed: The gate opens at seven.'
    assert read in described
    assert "for: what does the plan say" in described
    assert "no packet is on record" in cli.run("trace", "last").err
