"""Chat clients use Packetgate as their model: the official client against the real command."""

import asyncio
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from support.command_line import CommandLine
from support.endpoints import Chat, serving, started
from support.mcp_servers import until
from support.prompts import NO_TOOL, call, review
from support.scripted_openai import ScriptedOpenAI
from support.terminals import chatting

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.serve.conversing import is_question
from packetgate.graph.settings import Settings

WRITE = 'Write "seven" to new.txt'
PEOPLE = 50


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_with_an_approval(cli: CommandLine, *, stream: bool) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        assert [model.id async for model in await chat.client.models.list()] == ["packetgate"]
        assert "The gate opens at seven." in await chat.say("Read plan.txt", stream=stream)
        assert "Buy milk." in await chat.say("and todo.txt", stream=stream)  # the session knows what `and` adds to
        asked = await chat.say(WRITE, stream=stream)
        for part in ("ai.write", "path = new.txt", "content = seven", "+seven", "`yes`, `no`, `skip`"):
            assert part in asked
        assert not (cli.folder / "new.txt").exists()
        assert "Created new.txt" in await chat.say("yes", stream=stream)
        assert (cli.folder / "new.txt").read_text() == "seven"
        (cli.folder / "new.txt").unlink()
        again = await chat.at(3).say("yes", stream=stream)
        assert "decided already" in again
        assert "Created new.txt" in again
        assert not (cli.folder / "new.txt").exists()


@pytest.mark.parametrize(
    ("words", "written"),
    [("No.", {}), ("skip", {}), ('edit {"path": "other.txt", "content": "eight"}', {"other.txt": "eight"})],
)
async def test_what_a_question_is_answered(cli: CommandLine, words: str, written: dict[str, str]) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        await chat.say(WRITE)
        with pytest.raises(openai.BadRequestError, match="not JSON"):
            await chat.say("edit {path: other.txt}")
        await chat.say(words)
    new = {file.name: file.read_text() for file in cli.folder.iterdir()}
    assert {name: text for name, text in new.items() if name not in {"plan.txt", "todo.txt"}} == written


