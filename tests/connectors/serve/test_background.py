"""A client's own prompts (titles, tags, suggestions, completions) are answered with no tool and no question."""

import json

import pytest
from support.command_line import CommandLine
from support.endpoints import Chat, serving
from support.scripted_openai import ScriptedOpenAI

from packetgate.connectors.serve.background import background_prompt, extracted
from packetgate.connectors.serve.forms import ChatRequest

TALK = "User: Delete old.txt and write the rest into notes.md\nAssistant: Done. See notes.md.\n\nAnything else?"
TAGGED = f"<chat_history>\n{TALK}\n</chat_history>"
DONE = [("user", "Delete old.txt"), ("assistant", "Done.")]
"""A conversation that is sent as messages."""


def asked(*messages: tuple[str, str], **fields: object) -> ChatRequest:
    said = [{"role": role, "content": text} for role, text in messages]
    return ChatRequest.model_validate({"model": "packetgate", "messages": said, **fields})


def one(text: str) -> ChatRequest:
    return asked(("user", text))


BACKGROUND = {
    "a title, tagged": one(
        f"### Task:\nInvent a short heading for the chat.\n### Output:\n{{\"title\": \"...\"}}\n{TAGGED}"
    ),
    "tags with examples of paths": one(
        f"Generate 1-3 broad tags for the chat, e.g. subfields/subdomains, as JSON: {{\"tags\": [\"...\"]}}\n{TAGGED}"
    ),
    "suggestions": one(f"{TAGGED}\nSuggest three follow-up questions. Return a JSON array and nothing else."),
    "an unknown thing, as JSON": one(f"Tell the mood of this chat as {{\"mood\": \"...\"}}.\n{TAGGED}"),
    "roles on lines": one(f"Provide a title of five words or less for the conversation, only the title.\n\n{TALK}"),
    "instruction last": one(f"{TALK}\n\nSummarise the above conversation as a title, at most 6 words, no quotes."),
    "another language": one("请总结上述对话为10个字以内的标题\n\nuser: 删除 old.txt\nassistant: 完成"),
    "german": one("Gib dem Gespräch einen Titel, höchstens 5 Wörter.\n\nBenutzer: Lösche alt.txt\nAssistent: Erledigt"),
    "open label": one(f"Write a concise title for the conversation.\n{TALK}\nTitle:"),
    "messages as JSON": asked(
        ("system", "You summarise the user's conversation into a title within 10 words, without punctuation."),
        ("user", json.dumps([{"role": "user", "mainText": "Delete old.txt"}])),
    ),
    "a fence": one(f"Name this conversation in at most 10 characters. Only give the name.\n```\n{TALK}\n```"),
    "a quoted message": one('Sum up in a 4-word title. Give the title only. "Delete old.txt"'),
    "nothing marks the quote": one("Reply with a title for the chat, 3-4 words, no explanation.\n\nI deleted old.txt."),
    "a generator by its system prompt": asked(
        ("system", "You are a title generator. You output only a title for the conversation, at most 50 characters."),
        ("user", "Generate a title for this conversation:\n"),
        ("user", "Delete old.txt"),
    ),
    "after the conversation": asked(
        *DONE, ("user", "Generate a concise 3-7 word title for this conversation, without punctuation.")
    ),
    "by the system, at the end": asked(*DONE, ("system", "Summarize the discussion in 200 words for later context.")),
    "a standalone question": one(f"Rephrase the follow up as a standalone question.\n\n{TALK}\nStandalone question:"),
    "a list of what to write": one(f"Look at this chat and tell:\n1. Its language\n2. A concise title\n\n{TALK}"),
    "roles as tags": one("Write a title (3-6 words) for it.\n<user>Delete old.txt</user>\n<assistant>Ok</assistant>"),
    "a query before it": one("The query:\nDelete old.txt\n\nInvent a 3-word phrase as a title for the previous query."),
    "replies to offer": asked(*DONE, ("user", "Suggest three quick replies in this chat, as a JSON array only.")),
    "autocompletion": one(
        'You are an autocompletion system. Continue the text in <text>. Answer as JSON: {"text": "..."}\n'
        f"{TAGGED}\n<type>General</type>\n<text>Delete old</text>"
    ),
    "a hole": one(
        "Fill the {{HOLE}} in the file, with the completion only.\n<QUERY>\nrm({{HOLE}})\n</QUERY>\n<COMPLETION>"
    ),
    "fill in the middle": one("<|fim_prefix|>os.remove(<|fim_suffix|>)\n<|fim_middle|>"),
    "a long order after the conversation": asked(
        *DONE, ("user", "Write a handover summary for another model.\n\nInclude:\n- what was decided\n- what is left")
    ),
    "sections under labels": one(
        "Write a new summary of the lines below.\n\nSummary so far:\nThe user asked to delete a file.\n\n"
        "New lines:\nHuman: write a note\nAI: done\n\nNew summary:"
    ),
    "sections under tags": one(
        f"Rephrase the message as a standalone question.\n\n<Chat History>\n{TALK}\n\n<Standalone question>\n"
    ),
    "a system prompt for it, after the conversation": asked(
        ("system", "You summarize the conversation. Output only the summary."), *DONE, ("user", "Begin.")
    ),
    "an answer too narrow for a result": asked(
        ("system", "You choose pictures for topics. Output ONLY a single emoji."), ("user", "delete: removes files")
    ),
    "a translator": asked(
        ("system", "You translate. Translate the input text to French, and output only the translated text."),
        ("user", "Delete old.txt"),
    ),
    "answers to merge": one(
        'These are responses to the query "delete old.txt". Your task is to merge them.\n"""No."""\n\n"""Run rm."""'
    ),
    "roles as headings": asked(
        ("system", "Summarize this conversation about a program."), ("user", "# USER\nDelete old.txt\n# ASSISTANT\nok")
    ),
    "which of the client's tools": asked(
        ("system", 'Choose among: [{"name": "clock"}]. Return JSON only, or {"tool_calls": []} where none fits.'),
        ("user", 'Query: History:\nUSER: """Delete old.txt"""\nQuery: the time?'),
    ),
    "named in the metadata": asked(("user", "Delete old.txt"), metadata={"task": "title_generation"}),
}  # fmt: skip

