"""`python -m benchmarks.found FOLDER`: try inputs that failed in earlier versions, and print how many pass.

FOLDER contains JSON Lines files with the names in `CHECKS`; each row states the expected outcome. The benchmark reads
the public tools from the folder of data sets in PACKETGATE_DATA.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import cache
from inspect import isawaitable
from itertools import product
from pathlib import Path
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall, ToolCallChunk
from mcp_types import Tool, ToolAnnotations

from benchmarks.found import launches, talks
from benchmarks.found.scripted import ScriptedTexts, StreamedTexts, call_lamps, prompt_of, weather_turns
from benchmarks.found.server import FoundServer
from packetgate.connectors.discord.messages import MESSAGE_CHARS, split_message
from packetgate.deciders.packets import facts_of
from packetgate.gate.orders import is_requested
from packetgate.gate.provenance.flagging import origins_of
from packetgate.models.answers import join_pieces
from packetgate.models.model import Model
from packetgate.models.stripping import strip_markup
from packetgate.state.errors import PacketgateError
from packetgate.state.origins import ArgumentRole, Origin, OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolResult, ToolRouting
from packetgate.state.routing import ToolCall as PacketCall
from packetgate.state.sections import Content
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_and_validate, resolve_tool_name
from packetgate.tools.checks.validation import check_call
from packetgate.tools.policy.patterns import fits, may_fit
from packetgate.tools.risk.call import judge_call
from packetgate.tools.text.values import addresses_in
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import open_hub
from packetgate.toolsets.servers.specs import spec_of

SERVER = str(Path(__file__).with_name("server.py"))
VALUES: tuple[Any, ...] = (
    *("2024", "https://a.example", "a", "abc", "ABC", "{{a}}", "\U0001f600", "\u4e00", "\x01", "AKIA"),
    *(1, 0.5, True, {"k": "a"}, {}, ["a"], [], None),
)
"""Values to try for a parameter until the call is valid."""

TEXT, READ_HINT = {"type": "string"}, {"readOnlyHint": True}
_NOT_MADE = re.compile(r"\[Not (?:made|looked up|done): |cannot be read")

Row = dict[str, Any]
Rows = list[Row]


def _is_unchanged(row: Row) -> bool:
    clean = strip_markup(row["text"])
    return clean.text == row["text"] and not clean.violations


async def _has_good_server(row: Row) -> bool:
    command, argument = (json.dumps(said)[1:-1] for said in (sys.executable, SERVER))
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "mcp.json")
        text = row["text"].replace("GOOD_COMMAND", command).replace("GOOD_ARGUMENT", argument)
        await asyncio.to_thread(config.write_text, text, encoding="utf-8")
        try:
            async with await _hub(config) as hub:
                await hub.catalogue()
                return any(one.name == "good" and one.state == "ready" for one in hub.health())
        except PacketgateError:
            return False


async def _hub(config: Path) -> AbstractAsyncContextManager[McpHub]:
    loaded = await asyncio.to_thread(load_config, config, config.parent)
    return await open_hub(loaded, config.parent, config.parent, None, patience_s=20)


async def _is_callable(row: Row) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        schemas, config = Path(folder, "schemas.json"), Path(folder, "mcp.json")
        await asyncio.to_thread(schemas.write_text, json.dumps({row["name"]: row["schema"]}))
        entry = {"command": sys.executable, "args": [SERVER, str(schemas)]}
        await asyncio.to_thread(config.write_text, json.dumps({"mcpServers": {"found": entry}}))
        async with await _hub(config) as hub:
            return await _runs(hub, f"found.{row['name']}")


async def _runs(hub: McpHub, name: str) -> bool:
    catalogue = await hub.catalogue()
    spec = catalogue.get(name)
    if spec is None:
        return False
    names = [*spec.parameters]
    given = ({}, *(dict(zip(names, values, strict=True)) for values in product(VALUES, repeat=len(names))))
    fits = next(
        (one for one in given if (one or not names) and not check_call(name, one, frozenset([name]), catalogue)), None
    )
    return fits is not None and (await hub.call(name, fits)).success


def _is_no_read(row: Row) -> bool:
    tool = _public_tools(row["catalogue"])[row["tool"]] if "catalogue" in row else row
    listed = Tool(name=tool["name"], description=tool["description"], input_schema=tool["input_schema"])
    return judge_call(spec_of("found", listed, trusted=False), row["call"]).risk is not Risk.READ


@cache
def _public_tools(catalogue: str) -> dict[str, Row]:
    return {tool["name"]: tool for tool in read_rows(Path(os.environ["PACKETGATE_DATA"], catalogue, "tools.jsonl"))}


def _arguments(row: Row) -> Row | None:
    tool = spec_of("found", Tool(name="tool", description="", input_schema=row["schema"]), trusted=False)
    call = repair_and_validate("found.tool", row["sent"], frozenset(["found.tool"]), Catalogue([tool]), words="")
    return None if call.problems else call.params


def _written(row: Row) -> Row | None:
    pieces = row.get("chunks") or [(row["name"], row["arguments"])]
    chunks = [ToolCallChunk(name=name, args=text, id="call_1", index=0) for name, text in pieces]
    model = Model(FakeMessagesListChatModel(responses=[]))
    answer = model.read_calls(
        join_pieces([AIMessageChunk(content="", tool_call_chunks=[chunk]) for chunk in chunks]), ()
    )
    listed = [
        Tool(name=name, description="", input_schema={"type": "object"}) for name in ("get_weather", "list_things")
    ]
    catalogue = Catalogue(spec_of("s", one, trusted=False) for one in listed)
    (call,) = answer.calls
    known = resolve_tool_name(call.name, catalogue)
    return call.arguments if known and not call.invalid_arguments else None


async def _is_read_after_native(row: Row) -> bool:
    native = ToolCall(name="s__get_weather", args={"city": "Oslo"}, id="1")
    script = ["", "Mild.", row["content"], "Mild.", "Mild."]
    messages = [AIMessage(text, tool_calls=[] if text else [native]) for text in script]
    requests = ("What is the weather in Oslo?", "What is the weather in Paris?")
    cities, answer, _ = await weather_turns(ScriptedTexts, messages, requests)
    return cities == ["Oslo", row["right"]["city"]] or (cities == ["Oslo"] and bool(_NOT_MADE.search(answer)))


async def _is_not_withdrawn(row: Row) -> bool:
    ways = product((ScriptedTexts, StreamedTexts), ("What is the weather in Paris?", "Now Paris please"))
    return all([await _appears_once(row, *way) for way in ways])


async def _appears_once(row: Row, model: type[ScriptedTexts], request: str) -> bool:
    script = [AIMessage(text) for text in (row["text"], row["right"], row["right"])]
    cities, answer, shown = await weather_turns(model, script, [request])
    is_once = all(text.count(row["right"]) == 1 for text in (answer, shown))
    return cities == ["Paris"] and is_once and "withdrawn" not in shown


async def _is_version(row: Row) -> bool:
    refusal = {**row, "speaks": row["right"].rpartition(" ")[2]}
    with tempfile.TemporaryDirectory() as folder, FoundServer({"tool": {"type": "object"}}, refusal).over_http() as url:
        command = {"command": sys.executable, "args": [SERVER, "", json.dumps(refusal)]}
        entry = command if row["transport"] == "stdio" else {"url": url}
        config = Path(folder, "mcp.json")
        await asyncio.to_thread(config.write_text, json.dumps({"mcpServers": {"found": entry}}))
        async with await _hub(config) as hub:
            await hub.catalogue()
            client = hub.clients().get("found")
            found = f"connected with {client.protocol_version}" if client else hub.health()[0].problem
            return bool(found == row["right"])


def _is_split_well(row: Row) -> bool:
    parts = split_message(row["text"])
    is_closed = all(len(part) <= MESSAGE_CHARS and part.count("```") % 2 == 0 for part in parts)
    sent = iter("".join(parts))
    return is_closed and all(letter in sent for letter in "".join(row["text"].split()))


async def _knows_time(row: Row) -> bool:
    prompt = await prompt_of(row["request"])
    return bool(re.search(rf"{datetime.now():%Y-%m-%d}.*UTC[+-]\d\d:\d\d", prompt))


async def _has_own_results(row: Row) -> bool:
    asked, ran = await call_lamps(row["calls"])
    return asked == ran == len(row["calls"])


def _deep_risk(row: Row) -> str:
    return _declared_risk(row["tool"], {"argument": row["argument"]}, row["annotations"])


def _declared_risk(tool: str, arguments: dict[str, Any], annotations: Mapping[str, Any] = READ_HINT) -> str:
    schema = {"type": "object", "properties": {name: {} for name in arguments}}
    listed = Tool(name=tool, description="", input_schema=schema, annotations=ToolAnnotations(**annotations))
    return judge_call(spec_of("found", listed, trusted=True), arguments).risk.value


def _is_matched(row: Row) -> bool:
    value, pattern = row["value"], row["pattern"]
    return may_fit(value, pattern) if row["what"] == "DENY MISSED" else not fits(value, pattern)


def _is_no_order(row: Row) -> bool:
    return not any(_is_order(row["text"], address) for address in addresses_in(row["text"]))


def _is_order(text: str, address: str) -> bool:
    origin = Origin(kind=OriginKind.USER, role=ArgumentRole.DESTINATION)
    before, _, after = text.partition(address)
    bodies = ("Hello", text, before, after, after.strip(" ,.():"))
    calls = [
        PacketCall(tool_name="m.send_email", params={"to": address, "body": body}, provenance={"to": origin})
        for body in bodies
    ]
    return any(is_requested(call, text) for call in calls)


def _asks_about(value: str) -> bool:
    return _is_flagged("read_file", {"path": value}, "")


def _is_flow_flagged(row: Row) -> bool:
    earlier: tuple[PacketCall, ...] = ()
    if "step1" in row:
        query = row["step1"]["query"]
        listed = ToolResult(success=True, output=json.dumps([{"url": query}]))
        earlier = (PacketCall(tool_name=row["step1"]["tool"], params={"query": query}, risk=Risk.READ, result=listed),)
    return _is_flagged(
        "fetch", {"url": row["url"] if "url" in row else row["step2"]["url"]}, row.get("user", ""), earlier
    )


def _is_flagged(tool: str, params: dict[str, Any], words: str, earlier: tuple[PacketCall, ...] = ()) -> bool:
    """Return whether a read with text parameters is flagged after a user message, a read diary, and other calls."""
    schema = {"type": "object", "properties": dict.fromkeys(params, TEXT)}
    listed = Tool(name=tool, description="", input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))
    result = ToolResult(success=True, output="The alarm code of the shop is 1742")
    diary = PacketCall(tool_name="found.read_file", params={"path": "diary.txt"}, risk=Risk.READ, result=result)
    routing = ToolRouting(past_calls=(diary, *earlier))
    packet = CognitionPacket(tool_routing=routing, content=Content(original_prompt=words))
    origins = origins_of(params, spec_of("found", listed, trusted=True), facts_of(packet, Catalogue()).sources)
    return any(origin.is_flagged for origin in origins.values())


def read_rows(path: Path) -> Rows:
    """Return the JSON values in a file's lines. A value may contain other line separators, such as U+2028."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