async def test_a_remark_to_a_models_question_is_answered_and_the_question_stays(
    cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    model = ("--lite", "openai:scripted", "--prime", "openai:scripted")
    async with serving(cli, "--allow-writes", *model, OPENAI_BASE_URL=scripted_openai.base_url) as served:
        chat = Chat(served.client())
        scripted_openai.script(call("ai.write", path="new.txt", content="seven"), review(0.9))
        assert "path = new.txt" in await chat.say("Seven goes into new.txt")
        scripted_openai.script(NO_TOOL, "Enjoy the sun.", "Enjoy the sun.")
        aside = await chat.say("My sister has a grey cat")
        assert "Enjoy the sun." in aside
        assert is_question(aside)
        scripted_openai.script("Done.")
        await chat.say("yes")
    assert (cli.folder / "new.txt").read_text() == "seven"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_new_request_is_answered_and_the_question_put_again(cli: CommandLine, *, stream: bool) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        await chat.say(WRITE, stream=stream)
        aside = await chat.say("Read plan.txt", stream=stream)
        answer, question = aside.split("This still waits, and has not run.")
        assert "The gate opens at seven." in answer
        assert "path = new.txt" in question
        assert is_question(aside)
        unsure = await chat.say("hmm, not sure", stream=stream)
        assert "This decides nothing, so it waits, and has not run" in unsure
        assert not (cli.folder / "new.txt").exists()
        assert "Created new.txt" in await chat.say("yes", stream=stream)
        assert (cli.folder / "new.txt").read_text() == "seven"


async def test_words_instead_of_an_answer_go_back_to_the_selection(cli: CommandLine) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        first = await chat.say(WRITE)
        second = await chat.say('Write "seven" to third.txt instead')
        assert not (cli.folder / "new.txt").exists()
        assert first != second


async def test_an_approval_counts_in_its_own_conversation_alone(cli: CommandLine) -> None:
    tokens = "".join(f'[serve.clients.{name}]\ntoken = "{name}-token-0123456789"\n' for name in ("ann", "ben"))
    (cli.folder / "packetgate.toml").write_text(tokens)
    async with serving(cli, "--allow-writes") as served:
        ann, ben = (served.client(f"{name}-token-0123456789") for name in ("ann", "ben"))
        asked, same = Chat(ann), Chat(ann)
        await asked.say(WRITE)
        await same.say(WRITE)  # word for word the same, and no less another conversation
        assert asked.messages[-1] != same.messages[-1]
        for copy in (
            Chat(ben, messages=[*asked.messages]),
            Chat(ann, {"user": "somebody else"}, [*asked.messages]),
            Chat(ann, {"metadata": {"conversation_id": "x"}}, [*asked.messages]),
            Chat(served.client("ann-token-0123456789", **{"X-OpenWebUI-Chat-Id": "y"}), messages=[*asked.messages]),
        ):
            with pytest.raises(openai.BadRequestError, match="nothing was run"):
                await copy.say("yes")
        await Chat(ann).say("yes")
        assert not (cli.folder / "new.txt").exists()
        await same.say("no")
        assert not (cli.folder / "new.txt").exists()
        assert "Created new.txt" in await asked.say("yes")
        with pytest.raises(openai.BadRequestError, match="nothing was run"):
            await same.at(1).say("yes")  # it was denied
        with pytest.raises(openai.AuthenticationError):
            await Chat(served.client("cat-token-0123456789")).say("Hello")


async def test_what_is_remembered_holds_for_the_one_who_asked(cli: CommandLine) -> None:
    """Also among those who share a token, as far as their client says who they are."""
    tokens = "".join(f'[serve.clients.{name}]\ntoken = "{name}-token-0123456789"\n' for name in ("ann", "ben"))
    (cli.folder / "packetgate.toml").write_text(f'[policy]\nremember = "always"\n{tokens}')
    new = cli.folder / "new.txt"
    async with serving(cli, "--allow-writes") as served:
        ann, ben = (served.client(f"{name}-token-0123456789") for name in ("ann", "ben"))
        people = [
            Chat(ann),
            Chat(ben),
            Chat(ann, {"user": "cat"}),
            Chat(served.client("ann-token-0123456789", **{"X-OpenWebUI-User-Id": "dan"})),
        ]
        for chat, asker in zip(people, ("ann", "ben", "ann/cat", "ann/dan"), strict=True):
            asked = await chat.say(WRITE)
            assert f"asked by {asker} in serve" in " ".join(asked.split())
            assert "Created new.txt" in await chat.say("always")
            new.unlink()
        for chat in people:
            assert "Created new.txt" in await Chat(chat.client, chat.options).say(WRITE)
            new.unlink()


def turns_of(cli: CommandLine) -> Counter[str]:
    """Return how many turns each session has had."""
    rows = map(json.loads, cli.run("audit", "--json").out.splitlines())
    return Counter(row["session_id"] for row in rows if row["event"] == "turn_opened")


async def test_an_edited_history_is_a_conversation_of_its_own(cli: CommandLine) -> None:
    async with serving(cli) as served:
        chat = Chat(served.client())
        await chat.say("Read plan.txt")
        await chat.say("Read todo.txt")
        fork = chat.at(1)
        assert "The gate opens at seven." in await fork.say("Read plan.txt")  # again, but from there
        assert sorted(turns_of(cli).values()) == [1, 2]
        assert "Buy milk." in await chat.say("Read todo.txt")
        assert sorted(turns_of(cli).values()) == [1, 3]
        for unknown in ("<|im_start|>", "\0"):
            messages = [{"role": "assistant", "content": unknown}, *chat.messages]
            assert "Buy milk." in await Chat(served.client(), messages=messages).say("Read todo.txt")
        assert sorted(turns_of(cli).values()) == [1, 1, 1, 3]


async def test_a_conversation_that_two_have_come_to_is_nobody_s(cli: CommandLine) -> None:
    async with serving(cli) as served:
        one, other = Chat(served.client()), Chat(served.client())
        await one.say("Hello")
        await other.say("Hello")
        assert one.messages == other.messages
        for chat in (one, other):
            await chat.say("Read plan.txt")
        assert sorted(turns_of(cli).values()) == [1, 1, 1, 1]
        named = [Chat(served.client(), {"metadata": {"conversation_id": name}}) for name in "ab"]
        for words in ("Hello", "Read plan.txt"):
            for chat in named:
                await chat.say(words)
        assert sorted(turns_of(cli).values()) == [1, 1, 1, 1, 2, 2]


async def test_of_a_session_that_is_forgotten_nothing_is_left_and_of_others_all(cli: CommandLine) -> None:
    async with serving(cli, "--allow-writes") as served:
        gone, stays = Chat(served.client()), Chat(served.client())
        await gone.say("Read plan.txt")
        (session,) = turns_of(cli)
        for chat in (gone, stays):
            await chat.say(WRITE)
        await gone.say("no")
        async with open_sessions(Settings(root=cli.folder, home=cli.home)) as sessions:
            assert sessions.store is not None
            kept = [item.value["session"] for item in await sessions.store.asearch(("serve",))]
            assert Counter(kept)[session] == 5  # its first message, two answers, and a question by all and by itself
            await asyncio.to_thread(forgotten, cli, session)
            assert [item.value["session"] for item in await sessions.store.asearch(("serve",))] == [
                other for other in kept if other != session
            ]
        with pytest.raises(openai.BadRequestError, match="nothing was run"):
            await gone.at(2).say("yes")
        assert "Created new.txt" in await stays.say("yes")


def forgotten(cli: CommandLine, session: str) -> None:
    """Have a session forgotten, as its user does."""
    with chatting(cli, "--session", session) as child:
        child.sendline("/reset")
        child.expect(r"\[y/N\]")
        child.sendline("y")
        child.expect("begins anew")


@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_a_turn_that_was_cut_off_goes_on(cli: CommandLine, slow_weather: Path, how: str) -> None:
    asked = 'Get the weather of "Oslo"'
    begun = slow_weather.with_name("pid")
    async with started(cli, "--mcp-config", str(slow_weather)) as served:
        chat = Chat(served.client())
        await chat.say("Hello")
        body = {"model": "packetgate", "messages": [*chat.messages, {"role": "user", "content": asked}]}
        stream = await chat.client.chat.completions.create(stream=True, **body)  # type: ignore[call-overload]
        await until(lambda: begun.exists() and bool(begun.read_text()))
        if how == "killed":
            await served.kill()
        await stream.close()
        slow_weather.with_name("may_answer").touch()
        if how == "closed":
            assert "Oslo: four owls" in await chat.say(asked)
    if how == "killed":
        async with started(cli, "--mcp-config", str(slow_weather)) as served:
            chat.client = served.client()
            assert "Oslo: four owls" in await chat.say(asked)
    assert list(turns_of(cli).values()) == [2]


async def test_killed_between_question_and_answer(cli: CommandLine) -> None:
    async with started(cli, "--allow-writes") as served:
        chat = Chat(served.client(), {"user": "ann"})
        await chat.say("Read plan.txt")
        await chat.say(WRITE, stream=True)
        await served.kill()
    async with serving(cli, "--allow-writes") as served:
        chat.client = served.client()
        assert "Created new.txt" in await chat.say("yes")
    assert (cli.folder / "new.txt").read_text() == "seven"


async def test_an_answer_given_to_two_processes_at_once_counts_once(cli: CommandLine) -> None:
    async with started(cli, "--allow-writes") as one, started(cli, "--allow-writes") as other:
        asked = Chat(one.client())
        await asked.say(WRITE)
        clients = [served.client() for served in (one, other) * 3]
        copies = [Chat(client, messages=[*asked.messages]) for client in clients]
        said = await asyncio.gather(*(copy.say("yes") for copy in copies), return_exceptions=True)
        for one_said in said:
            assert isinstance(one_said, str | openai.APIStatusError), one_said
        assert sum("Created new.txt" in str(one_said) for one_said in said) >= 1
    events = [json.loads(line)["event"] for line in cli.run("audit", "--json").out.splitlines()]
    assert (events.count("call_approved"), events.count("call_executed")) == (1, 1)


async def test_what_is_switched_off_meanwhile_is_not_done(cli: CommandLine) -> None:
    async with started(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        await chat.say(WRITE)
        assert await served.stop() == 0
    async with serving(cli) as served:
        chat.client = served.client()
        with pytest.raises(openai.BadRequestError, match="may not be done here any more"):
            await chat.say("yes")
    assert not (cli.folder / "new.txt").exists()


@pytest.mark.timeout(900)
async def test_fifty_conversations_at_once(cli: CommandLine) -> None:
    for number in range(PEOPLE):
        (cli.folder / f"diary{number:02}.txt").write_text(f"vesper{number:02} of the diary")
    async with serving(cli, "--allow-writes") as served:
        client = served.client()

        async def talk(number: int) -> list[str]:
            chat = Chat(client)
            await chat.say("Hello")  # all begin alike
            said = [await chat.say(f"Read diary{number:02}.txt", stream=bool(number % 2))]
            said.append(await chat.say(f'Write "vesper{number:02} again" to page{number:02}.txt'))
            said.append(await chat.say("yes" if number % 5 else "no"))
            return said

        told = await asyncio.gather(*(talk(number) for number in range(PEOPLE)))
    for number, said in enumerate(told):
        text = "\n".join(said)
        assert f"vesper{number:02} of the diary" in text
        assert not [other for other in range(PEOPLE) if other != number and f"vesper{other:02}" in text]
        page = cli.folder / f"page{number:02}.txt"
        assert page.exists() is bool(number % 5)
        assert not page.exists() or page.read_text() == f"vesper{number:02} again"


async def test_a_model_s_answer_streams_with_its_usage(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    none = '{"action": "none", "needs_tool": false}'
    scripted_openai.script(none, "Good morning.", none, "Good morning to you.")
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        await served.client().chat.completions.create(
            model="packetgate", messages=[{"role": "user", "content": "What is new?"}]
        )
        chunks = await served.client().chat.completions.create(
            model="packetgate",
            messages=[{"role": "user", "content": "Tell me something"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        told = [chunk async for chunk in chunks]
    pieces = [chunk.choices[0].delta.content for chunk in told if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(pieces) == "Good morning to you."
    assert len(pieces) > 1
    assert told[-2].choices[0].finish_reason == "stop"
    assert told[-1].usage is not None
    assert told[-1].usage.prompt_tokens > 0
    assert len({chunk.id for chunk in told}) == 1


HELLO: dict[str, Any] = {"role": "user", "content": "Hello"}
PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_not_served_is_refused_in_openai_s_shape(cli: CommandLine, *, stream: bool) -> None:
    bad: list[tuple[int, str | None, dict[str, Any]]] = [
        (404, "model", {"model": "gpt-5"}),
        (400, "n", {"n": 2}),
        (400, "response_format", {"response_format": {"type": "json_object"}}),
        (400, "messages", {"messages": []}),
        (400, None, {"messages": [PICTURE]}),
        (400, "messages", {"messages": [HELLO, {"role": "assistant", "content": "Hi"}]}),
        (400, "messages.0.role", {"messages": [{"role": "king", "content": "Hi"}]}),
        (400, None, {"messages": [{"role": "user", "content": "  "}]}),
    ]
    async with serving(cli) as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        for status, param, fields in bad:
            body = {"model": "packetgate", "messages": [HELLO], "stream": stream, **fields}
            answer = await client.post("/chat/completions", json=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (status, param), error
            assert set(error) == {"message", "type", "param", "code"}
        for content in (b"{", b"[" * 100_000, b"\xff", b'{"model": "packetgate", "messages": "\\ud800"}'):
            assert (await client.post("/chat/completions", content=content)).json()["error"]["message"]
        assert (await client.get("/nothing")).json()["error"]["type"] == "invalid_request_error"
        assert (await client.get("/models", headers={"Host": "evil.example"})).status_code == 421
        assert (await client.get("/models", headers={"Origin": "http://evil.example"})).status_code == 403
        ignored = {"model": "packetgate", "messages": [PICTURE, {"role": "system", "content": "Be brief"}, HELLO]}
        ignored |= {"temperature": 0, "tools": [{"type": "function", "function": {"name": "x"}}]}
        answer = await client.post("/chat/completions", json=ignored)
        assert answer.json()["choices"][0]["message"]["content"].startswith("Hello!")


async def test_of_this_machine_a_failed_server_s_log_tells_nothing(cli: CommandLine) -> None:
    dead = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no')"]}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"dead": dead}, "builtin": True}))
    async with serving(cli) as served:
        said = await Chat(served.client()).say("Read plan.txt")
    assert "dead: Connection closed; what it printed is in logs/dead.log of" in said
    assert str(cli.home) not in said


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_in_order(cli: CommandLine, how: signal.Signals) -> None:
    async with started(cli) as served:
        await Chat(served.client()).say("Hello")
        assert await served.stop(how) == 0


def test_others_are_let_in_by_tokens_alone(cli: CommandLine) -> None:
    outcome = cli.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert outcome.status == 2
    assert "[serve.clients.NAME]" in outcome.err
    assert "PACKETGATE_SERVE_TOKEN" in outcome.err
