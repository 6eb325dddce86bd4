"""Attachments of a request: models with vision get images, other models get the names of images."""

import pytest
from support.command_line import CommandLine, Outcome
from support.pictures import NO_TOOL, last_text, png, shown
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError
from support.terminals import chatting

CAT = png(shade=200)
REFUSED = HttpError(400, "scripted is not a multimodal model")


@pytest.fixture
def seen(cli: CommandLine) -> CommandLine:
    (cli.folder / "cat.png").write_bytes(CAT)
    (cli.folder / "notes.txt").write_text("Ask the cat.")
    return cli


def ask(cli: CommandLine, server: ScriptedOpenAI, *args: str, model: str = "openai:scripted", **more: str) -> Outcome:
    variables = {"OPENAI_BASE_URL": server.base_url, "NO_PROXY": "127.0.0.1", **more}
    return cli.run("ask", "--session", "s", "--prime", model, *args, **variables)


def test_a_model_without_vision_gets_the_name(seen: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.refuses = {"pictures": REFUSED}
    scripted_openai.script(NO_TOOL, "A cat, I guess.")
    done = ask(seen, scripted_openai, "What colour is it?", "--attach", "cat.png")
    assert done.status == 0
    assert "A cat, I guess.\n\n[Not shown to scripted, only named: cat.png.]" in done.out
    assert "! images were refused: HTTP 400" in done.out
    assert "not a multimodal model" in done.out
    assert shown(scripted_openai) == []
    assert "cat.png, image/png" in last_text(scripted_openai)
    assert "do not guess" in last_text(scripted_openai)


def test_without_a_model_attachments_are_named_as_unread(seen: CommandLine) -> None:
    done = seen.run("ask", "Read notes.txt", "--attach", "cat.png")
    assert "Attachments were not read, because no language model is configured: cat.png." in done.out


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("none.png", None),
        ("cat.pdf", b"%PDF-1.7\x00\xff"),
    ],
)
def test_an_unusable_attachment_is_one_line(cli: CommandLine, name: str, data: bytes | None) -> None:
    if data is not None:
        (cli.folder / name).write_bytes(data)
    done = cli.run("ask", "What is it?", "--attach", name)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert name in done.err


def test_in_a_chat_a_file_is_attached_to_the_next_message(seen: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    scripted_openai.script(NO_TOOL, "It is grey.", NO_TOOL, "Nothing.")
    variables = {"OPENAI_BASE_URL": scripted_openai.base_url, "NO_PROXY": "127.0.0.1"}
    with chatting(seen, "--prime", "openai:scripted", **variables) as child:
        for text, answer in (
            ("/attach none.png", "none.png cannot be attached"),
            ("/attach cat.png", "cat.png is attached"),
            ("What colour is it?", "It is grey."),
            ("Tell me something about it", "Nothing."),
        ):
            child.sendline(text)
            child.expect_exact(answer)
            child.expect("you> ")
    assert [CAT] in [shown(scripted_openai, number) for number in range(len(scripted_openai.requests) - 1)]
    assert "attached earlier: cat.png" in last_text(scripted_openai)  # a later question may still be about the image