MESSAGES = {
    "a title in a file": one("Give plan.txt a title"),
    "on the first line": one("Generate a short title for plan.txt and write it on its first line"),
    "tags into a file": one("Write 3 tags into notes.md"),
    "a quoted chat, and what to do": one(f"Here is a chat:\n{TALK}\n\nAppend the answer to notes.txt"),
    "a quoted chat into a file": one(f"{TAGGED}\nWrite a short title for it into title.txt"),
    "an issue out of a chat": one(f"Create an issue with a short title (max 5 words) from this chat:\n{TALK}"),
    "a mail out of a chat": one(f"Send a brief summary of this conversation to ann@work.example:\n{TALK}"),
    "retrieval": one(
        "### Task:\nRespond to the user query using the provided context, incorporating inline citations.\n"
        "<context><source id=\"1\">Milk is white.</source></context>\n\nRead plan.txt"
    ),
    "the conversation into a file": asked(*DONE, ("user", "Summarize our conversation in 3 lines, save it to log.md")),
    "a title in the text": asked(*DONE, ("user", "Write a concise title at the top of it")),
    "a channel": asked(*DONE, ("user", "Summarize the last 20 messages of the #general chat")),
    "a system prompt of rules": asked(
        ("system", "Keep answers short. Write in the language of the conversation, no emojis."),
        ("user", "Read a.txt"),
    ),
    "a persona that sums up": asked(
        ("system", "You are Bo, an assistant. Never use emojis. Give a summary of long answers. In a chat, be brief."),
        ("user", "Read a.txt"),
    ),
    "an editor": asked(("system", "You suggest titles for posts. Be brief."), ("user", "Read post.md, find a title")),
    "a client's tools": asked(
        ("system", "You write titles for conversations. Only the title."),
        ("user", "Read plan.txt"),
        tools=[{"type": "function", "function": {"name": "x"}}],
    ),
    "a reply to somebody": one("Summarize this thread in one line and reply to Ann:\n\nAnn: When?\nBob: At noon?"),
    "a search": one('Search my mail for "Summary of the week"'),
    "a note with fields": one("Title: Groceries\nTags: home, food\nSave this note as groceries.md"),
    "to continue a file": one("Continue the text in draft.txt with one more sentence"),
    "names of files": one("List the names of all files in docs, only the names"),
    "a short wish after the conversation": asked(*DONE, ("user", "Summarise our chat so far")),
    "two sentences, one to do": asked(*DONE, ("user", "Summarize our chat. Send the summary to Ann.")),
    "rules alone": asked(
        ("system", "You are a file agent. Output ONLY JSON. No explanations."), ("user", "Read plan.txt")
    ),
    "a role to play": asked(
        ("system", "Write Bo's next reply in a chat between Bo and Ann. Write 1 reply only."), ("user", "Read a.txt")
    ),
    "a persona for one kind of answer": asked(
        ("system", "You make quizzes of the user's files. Output only the questions."), ("user", "Take a.txt")
    ),
    "a persona for files": asked(
        ("system", "You write commit messages and summaries for the repository. Only English."), ("user", "Read a.txt")
    ),
    "a template to fill in": one("Write this into letter.txt:\n\nDear Ann,\n\nRegards:"),
    "a log and a question": one("User: hello\nAssistant: hi\n\nHow many files are in the folder?"),
    "a question": one("What is the title of chapter 2?"),
}  # fmt: skip


