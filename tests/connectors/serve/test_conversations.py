"""Chat clients use Packetgate as their model; here, the official client calls the endpoint."""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from support.command_line import CommandLine
from support.endpoints import Chat, serving, started
from support.mcp_servers import until
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import tool_calls

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.serve.conversations import is_question_message
from packetgate.graph.settings import Settings
from packetgate.state.codes import Code

WRITE = 'Write "seven" to new.txt'
ANN, BEN = (f"{name}-token-0123456789" for name in ("ann", "ben"))
CLIENTS = "".join(f'[serve.clients.{token[:3]}]\ntoken = "{token}"\n' for token in (ANN, BEN))


@contextmanager
def refused(code: Code) -> Iterator[None]:
    """Check that the endpoint refuses a request with this code."""
    with pytest.raises(openai.BadRequestError) as caught:
        yield
    assert caught.value.code == code


def turns_by_session(cli: CommandLine) -> Counter[str]:
    rows = map(json.loads, cli.run("audit", "--json").out.splitlines())
    return Counter(row["session_id"] for row in rows if row["event"] == "turn_opened")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_message_of_the_conversation_approves_a_call(cli: CommandLine, *, stream: bool) -> None:
    new = cli.folder / "new.txt"
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        assert [model.id async for model in await chat.client.models.list()] == ["packetgate"]
        assert "The gate opens at seven." in await chat.say("Read plan.txt", stream=stream)
        assert "Buy milk." in await chat.say("and todo.txt", stream=stream)
        question = await chat.say(WRITE, stream=stream)
        for part in ("ai.write", "path = new.txt", "content = seven", "+seven", "`yes`, `no`, `skip`"):
            assert part in question
        aside = await chat.say("Read plan.txt", stream=stream)
        assert "The gate opens at seven." in aside
        assert is_question_message(aside)
        assert is_question_message(await chat.say("hmm, not sure", stream=stream))
        assert not new.exists()
        assert "Created new.txt" in await chat.say("yes", stream=stream)
        assert new.read_text() == "seven"
        new.unlink()
        assert "Created new.txt" in await chat.at(5).say("yes", stream=stream), "the result is shown again"
        assert not new.exists()


@pytest.mark.parametrize(
    ("words", "written"),
    [("No.", {}), ("skip", {}), ('edit {"path": "other.txt", "content": "eight"}', {"other.txt": "eight"})],
)
async def test_each_form_of_reply_has_its_effect(cli: CommandLine, words: str, written: dict[str, str]) -> None:
    before = {*cli.folder.iterdir()}
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        await chat.say(WRITE)
        with refused(Code.REQUEST_UNUSABLE):
            await chat.say("edit {path: other.txt}")
        await chat.say(words)
    assert {file.name: file.read_text() for file in {*cli.folder.iterdir()} - before} == written


