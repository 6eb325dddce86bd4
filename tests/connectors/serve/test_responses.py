"""`/v1/responses`, what a client's system prompt and tools become, and the way out that answers name."""

import httpx2
from openai import AsyncOpenAI
from openai.types.responses import Response
from support.command_line import CommandLine
from support.endpoints import Chat, serving, started
from support.prompts import call, review
from support.scripted_openai import ScriptedOpenAI

TOOL = {"type": "function", "name": "shell", "parameters": {"type": "object"}}


async def streamed(client: AsyncOpenAI, said: list[dict[str, str]], words: str) -> Response:
    """Say something, check that the events fit together, and return the whole response."""
    said.append({"role": "user", "content": words})
    pieces, kinds, numbers = [], [], []
    async with client.responses.stream(model="packetgate", input=said, tools=[TOOL]) as events:  # type: ignore[arg-type,list-item]
        async for event in events:
            kinds.append(event.type)
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                pieces.append(event.delta)
        whole = await events.get_final_response()
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert numbers == list(range(len(numbers)))
    assert "".join(pieces) == whole.output_text
    said.append({"role": "assistant", "content": whole.output_text})
    return whole


async def test_a_conversation_by_responses(cli: CommandLine) -> None:
    (cli.folder / "plan.txt").write_text("Call Ann\n")
    async with serving(cli, "--allow-writes") as served:
        client, said = served.client(), []
        whole = await client.responses.create(model="packetgate", instructions="Be brief.", input="Read plan.txt")
        assert "Call Ann" in whole.output_text
        assert whole.usage is not None
        assert "Call Ann" in (await streamed(client, said, "Read plan.txt")).output_text
        said.append({"role": "user", "content": "<environment>today is Monday</environment>"})  # as Codex does
        assert "(question " in (await streamed(client, said, "Delete plan.txt")).output_text
        assert (cli.folder / "plan.txt").exists()
        assert "ai.delete" in (await streamed(client, said, "yes")).output_text
        assert not (cli.folder / "plan.txt").exists()


async def test_requests_that_cannot_be_served_as_responses(cli: CommandLine) -> None:
    bad = [
        ("model", {"model": "gpt-5"}),
        ("input", {"input": []}),
        ("messages", {"input": [{"role": "assistant", "content": "Hi"}]}),
        ("background", {"background": True}),
        ("text.format", {"text": {"format": {"type": "json_object"}}}),
    ]
    async with serving(cli) as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        for param, fields in bad:
            answer = await client.post("/responses", json={"model": "packetgate", "input": "Hello", **fields})
            assert (answer.is_client_error, answer.json()["error"]["param"]) == (True, param), answer.text


async def test_tools_of_a_client_are_refused_where_the_user_says_so(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text("[serve]\nstrict = true\n")
    body = {"model": "packetgate", "input": "Hello", "tools": [TOOL]}
    async with serving(cli) as served, httpx2.AsyncClient(base_url=served.url, timeout=60) as client:
        error = (await client.post("/responses", json=body)).json()["error"]
        assert (error["param"], error["code"]) == ("tools", "unsupported_parameter")
        assert "strict" in error["message"]
        assert (await client.post("/responses", json={**body, "tool_choice": "none"})).status_code == 200
    assert "refused" in cli.run("doctor").out


async def test_the_log_and_doctor_say_once_that_tools_are_ignored(cli: CommandLine) -> None:
    async with started(cli) as served:
        chat = Chat(served.client(), options={"tools": [{"type": "function", "function": {"name": "x"}}] * 36})
        for _ in range(2):
            assert "Hello" in await chat.say("Hello")
    logs = "".join(one.read_text() for one in cli.folder.parent.glob("log-*"))
    assert logs.count("sends 36 tools of its own") == 1
    assert "tools that a chat client sends are ignored" in cli.run("doctor").out


async def test_a_system_prompt_is_the_persona_of_the_answer(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        client = served.client()
        for role in ("system", "developer"):
            scripted_openai.script("Ahoy.")
            assert await Chat(client, messages=[{"role": role, "content": "Be a pirate."}]).say("Hello") == "Ahoy."
            assert scripted_openai.requests[-1]["messages"][0]["content"].startswith("Be a pirate.\n\nYou answer")


async def test_an_answer_names_how_writes_are_switched_on(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        wanted = call("ai.write", path="new.txt", content="Hello")
        scripted_openai.script(wanted, review(0.95), "I could not write it.")
        told = await Chat(served.client()).say("Write Hello into new.txt")
    assert told.startswith("I could not write it.")
    assert "packetgate serve --allow-writes" in told
    assert "[serve.clients.NAME]" in told
    assert not (cli.folder / "new.txt").exists()