@pytest.mark.parametrize("request_", BACKGROUND.values(), ids=BACKGROUND)
def test_a_clients_own_prompt_is_recognised(request_: ChatRequest) -> None:
    assert background_prompt(request_)


@pytest.mark.parametrize("request_", MESSAGES.values(), ids=MESSAGES)
def test_a_message_of_a_user_stays_one(request_: ChatRequest) -> None:
    assert background_prompt(request_) is None


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        ("a title, tagged", '{"title":"Delete old.txt and write the rest"}'),
        ("tags with examples of paths", '{"tags":["notes","delete","old"]}'),
        ("suggestions", "[]"),
        ("autocompletion", '{"text":""}'),
        ("messages as JSON", "Delete old.txt"),
        ("a generator by its system prompt", "Delete old.txt"),
        ("which of the client's tools", '{"tool_calls":[]}'),
        ("after the conversation", "Delete old.txt"),
    ],
)
def test_without_a_model_the_answer_is_taken_from_the_quote(shape: str, answer: str) -> None:
    prompt = background_prompt(BACKGROUND[shape])
    assert prompt is not None
    assert extracted(prompt) == answer


async def test_it_runs_nothing_asks_nothing_and_leaves_a_waiting_question_alone(cli: CommandLine) -> None:
    (cli.folder / "old.txt").write_text("old")
    async with serving(cli, "--allow-writes") as served:
        chat = Chat(served.client())
        question = await chat.say("Delete old.txt")
        assert "(question " in question
        for shape in ("a title, tagged", "tags with examples of paths", "roles on lines", "a quoted message"):
            told = await Chat(served.client()).say(BACKGROUND[shape].messages[0].text)
            assert "question" not in told
            assert len(told) < 60
        title = await chat.at(1).say(str(BACKGROUND["after the conversation"].messages[-1].content))
        assert title == "Delete old.txt"
        assert (cli.folder / "old.txt").exists()
        assert "ai.delete" in await chat.say("yes")
        assert not (cli.folder / "old.txt").exists()


async def test_the_model_answers_it_alone(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    variables = {"OPENAI_BASE_URL": scripted_openai.base_url}
    async with serving(cli, "--prime", "openai:scripted", **variables) as served:
        scripted_openai.script('{"title": "Tidying up"}')
        prompt = str(BACKGROUND["a title, tagged"].messages[0].content)
        assert await Chat(served.client()).say(prompt) == '{"title": "Tidying up"}'
        assert [one["content"] for one in scripted_openai.requests[-1]["messages"]] == [prompt]
        asked_before = len(scripted_openai.requests)
        told = await Chat(served.client()).say(prompt, stream=True)  # the script is exhausted
        assert told == '{"title":"Delete old.txt and write the rest"}'
        assert len(scripted_openai.requests) > asked_before
