"""`python -m benchmarks.found FOLDER`: try inputs that failed in earlier versions, and print how many pass.

FOLDER has JSON Lines files with the names in `CHECKS`; each row states the expected outcome. The public tools are read
from the folder of data sets in PACKETGATE_DATA.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
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
"""Values that are tried for a parameter until the call is valid."""

TEXT, READ_HINT = {"type": "string"}, {"readOnlyHint": True}
_NOT_MADE = re.compile(r"\[Not (?:made|looked up|done): |cannot be read")

Rows = list[dict[str, Any]]


async def answers(rows: Rows) -> Iterator[bool]:
    """Return whether each answer is shown unchanged, and no part of it counts as markup."""
    cleaned = [(strip_markup(row["text"]), row["text"]) for row in rows]
    return iter([clean.text == text and not clean.violations for clean, text in cleaned])


async def mcp_json(rows: Rows) -> Iterator[bool]:
    """Return whether the valid server of each file is configured."""
    return iter([await _has_good_server(row["text"]) for row in rows])


async def schemas(rows: Rows) -> Iterator[bool]:
    """Return whether the tool with each schema is offered, and a valid call of it runs."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "schemas.json")
        await asyncio.to_thread(kept.write_text, json.dumps({row["name"]: row["schema"] for row in rows}))
        config = Path(folder, "mcp.json")
        entry = {"command": sys.executable, "args": [SERVER, str(kept)]}
        await asyncio.to_thread(config.write_text, json.dumps({"mcpServers": {"found": entry}}))
        async with await _hub(config) as hub:
            return iter([await _runs(hub, f"found.{row['name']}") for row in rows])


async def risk_shapes(rows: Rows) -> Iterator[bool]:
    """Return whether each call has a higher risk than a read."""
    return iter([_is_no_read(row, row["call"]) for row in rows])


async def risk_public(rows: Rows) -> Iterator[bool]:
    """Return whether each call of a public tool has a higher risk than a read."""
    tools: dict[str, dict[str, Any]] = {}
    for catalogue in {row["catalogue"] for row in rows}:
        path = Path(os.environ["PACKETGATE_DATA"], catalogue, "tools.jsonl")
        tools |= {tool["name"]: tool for tool in await asyncio.to_thread(read_rows, path)}
    return iter([_is_no_read(tools[row["tool"]], row["call"]) for row in rows])


async def arguments(rows: Rows) -> Iterator[bool]:
    """Return whether each call reaches its server with the expected arguments, or is refused if that is expected."""
    return iter([_arguments(row) in row["right"] for row in rows])


async def broken(rows: Rows) -> Iterator[bool]:
    """Return whether each call in a LangChain model's message is read as expected."""
    return iter([_written(row) == row["right"] for row in rows])


async def version(rows: Rows) -> Iterator[bool]:
    """Return whether each server that refuses our version is connected with the expected version, or not at all."""
    return iter([await _version(row) == row["right"] for row in rows])


async def fences(rows: Rows) -> Iterator[bool]:
    """Return whether each part of a long answer is short and closes its code blocks, and no letter is lost."""
    return iter([_is_split_well(row["text"]) for row in rows])


async def clock(rows: Rows) -> Iterator[bool]:
    """Return whether the prompt of each request contains the date and the time zone."""
    prompts = [await prompt_of(row["request"]) for row in rows]
    return iter([bool(re.search(rf"{datetime.now():%Y-%m-%d}.*UTC[+-]\d\d:\d\d", one)) for one in prompts])


async def ids(rows: Rows) -> Iterator[bool]:
    """Return whether each call of a step is asked about, and after approval runs once and has its own result."""
    outcomes = [await call_lamps(row["calls"]) for row in rows]
    return iter([asked == ran == len(row["calls"]) for row, (asked, ran) in zip(rows, outcomes, strict=True)])


async def deep(rows: Rows) -> Iterator[bool]:
    """Return whether each nested argument leaves the risk of its tool unchanged."""
    return iter([_deep_risk(row) == row["right"] for row in rows])


