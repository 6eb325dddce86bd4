"""A client's own prompts (titles, tags, suggestions) are answered without tools, questions or sessions."""

import openai
import pytest
from support.command_line import CommandLine
from support.endpoints import Chat, serving
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.serve.model_answers import TASK_PROMPTS, answer_background, is_background_prompt
from packetgate.connectors.serve.protocol import ChatRequest
from packetgate.state.base import TokenUsage

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
        assert await Chat(served.client()).say(TITLE) == '{"title": "Delete old.txt and write the rest into …"}'
        assert (cli.folder / "old.txt").exists()
        assert "ai.delete" in await chat.say("yes")
        assert not (cli.folder / "old.txt").exists()


WITHOUT_MODEL = {
    f'### Task:\nGenerate 1-3 broad tags.\nJSON format: {{ "tags": ["a", "b"] }}\n{QUOTE}': '{"tags": []}',
    f'### Task:\nSuggest 3-5 questions.\nJSON format: {{ "follow_ups": ["Why?"] }}\n{QUOTE}': '{"follow_ups": []}',
    f'### Task:\nAnalyze the chat history.\n{QUOTE}\n{{"queries": ["a"]}}': '{"queries": []}',
    '### Task:\nYou are an autocompletion system.\n{"text": "<your_completion>"}\nThe sun': '{"text": ""}',
    f'### Task:\nGenerate a detailed prompt.\n{{"prompt": "Your description"}}\n{QUOTE}': (
        '{"prompt": "Delete old.txt and write the rest into notes.md"}'
    ),
    "Provide a concise, 5-word-or-less title.\n\nConversation:\nUser: What is on?\nAI: A film.": "What is on?",
    "Your task is to reflect the speaker's likely facial expression through an emoji.\nMessage: delete it": "New chat",
}


@pytest.mark.parametrize("prompt", WITHOUT_MODEL)
async def test_without_a_model_the_answer_fills_the_form_in_the_prompt(prompt: str) -> None:
    async def no_model() -> None:
        return None

    answer, usage = await answer_background(request(("user", prompt)).messages, no_model)
    assert (answer, usage) == (WITHOUT_MODEL[prompt], TokenUsage())


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ('```json\n{"title": "Tidying up"}\n```', '{"title": "Tidying up"}'),
        ('Sure! {"title": "Tidying up"} Anything else?', '{"title": "Tidying up"}'),
        ("Tidying up", '{"title": "Tidying up"}'),
    ],
)
async def test_a_models_answer_has_the_form_in_the_prompt(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, written: str, answer: str
) -> None:
    async with serving(cli, "--prime", "openai:scripted", OPENAI_BASE_URL=scripted_openai.base_url) as served:
        scripted_openai.script(written)
        assert await Chat(served.client()).say(TITLE) == answer


async def test_only_the_model_answers_a_background_prompt(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    variables = {"OPENAI_BASE_URL": scripted_openai.base_url}
    async with serving(cli, "--prime", "openai:scripted", **variables) as served:
        scripted_openai.script('{"title": "Tidying up"}')
        assert await Chat(served.client()).say(TITLE) == '{"title": "Tidying up"}'
        assert [one["content"] for one in scripted_openai.requests[-1]["messages"]] == [TITLE]
        with pytest.raises(openai.InternalServerError):  # the script is exhausted
            await Chat(served.client()).say(TITLE, stream=True)