async def test_an_approval_counts_only_in_its_own_conversation(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(CLIENTS)
    async with serving(cli, "--allow-writes") as served:
        ann, ben = served.client(ANN), served.client(BEN)
        chat, same_text = Chat(ann), Chat(ann)
        await chat.say(WRITE)
        await same_text.say(WRITE)
        assert chat.messages[-1] != same_text.messages[-1]
        for copy in (
            Chat(ben, messages=[*chat.messages]),
            Chat(ann, {"user": "somebody else"}, [*chat.messages]),
            Chat(ann, {"extra_headers": {"X-Packetgate-Conversation": "x"}}, [*chat.messages]),
            Chat(served.client(ANN, **{"X-OpenWebUI-Chat-Id": "y"}), messages=[*chat.messages]),
            Chat(ann, messages=chat.messages[-1:]),
            Chat(ann, messages=[{"role": "user", "content": "Read plan.txt"}, *chat.messages[-1:]]),
            Chat(ann, messages=[{"role": "user", "content": "Hello"}, *chat.messages]),
        ):
            with refused(Code.QUESTION_NOT_OPEN):
                await copy.say("yes")
        await Chat(ann).say("yes")
        await same_text.say("no")
        assert not (cli.folder / "new.txt").exists()
        assert "Created new.txt" in await chat.say("yes")
        with refused(Code.QUESTION_NOT_OPEN):
            await same_text.at(1).say("yes")  # the call was denied
        with pytest.raises(openai.AuthenticationError):
            await Chat(served.client("cat-token-0123456789")).say("Hello")


async def test_a_client_that_drops_the_oldest_messages_can_answer(cli: CommandLine) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        await chat.say("Read plan.txt")
        await chat.say(WRITE)
        del chat.messages[:2]
        assert is_question_message(await chat.say("hmm, not sure"))
        del chat.messages[:2]
        assert "Created new.txt" in await chat.say("yes")


async def test_a_remembered_answer_applies_to_the_user_who_gave_it(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(f'[policy]\nremember = "always"\n{CLIENTS}')
    new = cli.folder / "new.txt"
    async with serving(cli, "--allow-writes") as served:
        ann = served.client(ANN)
        people = {
            "ann": Chat(ann),
            "ben": Chat(served.client(BEN)),
            "ann/cat": Chat(ann, {"user": "cat"}),
            "ann/dan": Chat(served.client(ANN, **{"X-OpenWebUI-User-Id": "dan"})),
        }
        for person, chat in people.items():
            question = await chat.say(WRITE)
            assert f"asked by {person} in serve" in " ".join(question.split())
            assert "Created new.txt" in await chat.say("always")
            new.unlink()
        for chat in people.values():
            assert "Created new.txt" in await Chat(chat.client, chat.options).say(WRITE)
            new.unlink()


async def test_an_edited_history_starts_another_session(cli: CommandLine) -> None:
    async with serving(cli) as served:
        chat = Chat(served.client())
        await chat.say("Read plan.txt")
        await chat.say("Read todo.txt")
        fork = chat.at(1)
        assert "The gate opens at seven." in await fork.say("Read plan.txt")
        assert sorted(turns_by_session(cli).values()) == [1, 2]
        assert "Buy milk." in await chat.say("Read todo.txt")
        assert sorted(turns_by_session(cli).values()) == [1, 3]
        for unknown in ("<|im_start|>", "\0"):
            messages = [{"role": "assistant", "content": unknown}, *chat.messages]
            assert "Buy milk." in await Chat(served.client(), messages=messages).say("Read todo.txt")
        assert sorted(turns_by_session(cli).values()) == [1, 1, 1, 3]


async def test_equal_conversations_share_no_session_unless_the_client_names_it(cli: CommandLine) -> None:
    async with serving(cli) as served:
        chats = [Chat(served.client()), Chat(served.client())]
        named = [Chat(served.client(), {"extra_headers": {"X-Packetgate-Conversation": name}}) for name in "ab"]
        for words in ("Hello", "Thanks"):
            for chat in [*chats, *named]:
                await chat.say(words)
        assert chats[0].messages == chats[1].messages
        assert sorted(turns_by_session(cli).values()) == [1, 1, 1, 1, 2, 2]


async def test_forgetting_a_session_removes_its_conversation_and_no_other(cli: CommandLine) -> None:
    async with serving(cli, "--allow-writes") as served:
        forgotten, other = Chat(served.client()), Chat(served.client())
        await forgotten.say("Read plan.txt")
        (session,) = turns_by_session(cli)
        for chat in (forgotten, other):
            await chat.say(WRITE)
        await forgotten.say("no")
        async with open_sessions(Settings(root=cli.folder, home=cli.home)) as sessions:
            assert sessions.store is not None
            before = [item.value["session"] for item in await sessions.store.asearch(("serve",))]
            assert session in before
            await sessions.forget(session)
            after = [item.value["session"] for item in await sessions.store.asearch(("serve",))]
            assert after == [name for name in before if name != session]
        with refused(Code.QUESTION_NOT_OPEN):
            await forgotten.at(2).say("yes")
        assert "Created new.txt" in await other.say("yes")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_an_interrupted_turn_continues(cli: CommandLine, slow_weather: Path, how: str) -> None:
    words = 'Get the weather of "Oslo"'
    call_started = slow_weather.with_name("pid")
    async with started(cli, "--mcp-config", str(slow_weather)) as served:
        chat = Chat(served.client())
        await chat.say("Hello")
        body = {"model": "packetgate", "messages": [*chat.messages, {"role": "user", "content": words}]}
        stream = await chat.client.chat.completions.create(stream=True, **body)  # type: ignore[call-overload]
        await until(lambda: call_started.exists() and bool(call_started.read_text()))
        if how == "killed":
            await served.kill()
        await stream.close()
        slow_weather.with_name("may_answer").touch()
        if how == "closed":
            assert "Oslo: four owls" in await chat.say(words)
    if how == "killed":
        async with serving(cli, "--mcp-config", str(slow_weather)) as served_again:
            chat.client = served_again.client()
            assert "Oslo: four owls" in await chat.say(words)
    assert list(turns_by_session(cli).values()) == [2]


@pytest.mark.parametrize("still_allowed", [True, False])
async def test_a_question_survives_a_restart_with_current_rights(cli: CommandLine, *, still_allowed: bool) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client(), {"user": "ann"})
        await chat.say("Read plan.txt")
        await chat.say(WRITE, stream=True)
    async with serving(cli, *(["--allow-writes"] if still_allowed else [])) as served:
        chat.client = served.client()
        if still_allowed:
            assert "Created new.txt" in await chat.say("yes")
        else:
            with refused(Code.PERMISSION_WITHDRAWN):
                await chat.say("yes")
    assert (cli.folder / "new.txt").exists() is still_allowed


async def test_a_models_answer_streams_with_its_usage(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script('{"action": "none", "needs_tool": false}', "Good morning to you.")
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        stream = await served.client().chat.completions.create(
            model="packetgate",
            messages=[{"role": "user", "content": "Tell me something"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(pieces) == "Good morning to you."
    assert len(pieces) > 1
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("before", ["Let me look.", "I look into the plan for you now. " * 20])
async def test_text_before_a_call_is_shown_at_most_once(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, *, stream: bool, before: str
) -> None:
    scripted_openai.script(tool_calls(("ai__read", '{"path": "plan.txt"}'), content=before), "At seven.")
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        answer = await Chat(served.client()).say("Do the needful about plan.txt", stream=stream)
    result = "\n\n```\nThe gate opens at seven.\n```"
    assert answer.removesuffix(result) in {"At seven.", f"{before.rstrip()}\n\nAt seven."}


HELLO: dict[str, Any] = {"role": "user", "content": "Hello"}
PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}
BAD: list[tuple[int, str | None, dict[str, Any]]] = [
    (404, "model", {"model": "gpt-5"}),
    *((400, "n", {"n": number}) for number in (0, 2)),
    (400, "response_format", {"response_format": {"type": "json_object"}}),
    *((400, name, {name: value}) for name in ("max_tokens", "max_completion_tokens") for value in (0, -1, "many")),
    (400, "stop", {"stop": [*"abcde"]}),
    (400, "tool_choice", {"tool_choice": "required"}),
    (400, "function_call", {"function_call": {"name": "x"}}),
    (400, "guided_json", {"guided_json": {"type": "object"}}),
    (400, "modalities", {"modalities": ["text", "audio"]}),
    *(
        (400, name, {name: value})
        for name, value in (("logprobs", True), ("top_logprobs", 2), ("logit_bias", {"7": -9}))
    ),
    (400, "messages", {"messages": []}),
    (400, None, {"messages": [PICTURE]}),
    (400, "messages", {"messages": [HELLO, {"role": "assistant", "content": "Hi"}]}),
    (400, "messages.0.role", {"messages": [{"role": "king", "content": "Hi"}]}),
    (400, None, {"messages": [{"role": "user", "content": "  "}]}),
]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_limited_answer_still_identifies_its_session(cli: CommandLine, *, stream: bool) -> None:
    async with serving(cli, "--allow-writes") as served:
        stopped = Chat(served.client(), {"stop": ["nowhere", "at se"]})
        assert (await stopped.say("Read plan.txt", stream=stream)).endswith("\nThe gate opens ")
        cut = Chat(served.client(), {"max_tokens": 9, "max_completion_tokens": 5})
        assert await cut.say("Read plan.txt", stream=stream) == "ai.read (path"
        for chat in (stopped, cut):
            assert is_question_message(await chat.say(WRITE, stream=stream)), "a question is not cut"
            await chat.say("no")
        assert [*turns_by_session(cli).values()] == [2, 2]
        body = {"model": "packetgate", "messages": [{"role": "user", "content": "Read plan.txt"}]}
        completion = await cut.client.chat.completions.create(**body, max_tokens=5)  # type: ignore[call-overload]
        assert completion.choices[0].finish_reason == "length"


@pytest.mark.parametrize("stream", [False, True])
async def test_three_equal_replies_at_once_run_one_call_and_get_its_result(cli: CommandLine, *, stream: bool) -> None:
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        await chat.say(WRITE)
        copies = [Chat(chat.client, messages=[*chat.messages]) for _ in range(3)]
        answers = await asyncio.gather(*(copy.say("yes", stream=stream) for copy in copies))
        assert "Created new.txt" in answers[0]
        assert len({*answers}) == 1
        assert "seven" in await copies[2].say("Read it"), "each answer continues the session"
        assert [*turns_by_session(cli).values()] == [2]


async def test_bad_requests_are_refused_in_openais_format(cli: CommandLine) -> None:
    async with serving(cli) as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        for stream in (False, True):
            for status, param, fields in BAD:
                body = {"model": "packetgate", "messages": [HELLO], "stream": stream, **fields}
                answer = await client.post("/chat/completions", json=body)
                error = answer.json()["error"]
                assert (answer.status_code, error["param"]) == (status, param), error
                assert set(error) == {"message", "type", "param", "code"}
        for content in (b"{", b"[" * 100_000, b"\xff", b'{"model": "packetgate", "messages": "\\ud800"}'):
            headers = {"Content-Type": "application/json"}
            refused = await client.post("/chat/completions", content=content, headers=headers)
            assert (refused.status_code, bool(refused.json()["error"]["message"])) == (400, True)
            for other in ("text/plain", "text/plain; application/json", "multipart/form-data", ""):
                headers = {"Content-Type": other}
                assert (await client.post("/responses", content=content, headers=headers)).status_code == 415
        assert (await client.get("/nothing")).json()["error"]["type"] == "invalid_request_error"
        assert (await client.get("/models", headers={"Host": "evil.example"})).status_code == 421
        assert (await client.get("/models", headers={"Origin": "http://evil.example"})).status_code == 403
        ignored = {"model": "packetgate", "messages": [PICTURE, {"role": "system", "content": "Be brief"}, HELLO]}
        ignored |= {"temperature": 0, "tools": [{"type": "function", "function": {"name": "x"}}], "tool_choice": "auto"}
        ignored |= {"stop": None, "max_tokens": None, "n": 1, "response_format": {"type": "text"}, "logit_bias": {}}
        answer = await client.post("/chat/completions", json=ignored)
        assert answer.json()["choices"][0]["message"]["content"].startswith("Hello!")


async def test_server_errors_reveal_nothing_about_this_machine(cli: CommandLine) -> None:
    failing = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no')"]}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"dead": failing}, "builtin": True}))
    async with serving(cli) as served:
        answer = await Chat(served.client()).say("Read plan.txt")
    assert "logs/dead.log" in answer
    assert str(cli.home) not in answer


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_gracefully(cli: CommandLine, how: signal.Signals) -> None:
    async with started(cli) as served:
        await Chat(served.client()).say("Hello")
        assert await served.stop(how) == 0


def test_other_machines_need_a_token(cli: CommandLine) -> None:
    outcome = cli.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert outcome.status == 2
    assert "PACKETGATE_SERVE_TOKEN" in outcome.err
