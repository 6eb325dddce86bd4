"""Fifty clients of one proxy at once: none hears of another's word, the journal holds, memory stays where it was."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import mcp_servers
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.palettes import NIGHTLY
from support.proxies import Era, Make, Talk, talking

from packetgate.connectors.trace.finding import find, open_archive
from packetgate.graph.journal.chain import JournalChain, JournalRow
from packetgate.graph.journal.database import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError, SessionError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.usage.store import LEARNED

CLIENTS = 50
ROUNDS = 2
"""The first of them warms the process up."""
CALLS = 1_000 if NIGHTLY else 200
GROWTH_MIB = 12
"""What the process may grow by once it is warm."""
WORD = re.compile(r"vesper\d{3}")
SERVER = f"""
import sys
sys.path.insert(0, {str(mcp_servers.SCRIPT.parent)!r})
from plain_server import PlainServer

server, entries = PlainServer("diary"), {{}}

@server.tool
async def write_entry(owner: str, text: str) -> str:
    "Write the entry of its owner."
    entries[owner] = text
    return f"the entry of {{owner}} says {{text}}"

@server.reading
async def read_entry(owner: str) -> str:
    "Read the entry of its owner."
    return entries[owner]

def lamp(number):
    async def turn_lamp(colour: str, hour: str, day: str) -> str:
        return colour
    turn_lamp.__name__ = f"turn_lamp_{{number}}"
    turn_lamp.__doc__ = f"Turn lamp number {{number}} of the greenhouse to another colour, at an hour of a given day."
    return turn_lamp

for number in range(60):
    server.tool(lamp(number))
