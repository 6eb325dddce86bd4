"""The proxy process in front of published servers, the built-in server, and a server of 2,000 tools."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support import crowd_server
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import until
from support.programs import descendants, require
from support.proxies import META, ClientKind, Protocol, Talk

pytestmark = [
    pytest.mark.slow,
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
    async def talking(self, protocol: Protocol) -> AsyncIterator[Talk]:
        """Start it for a client at its standard input and output."""
        environment = {**self.environment, "PACKETGATE_PATIENCE_S": "240"}
        options, folder = ["proxy", "--mcp-config", str(self.config)], str(self.folder)
        transport = StdioTransport(str(COMMAND), options, cwd=folder, env=environment, keep_alive=False)
        async with Client(transport, mode=protocol) as client:
            yield Talk(client, ClientKind("fastmcp", protocol), "", gateway=None)  # type: ignore[arg-type]

    def processes(self) -> dict[int, str]:
        """Return the command lines of its process and of all its child processes, by process id."""
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


async def tools_for(talk: Talk, query: str) -> tuple[set[str], dict[str, str]]:
    """Set the context; return the tools that the client is shown, and what later calls must send."""
    result = (await talk.call("set_context", query=query)).structured
    if result["listed"]:
        return await talk.names() - META, {}
    return {tool["name"] for tool in result["tools"]}, {"context_id": result["context_id"]}


@dataclass(frozen=True)
class Task:
    """The words that find a tool, its call, and a check of its answer."""

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
async def test_every_tool_is_two_calls_away_after_an_unrelated_context(talk: Talk, front: Front, task: Task) -> None:
    _, more = await tools_for(talk, UNRELATED)
    found = await talk.call("search_tools", query=task.words, **more)
    assert task.tool.replace(".", "__") in [tool["name"] for tool in found.structured["tools"]]
    arguments = {name: value.format(files=front.files) for name, value in task.arguments.items()}
    result = await talk.call("call_read_tool", name=task.tool, arguments=arguments, **more)
    assert not result.is_error, result.text
    assert task.is_done(result.text), result.text


async def test_a_context_about_files_shows_a_tool_for_them_and_it_works(talk: Talk, front: Front) -> None:
    shown, more = await tools_for(talk, "read the notes in the text files of a folder")
    assert "files__read_text_file" in shown
    note = {"path": str(front.files / "note.txt")}
    if more:
        result = await talk.call("call_read_tool", name="files.read_text_file", arguments=note, **more)
    else:
        result = await talk.call("files.read_text_file", **note)
    assert (result.is_error, result.text) == (False, NOTE)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("files.write_file", {"path": "{files}/note.txt", "content": "x"}, "its name says `write`"),
        ("crowd.remove_ferry_price", {"number": "7"}, "its name says `remove`"),
        ("ai.delete", {"path": "plan.txt"}, "ai.delete may write"),
    ],
)
async def test_a_write_is_refused_as_a_read_with_the_reason(
    talk: Talk, front: Front, tool: str, arguments: dict[str, str], why: str
) -> None:
    _, more = await tools_for(talk, UNRELATED)
    given = {name: value.format(files=front.files) for name, value in arguments.items()}
    result = await talk.call("call_read_tool", name=tool, arguments=given, **more)
    assert result.is_error
    assert why in result.text
    assert "call_changing_tool" in result.text
    assert (front.files / "note.txt").read_text() == NOTE
    assert (front.folder / "plan.txt").read_text() == PLAN


async def test_all_of_two_thousand_tools_can_be_described(talk: Talk) -> None:
    shown, more = await tools_for(talk, "which insurer does a lighthouse have")
    assert 0 < len(shown) <= 128
    described = (await talk.call("fetch_tool_description", names=["crowd"], **more)).structured
    assert len(described["tools"]) + described["left_out"] == crowd_server.TOOLS == 2_000


async def test_every_process_ends_with_its_client(tmp_path: Path) -> None:
    front = front_in(tmp_path)
    async with front.talking("legacy") as talk:
        assert not (await talk.call("call_read_tool", name="ai.list")).is_error
        running = front.processes()
    for server in ("server-filesystem", "mcp-server-time", crowd_server.SCRIPT.name):
        assert any(server in command for command in running.values())
    await until(lambda: not running.keys() & descendants(of=0).keys())  # all that runs: an orphan is nobody's child