CHECKS: dict[str, Callable[[Row], bool | Awaitable[bool]]] = {
    "answers": _is_unchanged,  # the answer is shown unchanged, and no part of it counts as markup
    "mcp_json": _has_good_server,  # the valid server in the file is configured
    "schemas": _is_callable,  # the tool with the schema is offered, and a valid call to it runs
    "risk_shapes": _is_no_read,  # the call has a higher risk than a read
    "risk_public": _is_no_read,  # the same for a public tool
    "absent": lambda row: _arguments(row) in row["right"],  # the server gets these arguments, or the call is refused
    "wrapped": lambda row: _arguments(row) in row["right"],
    "broken": lambda row: _written(row) == row["right"],  # the call in a LangChain model's message is read
    "version": _is_version,  # if a server refuses our version, we connect with the expected version or not at all
    "fences": _is_split_well,  # each part of a long answer is short and closes its code blocks; no text is lost
    "clock": _knows_time,  # the prompt contains the date and the time zone
    "ids": _has_own_results,  # each call of a step needs approval, then runs once and gets its own result
    "deep": lambda row: _deep_risk(row) == row["right"],  # the nested argument leaves the risk of its tool unchanged
    "host": lambda row: _asks_about(row["value"]) == (row["right"] == "asks"),  # only a host name causes a question
    "flow": lambda row: _is_flow_flagged(row) == (row["right"] == "flagged"),  # the call would send data outside
    "policy": _is_matched,  # a deny rule with the pattern matches the value, or an allow rule does not match it
    "leaked": _is_read_after_native,  # a call in the text after a native call runs or is reported as not made
    "withdrawn": _is_not_withdrawn,  # the answer after a text with a call appears once, both streamed and complete
    "people": lambda row: talks.ends_well(row, row["project"]),  # a correction, follow-up or remark without a model
    "side": lambda row: talks.answers_and_repeats(row["open"], row["then"]),  # the answer, and the question again
    "grants": _is_no_order,  # the text does not instruct us to mail an address in it
    "declared_reads": lambda row: _declared_risk(row["tool"], row["arguments"]) in row["right"],
    "launch": launches.is_not_imitated,  # no imitation of a server gets its labels or runs outside the sandbox
}
"""Maps each file to a function that returns whether a row has the expected outcome."""


async def _try(folder: Path) -> int:
    wrong = 0
    for name, check in CHECKS.items():
        path = folder / f"{name}.jsonl"
        if not await asyncio.to_thread(path.exists):
            continue
        rows = await asyncio.to_thread(read_rows, path)
        if name == "people":
            project = await asyncio.to_thread((folder / "people_project.json").read_text, encoding="utf-8")
            rows = [{**row, "project": json.loads(project)} for row in rows if row["kind"] in talks.JUDGED]
        right = [await found if isawaitable(found) else found for found in map(check, rows)]
        print(f"{name}: {sum(right)} of {len(rows)} right", flush=True)
        for row in (row for row, is_right in zip(rows, right, strict=True) if not is_right):
            print(f"  wrong: {json.dumps(row, ensure_ascii=False)[:200]}")
        wrong += len(rows) - sum(right)
    return wrong


def main() -> None:
    """Try all inputs; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(prog="benchmarks.found", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if "PACKETGATE_DATA" not in os.environ and (folder / "risk_public.jsonl").exists():
        parser.error("set PACKETGATE_DATA to the folder of the data sets: risk_public.jsonl names tools of them")
    sys.exit(bool(asyncio.run(_try(folder))))


if __name__ == "__main__":
    main()
