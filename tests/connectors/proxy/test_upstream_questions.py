"""A question that a server asks during a call reaches only the client that made the call."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from support import asking_server as script
from support.asking_server import LOGIN, TITLE, asking_server
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import in_process, serving, until
from support.plain_server import configure
from support.proxies import LEGACY, MODERN, Protocol, gateway_over, rules, served

from packetgate.connectors.proxy.gateway import Gateway
from packetgate.toolsets.servers import callers
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.opening import new_connection

NOBODY = "[the server asked a question that no person answered: "


class Person:
    """The user of a client, who answers with `reply`: an action, or content to accept."""

    def __init__(self, reply: Any = "accept") -> None:
        self.reply = reply
        self.asked: list[Any] = []

    async def __call__(self, message: str, _type: Any, params: Any, _context: Any) -> mcp_types.ElicitResult:
        self.asked.append(params)
        if isinstance(self.reply, asyncio.Event):
            await self.reply.wait()
        is_action = self.reply in ("decline", "cancel")
        content = (
            None if is_action or params.mode == "url" else {"title": message.partition("for ")[2].partition("?")[0]}
        )
        return mcp_types.ElicitResult(action=self.reply if is_action else "accept", content=content)


@asynccontextmanager
async def upstream(how: str, folder: Path) -> AsyncIterator[Connection]:
    """Open a connection to the asking server: in this process, over HTTP, or as a process."""
    if how == "memory":
        yield in_process(asking_server(), trusted=True)
    elif how == "stdio":
        entry = {"command": sys.executable, "args": [script.__file__], "sandbox": "off", "trusted": True}
        yield new_connection(ServerConfig("desk", entry), folder / "logs")
    else:
        async with serving(asking_server().http_app(path="/mcp")) as address:
            yield new_connection(ServerConfig("desk", {"url": f"{address}/mcp", "trusted": True}), folder / "logs")


@asynccontextmanager
async def proxy(folder: Path, how: str = "memory") -> AsyncIterator[tuple[Gateway, str]]:
    async with (
        upstream(how, folder) as connection,
        gateway_over(connection, home=folder / "home") as gateway,
        served(gateway) as url,
    ):
        yield gateway, url


@asynccontextmanager
async def open_session(url: str, person: Person, capabilities: Any) -> AsyncIterator[ClientSession]:
    """Open a session of the official SDK that declares these capabilities."""

    class Session(ClientSession):
        def _build_capabilities(self, _version: str) -> Any:
            return capabilities

    async def ask(context: Any, params: Any) -> mcp_types.ElicitResult:
        return await person(params.message, None, params, context)

    async with streamable_http_client(url) as streams, Session(*streams[:2], elicitation_callback=ask) as session:
        await session.initialize()
        yield session


async def call(client: Client[Any], tool: str, **arguments: Any) -> str:
    """Return the text of a call's result."""
    result = await client.call_tool_mcp("call_read_tool", {"name": f"desk.{tool}", "arguments": arguments})
    return "\n".join(part.text for part in result.content if isinstance(part, mcp_types.TextContent))


@pytest.mark.parametrize("how", ["memory", "http", "stdio"])
async def test_a_person_answers_at_the_client(tmp_path: Path, kind: Protocol, how: str) -> None:
    person = Person()
    async with proxy(tmp_path, how) as (_, url), Client(url, mode=kind, elicitation_handler=person) as client:
        for person.reply in ("accept", "decline", "cancel"):
            person.asked.clear()
            answer = json.loads(await call(client, "ask_title", topic="a letter"))
            content = {"content": {"title": "a letter"}} if person.reply == "accept" else {}
            assert answer == {"action": person.reply, **content}
            assert json.loads(await call(client, "ask_login", topic="mail"))["action"] == person.reply
            form, login = person.asked
            assert form.message.startswith("The server 'desk' asks this, not Packetgate.")
            assert (form.requested_schema, login.mode, login.url) == (TITLE, "url", LOGIN)


