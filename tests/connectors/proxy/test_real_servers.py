"""The proxy as its users start it, in front of published servers, the built-in ones, and one of 2,000 tools."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support import crowd_server
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import until
from support.programs import descendants, require
from support.proxies import META, Era, Talk

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("proxied_servers"),  # one worker starts them for all tests
]

NOTE = "the kettle is blue\n"
PLAN = "The gate opens at seven.\nIt closes at nine.\n"
UNRELATED = "bake a rye bread with sourdough"


class Front(CommandLine):
    """The proxy in a folder with `plan.txt`; the filesystem server has `note.txt`, in a folder beside it."""

    @property
    def files(self) -> Path:
        return self.folder.parent / "files"

    @property
    def config(self) -> Path:
        return self.folder / "mcp.json"

    @asynccontextmanager
    async def talking(self, era: Era) -> AsyncIterator[Talk]:
        """Start it for a client at its standard input and output."""
        environment = {**self.environment, "PACKETGATE_PATIENCE_S": "240"}
        options, folder = ["proxy", "--mcp-config", str(self.config)], str(self.folder)
        transport = StdioTransport(str(COMMAND), options, cwd=folder, env=environment, keep_alive=False)
        async with Client(transport, mode=era) as client:
            yield Talk(client, "fastmcp")

    def processes(self) -> dict[int, str]:
        """Return the command line of its process, and of all that it has started, by process id."""
        (proxy,) = ((pid, command) for pid, command in descendants().items() if str(self.config) in command)
        return dict([proxy]) | descendants(proxy[0])


def front_in(folder: Path) -> Front:
    """Return a proxy that can be started; a client waits until all of its servers are installed."""
    made = Front(folder.resolve() / "work", folder.resolve() / "home")
    made.folder.mkdir()
    made.files.mkdir()
    (made.folder / "plan.txt").write_text(PLAN)
    (made.files / "note.txt").write_text(NOTE)
    package = ["-y", "@modelcontextprotocol/server-filesystem", str(made.files)]
    servers = {
        "files": {"command": require("npx"), "args": package, "trusted": True},
        "time": {"command": require("uvx"), "args": ["mcp-server-time"], "trusted": True},
        "crowd": crowd_server.entry(),
    }
    made.config.write_text(json.dumps({"mcpServers": servers, "builtin": True}))
    return made


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Front:
    return front_in(tmp_path_factory.mktemp("front"))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["legacy", "2026-07-28"])
async def talk(front: Front, request: pytest.FixtureRequest) -> AsyncIterator[Talk]:
    async with front.talking(request.param) as talk:
        yield talk


async def structured(talk: Talk, name: str, **arguments: Any) -> dict[str, Any]:
    """Return what one of the proxy's own tools says."""
    said = await talk.call(name, **arguments)
    assert said.structured is not None, said.text
    return said.structured


async def shown_for(talk: Talk, query: str) -> tuple[set[str], dict[str, str]]:
    """Say what the client is about; return the tools that it is shown, and what goes with its later calls."""
    said = await structured(talk, "set_context", query=query)
    if said["listed"]:
        return await talk.names() - META, {}
    return {tool["name"] for tool in said["tools"]}, {"context_id": said["context_id"]}


@dataclass(frozen=True)
class Task:
    """By which words a tool is found, how it is called, and what its answer is when it has done its work."""

    words: str
    tool: str
    arguments: dict[str, str]
    is_done: Callable[[str], bool]


def is_now(text: str) -> bool:
    told = datetime.fromisoformat(json.loads(text)["datetime"])
    return abs(datetime.now(UTC) - told) < timedelta(minutes=5)


TASKS = [
    Task("read a text file", "files.read_text_file", {"path": "{files}/note.txt"}, NOTE.__eq__),
    Task("get the current time in a timezone", "time.get_current_time", {"timezone": "UTC"}, is_now),
    Task("count the lines of a file", "ai.count", {"path": "plan.txt"}, lambda text: "2 lines, 9 words" in text),
    Task(
        "which insurer does a lighthouse have",
        "crowd.get_lighthouse_insurer",
        {"number": "12"},
        "get_lighthouse_insurer of number 12".__eq__,
    ),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.tool)
async def test_after_an_unrelated_context_each_servers_tools_are_two_calls_away(
    talk: Talk, front: Front, task: Task
) -> None:
    _, more = await shown_for(talk, UNRELATED)
    found = await structured(talk, "search_tools", query=task.words, **more)
    assert task.tool.replace(".", "__") in [tool["name"] for tool in found["tools"]]
    arguments = {name: value.format(files=front.files) for name, value in task.arguments.items()}
    said = await talk.call("call_read_tool", name=task.tool, arguments=arguments, **more)
    assert not said.is_error, said.text
    assert task.is_done(said.text), said.text


async def test_a_context_about_files_shows_a_tool_for_them_and_it_works(talk: Talk, front: Front) -> None:
    shown, more = await shown_for(talk, "read the notes in the text files of a folder")
    assert "files__read_text_file" in shown
    note = {"path": str(front.files / "note.txt")}
    if more:
        said = await talk.call("call_read_tool", name="files.read_text_file", arguments=note, **more)
    else:
        said = await talk.call("files.read_text_file", **note)
    assert (said.is_error, said.text) == (False, NOTE)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("files.write_file", {"path": "{files}/note.txt", "content": "x"}, "its name says `write`"),
        ("crowd.remove_ferry_price", {"number": "7"}, "its name says `remove`"),
        ("ai.delete", {"path": "plan.txt"}, "ai.delete may write"),
    ],
)
async def test_what_changes_something_is_refused_as_a_read_with_the_reason(
    talk: Talk, front: Front, tool: str, arguments: dict[str, str], why: str
) -> None:
    _, more = await shown_for(talk, UNRELATED)
    given = {name: value.format(files=front.files) for name, value in arguments.items()}
    said = await talk.call("call_read_tool", name=tool, arguments=given, **more)
    assert said.is_error
    assert why in said.text
    assert "Call it by call_changing_tool" in said.text
    assert (front.files / "note.txt").read_text() == NOTE
    assert (front.folder / "plan.txt").read_text() == PLAN


async def test_of_two_thousand_tools_none_is_out_of_reach(talk: Talk) -> None:
    shown, more = await shown_for(talk, "which insurer does a lighthouse have")
    assert 0 < len(shown) <= 128
    described = await structured(talk, "fetch_tool_description", names=["crowd"], **more)
    assert len(described["tools"]) + described["left_out"] == crowd_server.TOOLS == 2_000


async def test_with_the_client_every_process_ends(tmp_path: Path) -> None:
    front = front_in(tmp_path)
    async with front.talking("legacy") as talk:
        assert not (await talk.call("call_read_tool", name="ai.list")).is_error
        running = front.processes()
    for server in ("server-filesystem", "mcp-server-time", crowd_server.SCRIPT.name):
        assert any(server in command for command in running.values())
    await until(lambda: not running.keys() & descendants(of=0).keys())  # all that runs: an orphan is nobody's child