server.run()
"""


def word_of(number: int) -> str:
    return f"vesper{number:03}"


def token_of(number: int) -> str:
    return f"token-of-client-{number:03}"


def kind_of(number: int) -> tuple[Make, Era]:
    """Return whose client it is and what it speaks: all four in turn."""
    return ("sdk", "fastmcp")[number // 2 % 2], ("legacy", "2026-07-28")[number % 2]


def configure(cli: CommandLine) -> None:
    """Write a server, and a table for each client."""
    (cli.folder / "diary.py").write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(cli.folder / "diary.py")], "trusted": True}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"diary": entry}}))
    tables = (f'[proxy.clients.c{number}]\ntoken = "{token_of(number)}"\n' for number in range(CLIENTS))
    (cli.folder / "packetgate.toml").write_text("".join(tables))


@asynccontextmanager
async def proxy(cli: CommandLine) -> AsyncIterator[tuple[str, int]]:
    """Start the proxy as its users do, and yield its address and its process id."""
    command = [str(COMMAND), "proxy", "--http", "--port", "0", "--allow-writes"]
    log = cli.folder / "log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=cli.folder, env=cli.environment, stdout=file, stderr=file
        )
    try:
        await mcp_servers.until(lambda: process.returncode is not None or "/mcp\n" in log.read_text())
        found = re.search(r"http://\S+/mcp", log.read_text())
        assert found, log.read_text()
        yield found[0], process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def visit(url: str, number: int, calls: int) -> tuple[str | None, list[str]]:
    """Connect, say a word, write and read it; return the context's id, and all that was heard."""
    word, heard = word_of(number), list[str]()

    async def said(talk: Talk, tool: str, **arguments: Any) -> Any:
        answer = await talk.call(tool, **arguments)
        assert not answer.is_error, answer.text
        heard.append(f"{answer.text} {json.dumps(answer.structured)}")
        return answer

    async with talking(url, *kind_of(number), answer=lambda *_: "yes", token=token_of(number)) as talk:
        about = f"write {word} into the entry of owner {number}, and read it"
        context = (await said(talk, "set_context", query=about)).structured
        assert word in context["unknown_words"]
        more = {"context_id": context["context_id"]} if context["context_id"] else {}
        for turn in range(calls // 2):
            page = {"owner": str(number), "text": f"{word} of turn {turn}"}
            await said(talk, "call_changing_tool", name="diary.write_entry", arguments=page, **more)
            read = await said(talk, "call_read_tool", name="diary.read_entry", arguments={"owner": str(number)}, **more)
            assert read.text == page["text"]
        await said(talk, "search_tools", query="read the entry", **more)
        tools = await talk.tools()
        assert ("diary__read_entry" in {tool.name for tool in tools}) is (not more)
        heard += [*map(str, tools), *talk.asked]
        assert len(talk.asked) == calls // 2
        return context["context_id"], heard


async def stranger(url: str, number: int, context: str) -> None:
    """Try another client's context."""
    async with talking(url, *kind_of(number), token=token_of(number)) as talk:
        for tool, more in (("search_tools", {"query": "read"}), ("call_read_tool", {"name": "diary.read_entry"})):
            answer = await talk.call(tool, **more, context_id=context)
            assert answer.is_error
            assert "there is no context" in answer.text
            assert not others(answer.text, number)


def others(text: str, number: int | None) -> set[str]:
    """Return the words in a text that are other clients'; of nobody's text, all of them."""
    return set(WORD.findall(text)) - ({word_of(number)} if number is not None else set())


async def rows_of(cli: CommandLine) -> tuple[list[JournalRow], dict[str, int]]:
    """Return the journal, each row in its place, and whose each session is."""
    chain, rows, owner, journal = (
        JournalChain(),
        list[JournalRow](),
        dict[str, int](),
        open_journal(Settings(home=cli.home)),
    )
    async for row in journal.rows():
        assert chain.breach(row) is None
        rows.append(row)
        if row.event == "turn_opened":
            person = str(row.recorded.entry.detail["person"])
            assert owner.setdefault(row.session_id, int(person.removeprefix("c"))) == int(person.removeprefix("c"))
    assert chain.end(await journal.head()) is None
    return rows, owner


async def packets_of(cli: CommandLine, rows: list[JournalRow]) -> list[CognitionPacket]:
    """Return what `packetgate trace` finds of every call; that is written after its client has the answer."""
    packets: list[CognitionPacket] = []
    async with open_archive(Settings(home=cli.home)) as archive, asyncio.timeout(600):
        for row in rows:
            while True:
                try:
                    packets.append((await find(archive, row.packet_id, row.session_id)).packet)
                    break
                except (PacketError, SessionError):
                    await asyncio.sleep(0.1)
    return packets


async def learned(cli: CommandLine) -> list[tuple[int, str]]:
    """Return what was learned of which client."""
    async with open_archive(Settings(home=cli.home)) as archive:
        items = await archive.store.asearch(LEARNED, limit=1_000_000)
    return [(int(item.namespace[-1].rpartition("c")[2]), json.dumps(item.value)) for item in items]


@pytest.mark.timeout(1800)
async def test_many_clients(cli: CommandLine, capsys: pytest.CaptureFixture[str]) -> None:
    configure(cli)
    sizes: list[float] = []
    async with proxy(cli) as (url, pid):
        for _ in range(ROUNDS):
            visits = (visit(url, number, CALLS // CLIENTS // ROUNDS) for number in range(CLIENTS))
            told = await asyncio.gather(*visits)
            for number, (_, heard) in enumerate(told):
                assert word_of(number) in "".join(heard)
                assert not [one for one in heard if others(one, number)]
            sizes.append(resident_mib(pid))
        contexts = {number: context for number, (context, _) in enumerate(told) if context}
        assert len(set(contexts.values())) == CLIENTS // 2
        await asyncio.gather(*(stranger(url, (number + 2) % CLIENTS, context) for number, context in contexts.items()))
        rows, owner = await rows_of(cli)
        packets = await packets_of(cli, [row for row in rows if row.event == "turn_opened"])
    log = (cli.folder / "log").read_text()
    assert "Traceback" not in log
    assert "could not be recorded" not in log

    events = [row.event for row in rows]
    assert (events.count("turn_opened"), events.count("call_ended"), events.count("call_approved")) == (
        CALLS,
        CALLS,
        CALLS // 2,
    )
    assert {row.event for row in rows if row.session_id not in owner} == {"claimed"}
    assert not [row for row in rows if others(str(row), owner.get(row.session_id))]
    for packet in packets:
        number = owner[packet.header.session_id]
        assert word_of(number) in packet.content.original_prompt
        assert not others(packet.model_dump_json(), number)
    uses = await learned(cli)
    assert uses
    assert not [use for number, use in uses if others(use, number)]
    legacy, modern = (next(session for session, number in owner.items() if number % 2 == kind) for kind in (0, 1))
    for session, command in ((legacy, ("trace", "last")), (modern, ("audit",))):
        done = await asyncio.to_thread(cli.run, *command, "--session", session)
        assert done.status == 0
        assert word_of(owner[session]) in done.out
        assert not others(done.out, owner[session])
    with capsys.disabled():
        print(  # noqa: T201  the figures are the point
            f"\n{CLIENTS} clients, {CALLS} calls, {len(owner)} sessions, {len(rows)} entries; {sizes[0]:.0f} MiB after "
            f"{CALLS // ROUNDS} calls, {sizes[-1] - sizes[0]:+.1f} MiB since"
        )
    assert sizes[-1] - sizes[0] < GROWTH_MIB