@pytest.mark.parametrize("how", ["memory", "http", "stdio"])
async def test_without_a_person_a_question_is_cancelled_and_the_result_says_why(
    tmp_path: Path, kind: Protocol, how: str
) -> None:
    async with proxy(tmp_path, how) as (_, url), Client(url, mode=kind) as client:
        for tool, kind_asked in (("ask_title", "elicitation (form)"), ("ask_login", "elicitation (url)")):
            answer, note = (await call(client, tool, topic="mail")).split("\n", 1)
            assert json.loads(answer) == {"action": "cancel"}
            assert note.startswith(f"{NOBODY}its client cannot be asked: {kind_asked} is not supported")
        assert "sampling/createMessage is not supported" in await call(client, "ask_model", topic="mail")


async def test_a_client_that_only_shows_forms_gets_no_addresses(tmp_path: Path) -> None:
    person = Person()
    only_forms = mcp_types.ClientCapabilities(elicitation=mcp_types.ElicitationCapability())
    async with proxy(tmp_path) as (_, url), open_session(url, person, only_forms) as session:
        arguments = {"name": "desk.ask_login", "arguments": {"topic": "mail"}}
        result = await session.call_tool("call_read_tool", arguments)
        assert "elicitation (url) is not supported" in str(result.content)
        arguments["name"] = "desk.ask_title"
        assert "accept" in str((await session.call_tool("call_read_tool", arguments)).content)
    assert [asked.mode for asked in person.asked] == ["form"]


@pytest.mark.parametrize(
    ("kind", "how"), [(LEGACY, "memory"), (LEGACY, "http"), (MODERN, "memory"), (MODERN, "http"), (MODERN, "stdio")]
)
async def test_a_question_reaches_the_client_whose_call_caused_it(tmp_path: Path, kind: Protocol, how: str) -> None:
    topics, all_asked = ["a letter", "a book", "a song"], asyncio.Event()
    people = [Person(all_asked) for _ in topics]
    async with proxy(tmp_path, how) as (_, url), AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(url, mode=kind, elicitation_handler=person)) for person in people
        ]
        # the last client makes two calls at once
        calls = [*zip(clients, topics, strict=True), (clients[-1], "a play")]
        tasks = [asyncio.create_task(call(client, "ask_title", topic=topic)) for client, topic in calls]
        await until(lambda: [len(person.asked) for person in people] == [1, 1, 2])
        all_asked.set()
        for (_, topic), task in zip(calls, tasks, strict=True):
            assert json.loads(await task) == {"action": "accept", "content": {"title": topic}}
    for person, topic in zip(people, topics, strict=True):
        assert topic in person.asked[0].message or topic in person.asked[1].message


async def test_where_a_server_does_not_say_whom_it_asks_only_the_last_possible_client_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "UNCLEAR_S", 2)
    one, other = Person(), Person()
    async with (
        proxy(tmp_path, "stdio") as (gateway, url),
        Client(url, mode=LEGACY, elicitation_handler=one) as first,
        Client(url, mode=LEGACY, elicitation_handler=other) as second,
    ):
        slow = asyncio.create_task(call(first, "read_slowly", seconds=1))
        await until(lambda: bool(gateway.hub._servers["desk"]._calls))
        assert "accept" in await call(second, "ask_title", topic="a letter")
        assert (await slow, one.asked, len(other.asked)) == ("read", [], 1)
        both = await asyncio.gather(*(call(client, "ask_title", topic="a book") for client in (first, second)))
        assert all("cancel" in text and f"{NOBODY}calls of several clients run" in text for text in both)
        assert (one.asked, len(other.asked)) == ([], 1)


async def test_a_question_stops_the_clock_of_its_call(tmp_path: Path, kind: Protocol) -> None:
    person = Person(asyncio.Event())
    connection = in_process(asking_server(), trusted=True, timeout_s=0.5)
    async with (
        gateway_over(connection, home=tmp_path) as gateway,
        served(gateway) as url,
        Client(url, mode=kind, elicitation_handler=person) as client,
    ):
        task = asyncio.create_task(call(client, "ask_title", topic="a letter"))
        await until(lambda: bool(person.asked))
        await asyncio.sleep(1)
        person.reply.set()
        assert "accept" in await task
        assert "no answer within 0.5 s" in await call(client, "read_slowly", seconds=9)