async def host(rows: Rows) -> Iterator[bool]:
    """Return whether each argument of a read causes a question after a result only if it names a host."""
    return iter([_asks_about(row["value"]) == (row["right"] == "asks") for row in rows])


async def flow(rows: Rows) -> Iterator[bool]:
    """Return whether each call that would send data outside is flagged."""
    return iter([_is_flow_flagged(row) == (row["right"] == "flagged") for row in rows])


async def policy(rows: Rows) -> Iterator[bool]:
    """Return whether a deny rule with each pattern matches the value, or an allow rule does not."""
    return iter(
        [
            may_fit(row["value"], row["pattern"])
            if row["what"] == "DENY MISSED"
            else not fits(row["value"], row["pattern"])
            for row in rows
        ]
    )


async def leaked(rows: Rows) -> Iterator[bool]:
    """Return whether each call in a text runs after a native call, or the answer names it as not made."""
    return iter([await _is_read_after_native(row) for row in rows])


async def withdrawn(rows: Rows) -> Iterator[bool]:
    """Return whether the answer after each text with a call appears once, streamed and whole, and is not withdrawn."""
    ways = [*product((ScriptedTexts, StreamedTexts), ("What is the weather in Paris?", "Now Paris please"))]
    return iter([all([await _appears_once(row, *way) for way in ways]) for row in rows])


async def people(rows: Rows) -> Iterator[bool]:
    """Return whether each correction, follow-up and remark has the expected outcome without a model."""
    return iter([await talks.ends_well(row, row["project"]) for row in rows])


async def side(rows: Rows) -> Iterator[bool]:
    """Return whether a request during an open question gets its answer, and the question is repeated."""
    return iter([await talks.answers_and_repeats(row["open"], row["then"]) for row in rows])


async def grants(rows: Rows) -> Iterator[bool]:
    """Return whether no text counts as an order to send a mail to an address in it, even if the mail repeats words."""
    return iter([not any(_is_order(row["text"], address) for address in addresses_in(row["text"])) for row in rows])


async def declared_reads(rows: Rows) -> Iterator[bool]:
    """Return whether the arguments of each call of a declared read raise its risk."""
    return iter([_declared_risk(row["tool"], row["arguments"]) in row["right"] for row in rows])


async def launch(rows: Rows) -> Iterator[bool]:
    """Return whether no imitation of a registered server runs with its labels, or outside the sandbox."""
    return iter([await launches.is_not_imitated(row) for row in rows])


CHECKS: dict[str, Callable[[Rows], Awaitable[Iterator[bool]]]] = {
    "answers": answers,
    "mcp_json": mcp_json,
    "schemas": schemas,
    "risk_shapes": risk_shapes,
    "risk_public": risk_public,
    "absent": arguments,
    "wrapped": arguments,
    "broken": broken,
    "version": version,
    "fences": fences,
    "clock": clock,
    "ids": ids,
    "deep": deep,
    "host": host,
    "flow": flow,
    "policy": policy,
    "leaked": leaked,
    "withdrawn": withdrawn,
    "people": people,
    "side": side,
    "grants": grants,
    "declared_reads": declared_reads,
    "launch": launch,
}


async def _has_good_server(text: str) -> bool:
    command, argument = (json.dumps(said)[1:-1] for said in (sys.executable, SERVER))
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "mcp.json")
        text = text.replace("GOOD_COMMAND", command).replace("GOOD_ARGUMENT", argument)
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


def _is_no_read(tool: Mapping[str, Any], call: dict[str, Any]) -> bool:
    listed = Tool(name=tool["name"], description=tool["description"], input_schema=tool["input_schema"])
    return judge_call(spec_of("found", listed, trusted=False), call).risk is not Risk.READ


def _arguments(row: dict[str, Any]) -> dict[str, Any] | None:
    tool = spec_of("found", Tool(name="tool", description="", input_schema=row["schema"]), trusted=False)
    call = repair_and_validate("found.tool", row["sent"], frozenset(["found.tool"]), Catalogue([tool]), words="")
    return None if call.problems else call.params


def _written(row: dict[str, Any]) -> dict[str, Any] | None:
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


