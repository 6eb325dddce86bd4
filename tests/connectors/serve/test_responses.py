"""`/v1/responses`, a client's system prompt and tools, and answers about disabled writes."""

import logging

import httpx2
import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response
from support.command_line import CommandLine
from support.endpoints import Chat, serving
from support.prompts import call
from support.scripted_openai import ScriptedOpenAI

TOOL = {"type": "function", "name": "shell", "parameters": {"type": "object"}}


async def streamed(client: AsyncOpenAI, messages: list[dict[str, str]], words: str) -> Response:
    """Send a message, check that the events fit together, and return the response."""
    messages.append({"role": "user", "content": words})
    pieces, kinds, numbers = [], [], []
    async with client.responses.stream(model="packetgate", input=messages, tools=[TOOL]) as events:  # type: ignore[arg-type,list-item]
        async for event in events:
            kinds.append(event.type)
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                pieces.append(event.delta)
        response = await events.get_final_response()
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert numbers == list(range(len(numbers)))
    assert "".join(pieces) == response.output_text
    messages.append({"role": "assistant", "content": response.output_text})
    return response


async def test_a_conversation_continues_over_the_responses_api(cli: CommandLine) -> None:
    (cli.folder / "plan.txt").write_text("Call Ann\n")
    async with serving(cli, "--allow-writes") as served:
        client, messages = served.client(), []
        response = await client.responses.create(model="packetgate", instructions="Be brief.", input="Read plan.txt")
        assert "Call Ann" in response.output_text
        assert response.usage is not None
        assert "Call Ann" in (await streamed(client, messages, "Read plan.txt")).output_text
        messages.append({"role": "user", "content": "<environment>today is Monday</environment>"})  # like Codex
        assert "(question " in (await streamed(client, messages, "Delete plan.txt")).output_text
        assert (cli.folder / "plan.txt").exists()
        assert "ai.delete" in (await streamed(client, messages, "yes")).output_text
        assert not (cli.folder / "plan.txt").exists()


async def test_the_error_of_a_bad_request_names_the_field(cli: CommandLine) -> None:
    bad = [
        ("model", {"model": "gpt-5"}),
        ("input", {"input": []}),
        ("messages", {"input": [{"role": "assistant", "content": "Hi"}]}),
        ("background", {"background": True}),
        ("max_output_tokens", {"max_output_tokens": 0}),
        ("tool_choice", {"tool_choice": {"type": "function", "name": "x"}}),
        ("text.format", {"text": {"format": {"type": "json_object"}}}),
    ]
    async with serving(cli) as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        for param, fields in bad:
            answer = await client.post("/responses", json={"model": "packetgate", "input": "Hello", **fields})
            assert (answer.is_client_error, answer.json()["error"]["param"]) == (True, param), answer.text


async def test_a_response_beyond_its_tokens_is_incomplete(cli: CommandLine) -> None:
    async with serving(cli) as served:
        client = served.client()
        limited = await client.responses.create(model="packetgate", input="Read plan.txt", max_output_tokens=5)
        async with client.responses.stream(model="packetgate", input="Read plan.txt", max_output_tokens=5) as events:
            last = [event async for event in events][-1]
    assert last.type == "response.incomplete"
    for response in (limited, last.response):
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"
        assert (response.status, response.output_text) == ("incomplete", "ai.read (path")


async def test_a_clients_tools_are_ignored_and_logged_once(cli: CommandLine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with serving(cli) as served:
            chat = Chat(served.client(), options={"tools": [{"type": "function", "function": {"name": "x"}}] * 36})
            for _ in range(2):
                assert "Hello" in await chat.say("Hello")
    assert caplog.text.count("sent 36 tools of its own") == 1


async def test_a_system_prompt_is_the_persona_of_the_answer(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        client = served.client()
        for role in ("system", "developer"):
            scripted_openai.script("Ahoy.")
            assert await Chat(client, messages=[{"role": role, "content": "Be a pirate."}]).say("Hello") == "Ahoy."
            assert scripted_openai.requests[-1]["messages"][0]["content"].startswith("Be a pirate.\n\nYou answer")


async def test_an_answer_names_the_switch_for_writes(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        scripted_openai.script(call("ai.write", path="new.txt", content="Hello"), "I could not write it.")
        answer = await Chat(served.client()).say("Write Hello into new.txt")
    assert answer.startswith("I could not write it.")
    assert "packetgate serve --allow-writes" in answer
    assert not (cli.folder / "new.txt").exists()