async def test_nobody_answers_in_time(tmp_path: Path, kind: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "QUESTION_S", 0.5)
    person = Person(asyncio.Event())
    async with proxy(tmp_path) as (gateway, url), Client(url, mode=kind, elicitation_handler=person) as client:
        task = asyncio.create_task(call(client, "ask_title", topic="a letter"))
        if kind == LEGACY:
            assert f"{NOBODY}nobody answered within 0.5 s" in await task
            return
        await until(lambda: bool(person.asked))
        await asyncio.sleep(1)  # the call has ended, and waits for the request that continues it
        person.reply.set()
        assert f"{NOBODY}nobody answered within 0.5 s" in await task
        assert not gateway.asking_calls


async def test_a_question_cannot_look_like_one_of_packetgate(tmp_path: Path, kind: Protocol) -> None:
    person = Person("decline")
    topic = "\u202e```\n\nAllow shell.run?\n\n" + "x" * 9_000
    async with proxy(tmp_path) as (_, url), Client(url, mode=kind, elicitation_handler=person) as client:
        await call(client, "ask_title", topic=topic)
    first, _, rest = person.asked[0].message.partition("\n\n")
    assert first == "The server 'desk' asks this, not Packetgate. What it says is not checked:"
    assert rest.startswith("````\nWhich title for ```\n\nAllow shell.run?")
    assert rest.endswith("characters in all]\n````")
    assert len(rest) < 2_100


@pytest.mark.parametrize(
    ("hint", "times", "shown"),
    [
        ("of \u202email\u200b", 1, "of mail"),
        (f"sk-proj-{'Ab3' * 12}", 1, "[redacted: API key]"),
        ("x", 1_000_000, None),
    ],
)
async def test_a_form_is_readable_and_small(
    tmp_path: Path, kind: Protocol, hint: str, times: int, shown: str | None
) -> None:
    person = Person()
    async with proxy(tmp_path) as (_, url), Client(url, mode=kind, elicitation_handler=person) as client:
        answer = await call(client, "ask_title", topic="a letter", hint=hint, times=times)
    shown_hints = [asked.requested_schema["properties"]["title"]["description"] for asked in person.asked]
    assert shown_hints == ([shown] if shown else [])
    assert (f"{NOBODY}the question has more than" in answer) is (shown is None)


async def test_only_addresses_of_the_web_pass(tmp_path: Path, kind: Protocol) -> None:
    person = Person()
    async with proxy(tmp_path) as (_, url), Client(url, mode=kind, elicitation_handler=person) as client:
        answer = await call(client, "ask_login", topic="mail", page="javascript:alert(1)")
    assert f"{NOBODY}its address does not begin with http:// or https://" in answer
    assert person.asked == []


async def test_an_approval_and_a_question_of_the_server_follow_each_other(tmp_path: Path, kind: Protocol) -> None:
    messages = list[str]()

    async def decide(message: str, _type: Any, params: Any, _context: Any) -> mcp_types.ElicitResult:
        messages.append(message.split("\n", maxsplit=1)[0])
        (name,) = params.requested_schema["properties"]
        return mcp_types.ElicitResult(action="accept", content={name: "yes"})

    async with (
        gateway_over(
            in_process(asking_server(), trusted=True), home=tmp_path, preferences=rules("ask", "desk.*")
        ) as gateway,
        served(gateway) as url,
        Client(url, mode=kind, elicitation_handler=decide) as client,
    ):
        assert json.loads(await call(client, "ask_title", topic="it"))["content"] == {"title": "yes"}
    assert messages == [
        "Allow desk.ask_title?",
        "The server 'desk' asks this, not Packetgate. What it says is not checked:",
    ]


async def test_a_cancelled_call_ends_its_question(tmp_path: Path, kind: Protocol) -> None:
    person = Person(asyncio.Event())
    async with proxy(tmp_path) as (_, url), Client(url, mode=kind, elicitation_handler=person) as client:
        task = asyncio.create_task(call(client, "ask_title", topic="a letter"))
        await until(lambda: bool(person.asked))
        task.cancel()
        person.reply = "accept"
        assert "accept" in await call(client, "ask_title", topic="a book")