async def _is_read_after_native(row: dict[str, Any]) -> bool:
    native = ToolCall(name="s__get_weather", args={"city": "Oslo"}, id="1")
    script = ["", "Mild.", row["content"], "Mild.", "Mild."]
    messages = [AIMessage(text, tool_calls=[] if text else [native]) for text in script]
    requests = ("What is the weather in Oslo?", "What is the weather in Paris?")
    cities, answer, _ = await weather_turns(ScriptedTexts, messages, requests)
    return cities == ["Oslo", row["right"]["city"]] or (cities == ["Oslo"] and bool(_NOT_MADE.search(answer)))


async def _appears_once(row: dict[str, Any], model: type[ScriptedTexts], request: str) -> bool:
    script = [AIMessage(text) for text in (row["text"], row["right"], row["right"])]
    cities, answer, shown = await weather_turns(model, script, [request])
    is_once = all(text.count(row["right"]) == 1 for text in (answer, shown))
    return cities == ["Paris"] and is_once and "withdrawn" not in shown


async def _version(row: dict[str, Any]) -> str:
    refusal = {**row, "speaks": row["right"].rpartition(" ")[2]}
    with tempfile.TemporaryDirectory() as folder, FoundServer({"tool": {"type": "object"}}, refusal).over_http() as url:
        command = {"command": sys.executable, "args": [SERVER, "", json.dumps(refusal)]}
        entry = command if row["transport"] == "stdio" else {"url": url}
        config = Path(folder, "mcp.json")
        await asyncio.to_thread(config.write_text, json.dumps({"mcpServers": {"found": entry}}))
        async with await _hub(config) as hub:
            await hub.catalogue()
            client = hub.clients().get("found")
            return f"connected with {client.protocol_version}" if client else hub.health()[0].problem


def _is_split_well(text: str) -> bool:
    parts = split_message(text)
    is_closed = all(len(part) <= MESSAGE_CHARS and part.count("```") % 2 == 0 for part in parts)
    sent = iter("".join(parts))
    return is_closed and all(letter in sent for letter in "".join(text.split()))


def _deep_risk(row: dict[str, Any]) -> str:
    return _declared_risk(row["tool"], {"argument": row["argument"]}, row["annotations"])


def _declared_risk(tool: str, arguments: dict[str, Any], annotations: Mapping[str, Any] = READ_HINT) -> str:
    schema = {"type": "object", "properties": {name: {} for name in arguments}}
    listed = Tool(name=tool, description="", input_schema=schema, annotations=ToolAnnotations(**annotations))
    return judge_call(spec_of("found", listed, trusted=True), arguments).risk.value


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


def _is_flow_flagged(row: dict[str, Any]) -> bool:
    earlier: tuple[PacketCall, ...] = ()
    if "step1" in row:
        query = row["step1"]["query"]
        listed = ToolResult(success=True, output=json.dumps([{"url": query}]))
        earlier = (PacketCall(tool_name=row["step1"]["tool"], params={"query": query}, risk=Risk.READ, result=listed),)
    return _is_flagged(
        "fetch", {"url": row["url"] if "url" in row else row["step2"]["url"]}, row.get("user", ""), earlier
    )


def _is_flagged(tool: str, params: dict[str, Any], words: str, earlier: tuple[PacketCall, ...] = ()) -> bool:
    """Return whether a read with text parameters is flagged after the user's words, a diary, and other calls."""
    schema = {"type": "object", "properties": dict.fromkeys(params, TEXT)}
    listed = Tool(name=tool, description="", input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))
    result = ToolResult(success=True, output="The alarm code of the shop is 1742")
    diary = PacketCall(tool_name="found.read_file", params={"path": "diary.txt"}, risk=Risk.READ, result=result)
    routing = ToolRouting(past_calls=(diary, *earlier))
    packet = CognitionPacket(tool_routing=routing, content=Content(original_prompt=words))
    origins = origins_of(params, spec_of("found", listed, trusted=True), facts_of(packet, Catalogue()).sources)
    return any(origin.is_flagged for origin in origins.values())


def read_rows(path: Path) -> Rows:
    """Return the JSON values in a file's lines. A value may hold other line ends, such as U+2028."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


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
        right = [*await check(rows)]
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
