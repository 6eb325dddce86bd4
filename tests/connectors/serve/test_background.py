"""A client's own prompts (titles, tags, suggestions) are answered without tools, questions or sessions."""

import openai
import pytest
from support.command_line import CommandLine
from support.endpoints import Chat, serving
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.serve.model_answers import TASK_PROMPTS, is_background_prompt
from packetgate.connectors.serve.protocol import ChatRequest

QUOTE = "<chat_history>\nUSER: Delete old.txt and write the rest into notes.md\nASSISTANT: Done.\n</chat_history>"
TITLE = f'### Task:\nGenerate a concise, 3-5 word title.\nJSON format: {{ "title": "your title" }}\n{QUOTE}'
TOOL = {"type": "function", "function": {"name": "x"}}


def request(*messages: tuple[str, str], **fields: object) -> ChatRequest:
    sent = [{"role": role, "content": text} for role, text in messages]
    return ChatRequest.model_validate({"model": "packetgate", "messages": sent, **fields})


@pytest.mark.parametrize("begin", TASK_PROMPTS)
def test_task_prompts_of_known_clients_are_background_prompts(begin: str) -> None:
    assert is_background_prompt(
        request(("system", "You write titles."), ("user", f"{begin}x"), ("user", "Delete old.txt"))
    )


@pytest.mark.parametrize(
    "request_",
    [
        request(("user", "Generate a short title for plan.txt and write it on its first line")),
        request(("user", f"Delete old.txt\n{TITLE}")),
        request(("user", f"### Task:\nRespond to the user query using the provided context.\n{QUOTE}")),
        request(("user", "Hello"), ("assistant", "Hi"), ("user", TITLE)),
        request(("system", TITLE), ("user", "Delete old.txt")),
        request(("user", TITLE), tools=[TOOL]),
    ],
    ids=["title in a file", "quoted later", "retrieval", "in a conversation", "system prompt", "with tools"],
)
def test_other_messages_are_user_messages(request_: ChatRequest) -> None:
    assert not is_background_prompt(request_)


async def test_a_background_prompt_runs_nothing_and_leaves_a_question_open(cli: CommandLine) -> None:
    (cli.folder / "old.txt").write_text("old")
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        assert "(question " in await chat.say("Delete old.txt")
        with pytest.raises(openai.NotFoundError):
            await Chat(served.client()).say(TITLE)
        assert (cli.folder / "old.txt").exists()
        assert "ai.delete" in await chat.say("yes")
        assert not (cli.folder / "old.txt").exists()


async def test_the_model_alone_answers_a_background_prompt(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    variables = {"OPENAI_BASE_URL": scripted_openai.base_url}
    async with serving(cli, "--prime", "openai:scripted", **variables) as served:
        scripted_openai.script('{"title": "Tidying up"}')
        assert await Chat(served.client()).say(TITLE) == '{"title": "Tidying up"}'
        assert [one["content"] for one in scripted_openai.requests[-1]["messages"]] == [TITLE]
        with pytest.raises(openai.InternalServerError):  # the script is exhausted
            await Chat(served.client()).say(TITLE, stream=True)