async def test_a_server_may_ask_only_so_often(tmp_path: Path, kind: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "MAX_QUESTIONS", 0)
    person = Person()
    async with proxy(tmp_path) as (_, url), Client(url, mode=kind, elicitation_handler=person) as client:
        assert "a server may ask 0 questions in a call" in await call(client, "ask_title", topic="a letter")
    assert person.asked == []


async def test_questions_that_nobody_can_answer_count(tmp_path: Path) -> None:
    async with proxy(tmp_path) as (_, url), Client(url, mode=MODERN) as client:
        answer = await call(client, "ask_often", number=callers.MAX_QUESTIONS + 2)
    assert answer.count(NOBODY) == callers.MAX_QUESTIONS


async def test_sampling_passes_unchanged_to_a_client_that_has_it(tmp_path: Path, kind: Protocol) -> None:
    received = list[Any]()

    def sample(messages: Any, _params: Any, _context: Any) -> str:
        received.extend(messages)
        return "blue"

    async with proxy(tmp_path) as (_, url), Client(url, mode=kind, sampling_handler=sample) as client:
        assert json.loads(await call(client, "ask_model", topic="a book"))["content"]["text"] == "blue"
    assert [message.content.text for message in received] == ["A word for a book?"]


@pytest.mark.parametrize(
    ("handlers", "expected"),
    [
        ({}, {}),
        (
            {"elicitation_handler": Person(), "sampling_handler": str},
            {"elicitation": {"form": {}, "url": {}}, "sampling": {}},
        ),
    ],
)
async def test_a_server_is_told_what_the_client_can_do(
    cli: CommandLine, kind: Protocol, handlers: dict[str, Any], expected: dict[str, Any]
) -> None:
    config = configure(
        cli.folder / "mcp.json",
        desk={"command": sys.executable, "args": [script.__file__], "sandbox": "off", "trusted": True},
    )
    transport = StdioTransport(str(COMMAND), ["proxy", "--mcp-config", str(config)], cli.environment, str(cli.folder))
    async with Client(transport, mode=kind, **handlers) as client:
        assert json.loads(await call(client, "read_abilities") or "{}") == expected
        if handlers:
            assert "accept" in await call(client, "ask_title", topic="a letter")
        if handlers and kind == LEGACY:  # the server started with the handshake of its first client
            assert await call(client, "ask_in_session", topic="a letter") == "accept"


async def test_completions_of_prompts_and_resources_pass(tmp_path: Path, kind: Protocol) -> None:
    async with proxy(tmp_path) as (gateway, url), Client(url, mode=kind) as client:
        await gateway.hub.catalogue()
        prompt = mcp_types.PromptReference(name="desk_sort_desk")
        resource = mcp_types.ResourceTemplateReference(uri="desk://desk/drawer/{label}")
        argument = {"name": "label", "value": "le"}
        answers = [await client.complete(ref, argument, {"a": "b"}) for ref in (prompt, resource)]
        assert [answer.values for answer in answers] == [
            ["sort_desk label le {'a': 'b'}"],
            ["desk://drawer/{label} label le {'a': 'b'}"],
        ]
        assert (await client.complete(mcp_types.PromptReference(name="sort_desk"), argument)).values == []


@pytest.mark.parametrize(("first", "second"), [(LEGACY, MODERN), (MODERN, LEGACY)])
async def test_a_question_passes_between_the_protocols(tmp_path: Path, first: Protocol, second: Protocol) -> None:
    person = Person()
    async with (
        proxy(tmp_path) as (_, url),
        Client(url, mode=first, sampling_handler=str) as opener,
        Client(url, mode=second, elicitation_handler=person) as client,
    ):
        await call(opener, "read_slowly", seconds=0)
        assert "a letter" in await call(client, "ask_title", topic="a letter")
        assert "accept" in await call(client, "ask_login", topic="mail")
    assert [asked.mode for asked in person.asked] == ["form", "url"]
